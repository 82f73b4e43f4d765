//! Dialog analysis (`/v2/dialog_analyses`): a conversation comes in, with what is known of its user and what is wanted to be
//! known, and what it tells is polled for.
//!
//! An analysis is stored with its job, so that it survives the process that took it. What was asked goes as soon as it is completed; that of one that
//! failed stays for another attempt, and goes with it, `analyses.kept_hours` after its end. The models are those of text generation.
//!
//! - [`request`]: the body, checked field by field
//! - [`accept`]: the analysis and its job
//! - [`analyze`]: the job: ask until the answer fits the schemas
//! - [`retry`]: another attempt at an analysis that failed
//! - [`question`]: what a model is asked, and how its answer becomes the result
//! - [`asking`]: one question to a model, and what it costs
//! - [`profile`]: what a conversation that goes on tells, such as a call
//! - [`stated`]: what people say of themselves in plain words, for a server without a model

mod accept;
mod analyze;
mod asking;
mod error;
mod failure;
mod output;
mod profile;
mod question;
mod request;
mod retry;
pub mod routes;
mod stated;
mod store;

use std::{sync::Arc, time::Duration};

use axum::extract::FromRef;
use colloquy_accounts::Accounts;
use colloquy_http::{Interface, limits::RequestRate};
use colloquy_kernel::{Base, Capability, Routes, State, jobs};
use colloquy_providers::{Model, Providers};
use colloquy_store::StoreError;

pub use self::{
    analyze::Analyze,
    profile::{ConversationLine, UserProfile},
    store::TEXTS,
};

/// How often analyses that are too old are removed.
const PURGE_EVERY: Duration = Duration::from_secs(600);

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Analyses(Arc<Parts>);

/// What [`Analyses`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
    providers: Providers,
    rate: RequestRate,
}

impl Analyses {
    /// Puts the parts together.
    #[must_use]
    pub fn new(accounts: Accounts, providers: Providers) -> Self {
        let settings = &accounts.config.analyses;
        let rate = RequestRate::new(
            settings.per_minute,
            settings.per_minute_of_all,
            &accounts.clock,
        );
        Self(Arc::new(Parts {
            accounts,
            providers,
            rate,
        }))
    }

    /// The model that is asked.
    fn model(&self) -> &Arc<Model> {
        let named = self.config.analyses.model.as_ref();
        let named = named.and_then(|name| self.providers.models.get(name));
        named.unwrap_or_else(|| self.providers.models.of_calls())
    }
}

colloquy_kernel::state!(Analyses: Parts.accounts: Accounts);

/// Dialog analysis, as a part of a server.
#[derive(Debug)]
pub struct AnalysesCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for AnalysesCapability
where
    Accounts: FromRef<S>,
    Analyses: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "analyses"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![(Interface::ANALYSES, routes::routes())]
    }

    fn jobs(&self, registry: jobs::Registry<S>) -> jobs::Registry<S> {
        registry.with::<Analyze>()
    }

    async fn start(&self, state: &S) -> anyhow::Result<()> {
        state
            .as_ref()
            .repeat("removing old analyses", PURGE_EVERY, |base| async move {
                purge(&base).await.map(|_| ())
            });
        Ok(())
    }
}

/// Removes the analyses that ended too long ago, and says how many there were.
///
/// # Errors
/// The database's failure.
pub async fn purge(base: &Base) -> Result<u64, StoreError> {
    store::purge(&base.store, kept_since(base)).await
}

/// What ended before this time, in milliseconds since 1970, is not there any more.
fn kept_since(base: &Base) -> i64 {
    base.clock.now_ms() - i64::from(base.config.analyses.kept_hours) * 3_600_000
}
