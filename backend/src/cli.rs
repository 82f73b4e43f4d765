//! The commands of the binary. Each reads the settings, does one thing and ends; `serve` runs until it is stopped.

mod models;
mod settings;

use std::{io::Write as _, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use colloquy_base::names;
use tokio::runtime::{Builder, Runtime};

use crate::{
    Config,
    accounts::{
        DataScope, Directory, PartnerId, Principal, Scope, Tenant,
        keys::{self, KeyKind, NewKey, StoredKey},
        partners::{self, PartnerChange},
        routes::expiry,
    },
    app,
    clock::{SystemClock, rfc3339},
    digitize::{DocumentDecoder, SoundDecoder},
    kernel::Base,
    observability,
    sandbox::{
        child::{self, ChildLimits, ProgramArguments},
        withhold_descriptors,
    },
    server, speech,
    store::{Migrated, Slice, Store},
};

/// How long threads may take to end after a command. A server allows for it (`server/start.rs`).
pub(crate) const THREADS_LIMIT: Duration = Duration::from_millis(250);

/// Voice calls with AI characters.
#[derive(Debug, Parser)]
#[command(name = "colloquy", version)]
pub struct Cli {
    /// A TOML file with settings; `COLLOQUY_*` variables override it.
    #[arg(long, value_name = "FILE", env = "COLLOQUY_CONFIG", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server; the database is migrated first.
    Serve,
    /// Bring the database's schema up to date.
    Migrate,
    /// Manage partners.
    #[command(subcommand)]
    Partner(PartnerCommand),
    /// Manage API keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Manage neural models.
    #[command(subcommand)]
    Models(models::ModelsCommand),
    /// Print all settings with their values, defaults and origins; secrets are not shown.
    Settings(settings::SettingsArguments),
    /// Print the OpenAPI document.
    Openapi,
    /// Decode what is not trusted; the server runs this by itself.
    #[command(hide = true)]
    Decode(Decode),
}

#[derive(Debug, Args)]
struct Decode {
    #[command(flatten)]
    limits: ChildLimits,
    #[command(subcommand)]
    what: Decoder,
}

#[derive(Debug, Subcommand)]
enum Decoder {
    /// A file of sound.
    Audio(speech::AudioDecoder),
    /// A document.
    Document(DocumentDecoder),
    /// The sound of a recording or a film.
    Sound(SoundDecoder),
    /// Become a program that is not ours, with limits.
    Program(ProgramArguments),
}

#[derive(Debug, Subcommand)]
enum PartnerCommand {
    /// Make a partner and print its first key, this once.
    Create {
        /// The identifier: 1 to 64 of a-z, 0-9, - and _.
        name: String,
        /// What people call it.
        #[arg(long)]
        display_name: Option<String>,
        /// Print the key only.
        #[arg(long)]
        quiet: bool,
    },
    /// List the partners.
    List,
    /// Delete a partner with its keys and characters.
    Delete {
        /// The identifier.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Make a key and print it, this once.
    Create(KeyCreate),
    /// List the keys of a partner, or the admin keys.
    List {
        /// The partner; the admin keys without it.
        #[arg(long)]
        partner: Option<String>,
    },
    /// Revoke a key.
    Revoke {
        /// The key's id: the middle part of the key.
        id: String,
        /// The partner; an admin key without it.
        #[arg(long)]
        partner: Option<String>,
    },
}

#[derive(Debug, Args)]
struct KeyCreate {
    /// A key that reaches all partners.
    #[arg(long, required_unless_present = "partner", conflicts_with_all = ["partner", "publishable"])]
    admin: bool,
    /// The partner whose key it is.
    #[arg(long)]
    partner: Option<String>,
    /// A key that pages may show: for calls only, from --origin only.
    #[arg(long, requires = "origin")]
    publishable: bool,
    /// An origin whose pages may use the key; may be repeated.
    #[arg(long, requires = "publishable")]
    origin: Vec<String>,
    /// calls, characters, webhooks, keys, speech, messaging, knowledge, transcripts, analyses or voices; may be repeated. Everything without it.
    #[arg(long, value_parser = parse_scope)]
    scope: Vec<Scope>,
    /// When it ends, in days from now.
    #[arg(long, value_name = "DAYS")]
    expires_in: Option<u32>,
    /// What people call it.
    #[arg(long, default_value = "")]
    name: String,
    /// Print the key only.
    #[arg(long)]
    quiet: bool,
}

fn parse_scope(text: &str) -> Result<Scope, String> {
    serde_json::from_value(serde_json::Value::String(text.to_owned()))
        .map_err(|error| error.to_string())
}

/// Runs the command that the arguments of this process name.
pub(crate) fn run() -> ExitCode {
    withhold_descriptors();
    let cli = Cli::parse();
    // A child that decodes needs no runtime, whose threads would only take from its limits.
    if let Some(decoded) = decode(&cli) {
        return decoded.unwrap_or_else(|error| fail(&error));
    }
    let runtime = match Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    match finish(runtime, command(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Runs a command to its end. What still runs then is dropped. Threads that block, such as one of a server that waits for the search index to be
/// written, are not waited for, as dropping the runtime would: they end with the process.
fn finish<T>(runtime: Runtime, command: impl Future<Output = T>) -> T {
    let ended = runtime.block_on(command);
    runtime.shutdown_timeout(THREADS_LIMIT);
    ended
}

/// The last word of a failed command, also before logs are set up.
fn fail(error: &anyhow::Error) -> ExitCode {
    note(&format!("{error:#}"));
    ExitCode::FAILURE
}

/// Does the work of a child that decodes, if that is asked for.
fn decode(cli: &Cli) -> Option<anyhow::Result<ExitCode>> {
    let Command::Decode(Decode { limits, what }) = &cli.command else {
        return None;
    };
    Some(match what {
        Decoder::Audio(audio) => child::run(limits, |file| audio.decode(&file)),
        Decoder::Document(document) => child::run(limits, |file| document.decode(&file)),
        Decoder::Sound(sound) => child::run(limits, |file| sound.decode(&file)),
        Decoder::Program(program) => child::become_program(limits, program),
    })
}

/// Runs a command that is not a child's.
async fn command(cli: Cli) -> anyhow::Result<()> {
    if let Command::Openapi = cli.command {
        return print(server::openapi::document_json()?.trim_end());
    }
    let config = Config::load(cli.config.as_deref())?;
    observability::init_logs(&config.log)?;
    match cli.command {
        Command::Serve => server::run(config).await,
        Command::Migrate => {
            let (_, migrated) = migrate(&config).await?;
            print(&migration_report(&migrated))
        }
        Command::Partner(command) => {
            let directory = open(config).await?;
            partner(&directory, command).await
        }
        Command::Key(command) => {
            let directory = open(config).await?;
            key(&directory, command).await
        }
        Command::Models(command) => models::run(&config, command).await,
        Command::Settings(arguments) => settings::run(&config, &arguments),
        // Both were done before.
        Command::Openapi | Command::Decode(_) => Ok(()),
    }
}

/// What a command works on.
async fn open(config: Config) -> anyhow::Result<Directory> {
    let (store, _) = migrate(&config).await?;
    Ok(app::directory(Base::new(
        config,
        store,
        Arc::new(SystemClock),
    )))
}

/// Opens the database and brings its schema up to date. Says which database that is: in another folder, or without the
/// server's settings, it is another one than the server's.
async fn migrate(config: &Config) -> anyhow::Result<(Store, Migrated)> {
    let place = config.store.place();
    let is_new = config.store.file().is_some_and(|file| !file.exists());
    let store = config.store.open().await?;
    if is_new {
        note(&format!(
            "made a new database, {place}; only a server with the same store.dir or store.database_url reads it"
        ));
    } else {
        note(&format!("database: {place}"));
    }
    let migrated = store.migrate().await?;
    Ok((store, migrated))
}

/// What a person reads of a migration.
fn migration_report(migrated: &Migrated) -> String {
    let Migrated { had, run } = migrated;
    let version = had + run.len();
    match run.len() {
        0 => format!("nothing to do: the schema is at migration {version}"),
        1 => format!(
            "the schema is at migration {version} now; run: {}",
            run.join(", ")
        ),
        count => format!(
            "the schema is at migration {version} now; run, {count} of them: {}",
            run.join(", ")
        ),
    }
}

/// Tells the person at the terminal, beside the output that a script reads.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "colloquy: {text}");
}

/// What the person at the terminal may do: everything.
fn operator() -> Principal {
    Principal {
        key_id: "terminal".to_owned(),
        reach: DataScope::Admin,
        scopes: None,
        allowed_origins: None,
        partner_rate: None,
    }
}

fn tenant(partner: &str) -> anyhow::Result<Tenant> {
    Ok(operator().tenant(&PartnerId::parse(partner)?)?)
}

async fn partner(directory: &Directory, command: PartnerCommand) -> anyhow::Result<()> {
    match command {
        PartnerCommand::Create {
            name,
            display_name,
            quiet,
        } => {
            let change = PartnerChange {
                display_name,
                settings: None,
            };
            let (partner, key) =
                partners::create(directory, PartnerId::parse(&name)?, change).await?;
            if !quiet {
                print(&format!(
                    "partner {} made; its key is shown this once:",
                    partner.id.as_str()
                ))?;
            }
            print(&key)
        }
        PartnerCommand::List => {
            let listed = partners::list(directory, &operator(), &Slice::all()).await?;
            print(&PARTNER_COLUMNS.join("\t"))?;
            for partner in listed {
                let limit = partner.storage_limit(&directory.config.limits);
                let columns: [String; PARTNER_COLUMNS.len()] = [
                    partner.id.as_str().to_owned(),
                    rfc3339(partner.created_at),
                    partner.display_name.clone(),
                    format!("{} of {limit} bytes stored", partner.stored_bytes),
                ];
                print(&row(&columns))?;
            }
            Ok(())
        }
        PartnerCommand::Delete { name } => Ok(partners::delete(directory, &tenant(&name)?).await?),
    }
}

/// The header of `partner list`.
const PARTNER_COLUMNS: [&str; 4] = ["ID", "CREATED", "DISPLAY NAME", "STORAGE"];

async fn key(directory: &Directory, command: KeyCommand) -> anyhow::Result<()> {
    match command {
        KeyCommand::Create(arguments) => create_key(directory, arguments).await,
        KeyCommand::List { partner } => {
            let tenant = partner.as_deref().map(tenant).transpose()?;
            let listed = keys::list(directory, tenant.as_ref(), &Slice::all()).await?;
            print(&KEY_COLUMNS.join("\t"))?;
            for key in listed {
                print(&key_line(&key))?;
            }
            Ok(())
        }
        KeyCommand::Revoke { id, partner } => {
            let tenant = partner.as_deref().map(tenant).transpose()?;
            Ok(keys::revoke(directory, tenant.as_ref(), &id).await?)
        }
    }
}

async fn create_key(directory: &Directory, arguments: KeyCreate) -> anyhow::Result<()> {
    let kind = match (arguments.admin, arguments.publishable) {
        (true, _) => KeyKind::Admin,
        (false, true) => KeyKind::Publishable,
        (false, false) => KeyKind::Secret,
    };
    let new = NewKey {
        kind,
        tenant: arguments.partner.as_deref().map(tenant).transpose()?,
        name: arguments.name,
        scopes: (!arguments.scope.is_empty()).then_some(arguments.scope),
        allowed_origins: arguments.origin,
        expires_at: expiry(directory, arguments.expires_in)?,
    };
    let (key, text) = keys::create(directory, new).await?;
    if !arguments.quiet {
        print(&format!("key {} made; it is shown this once:", key.id))?;
    }
    print(&text)
}

/// The header of `key list`.
const KEY_COLUMNS: [&str; 8] = [
    "ID",
    "KIND",
    "CREATED",
    "EXPIRES",
    "LAST USED",
    "SCOPES",
    "ORIGINS",
    "NAME",
];

fn key_line(key: &StoredKey) -> String {
    let expires = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", rfc3339(at)),
        (None, Some(at)) => rfc3339(at),
        (None, None) => "never".to_owned(),
    };
    let used = key.last_used_at.map_or_else(|| "never".to_owned(), rfc3339);
    let scopes = key.scopes.as_ref().map_or_else(
        || "all".to_owned(),
        |scopes| {
            let names: Vec<String> = scopes.iter().map(scope_name).collect();
            names.join(",")
        },
    );
    let origins = key.allowed_origins.as_deref().unwrap_or_default().join(",");
    let columns: [String; KEY_COLUMNS.len()] = [
        key.id.clone(),
        format!("{:?}", key.kind).to_lowercase(),
        rfc3339(key.created_at),
        expires,
        used,
        scopes,
        if origins.is_empty() {
            "-".to_owned()
        } else {
            origins
        },
        key.name.clone(),
    ];
    row(&columns)
}

/// A row of a table. What would end it, or move the cursor of a terminal, is escaped: a name may be older than the check of its characters.
fn row(columns: &[String]) -> String {
    let escaped = |column: &String| -> String {
        let pieces = column.chars().map(|c| match names::is_hidden(c) {
            true => c.escape_default().to_string(),
            false => c.to_string(),
        });
        pieces.collect()
    };
    let columns: Vec<String> = columns.iter().map(escaped).collect();
    columns.join("\t")
}

/// The name as `--scope` takes it.
fn scope_name(scope: &Scope) -> String {
    match serde_json::to_value(scope) {
        Ok(serde_json::Value::String(name)) => name,
        _ => format!("{scope:?}"),
    }
}

fn print(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{line}").context("cannot write to standard output")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_commands_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_thread_that_blocks_does_not_hold_the_process_up() {
        let (held, blocked) = std::sync::mpsc::channel::<()>();
        let runtime = Builder::new_multi_thread().build().unwrap();
        let (began, begun) = tokio::sync::oneshot::channel();
        let ended = finish(runtime, async {
            tokio::task::spawn_blocking(move || {
                let _ = began.send(());
                let _ = blocked.recv();
            });
            begun.await
        });
        ended.unwrap();
        drop(held);
    }

    #[test]
    fn a_migration_tells_what_it_did() {
        let report = |had, run: &[&'static str]| {
            migration_report(&Migrated {
                had,
                run: run.to_vec(),
            })
        };
        assert!(report(30, &[]).starts_with("nothing to do"));
        let done = report(28, &["0029_resumed_work", "0030_nodes"]);
        assert!(done.contains("migration 30") && done.ends_with("0029_resumed_work, 0030_nodes"));
    }

    #[test]
    fn a_table_has_a_row_a_line_and_no_terminal_escapes() {
        let columns = ["Łódź 1", "a\nb\tc\r", "\u{1b}[2J\u{9b}\u{2028}\u{202e}"].map(str::to_owned);
        assert_eq!(
            row(&columns),
            "Łódź 1\ta\\nb\\tc\\r\t\\u{1b}[2J\\u{9b}\\u{2028}\\u{202e}"
        );
    }

    #[test]
    fn a_key_is_either_of_an_operator_or_of_a_partner() {
        let parse = |arguments: &str| Cli::try_parse_from(arguments.split(' '));
        assert!(parse("colloquy key create --admin").is_ok());
        assert!(parse("colloquy key create --partner acme --scope calls").is_ok());
        assert!(parse("colloquy key create").is_err());
        assert!(parse("colloquy key create --admin --partner acme").is_err());
        assert!(parse("colloquy key create --partner acme --publishable").is_err());
        assert!(parse("colloquy key create --partner acme --scope nothing").is_err());
    }
}
