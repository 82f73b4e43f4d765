//! Conversations with `builtin/extractive`: a release `colloquy serve` as a process of its own, characters with knowledge bases, and one client, which
//! asks `/v3/responses` turn by turn, with all earlier turns and answers.
//!
//! 200 turns in 20 conversations over five characters (a shop, a library, a hotel, the demo's guide and a figure of a story), and 40 questions that no
//! document answers. Rules judge the answers ([`mod@judge`]).
//!
//! | figure | what it is |
//! |---|---|
//! | `acceptable` | percentage of the 200 turns whose answers break no rule |
//! | `contradicted` | number of answers to all 240 that hold a phrase which contradicts the documents or the visitor |
//! | `declined` | percentage of the 40 questions that are declined: shortly, without sources or figures, in other words than the time before |
//! | `p50_ms` | median of all 240 answers, from the request to its last byte: search, answer and storing of usage |
//! | `hard`, `kinds`, `characters` | acceptable answers of these turns |
//!
//! With `--check` the exit code is 1 unless at least 90 % are acceptable, none is contradicted, at least 95 % are declined, and the median is at most 40 ms.

mod judge;
mod report;
mod set;
mod words;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::Args;
use harness::client::now;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use self::{
    judge::judge,
    report::{Judged, Report},
    set::{Character, Turn},
};
use crate::server::{Server, Start};

/// The partner that [`Server::start`] makes.
const PARTNER: &str = "bench";

/// How long the documents of a character may take until they can be found.
const READY: Duration = Duration::from_secs(120);

/// Options of the benchmark.
#[derive(Debug, Args)]
pub(crate) struct ConverseOptions {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Exit with 1 if a target is missed.
    #[arg(long)]
    check: bool,
    /// Show every answer that breaks a rule, and which.
    #[arg(long)]
    verbose: bool,
    /// Ask only characters and conversations whose `character/conversation` contains this.
    #[arg(long)]
    only: Option<String>,
    /// The folder with the models; without one, words alone find passages.
    #[arg(long, env = "COLLOQUY_MODELS_DIR")]
    models: Option<PathBuf>,
    /// Leave the models out.
    #[arg(long)]
    without_models: bool,
    /// Show the server's log and its process id.
    #[arg(long)]
    debug: bool,
    /// The server to measure; the `colloquy` beside this program unless given.
    #[arg(long)]
    server: Option<PathBuf>,
}

/// Runs the benchmark.
///
/// # Errors
/// The server does not start, a document cannot be read, or a request fails.
pub(crate) async fn run(options: ConverseOptions) -> anyhow::Result<Report> {
    let server = start(&options).await?;
    let key = create_key(&server).await?;
    let (mut turns, mut unanswerable) = (Vec::new(), Vec::new());
    for name in set::NAMES {
        let character = set::read(&set::folder(), name)?;
        let wanted = |about: &str| {
            let place = format!("{name}/{about}");
            let is_wanted = options
                .only
                .as_ref()
                .is_none_or(|only| place.contains(only.as_str()));
            is_wanted.then_some(place)
        };
        let mut conversations = Vec::new();
        for it in &character.conversations {
            conversations.extend(wanted(&it.about).map(|place| (place, it.turns.clone())));
        }
        let unknown = wanted("unanswerable");
        if conversations.is_empty() && unknown.is_none() {
            continue;
        }
        create_character(&server, name, &character).await?;
        let visitor = Visitor {
            server: &server,
            key: &key,
            character: format!("repo:{PARTNER}/{name}"),
            titles: &character.titles,
        };
        for (place, conversation) in conversations {
            turns.extend(visitor.converse(&place, conversation).await?);
        }
        if let Some(place) = unknown {
            let questions = character.unanswerable.iter();
            let questions = questions.map(|it| Turn::unanswerable(it)).collect();
            unanswerable.extend(visitor.converse(&place, questions).await?);
        }
    }
    server.stop().await?;
    let report = Report::new(turns, unanswerable);
    Ok(report.shown(options.json, options.verbose, options.check))
}

async fn start(options: &ConverseOptions) -> anyhow::Result<Server> {
    let mut settings = vec![
        (
            "COLLOQUY_LIMITS_REQUESTS_PER_MINUTE".to_owned(),
            "1000000".to_owned(),
        ),
        (
            "COLLOQUY_LIMITS_REQUEST_BURST".to_owned(),
            "1000000".to_owned(),
        ),
    ];
    if options.without_models {
        settings.push(("COLLOQUY_EMBEDDER_MODEL".to_owned(), "none".to_owned()));
    } else if let Some(models) = &options.models {
        settings.push((
            "COLLOQUY_MODELS_DIR".to_owned(),
            models.display().to_string(),
        ));
    }
    Server::start(Start {
        program: options.server.as_deref(),
        debug: options.debug,
        settings,
        ..Start::default()
    })
    .await
}

