//! `/health`, `/health/deep` and `/metrics`.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt::Display,
    future::ready,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header::CONTENT_TYPE, request::Parts},
    response::{IntoResponse, Response},
};
use futures_util::{future::join_all, join};
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;

use super::system;
use crate::{
    accounts::{Caller, keys},
    app::App,
    config::Secret,
    http::{ApiError, Interface, extract::key_text},
    kernel::{Capability, Routes, router::DescribedRouter, routes},
    observability::resident_bytes,
    providers::VoiceSpeed,
    sandbox,
};

/// What operators ask.
#[derive(Debug)]
pub(super) struct Operations;

#[async_trait::async_trait]
impl Capability<App> for Operations {
    fn name(&self) -> &'static str {
        "operations"
    }

    fn routes(&self) -> Vec<Routes<App>> {
        let routes = DescribedRouter::new()
            .routes(routes!(health))
            .routes(routes!(deep))
            .routes(routes!(metrics));
        vec![
            (Interface::OPERATIONS, routes),
            (Interface::MANAGEMENT, system::routes()),
        ]
    }

    async fn start(&self, app: &App) -> anyhow::Result<()> {
        let measured = app.clone();
        app.kernel
            .repeat("measuring the disk", MEASURED_EVERY, move |_| {
                let app = measured.clone();
                async move {
                    let space = app.blobs.disk().space().await?;
                    app.edge.set_disk_low(space.is_low());
                    if space.is_low() {
                        let told = format!(
                            "{} bytes are free, and store.disk_reserve_bytes keeps {}",
                            space.free, space.reserve
                        );
                        app.store
                            .complain("storing anything, since the disk is nearly full", &told);
                    }
                    Ok::<_, std::io::Error>(())
                }
            });
        let metrics = app.metrics.clone();
        for (model, bytes) in &app.providers.model_bytes {
            ::metrics::gauge!("colloquy_model_bytes", "model" => *model).set(*bytes as f64);
        }
        app.kernel
            .repeat("upkeep of metrics", UPKEEP_EVERY, move |_| {
                metrics.run_upkeep();
                ::metrics::counter!("colloquy_metrics_upkeeps_total").increment(1);
                if let Some(bytes) = resident_bytes() {
                    ::metrics::gauge!("colloquy_process_resident_bytes").set(bytes as f64);
                }
                ready(Ok::<_, Infallible>(()))
            });
        Ok(())
    }
}

/// How often the free space of the disk is measured: so long after it is there again, requests are still refused.
const MEASURED_EVERY: Duration = Duration::from_secs(1);
/// How often samples of metrics are put together.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// How long one dependency may take.
const CHECK_LIMIT: Duration = Duration::from_secs(5);
/// How long an answer is repeated, so that anybody may ask and providers are not asked each time.
const REPEAT_FOR: Duration = Duration::from_secs(2);

/// The process runs.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`, or `draining` once the server is told to stop; the status code is 503 then.
    status: &'static str,
    /// The server's version.
    version: &'static str,
    /// How long it has run, in seconds.
    uptime_seconds: u64,
}

/// The dependencies, asked a moment ago.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct DeepReport {
    /// `ok`; `degraded` if a dependency is degraded and none is down; `down` (503) if one does not answer.
    status: &'static str,
    /// `database`, `files`, `disk`, `search_index`, `chat`, `transcriber`, `synthesizer`, and `embedder`, `vectorstore` and `voice_worker` where there is one.
    checks: BTreeMap<&'static str, Check>,
    /// The models of text generation by name. One that is down is no reason for 503: others may serve.
    models: BTreeMap<String, Check>,
    /// The memory of this process.
    memory: Memory,
    /// Protections that the kernel lacks for confining decoding processes and helper programs: `seccomp`, `landlock` or `landlock_tcp`; or
    /// `confinement` when no process can be confined, and nothing is decoded.
    missing_protection: Vec<&'static str>,
}

/// Memory in bytes.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Memory {
    /// What is resident; null where the system does not tell.
    resident_bytes: Option<u64>,
    /// The weights of each neural model that is loaded, by its name, without what is made of them to compute faster.
    #[schema(value_type = BTreeMap<String, u64>)]
    models: BTreeMap<&'static str, u64>,
}

impl Memory {
    /// The memory of this process.
    pub(super) fn of(app: &App) -> Self {
        Self {
            resident_bytes: resident_bytes(),
            models: app.providers.model_bytes.clone(),
        }
    }
}

