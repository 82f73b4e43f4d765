//! The models and services of the node that answers: where each is, what it costs, and whether requests reach it.

use std::time::{Duration, Instant};

use axum::{Json, extract::State};
use serde::Serialize;
use url::Url;
use utoipa::ToSchema;

use super::AnsweringNode;
use crate::{
    accounts::Caller,
    app::App,
    clock::rfc3339,
    config::EMBEDDED_MODEL,
    http::ApiError,
    money::Usd,
    providers::{
        LastContact, Model, ModelApi, Rests,
        embedded::{ESPEAK, POCKETSPHINX},
    },
    server::{equipment::Equipment, health::Memory},
};

/// The models and services of the node that answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SystemModels {
    answered_by: AnsweringNode,
    /// The time of the answer by the clock of the node, as all times here, RFC 3339.
    at: String,
    models: Vec<SystemModel>,
    /// The programs and models that the node found, and those that it lacks, with the commands that install them; null until it has searched for them
    /// after its start.
    equipment: Option<Vec<Equipment>>,
    memory: Memory,
}

/// The purpose of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModelPurpose {
    /// Text generation.
    Text,
    /// Speech to text.
    Transcription,
    /// Text to speech.
    Speech,
    /// Texts as vectors.
    Embedding,
    /// Voices of recordings.
    Voices,
    /// Vector stores of knowledge bases.
    Vectorstore,
}

/// A model or service.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SystemModel {
    purpose: ModelPurpose,
    /// The public name of the model or service.
    name: String,
    /// The parts of the server that use the model, beside requests that name it: `calls`, `rewriting`, `analyses`; empty if none does.
    used_for: Vec<&'static str>,
    /// `service` for a server elsewhere, `embedded` for a part of this server, `program` for a program of the system.
    provider: &'static str,
    /// The API of a service of text generation: `chat` or `responses`; null for all others.
    api: Option<&'static str>,
    /// The host of a service, with its port unless that is the default of the scheme; null for `embedded` and `program`.
    host: Option<String>,
    /// The prices of the settings; empty if they name none.
    prices: Vec<ModelPrice>,
    /// The size of the loaded weights of an embedded neural model, in bytes; null for all others.
    memory_bytes: Option<u64>,
    /// The last answer and failure in requests of this node; null if they are not noted.
    reach: Option<ModelReach>,
}

/// The unit of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PriceUnit {
    MillionInputTokens,
    MillionCachedInputTokens,
    MillionOutputTokens,
    MillionReasoningTokens,
    MillionCharacters,
    Hour,
}

/// A price for one unit, in US dollars.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelPrice {
    unit: PriceUnit,
    usd: Usd,
}

/// The reachability of a model, as the requests of this node found it. The model is not probed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelReach {
    /// `unused` before the first request; `answering`; `failing` if the last request got no answer; `resting` while no requests are sent to it, after
    /// failures in a row.
    state: &'static str,
    /// Milliseconds until the model gets requests again; null unless it is `resting`.
    resting_ms: Option<u64>,
    /// The number of partners for which the model rests because of their own requests.
    resting_partners: usize,
    /// The time of the last answer, RFC 3339; a refusal is an answer. Null before the first one.
    answered_at: Option<String>,
    /// The time of the last failure, RFC 3339; null before the first one.
    failed_at: Option<String>,
    /// The kind of the last failure: `connect`, `timeout`, `rate_limited`, `rejected`, `misconfigured`, `failed`, `malformed`, `empty` or `cut`; null before
    /// the first one.
    failure: Option<&'static str>,
}

/// Lists the models and services of the node that answers; administrators only.
#[utoipa::path(get, path = "/api/system/models", tag = "operations", responses((status = 200, body = SystemModels)))]
pub(super) async fn list_system_models(
    State(app): State<App>,
    Caller(principal): Caller,
) -> Result<Json<SystemModels>, ApiError> {
    principal.require_admin()?;
    let text = app
        .providers
        .models
        .all()
        .map(|model| text_model(&app, model));
    let others = [
        Some(transcriber(&app)),
        Some(synthesizer(&app)),
        embedder(&app),
        voice_worker(&app),
        vectorstore(&app),
    ];
    Ok(Json(SystemModels {
        answered_by: AnsweringNode::of(&app),
        at: rfc3339(app.clock.now_ms()),
        models: text.chain(others.into_iter().flatten()).collect(),
        equipment: app.equipment.get().cloned(),
        memory: Memory::of(&app),
    }))
}

fn text_model(app: &App, model: &Model) -> SystemModel {
    let name = model.name();
    let settings = &model.settings;
    let now = app.clock.instant();
    let contact = model.health.contact().last();
    SystemModel {
        used_for: uses(app, name),
        api: settings.base_url.as_ref().map(|_| match settings.api {
            ModelApi::Chat => "chat",
            ModelApi::Responses => "responses",
        }),
        prices: prices([
            (PriceUnit::MillionInputTokens, settings.input_usd),
            (
                PriceUnit::MillionCachedInputTokens,
                settings.cached_input_usd,
            ),
            (PriceUnit::MillionOutputTokens, settings.output_usd),
            (PriceUnit::MillionReasoningTokens, settings.reasoning_usd),
        ]),
        reach: Some(reach(app, contact, model.health.rests(now))),
        ..service(app, ModelPurpose::Text, name, settings.base_url.as_ref())
    }
}

