//! How bases, folders and documents go.
//!
//! What is to be deleted is marked first, so that nothing begins in it any more; it goes at once unless something of it is being
//! worked on, and else as soon as that has ended. Its rows and its files go in one transaction.

use std::time::Duration;

use colloquy_accounts::{Tenant, ledger::budget};
use colloquy_kernel::jobs::{self, GivenUp, Job, RetryRule, Run, RunResult};
use colloquy_store::StoreError;
use serde::{Deserialize, Serialize};

use super::{
    Bases, embedding,
    error::BaseError,
    rows,
    store::{self, Whole},
    vectorstore, waking,
};

/// When it is looked again whether work has ended.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// What became of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// It is gone.
    Done,
    /// It goes when so many documents and channels of it are not worked on any more.
    Pending(u64),
}

/// Deletes something with all that is in it.
pub(crate) async fn erase(
    bases: &Bases,
    tenant: &Tenant,
    whole: Whole,
    id: &str,
) -> Result<Deletion, BaseError> {
    let job = Erase {
        whole,
        id: id.to_owned(),
    };
    let now = bases.clock.now_ms();
    let transaction = bases.store.begin_patient().await?;
    let base = store::base_with(&transaction, whole, id).await?;
    if let Some(base) = &base {
        budget::lock(&transaction, base).await?;
    }
    if !store::request_deletion(&transaction, whole, id, now).await? {
        return Ok(Deletion::Done);
    }
    // Its characters count no more.
    let base = base.filter(|_| whole != Whole::Base);
    if let Some(base) = &base {
        waking::wake(bases, &transaction, tenant, base).await?;
    }
    // Nothing is discovered before what was is removed.
    let scanned = store::stop_channels(&transaction, whole, id).await?;
    if whole == Whole::Document {
        store::suppress_video(&transaction, id).await?;
    }
    let running = store::count_running(&transaction, whole, id).await? + scanned;
    if running == 0 {
        job.remove(bases, &transaction).await?;
        transaction.commit().await?;
        after(bases, base.as_deref()).await;
        return Ok(Deletion::Done);
    }
    jobs::enqueue(bases, &transaction, Some(tenant.partner()), &job).await?;
    transaction.commit().await?;
    bases.kernel.jobs.wake();
    Ok(Deletion::Pending(running))
}

/// What follows when something of a base is gone: it may have waited for nothing else to change its profile. Where that fails now, the next start does
/// it.
async fn after(bases: &Bases, base: Option<&str>) {
    bases.index.wake();
    bases.kernel.jobs.wake();
    if let Some(base) = base
        && let Err(error) = embedding::change_over_if_ready(bases, base).await
    {
        tracing::warn!("a base does not change its profile now: {error:#}");
    }
}

/// Deletes something once nothing of it is worked on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Erase {
    whole: Whole,
    id: String,
}

impl Erase {
    async fn remove(
        &self,
        bases: &Bases,
        transaction: &colloquy_store::Transaction,
    ) -> Result<(), StoreError> {
        // What is inserted behind the statements below would go by a foreign key: its files would stay, and its rows would count for ever.
        store::close_to_inserts(transaction, self.whole, &self.id).await?;
        let files = store::files_in(self.whole);
        bases
            .blobs
            .doom_found(transaction, &files, &self.id)
            .await?;
        let now = bases.clock.now_ms();
        store::note_removal(transaction, self.whole, &self.id, now).await?;
        vectorstore::remove(bases, transaction, self.whole, &self.id).await?;
        if self.whole == Whole::Base {
            budget::close(transaction, &self.id).await?;
        }
        rows::delete(transaction, self.whole, &self.id).await
    }
}

impl Job for Erase {
    type State = Bases;

    const KIND: &'static str = "bases.erase";

    const RETRY: RetryRule = RetryRule {
        attempts: u32::MAX,
        first: Duration::from_secs(1),
        most: Duration::from_secs(60),
    };

    const AT_ONCE: usize = 2;

    fn dedup_key(&self) -> Option<String> {
        Some(self.id.clone())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let transaction = bases.store.begin_patient().await?;
        let base = store::base_with(&transaction, self.whole, &self.id).await?;
        if let Some(base) = &base {
            budget::lock(&transaction, base).await?;
        }
        if !run.holds(&transaction).await? {
            return Ok(RunResult::Done);
        }
        let scanned = store::stop_channels(&transaction, self.whole, &self.id).await?;
        if store::count_running(&transaction, self.whole, &self.id).await? + scanned > 0 {
            return Ok(RunResult::Again(LOOK_AGAIN));
        }
        self.remove(&bases, &transaction).await?;
        transaction.commit().await?;
        after(&bases, base.as_deref()).await;
        Ok(RunResult::Done)
    }

    /// It is marked, so nobody sees it as anything else; the next deletion begins it anew.
    async fn give_up(self, _bases: Bases, _run: Run, _why: GivenUp) -> anyhow::Result<()> {
        Ok(())
    }
}
