//! The voice library (`/api/voices`): voices of partners, made of recordings.
//!
//! A voice is made of an uploaded recording, which is split into samples, or empty, for samples that come one by one. A worker makes of the
//! samples what synthesizers need: what each of them is worth, sentences spoken with them, an embedding. Splitting and embedding are jobs, whose
//! states are stored with what they have done, so that they outlast their process. Recordings are a stranger's: streamed to the files of
//! partners, and decoded by a child of the sandbox a window at a time.
//!
//! - [`voice`]: voices and what may be done with them when
//! - [`sample`]: sound as a sample
//! - [`cutting`]: where a recording is cut
//! - [`split`]: the job that splits a recording
//! - [`library`]: the voices that speech can use
//! - [`embed`]: the job that has a worker make something of the samples

mod cutting;
mod embed;
mod error;
mod library;
mod routes;
mod sample;
mod split;
mod store;
mod voice;

use std::{num::NonZero, sync::Arc, thread};

use axum::extract::FromRef;
use colloquy_accounts::Accounts;
use colloquy_base::fair_queue::{Bounds, FairQueue};
use colloquy_blobs::Blobs;
use colloquy_http::Interface;
use colloquy_kernel::{Capability, Routes, State, jobs};
use colloquy_providers::Providers;
use colloquy_sandbox::Sandbox;

pub use self::{embed::Embed, split::Split};

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Voices(Arc<Parts>);

/// What [`Voices`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
    blobs: Blobs,
    sandbox: Arc<Sandbox>,
    providers: Providers,
    /// Those that bring samples one by one: one a core is worked on.
    computing: FairQueue,
}

/// How many may wait for a place, for each that there is.
const WAITING: usize = 16;

impl Voices {
    /// Puts the parts together.
    #[must_use]
    pub fn new(
        accounts: Accounts,
        blobs: Blobs,
        sandbox: Arc<Sandbox>,
        providers: Providers,
    ) -> Self {
        let slots = thread::available_parallelism().map_or(1, NonZero::get);
        let bounds = Bounds {
            slots,
            waiting: WAITING * slots,
            waiting_of_owner: WAITING * slots / 2,
        };
        Self(Arc::new(Parts {
            computing: FairQueue::new("voice_samples", bounds),
            accounts,
            blobs,
            sandbox,
            providers,
        }))
    }
}

colloquy_kernel::state!(Voices: Parts.accounts: Accounts);

/// The voice library, as a part of a server.
#[derive(Debug)]
pub struct VoicesCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for VoicesCapability
where
    Accounts: FromRef<S>,
    Voices: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "voices"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![
            (Interface::VOICES, routes::routes()),
            (Interface::MANAGEMENT, routes::of_worker()),
        ]
    }

    fn jobs(&self, registry: jobs::Registry<S>) -> jobs::Registry<S> {
        registry.with::<Split>().with::<Embed>()
    }
}
