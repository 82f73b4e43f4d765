//! Legacy messaging (`/v2/completions`): a conversation of text and voice messages goes in, and the character's answer is
//! polled for.
//!
//! A completion is stored with its job, so that it survives the process that took it; what was asked goes as soon as it
//! ended, the result `limits.completion_minutes` later. It owns the messages of this interface, in and out. Replies are
//! `generation`'s, voices and files of sound `speech`'s, and version 3 is where new applications go.
//!
//! - [`request`]: the body, checked field by field
//! - [`accept`]: the completion and its job
//! - [`complete`]: the job: hear, reply, speak
//! - [`output`]: what the client gets

mod accept;
mod complete;
mod failure;
mod hear;
mod output;
mod request;
pub mod routes;
mod store;

use std::time::Duration;

use sea_orm::DbErr;

pub use self::complete::Complete;
use crate::app::App;

/// How often results that are too old are removed.
const PURGE_EVERY: Duration = Duration::from_secs(60);

/// Removes old results from now on, until the server stops. The completions themselves are jobs: [`Complete`] belongs into
/// the worker's registry.
pub fn start(app: &App) {
    let app = app.clone();
    app.clone().tasks.spawn(async move {
        loop {
            if let Err(error) = purge(&app).await {
                tracing::error!(%error, "removing old completions");
            }
            tokio::select! {
                () = app.shutdown.cancelled() => return,
                () = tokio::time::sleep(PURGE_EVERY) => {}
            }
        }
    });
}

/// Removes the completions that nobody can read any more, and says how many there were.
///
/// # Errors
/// The database's failure.
pub async fn purge(app: &App) -> Result<u64, DbErr> {
    store::purge(app.store.db(), kept_since(app)).await
}

/// What ended before this time, in milliseconds since 1970, is not there any more.
fn kept_since(app: &App) -> i64 {
    app.clock.now_ms() - i64::from(app.config.limits.completion_minutes) * 60_000
}