/// One dependency.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(super) struct Check {
    /// `up`, `degraded` or `down`. `degraded`: at least one stored file is known to be damaged or lost, the disk is nearly full, or the search
    /// index is being rebuilt or lags behind the documents.
    state: &'static str,
    /// How long it took to answer, in milliseconds.
    time_ms: u64,
    /// What answers: the model, or the program; of the providers alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// How fast the voices of this machine are, as measured at the start, and whether they are used; of the synthesizer alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    voices: Vec<VoiceSpeed>,
    /// Transcriber only: supported language codes; absent if all are supported. Other languages are rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    languages: Option<Vec<&'static str>>,
    /// What is missing, and the command that installs it; of the disk, why new files are refused; of the files, how many are damaged or lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// The last report.
#[derive(Debug, Default)]
pub struct DeepHealth(Mutex<Option<(Instant, DeepReport)>>);

/// Returns 200, or 503 with `draining` once shutdown has begun. Requests are still accepted for `http.lame_duck_seconds`.
#[utoipa::path(
    get,
    path = "/health",
    tag = "operations",
    security(()),
    responses(
        (status = 200, body = Health),
        (status = 503, body = Health, description = "The server is told to stop"),
    )
)]
pub(super) async fn health(State(app): State<App>) -> (StatusCode, Json<Health>) {
    let uptime = app
        .clock
        .instant()
        .saturating_duration_since(app.kernel.started);
    let (code, status) = match app.kernel.leaving.is_cancelled() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        false => (StatusCode::OK, "ok"),
    };
    let health = Health {
        status,
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: uptime.as_secs(),
    };
    (code, Json(health))
}

