//! The commands of the binary. Each reads the settings, does one thing and ends; `serve` runs until it is stopped.

use std::{io::Write as _, path::PathBuf, sync::Arc};

use anyhow::{Context as _, anyhow};
use clap::{Args, Parser, Subcommand};

use crate::{
    Config,
    accounts::{
        PartnerId, Principal, Reach, Scope, Tenant,
        keys::{self, KeyKind, NewKey, StoredKey},
        partners::{self, PartnerChange},
        routes::expiry,
    },
    app::Base,
    clock::{SystemClock, rfc3339},
    http::{ApiError, openapi},
    observability, start,
    store::Store,
};

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
    /// Print the OpenAPI document.
    Openapi,
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
    /// calls, characters, webhooks, keys, speech or messaging; may be repeated. Everything without it.
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

/// Runs one command.
pub(crate) async fn run(cli: Cli) -> anyhow::Result<()> {
    if let Command::Openapi = cli.command {
        return print(openapi::document_json()?.trim_end());
    }
    let config = Config::load(cli.config.as_deref())?;
    observability::init_logs(&config.log)?;
    match cli.command {
        Command::Serve => start::run(config).await,
        Command::Migrate => Store::open(&config.store).await?.migrate().await,
        Command::Partner(command) => {
            let base = open(config).await?;
            partner(&base, command).await.map_err(plain)
        }
        Command::Key(command) => {
            let base = open(config).await?;
            key(&base, command).await.map_err(plain)
        }
        Command::Openapi => Ok(()),
    }
}

/// What a command works on.
async fn open(config: Config) -> anyhow::Result<Base> {
    let store = Store::open(&config.store).await?;
    store.migrate().await?;
    Ok(Base::new(config, store, Arc::new(SystemClock)))
}

/// An error without its code.
fn plain(error: ApiError) -> anyhow::Error {
    match (&error.field, &error.source) {
        (Some(field), _) => anyhow!("{field}: {}", error.message),
        (None, Some(source)) => anyhow!("{}: {source}", error.message),
        (None, None) => anyhow!(error.message),
    }
}

/// What the person at the terminal may do: everything.
fn operator() -> Principal {
    Principal {
        key_id: "terminal".to_owned(),
        reach: Reach::Admin,
        scopes: None,
        allowed_origins: None,
    }
}

fn tenant(partner: &str) -> Result<Tenant, ApiError> {
    operator().tenant(&PartnerId::parse(partner)?)
}

async fn partner(base: &Base, command: PartnerCommand) -> Result<(), ApiError> {
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
            let (partner, key) = partners::create(base, PartnerId::parse(&name)?, change).await?;
            if !quiet {
                print(&format!(
                    "partner {} made; its key is shown this once:",
                    partner.id.as_str()
                ))
                .map_err(internal)?;
            }
            print(&key).map_err(internal)
        }
        PartnerCommand::List => {
            for partner in partners::list(base, &operator()).await? {
                let line = format!(
                    "{}\t{}\t{}",
                    partner.id.as_str(),
                    rfc3339(partner.created_at),
                    partner.display_name
                );
                print(&line).map_err(internal)?;
            }
            Ok(())
        }
        PartnerCommand::Delete { name } => partners::delete(base, &tenant(&name)?).await,
    }
}

async fn key(base: &Base, command: KeyCommand) -> Result<(), ApiError> {
    match command {
        KeyCommand::Create(arguments) => create_key(base, arguments).await,
        KeyCommand::List { partner } => {
            let tenant = partner.as_deref().map(tenant).transpose()?;
            for key in keys::list(base, tenant.as_ref()).await? {
                print(&key_line(&key)).map_err(internal)?;
            }
            Ok(())
        }
        KeyCommand::Revoke { id, partner } => {
            let tenant = partner.as_deref().map(tenant).transpose()?;
            keys::revoke(base, tenant.as_ref(), &id).await
        }
    }
}

async fn create_key(base: &Base, arguments: KeyCreate) -> Result<(), ApiError> {
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
        expires_at: expiry(base, arguments.expires_in)?,
    };
    let (key, text) = keys::create(base, new).await?;
    if !arguments.quiet {
        print(&format!("key {} made; it is shown this once:", key.id)).map_err(internal)?;
    }
    print(&text).map_err(internal)
}

fn key_line(key: &StoredKey) -> String {
    let state = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", rfc3339(at)),
        (None, Some(at)) => format!("until {}", rfc3339(at)),
        (None, None) => "no end".to_owned(),
    };
    let used = key.last_used_at.map_or_else(|| "never".to_owned(), rfc3339);
    format!(
        "{}\t{:?}\t{}\t{state}\tused {used}\t{}",
        key.id,
        key.kind,
        rfc3339(key.created_at),
        key.name
    )
}

fn print(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{line}").context("cannot write to standard output")
}

fn internal(error: anyhow::Error) -> ApiError {
    ApiError::internal(error)
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
