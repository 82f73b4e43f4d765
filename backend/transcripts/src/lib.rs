//! Transcripts (`/v2/transcript`): a recording comes in, or the address of one, and what is said in it is polled for.
//!
//! A transcript is stored with its job, so that it survives the process that took it. The recording goes as soon as the transcript is completed, or
//! failed for a reason that stays; that of one that may be tried again goes with it, `transcripts.kept_days` after its end. The recording is a
//! stranger's: it is streamed to the files of partners, and decoded by a child of the sandbox a window at a time. What is said in documents of
//! knowledge bases is theirs.
//!
//! - [`request`]: what is asked, field by field
//! - [`accept`]: the transcript and its job
//! - [`transcribe`]: the job: get the recording, hear it part by part
//! - [`hearing`]: the words of one part, and what they cost
//! - [`retry`]: another attempt at a transcript that failed
//! - [`text`]: the words of all parts, as the client wants them written

mod accept;
mod error;
mod failure;
mod fetching;
mod hearing;
mod request;
mod retry;
pub mod routes;
mod store;
mod text;
mod transcribe;

use std::{sync::Arc, time::Duration};

use axum::extract::FromRef;
use colloquy_accounts::{
    Accounts, Tenant, share_partner,
    storage::{self, Sum},
};
use colloquy_blobs::Blobs;
use colloquy_fetch::Fetcher;
use colloquy_http::Interface;
use colloquy_kernel::{Base, Capability, Routes, State, jobs};
use colloquy_providers::Providers;
use colloquy_sandbox::Sandbox;
use colloquy_store::StoreError;

use self::error::DeleteError;
pub use self::{store::TEXTS, transcribe::Transcribe};

/// How often transcripts that are too old are removed.
const PURGE_EVERY: Duration = Duration::from_secs(3_600);
/// How many recordings of old transcripts a transaction gives up.
const RECORDINGS_AT_ONCE: i64 = 100;

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Transcripts(Arc<Parts>);

/// What [`Transcripts`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
    blobs: Blobs,
    sandbox: Arc<Sandbox>,
    providers: Providers,
    /// For addresses that partners name.
    fetcher: Fetcher,
}

impl Transcripts {
    /// Puts the parts together.
    #[must_use]
    pub fn new(
        accounts: Accounts,
        blobs: Blobs,
        sandbox: Arc<Sandbox>,
        providers: Providers,
        fetcher: Fetcher,
    ) -> Self {
        Self(Arc::new(Parts {
            accounts,
            blobs,
            sandbox,
            providers,
            fetcher,
        }))
    }
}

colloquy_kernel::state!(Transcripts: Parts.accounts: Accounts);

/// Transcripts, as a part of a server.
#[derive(Debug)]
pub struct TranscriptsCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for TranscriptsCapability
where
    Accounts: FromRef<S>,
    Transcripts: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "transcripts"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![(Interface::TRANSCRIPTS, routes::routes())]
    }

    fn jobs(&self, registry: jobs::Registry<S>) -> jobs::Registry<S> {
        registry.with::<Transcribe>()
    }

    async fn start(&self, state: &S) -> anyhow::Result<()> {
        let transcripts = Transcripts::from_ref(state);
        let work = move |_: Base| {
            let transcripts = transcripts.clone();
            async move {
                give_up_recordings(&transcripts).await?;
                purge(&transcripts).await.map(|_| ())
            }
        };
        state
            .as_ref()
            .repeat("removing old transcripts", PURGE_EVERY, work);
        Ok(())
    }
}

/// Gives up the recordings of failed transcripts that ended too long ago.
///
/// # Errors
/// The database's failure. Batches before it are done.
pub async fn give_up_recordings(transcripts: &Transcripts) -> Result<(), StoreError> {
    let kept_since = kept_since(transcripts);
    loop {
        let transaction = transcripts.store.begin_patient().await?;
        let taken = store::take_recordings(&transaction, kept_since, RECORDINGS_AT_ONCE).await?;
        let Some(taken) = taken else { return Ok(()) };
        transcripts.blobs.doom(&transaction, &taken).await?;
        transaction.commit().await?;
    }
}

/// Removes the transcripts that ended too long ago and have no recording any more, releases their bytes, and returns how many there were.
///
/// # Errors
/// The database's failure. Batches before it are done.
pub async fn purge(base: &Base) -> Result<u64, StoreError> {
    store::purge(&base.store, kept_since(base)).await
}

/// Deletes a transcript that has ended with the recording that it kept, and releases its bytes; records of its usage stay. Without a tenant, of any
/// partner.
async fn delete(
    transcripts: &Transcripts,
    tenant: Option<&Tenant>,
    id: &str,
) -> Result<(), DeleteError> {
    let found = store::standing(transcripts.store.db(), tenant, None, id, i64::MIN).await?;
    let tenant = &found.ok_or(DeleteError::Unknown)?.tenant();
    let transaction = transcripts.store.begin().await?;
    share_partner(&transaction, tenant).await?;
    let Some(deleted) = store::delete(&transaction, tenant, id).await? else {
        let found = store::standing(&transaction, Some(tenant), None, id, i64::MIN).await?;
        return Err(found.map_or(DeleteError::Unknown, |_| DeleteError::Open));
    };
    let recording = deleted.blob_key.as_slice();
    transcripts.blobs.doom(&transaction, recording).await?;
    let partner = tenant.partner().as_str();
    storage::release(&transaction, partner, Sum::Texts, deleted.bytes).await?;
    transaction.commit().await?;
    Ok(())
}

/// What ended before this time, in milliseconds since 1970, is not there any more.
fn kept_since(base: &Base) -> i64 {
    const DAY_MS: i64 = 24 * 3_600 * 1_000;
    base.clock.now_ms() - i64::from(base.config.transcripts.kept_days) * DAY_MS
}