/// Asks the database, the place of files, the providers, all of which are needed, and the models of text generation. Where
/// `http.health_key` is set, it asks for that key or an admin key.
#[utoipa::path(
    get,
    path = "/health/deep",
    tag = "operations",
    security(()),
    responses(
        (status = 200, body = DeepReport),
        (status = 401, description = "`http.health_key` is set, and the request has neither it nor an API key"),
        (status = 403, description = "`http.health_key` is set, and the API key is no admin key"),
        (status = 503, body = DeepReport),
    )
)]
pub(super) async fn deep(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    require_key(&app, &parts, app.config.http.health_key.as_ref()).await?;
    // Held while asking: whoever comes meanwhile gets the same answer.
    let mut last = app.deep_health.0.lock().await;
    let now = app.clock.instant();
    let report = match last.take() {
        Some((at, report)) if now.saturating_duration_since(at) < REPEAT_FOR => {
            last.insert((at, report)).1.clone()
        }
        _ => last.insert((now, ask(&app).await)).1.clone(),
    };
    let status = match report.status {
        "down" => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    Ok((status, Json(report)).into_response())
}

/// Passes with the key that a setting names, with an admin key, and without any where the setting is unset.
async fn require_key(app: &App, parts: &Parts, key: Option<&Secret>) -> Result<(), ApiError> {
    if key.is_none() {
        return Ok(());
    }
    let given = key_text(parts);
    if given
        .as_deref()
        .is_some_and(|given| keys::is_configured(key, given))
    {
        return Ok(());
    }
    let Caller(principal) = Caller::with_key(parts, app, given.as_deref()).await?;
    Ok(principal.require_admin()?)
}

async fn ask(app: &App) -> DeepReport {
    let models = app.providers.models.all().map(|model| async {
        let name = model.name();
        (name.to_owned(), check(app, name, model.chat.check()).await)
    });
    let embedder = async {
        let embedder = app.providers.embedder.as_ref()?;
        let checked = check(app, "embedder", embedder.check()).await;
        Some(checked.of(embedder.name()))
    };
    let vectorstore = async {
        let vectorstore = app.bases.vectorstore()?;
        Some(check(app, "vectorstore", vectorstore.check()).await)
    };
    let voice_worker = async {
        let worker = app.providers.voice_worker.as_ref()?;
        let checked = check(app, "voice_worker", worker.check()).await;
        Some(checked.of(worker.name()))
    };
    let (database, files, disk, chat, transcriber, synthesizer, embedder, others, models) = join!(
        check(
            app,
            "database",
            app.store.check(&app.kernel.node.id, app.clock.now_ms())
        ),
        check_files(app),
        check_disk(app),
        check(app, "chat", app.providers.chat.check()),
        check(app, "transcriber", app.providers.transcriber.check()),
        check(app, "synthesizer", app.providers.synthesizer.check()),
        embedder,
        async { join!(vectorstore, voice_worker) },
        join_all(models),
    );
    let providers = &app.providers;
    let understood = providers.transcriber.understands();
    let mut checks = BTreeMap::from([
        ("database", database),
        ("files", files),
        ("disk", disk),
        (
            "search_index",
            Check::answered().degraded_if(app.bases.degraded_index().is_some()),
        ),
        ("chat", chat.of(providers.chat.name())),
        (
            "transcriber",
            Check {
                languages: understood.codes(),
                warning: understood.check_detection().err().map(|it| it.to_string()),
                ..transcriber.of(providers.transcriber.name())
            },
        ),
        (
            "synthesizer",
            Check {
                voices: providers.synthesizer.speeds(),
                ..synthesizer.of(providers.synthesizer.name())
            },
        ),
    ]);
    checks.extend(embedder.map(|check| ("embedder", check)));
    let (vectorstore, voice_worker) = others;
    checks.extend(vectorstore.map(|check| ("vectorstore", check)));
    checks.extend(voice_worker.map(|check| ("voice_worker", check)));
    let is_any = |state| checks.values().any(|check| check.state == state);
    let status = match (is_any("down"), is_any("degraded")) {
        (true, _) => "down",
        (false, true) => "degraded",
        (false, false) => "ok",
    };
    DeepReport {
        status,
        checks,
        models: models.into_iter().collect(),
        memory: Memory::of(app),
        missing_protection: match sandbox::missing() {
            Ok(missing) => missing.iter().map(|it| it.name()).collect(),
            Err(_) => vec!["confinement"],
        },
    }
}

impl Check {
    /// The check of a part of this process, which is not asked.
    fn answered() -> Self {
        Self {
            state: "up",
            ..Self::default()
        }
    }

    /// The check of something that answers and is damaged, if it is.
    fn degraded_if(self, is_damaged: bool) -> Self {
        match self.state {
            "up" if is_damaged => Self {
                state: "degraded",
                ..self
            },
            _ => self,
        }
    }

    /// The check of this provider.
    fn of(self, model: &str) -> Self {
        Self {
            model: Some(model.to_owned()),
            ..self
        }
    }
}

/// Stores, reads and removes a file: degraded while there are stored files that are damaged or lost.
async fn check_files(app: &App) -> Check {
    let (checked, damaged) = join!(
        check(app, "files", app.blobs.check()),
        tokio::time::timeout(CHECK_LIMIT, app.blobs.damaged()),
    );
    // Where they cannot be counted, the check of the database says so.
    let files = match damaged {
        Ok(Ok(1)) => "1 file is".to_owned(),
        Ok(Ok(count)) if count > 0 => format!("{count} files are"),
        _ => return checked,
    };
    Check {
        warning: Some(format!(
            "{files} damaged or lost, and cannot be read: put back those that the log names, or upload or delete what they belong to"
        )),
        ..checked.degraded_if(true)
    }
}

/// Measures the free space: degraded while the reserve keeps new files out.
async fn check_disk(app: &App) -> Check {
    let mut measured = None;
    let measuring = async {
        measured = Some(app.blobs.disk().space().await?);
        Ok::<_, std::io::Error>(())
    };
    let checked = check(app, "disk", measuring).await;
    match measured {
        Some(space) if space.is_nearly_full() => Check {
            warning: Some(format!(
                "new files are refused: {} bytes are free, and store.disk_reserve_bytes keeps {} for deletions",
                space.free, space.reserve
            )),
            ..checked.degraded_if(true)
        },
        _ => checked,
    }
}

/// The reason goes to the log only: it may name addresses.
async fn check<E: Display>(
    app: &App,
    name: &str,
    answer: impl Future<Output = Result<(), E>>,
) -> Check {
    let started = app.clock.instant();
    let answer = tokio::time::timeout(CHECK_LIMIT, answer).await;
    let taken = app.clock.instant().saturating_duration_since(started);
    let reason = match answer {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {} s", CHECK_LIMIT.as_secs())),
    };
    if let Some(reason) = &reason {
        tracing::warn!(dependency = name, reason, "a dependency is down");
    }
    Check {
        state: if reason.is_none() { "up" } else { "down" },
        time_ms: u64::try_from(taken.as_millis()).unwrap_or(u64::MAX),
        ..Check::default()
    }
}

/// All metrics in the Prometheus text format. Where `http.metrics_key` is set, it asks for that key or an admin key.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operations",
    security(()),
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 401, description = "http.metrics_key is set, and this is not it"),
    )
)]
pub(super) async fn metrics(
    State(app): State<App>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    require_key(&app, &parts, app.config.http.metrics_key.as_ref()).await?;
    let format = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(CONTENT_TYPE, format)], app.metrics.render()).into_response())
}