/// Creates a key for text generation with the characters of the partner.
async fn create_key(server: &Server) -> anyhow::Result<String> {
    let body = json!({
        "name": "converse",
        "kinds": ["text"],
        "allowed_characters": [format!("repo:{PARTNER}/*")],
    });
    let quota = server.post(&format!("/api/quotas/{PARTNER}"), body).await?;
    let key = quota["api_key"].as_str();
    Ok(key.context("the quota has no key")?.to_owned())
}

/// Creates the character and its base, and waits until all documents can be found.
async fn create_character(
    server: &Server,
    name: &str,
    character: &Character,
) -> anyhow::Result<()> {
    let folder = match name {
        "guide" => examples().join("knowledge"),
        _ => set::folder().join(name),
    };
    create_base(server, name, &folder).await?;
    let mut body: Value = match name {
        "guide" => serde_json::from_slice(&fs::read(examples().join("character.json"))?)?,
        _ => character.character.clone(),
    };
    body["name"] = json!(name);
    body["parameters"]["rag_enabled"] = json!(true);
    body["parameters"]["rag_index_required"] = json!(format!("{PARTNER}/{name}"));
    let path = format!("/api/characters/{PARTNER}");
    server.post(&path, body).await?;
    Ok(())
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

async fn create_base(server: &Server, name: &str, folder: &Path) -> anyhow::Result<()> {
    let base = format!("{PARTNER}/{name}");
    let path = format!("/api/knowledgebases/{PARTNER}");
    let form = Form::new().text("name", name.to_owned());
    server.post_form(&path, form).await?;
    let form = Form::new().text("name", "handbook");
    server
        .post_form(&format!("/api/folders/{base}"), form)
        .await?;
    let documents = format!("/api/documents/{base}");
    let mut files = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<Vec<PathBuf>>>()?;
    files.sort();
    for file in files {
        let file_name = file.file_name().context("a file without a name")?;
        let part =
            Part::bytes(fs::read(&file)?).file_name(file_name.to_string_lossy().into_owned());
        let form = Form::new()
            .text("type", "file")
            .text("folder", "handbook")
            .text("use_original_as_rewritten", "true")
            .part("file", part);
        server.post_form(&documents, form).await?;
    }
    let until = now() + READY;
    loop {
        let listed = server.get(&documents).await?;
        let listed = listed["documents"].as_array().context("no documents")?;
        if let Some(failed) = listed.iter().find(|it| it["status"] == "failed") {
            bail!(
                "{} cannot be read: {}",
                failed["name"],
                failed["processing_error"]
            );
        }
        if listed.iter().all(|it| it["status"] == "ready") {
            return Ok(());
        }
        if now() > until {
            bail!("the documents of {base} are not ready in time");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A visitor of a character.
#[derive(Debug)]
struct Visitor<'a> {
    server: &'a Server,
    key: &'a str,
    character: String,
    /// Titles that refusals must not show.
    titles: &'a [String],
}

impl Visitor<'_> {
    /// Says all turns of a conversation, and judges the answers.
    async fn converse(&self, place: &str, turns: Vec<Turn>) -> anyhow::Result<Vec<Judged>> {
        let mut messages = Vec::new();
        let mut refused: Option<String> = None;
        let mut judged = Vec::new();
        for turn in turns {
            messages.push(json!({"role": "user", "content": turn.says}));
            let begun = now();
            let answer = self.ask(&messages).await;
            let answer = answer.with_context(|| format!("{place}: {}", turn.says))?;
            let took = begun.elapsed();
            messages.push(json!({"role": "assistant", "content": answer}));
            let verdict = judge(&turn, &answer, self.titles, refused.as_deref());
            if verdict.is_refusal {
                refused = Some(answer.clone());
            }
            judged.push(Judged {
                place: place.to_owned(),
                turn,
                answer,
                verdict,
                took,
            });
        }
        Ok(judged)
    }

    async fn ask(&self, messages: &[Value]) -> anyhow::Result<String> {
        let body = json!({
            "model": "builtin/extractive",
            "input": messages,
            "store": false,
            "metadata": {"svc": {"character": self.character}},
        });
        let answer = self
            .server
            .post_with(self.key, "/v3/responses", &body)
            .await?;
        let output = answer["output"].as_array().and_then(|it| it.last());
        let text = output.and_then(|it| it["content"][0]["text"].as_str());
        Ok(text.context("the response has no text")?.to_owned())
    }
}
