//! `/health`, `/health/deep` and `/metrics`.

use std::{
    collections::BTreeMap,
    fmt::Display,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use futures_util::{future::join_all, join};
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;

use crate::App;

/// How long one dependency may take.
const CHECK_LIMIT: Duration = Duration::from_secs(5);
/// How long an answer is repeated, so that anybody may ask and providers are not asked each time.
const REPEAT_FOR: Duration = Duration::from_secs(2);

/// The process runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// `ok`, or `draining` once the server takes no more calls.
    status: &'static str,
    /// The server's version.
    version: &'static str,
    /// How long it has run, in seconds.
    uptime_seconds: u64,
}

/// The dependencies, asked a moment ago.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DeepReport {
    /// `ok`, or `down` when a dependency does not answer; the status code is 503 then.
    status: &'static str,
    /// `database`, `chat`, `transcriber`, `synthesizer`: what calls need.
    checks: BTreeMap<&'static str, Check>,
    /// The models of text generation by name. One that is down is no reason for 503: others may serve.
    models: BTreeMap<String, Check>,
}

/// One dependency.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Check {
    /// `up` or `down`.
    state: &'static str,
    /// How long it took to answer, in milliseconds.
    time_ms: u64,
}

/// The last report.
#[derive(Debug, Default)]
pub struct DeepHealth(Mutex<Option<(Instant, DeepReport)>>);

/// Answers at once while the process runs.
#[utoipa::path(get, path = "/health", tag = "operations", security(()), responses((status = 200, body = Health)))]
pub(super) async fn health(State(app): State<App>) -> Json<Health> {
    let uptime = app.clock.instant().saturating_duration_since(app.started);
    Json(Health {
        status: if app.shutdown.is_cancelled() {
            "draining"
        } else {
            "ok"
        },
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: uptime.as_secs(),
    })
}

/// Asks the database, the providers, all of which are needed for a call, and the models of text generation.
#[utoipa::path(
    get,
    path = "/health/deep",
    tag = "operations",
    security(()),
    responses((status = 200, body = DeepReport), (status = 503, body = DeepReport))
)]
pub(super) async fn deep(State(app): State<App>) -> Response {
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
        "ok" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Json(report)).into_response()
}

async fn ask(app: &App) -> DeepReport {
    let models = app.providers.models.all().map(|model| async {
        let name = model.name();
        (name.to_owned(), check(app, name, model.chat.check()).await)
    });
    let (database, chat, transcriber, synthesizer, models) = join!(
        check(app, "database", app.store.ping()),
        check(app, "chat", app.providers.chat.check()),
        check(app, "transcriber", app.providers.transcriber.check()),
        check(app, "synthesizer", app.providers.synthesizer.check()),
        join_all(models),
    );
    let checks = BTreeMap::from([
        ("database", database),
        ("chat", chat),
        ("transcriber", transcriber),
        ("synthesizer", synthesizer),
    ]);
    let all_up = checks.values().all(|check| check.state == "up");
    DeepReport {
        status: if all_up { "ok" } else { "down" },
        checks,
        models: models.into_iter().collect(),
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
    }
}

/// All metrics in the Prometheus text format.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operations",
    security(()),
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(super) async fn metrics(State(app): State<App>) -> Response {
    let format = "text/plain; version=0.0.4; charset=utf-8";
    ([(CONTENT_TYPE, format)], app.metrics.render()).into_response()
}
