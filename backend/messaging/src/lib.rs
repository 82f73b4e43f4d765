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

use std::{sync::Arc, time::Duration};

use axum::extract::FromRef;
use colloquy_accounts::Accounts;
use colloquy_generation::Generation;
use colloquy_http::Interface;
use colloquy_kernel::{Base, Capability, Routes, State, jobs};
use colloquy_speech::Speech;
use colloquy_store::StoreError;

pub use self::{complete::Complete, store::TEXTS};

/// How often results that are too old are removed.
const PURGE_EVERY: Duration = Duration::from_secs(60);

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Messaging(Arc<Parts>);

/// What [`Messaging`] holds, besides the [`Generation`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    generation: Generation,
    speech: Speech,
}

impl Messaging {
    /// Puts the parts together.
    #[must_use]
    pub fn new(generation: Generation, speech: Speech) -> Self {
        Self(Arc::new(Parts { generation, speech }))
    }
}

colloquy_kernel::state!(Messaging: Parts.generation: Generation);

/// Legacy messaging, as a part of a server.
#[derive(Debug)]
pub struct MessagingCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for MessagingCapability
where
    Accounts: FromRef<S>,
    Messaging: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "messaging"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![(Interface::MESSAGING, routes::routes())]
    }

    fn jobs(&self, registry: jobs::Registry<S>) -> jobs::Registry<S> {
        registry.with::<Complete>()
    }

    async fn start(&self, state: &S) -> anyhow::Result<()> {
        Messaging::from_ref(state).kernel.repeat(
            "removing old completions",
            PURGE_EVERY,
            |base| async move { purge(&base).await.map(|_| ()) },
        );
        Ok(())
    }
}

/// Removes the completions that nobody can read any more, and says how many there were.
///
/// # Errors
/// The database's failure.
pub async fn purge(base: &Base) -> Result<u64, StoreError> {
    store::purge(&base.store, kept_since(base)).await
}

/// What ended before this time, in milliseconds since 1970, is not there any more.
fn kept_since(base: &Base) -> i64 {
    base.clock.now_ms() - i64::from(base.config.limits.completion_minutes) * 60_000
}