/// Returns what asks a model of text generation besides clients.
fn uses(app: &App, name: &str) -> Vec<&'static str> {
    let config = &app.config;
    let calls = app.providers.models.of_calls().name();
    let rewriting = &config.rewriting;
    // The embedded model does not rewrite.
    let standard = rewriting.model.as_deref();
    let standard = standard.or((calls != EMBEDDED_MODEL).then_some(calls));
    let economy = rewriting.economy_model.as_deref();
    let backup = rewriting.backup_model.as_deref();
    let analyses = config.analyses.model.as_deref().unwrap_or(calls);
    let uses = [
        ("calls", calls == name),
        (
            "rewriting",
            [standard, economy, backup].contains(&Some(name)),
        ),
        ("analyses", analyses == name),
    ];
    let used = uses.into_iter().filter(|(_, is_used)| *is_used);
    used.map(|(what, _)| what).collect()
}

fn transcriber(app: &App) -> SystemModel {
    let (config, transcriber) = (&app.config.transcriber, &app.providers.transcriber);
    SystemModel {
        used_for: vec!["calls"],
        prices: prices([(PriceUnit::Hour, config.usd_per_hour)]),
        reach: noted(app, transcriber.last_contact()),
        ..service(
            app,
            ModelPurpose::Transcription,
            transcriber.name(),
            config.base_url.as_ref(),
        )
    }
}

fn synthesizer(app: &App) -> SystemModel {
    let (config, synthesizer) = (&app.config.synthesizer, &app.providers.synthesizer);
    let price = app.config.speech.usd_per_1m_characters;
    SystemModel {
        used_for: vec!["calls"],
        prices: prices([(PriceUnit::MillionCharacters, (price.0 > 0).then_some(price))]),
        reach: noted(app, synthesizer.last_contact()),
        ..service(
            app,
            ModelPurpose::Speech,
            synthesizer.name(),
            config.base_url.as_ref(),
        )
    }
}

fn embedder(app: &App) -> Option<SystemModel> {
    let (config, embedder) = (&app.config.embedder, app.providers.embedder.as_ref()?);
    Some(SystemModel {
        prices: prices([(PriceUnit::MillionInputTokens, config.input_usd)]),
        reach: noted(app, embedder.last_contact()),
        ..service(
            app,
            ModelPurpose::Embedding,
            embedder.name(),
            config.base_url.as_ref(),
        )
    })
}

fn voice_worker(app: &App) -> Option<SystemModel> {
    let worker = app.providers.voice_worker.as_ref()?;
    let url = app.config.voice_worker.base_url.as_ref();
    Some(service(app, ModelPurpose::Voices, worker.name(), url))
}

fn vectorstore(app: &App) -> Option<SystemModel> {
    let url = app.config.vectorstore.base_url.as_ref()?;
    let name = "vector stores";
    Some(service(app, ModelPurpose::Vectorstore, name, Some(url)))
}

/// A service of which nothing else is known.
fn service(app: &App, purpose: ModelPurpose, name: &str, url: Option<&Url>) -> SystemModel {
    SystemModel {
        purpose,
        name: name.to_owned(),
        used_for: Vec::new(),
        provider: match url {
            Some(_) => "service",
            None if name == ESPEAK || name == POCKETSPHINX => "program",
            None => "embedded",
        },
        api: None,
        host: url.and_then(host),
        prices: Vec::new(),
        memory_bytes: match url {
            Some(_) => None,
            None => app.providers.model_bytes.get(name).copied(),
        },
        reach: None,
    }
}

/// Returns the host and the port of an address, and nothing else of it.
fn host(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

fn prices<const N: usize>(prices: [(PriceUnit, Option<Usd>); N]) -> Vec<ModelPrice> {
    let known = prices.into_iter();
    let known = known.filter_map(|(unit, usd)| Some(ModelPrice { unit, usd: usd? }));
    known.collect()
}

fn noted(app: &App, contact: Option<LastContact>) -> Option<ModelReach> {
    contact.map(|contact| reach(app, contact, Rests::default()))
}

fn reach(app: &App, contact: LastContact, rests: Rests) -> ModelReach {
    let (now, now_ms) = (app.clock.instant(), app.clock.now_ms());
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let time = |at: Instant| {
        let ago = milliseconds(now.saturating_duration_since(at));
        rfc3339(now_ms.saturating_sub_unsigned(ago))
    };
    ModelReach {
        state: match contact {
            _ if rests.all.is_some() => "resting",
            contact if contact == LastContact::default() => "unused",
            contact if contact.is_failing() => "failing",
            _ => "answering",
        },
        resting_ms: rests.all.map(milliseconds),
        resting_partners: rests.partners,
        answered_at: contact.answered.map(time),
        failed_at: contact.failed.map(|(at, _)| time(at)),
        failure: contact.failed.map(|(_, kind)| kind.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_the_host_is_told() {
        let host = |url: &str| host(&url.parse().unwrap());
        let told = host("https://user:secret@models.example:8443/v1?key=secret");
        assert_eq!(told.as_deref(), Some("models.example:8443"));
        assert_eq!(
            host("https://models.example/v1").as_deref(),
            Some("models.example")
        );
    }
}
