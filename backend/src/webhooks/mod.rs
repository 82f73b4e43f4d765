//! Webhooks: the outbox and its delivery.
//!
//! An event is written to the outbox in the transaction that causes it, together with the job that delivers it, so that
//! neither a crash nor a restart loses one. A receiver may see a delivery twice (the `webhook-id` stays the same), never
//! not at all while attempts are left. What an event says belongs to the capability that sends it.

mod deliver;
pub mod routes;
mod sign;
mod store;

use std::time::Duration;

use sea_orm::{DatabaseTransaction, DbErr};
use serde_json::Value;

pub use deliver::Deliver;

use crate::{accounts::Tenant, app::App, jobs};

/// What a webhook is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A call reached `completed`.
    CallCompleted,
}

impl Event {
    /// The event's public name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CallCompleted => "call.completed",
        }
    }
}

/// Puts an event into the outbox, in the transaction that causes it. Wake `app.jobs` after the commit.
///
/// # Errors
/// The database's failure.
pub async fn send(
    app: &App,
    transaction: &DatabaseTransaction,
    tenant: &Tenant,
    event: Event,
    call_id: &str,
    url: &str,
    payload: &Value,
) -> Result<(), DbErr> {
    let id = app.clock.new_id().to_string();
    let new = store::NewDelivery {
        id: &id,
        tenant,
        event: event.as_str(),
        call_id,
        url,
        payload: payload.to_string(),
        now: app.clock.now_ms(),
    };
    store::insert(transaction, new).await?;
    jobs::enqueue(app, transaction, &Deliver { delivery: id }).await
}

/// How long deliveries that ended are kept.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);

/// How often old deliveries are removed.
const PURGE_EVERY: Duration = Duration::from_secs(3600);

/// Removes old deliveries from now on. The deliveries themselves are jobs: [`Deliver`] belongs into the worker's registry.
pub fn start(app: &App) {
    let app = app.clone();
    app.clone().tasks.spawn(async move {
        loop {
            if let Err(error) = purge(&app).await {
                tracing::error!(%error, "removing old webhook deliveries");
            }
            tokio::select! {
                () = app.shutdown.cancelled() => return,
                () = tokio::time::sleep(PURGE_EVERY) => {}
            }
        }
    });
}

/// Removes the deliveries that ended more than 30 days ago, with their attempts.
///
/// # Errors
/// The database's failure.
pub async fn purge(app: &App) -> Result<u64, DbErr> {
    store::purge(app.store.db(), app.clock.now_ms() - KEEP.as_millis() as i64).await
}
