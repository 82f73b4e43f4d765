//! Webhooks: the outbox and its delivery.
//!
//! An event is written to the outbox in the transaction that causes it, together with the job that delivers it, so that
//! neither a crash nor a restart loses one. A receiver may see a delivery twice (the `webhook-id` stays the same), never
//! not at all while attempts are left. What an event says belongs to the capability that sends it.

mod deliver;
pub mod routes;
mod sign;
mod store;
mod waiting;

use std::{sync::Arc, time::Duration};

use axum::extract::FromRef;
use colloquy_accounts::{Accounts, Tenant};
use colloquy_fetch::Fetcher;
use colloquy_http::Interface;
use colloquy_kernel::{Base, Capability, Routes, State, WaitingWork, jobs};
use colloquy_store::{StoreError, Transaction};
use serde_json::Value;

pub use self::{deliver::Deliver, store::TEXTS};

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

/// Puts an event into the outbox, in the transaction that causes it. `subject` is the path of what it is about. Wake `webhooks.kernel.jobs` after
/// the commit.
///
/// Returns how many bytes the delivery counts in the storage of the partner. The caller adds them to its sum of texts in the same transaction,
/// after all rows, and beyond the limit, too: what caused the event was accepted.
///
/// # Errors
/// The database's failure.
pub async fn send(
    webhooks: &Webhooks,
    transaction: &Transaction,
    tenant: &Tenant,
    event: Event,
    subject: &str,
    url: &str,
    payload: &Value,
) -> Result<usize, StoreError> {
    let id = webhooks.clock.new_id().to_string();
    let new = store::NewDelivery {
        id: &id,
        tenant,
        event: event.as_str(),
        subject,
        url,
        payload: payload.to_string(),
        now: webhooks.clock.now_ms(),
    };
    let bytes = store::insert(transaction, new).await?;
    let job = Deliver { delivery: id };
    jobs::enqueue(webhooks, transaction, Some(tenant.partner()), &job).await?;
    Ok(bytes)
}

/// How long deliveries that ended are kept.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);

/// The time for which operators see deliveries that failed.
const SHOW_FAILED: Duration = Duration::from_secs(24 * 3600);

/// How often old deliveries are removed.
const PURGE_EVERY: Duration = Duration::from_secs(3600);

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Webhooks(Arc<Parts>);

/// What [`Webhooks`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
    /// The client for addresses that partners name.
    pub fetcher: Fetcher,
}

impl Webhooks {
    /// Puts the parts together.
    #[must_use]
    pub fn new(accounts: Accounts, fetcher: Fetcher) -> Self {
        Self(Arc::new(Parts { accounts, fetcher }))
    }
}

colloquy_kernel::state!(Webhooks: Parts.accounts: Accounts);

/// The outbox, as a part of a server.
#[derive(Debug)]
pub struct WebhooksCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for WebhooksCapability
where
    Accounts: FromRef<S>,
    Webhooks: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "webhooks"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![(Interface::MANAGEMENT, routes::routes())]
    }

    fn jobs(&self, registry: jobs::Registry<S>) -> jobs::Registry<S> {
        registry.with::<Deliver>()
    }

    async fn waiting(&self, state: &S) -> Result<Vec<WaitingWork>, StoreError> {
        let webhooks = Webhooks::from_ref(state);
        let failed_since = webhooks.clock.now_ms() - SHOW_FAILED.as_millis() as i64;
        waiting::deliveries(webhooks.store.db(), failed_since).await
    }

    async fn start(&self, state: &S) -> anyhow::Result<()> {
        Webhooks::from_ref(state).kernel.repeat(
            "removing old webhook deliveries",
            PURGE_EVERY,
            |base| async move { purge(&base).await.map(|_| ()) },
        );
        Ok(())
    }
}

/// Removes the deliveries that ended more than 30 days ago, with their attempts, and releases their bytes.
///
/// # Errors
/// The database's failure. Batches before it are done.
pub async fn purge(base: &Base) -> Result<u64, StoreError> {
    let before = base.clock.now_ms() - KEEP.as_millis() as i64;
    store::purge(&base.store, before).await
}
