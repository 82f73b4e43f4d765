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

use serde_json::Value;

pub use deliver::Deliver;

use crate::{
    accounts::Tenant,
    app::App,
    http::Interface,
    jobs,
    kernel::{Base, Capability, Routes},
    store::{StoreError, Transaction},
};

/// What a webhook is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Puts an event into the outbox, in the transaction that causes it. `subject` is the path of what it is about. Wake `app.kernel.jobs` after the commit.
///
/// # Errors
/// The database's failure.
pub async fn send(
    app: &App,
    transaction: &Transaction,
    tenant: &Tenant,
    event: Event,
    subject: &str,
    url: &str,
    payload: &Value,
) -> Result<(), StoreError> {
    let id = app.clock.new_id().to_string();
    let new = store::NewDelivery {
        id: &id,
        tenant,
        event: event.as_str(),
        subject,
        url,
        payload: payload.to_string(),
        now: app.clock.now_ms(),
    };
    store::insert(transaction, new).await?;
    let job = Deliver { delivery: id };
    jobs::enqueue(app, transaction, Some(tenant.partner()), &job).await
}

/// How long deliveries that ended are kept.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);

/// How often old deliveries are removed.
const PURGE_EVERY: Duration = Duration::from_secs(3600);

/// The outbox.
#[derive(Debug)]
pub(crate) struct Webhooks;

#[async_trait::async_trait]
impl Capability<App> for Webhooks {
    fn name(&self) -> &'static str {
        "webhooks"
    }

    fn routes(&self) -> Vec<Routes<App>> {
        vec![(Interface::MANAGEMENT, routes::routes())]
    }

    fn jobs(&self, registry: jobs::Registry<App>) -> jobs::Registry<App> {
        registry.with::<Deliver>()
    }

    async fn start(&self, app: &App) -> anyhow::Result<()> {
        app.kernel.repeat(
            "removing old webhook deliveries",
            PURGE_EVERY,
            |base| async move { purge(&base).await.map(|_| ()) },
        );
        Ok(())
    }
}

/// Removes the deliveries that ended more than 30 days ago, with their attempts.
///
/// # Errors
/// The database's failure.
pub async fn purge(base: &Base) -> Result<u64, StoreError> {
    store::purge(
        &base.store.patient(),
        base.clock.now_ms() - KEEP.as_millis() as i64,
    )
    .await
}
