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
mod error;
mod failure;
mod output;
mod request;
pub mod routes;
mod store;
mod voice_messages;

use std::time::Duration;

pub use self::complete::Complete;
use crate::{
    app::App,
    http::Interface,
    jobs,
    kernel::{Base, Capability, Routes},
    store::StoreError,
};

/// How often results that are too old are removed.
const PURGE_EVERY: Duration = Duration::from_secs(60);

/// Legacy messaging.
#[derive(Debug)]
pub(crate) struct Messaging;

#[async_trait::async_trait]
impl Capability<App> for Messaging {
    fn name(&self) -> &'static str {
        "messaging"
    }

    fn routes(&self) -> Vec<Routes<App>> {
        vec![(Interface::MESSAGING, routes::routes())]
    }

    fn jobs(&self, registry: jobs::Registry<App>) -> jobs::Registry<App> {
        registry.with::<Complete>()
    }

    async fn start(&self, app: &App) -> anyhow::Result<()> {
        app.kernel
            .repeat("removing old completions", PURGE_EVERY, |base| async move {
                purge(&base).await.map(|_| ())
            });
        Ok(())
    }
}

/// Removes the completions that nobody can read any more, and says how many there were.
///
/// # Errors
/// The database's failure.
pub async fn purge(base: &Base) -> Result<u64, StoreError> {
    store::purge(&base.store.patient(), kept_since(base)).await
}

/// What ended before this time, in milliseconds since 1970, is not there any more.
fn kept_since(base: &Base) -> i64 {
    base.clock.now_ms() - i64::from(base.config.limits.completion_minutes) * 60_000
}
