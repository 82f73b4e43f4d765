//! How bases change their profile: all documents are embedded by the new one beside what is there, and then the base is searched by it.

use std::time::Duration;

use colloquy_accounts::Tenant;
use colloquy_kernel::jobs::{self, GivenUp, Job, RetryRule, Run, RunResult};
use colloquy_store::Transaction;
use serde::{Deserialize, Serialize};

use super::{Profile, job::ATTEMPTS};
use crate::{
    Bases, accepting, budget,
    document::Step,
    outage,
    store::{self, ProfiledBase},
};

/// Lets a base be searched by a profile when all of it is there, and gives up what was there of others.
pub(super) async fn change_over(
    bases: &Bases,
    transaction: &Transaction,
    base: &str,
    profile: &Profile,
) -> anyhow::Result<()> {
    let searched = store::profile_of(transaction, base).await?;
    let is_new = searched.is_none_or(|searched| searched != profile.id);
    if !is_new {
        return Ok(());
    }
    if searched.is_some() && store::count_missing(transaction, base, profile.id).await? > 0 {
        return Ok(());
    }
    store::set_profile(transaction, base, profile.id).await?;
    let now = bases.clock.now_ms();
    let old = store::remove_other_manifests(transaction, base, profile.id, now).await?;
    bases.blobs.doom(transaction, &old).await?;
    Ok(())
}

/// The same where nothing was embedded: the last document that a base waited for may have been refused, or be gone.
pub(crate) async fn change_over_if_ready(bases: &Bases, base: &str) -> anyhow::Result<()> {
    let Some(searched) = store::profile_of(bases.store.db(), base).await? else {
        return Ok(());
    };
    let profile = Profile::current(bases).await?;
    if searched == profile.id {
        return Ok(());
    }
    let transaction = budget::begin_patient(bases, base).await?;
    // A profile that has embedded nothing finds nothing.
    if store::count_manifests(&transaction, base, profile.id).await? > 0 {
        change_over(bases, &transaction, base, &profile).await?;
    }
    transaction.commit().await?;
    bases.index.wake();
    Ok(())
}

/// Has all documents of a base embedded by the profile of now, beside what is there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reembed {
    /// The base's id.
    pub base: String,
}

impl Job for Reembed {
    type State = Bases;

    const KIND: &'static str = "bases.reembed";

    const RETRY: RetryRule = RetryRule {
        attempts: ATTEMPTS,
        first: Duration::from_secs(2),
        most: Duration::from_secs(300),
    };

    const AT_ONCE: usize = 1;

    fn dedup_key(&self) -> Option<String> {
        Some(self.base.clone())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let ended = self.queue(&bases, &run).await;
        outage::outlast(&bases, ended, || async { Ok(()) }).await
    }

    /// The next start of a server queues it again.
    async fn give_up(self, _bases: Bases, _run: Run, _why: GivenUp) -> anyhow::Result<()> {
        Ok(())
    }
}

impl Reembed {
    async fn queue(&self, bases: &Bases, run: &Run) -> anyhow::Result<RunResult> {
        let profile = Profile::current(bases).await?;
        let db = bases.store.db();
        let mut missing = store::missing_documents(db, &self.base, profile.id).await?;
        if store::profile_of(db, &self.base).await? == Some(profile.id) {
            // It changes nothing, so what failed waits until somebody wants it.
            missing.retain(|document| document.embedding == Step::Done);
        }
        for part in missing.chunks(100) {
            let transaction = budget::begin_patient(bases, &self.base).await?;
            if !run.holds(&transaction).await? {
                return Ok(RunResult::Done);
            }
            for document in part {
                let tenant = Tenant::of_row(&document.partner);
                let id = &document.id;
                accepting::queue_embedding(bases, &transaction, &tenant, id, false).await?;
            }
            transaction.commit().await?;
            bases.kernel.jobs.wake();
        }
        // Those that it lacked may be gone.
        change_over_if_ready(bases, &self.base).await?;
        Ok(RunResult::Done)
    }
}

/// Queues the change of profile for all bases that are searched by another one.
pub(crate) async fn change_profiles(bases: &Bases) -> anyhow::Result<()> {
    let db = bases.store.db();
    // Without a base there is no reason to know the profile.
    let mut others = store::bases_with_profiles(db).await?;
    if others.is_empty() {
        return Ok(());
    }
    let profile = Profile::current(bases).await?;
    others.retain(|base| base.profile_id != profile.id);
    reembed(bases, others).await?;
    embed_lacking(bases).await
}

/// Queues documents that count as embedded and lack the vectors by which their base is searched: a node with other settings may leave them, and so
/// does a change of profile that is taken back.
pub(crate) async fn embed_lacking(bases: &Bases) -> anyhow::Result<()> {
    let db = bases.store.db();
    if store::sequence(db).await?.last == 0 {
        return Ok(());
    }
    let profile = Profile::current(bases).await?;
    let lacking = store::bases_that_lack(db, profile.id).await?;
    reembed(bases, lacking).await
}

async fn reembed(bases: &Bases, all: Vec<ProfiledBase>) -> anyhow::Result<()> {
    for base in all {
        let transaction = bases.store.begin_patient().await?;
        let tenant = Tenant::of_row(&base.partner);
        let job = Reembed { base: base.id };
        jobs::enqueue(bases, &transaction, Some(tenant.partner()), &job).await?;
        transaction.commit().await?;
    }
    bases.kernel.jobs.wake();
    Ok(())
}
