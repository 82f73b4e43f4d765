//! The final content of documents at a vector store elsewhere, for partners for whom that is switched on.
//!
//! A row of `vectorstore_files` is a file that is there, or is to be: one for each document that it is to be found by, and beside it those
//! that are being removed or wait for their successor. Whatever changes what should be there changes rows, in its own transaction, and
//! queues the one job that a partner has for it ([`SyncFiles`]): so nothing is lost when a process dies, and no two of them ask for the same.
//! Before the service is asked to make something, the row says so; where its answer is then not known, what it may have made is looked for
//! by its name before it is asked again.
//!
//! With the sync switched off nothing is brought there any more. What is deleted here is removed there in any case, also after its base
//! or its partner is gone.

mod job;
mod steps;

use colloquy_accounts::{PartnerSettings, Tenant, ledger::budget, partners};
use colloquy_kernel::{Base, jobs};
use colloquy_store::{StoreError, Transaction, stored};
use serde::Serialize;
use utoipa::ToSchema;

pub use self::job::SyncFiles;
use crate::{
    Bases,
    base::KnowledgeBase,
    error::BaseError,
    store::{self, NewSyncedFile, Whole},
};

/// How many documents are queued in a transaction.
const PAGE: usize = 200;

/// How far a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileState {
    /// It is to be uploaded.
    Queued,
    /// It is at the service, and in no vector store.
    Uploaded,
    /// It is in the vector store and not searched yet, or may not be there any more.
    Indexing,
    /// It is searched.
    Synced,
    /// It is not tried any more.
    Failed,
    /// It is to be removed.
    Removing,
}

stored!(pub(crate) FileState: Queued = "queued", Uploaded = "uploaded", Indexing = "indexing", Synced = "synced", Failed = "failed", Removing = "removing");

/// How many documents with final content are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct SyncCounts {
    /// All of them.
    pub(crate) documents: u64,
    /// Those that are searched there as they are here.
    pub(crate) synced: u64,
    /// Those that are on their way.
    pub(crate) pending: u64,
    /// Those that are not tried any more.
    pub(crate) failed: u64,
    /// Those of which nothing is there, or an earlier content, since the sync was off when they changed. A backfill queues them.
    pub(crate) missing: u64,
    /// Files that are still to be removed there.
    pub(crate) removing: u64,
}

impl SyncCounts {
    /// Where documents of a standing are counted, as the database has it.
    pub(crate) fn of(&mut self, standing: &str) -> &mut u64 {
        match standing {
            "synced" => &mut self.synced,
            "failed" => &mut self.failed,
            "missing" | "outdated" => &mut self.missing,
            _ => &mut self.pending,
        }
    }
}

/// How far the sync of a base is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SyncStatus {
    /// It is switched off, or the server has no vector store.
    Disabled,
    /// Some documents are on their way, or files to be removed.
    Syncing,
    /// Some documents failed, or are not there.
    Incomplete,
    /// All documents with final content are searched there.
    Synced,
}

/// What is known of the sync of a base.
#[derive(Debug)]
pub(crate) struct SyncInfo {
    pub(crate) enabled: bool,
    pub(crate) status: SyncStatus,
    pub(crate) counts: SyncCounts,
    /// What the service calls its vector store.
    pub(crate) store_id: Option<String>,
    pub(crate) last_error: Option<String>,
    pub(crate) last_synced_at: Option<i64>,
}

/// How far the sync of a base is, where it is switched on for the partner.
pub(crate) async fn summary(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
) -> Result<Option<SyncInfo>, StoreError> {
    let settings = partners::settings(bases.store.db(), tenant).await?;
    match settings.is_some_and(|settings| settings.is_vectorstore_sync_enabled()) {
        true => info(bases, tenant, base).await.map(Some),
        false => Ok(None),
    }
}

/// How far the sync of a base is.
pub(crate) async fn info(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
) -> Result<SyncInfo, StoreError> {
    let db = bases.store.db();
    let settings = partners::settings(db, tenant).await?.unwrap_or_default();
    let counts = store::count_synced(db, base).await?;
    let known = store::vectorstore_of(db, &base.id).await?;
    let status = if !is_on(bases, &settings) {
        SyncStatus::Disabled
    } else if counts.pending + counts.removing > 0 {
        SyncStatus::Syncing
    } else if counts.failed + counts.missing > 0 {
        SyncStatus::Incomplete
    } else {
        SyncStatus::Synced
    };
    Ok(SyncInfo {
        enabled: settings.is_vectorstore_sync_enabled(),
        status,
        counts,
        store_id: known.as_ref().and_then(|known| known.store_id.clone()),
        last_error: known.as_ref().and_then(|known| known.last_error.clone()),
        last_synced_at: known.and_then(|known| known.last_synced_at),
    })
}

/// Whether documents of a partner with these settings are brought to a vector store.
fn is_on(bases: &Bases, settings: &PartnerSettings) -> bool {
    bases.vectorstore.is_some() && settings.is_vectorstore_sync_enabled()
}

/// Passes while documents of the partner are brought to a vector store.
pub(crate) async fn require_on(bases: &Bases, tenant: &Tenant) -> Result<(), BaseError> {
    if bases.vectorstore.is_none() {
        return Err(BaseError::Conflict("The server has no vector store"));
    }
    let settings = partners::settings(bases.store.db(), tenant).await?;
    match is_on(bases, &settings.unwrap_or_default()) {
        true => Ok(()),
        false => Err(BaseError::Conflict(
            "Vector-store sync is switched off for the partner",
        )),
    }
}

/// Queues the job of a partner; `None`: of those that are gone.
async fn queue_job(
    base: &Base,
    transaction: &Transaction,
    tenant: Option<&Tenant>,
) -> Result<(), StoreError> {
    let partner = tenant.map(Tenant::partner);
    let job = SyncFiles {
        partner: partner.map(|partner| partner.as_str().to_owned()),
    };
    jobs::enqueue(base, transaction, partner, &job).await
}

/// Has the final content of a document brought to the vector store, in the transaction that stores it and has the base's budget, where that
/// is switched on.
pub(crate) async fn bring(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    document: &str,
    sha256: &str,
) -> Result<(), StoreError> {
    if bases.vectorstore.is_none() {
        return Ok(());
    }
    let settings = partners::settings(transaction, tenant).await?;
    if !is_on(bases, &settings.unwrap_or_default()) {
        return Ok(());
    }
    let Some(base) = store::base_with(transaction, Whole::Document, document).await? else {
        return Ok(());
    };
    queue_job(bases, transaction, Some(tenant)).await?;
    let place = Place {
        bases,
        tenant,
        base: &base,
    };
    place.bring(transaction, document, sha256, false).await
}

/// Which documents somebody wants brought to the vector store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All with final content; those that are there are looked for.
    All,
    /// Those that failed.
    Failed,
}

/// Has documents of a base brought there. How many that are.
pub(crate) async fn queue(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    wanted: Wanted,
) -> Result<u64, BaseError> {
    let (mut after, mut queued) = (String::new(), 0);
    let place = Place {
        bases,
        tenant,
        base: &base.id,
    };
    loop {
        let transaction = bases.store.begin().await?;
        // Whoever stores final content of the base, or deletes something of it, has this, too.
        if budget::lock(&transaction, &base.id).await?.is_none() {
            return Ok(queued);
        }
        let documents = match wanted {
            Wanted::All => store::final_documents(&transaction, &base.id, &after, PAGE).await?,
            Wanted::Failed => store::failed_documents(&transaction, &base.id, &after, PAGE).await?,
        };
        let Some(last) = documents.last() else {
            return Ok(queued);
        };
        after.clone_from(&last.id);
        queue_job(bases, &transaction, Some(tenant)).await?;
        for document in &documents {
            let looks = wanted == Wanted::All;
            place
                .bring(&transaction, &document.id, &document.sha256, looks)
                .await?;
        }
        transaction.commit().await?;
        bases.kernel.jobs.wake();
        queued += documents.len() as u64;
    }
}

/// Has what is there of a base, a folder or a document removed, in the transaction that deletes it, before it does, and that has the base's
/// budget.
pub(crate) async fn remove(
    bases: &Bases,
    transaction: &Transaction,
    whole: Whole,
    id: &str,
) -> Result<(), StoreError> {
    if !store::is_synced(transaction, whole, id).await? {
        return Ok(());
    }
    let tenant = match store::base_with(transaction, whole, id).await? {
        Some(base) => store::tenant_of(transaction, &base).await?,
        None => None,
    };
    queue_job(bases, transaction, tenant.as_ref()).await?;
    store::remove_files_of(transaction, whole, id, bases.clock.now_ms()).await
}

/// The same of all bases of a partner.
pub(crate) async fn remove_all(
    base: &Base,
    transaction: &Transaction,
    tenant: &Tenant,
    now: i64,
) -> Result<(), StoreError> {
    let partner = tenant.partner().as_str();
    if store::remove_files_of_partner(transaction, partner, now).await? {
        queue_job(base, transaction, None).await?;
    }
    Ok(())
}

/// Lets the sync of a partner go on whose settings have changed.
pub(crate) async fn resume(
    base: &Base,
    transaction: &Transaction,
    partner: &partners::Partner,
) -> Result<(), StoreError> {
    if !partner.settings.is_vectorstore_sync_enabled() {
        return Ok(());
    }
    let tenant = Tenant::of_row(partner.id.as_str());
    queue_job(base, transaction, Some(&tenant)).await?;
    let now = base.clock.now_ms();
    store::release(transaction, Some(partner.id.as_str()), now).await
}

/// Queues the jobs of all for whom there is something to do: one that was given up, since processes died while it ran, is not queued
/// any more. When a server starts, whose settings may name another service now, nothing is held back.
pub(crate) async fn resume_all(bases: &Bases, is_start: bool) -> Result<(), StoreError> {
    if bases.vectorstore.is_none() {
        return Ok(());
    }
    for work in store::owners_with_work(bases.store.db()).await? {
        let tenant = work.owner.map(|partner| Tenant::of_row(&partner));
        let transaction = bases.store.begin().await?;
        let settings = match &tenant {
            Some(tenant) => partners::settings(&transaction, tenant).await?,
            None => None,
        };
        // What is held by the switch waits for that.
        if !work.removes && !is_on(bases, &settings.unwrap_or_default()) {
            continue;
        }
        queue_job(bases, &transaction, tenant.as_ref()).await?;
        if is_start {
            let partner = tenant.as_ref().map(|tenant| tenant.partner().as_str());
            store::release(&transaction, partner, bases.clock.now_ms()).await?;
        }
        transaction.commit().await?;
    }
    bases.kernel.jobs.wake();
    Ok(())
}

/// A base whose documents are brought to a vector store.
struct Place<'a> {
    bases: &'a Bases,
    tenant: &'a Tenant,
    base: &'a str,
}

impl Place<'_> {
    /// Has a content of a document brought there. One that is there stays, or, with `looks`, is looked for; what is there of an earlier one
    /// goes when this one can be searched.
    async fn bring(
        &self,
        transaction: &Transaction,
        document: &str,
        sha256: &str,
        looks: bool,
    ) -> Result<(), StoreError> {
        let now = self.bases.clock.now_ms();
        if let Some(known) = store::current_file(transaction, document).await? {
            let is_unasked = known.file_id.is_none() && known.asked_at.is_none();
            let is_same = known.sha256 == sha256;
            match known.state {
                FileState::Synced if is_same && looks => {
                    let state = FileState::Indexing;
                    return store::restart_file(transaction, &known.id, state, now).await;
                }
                FileState::Synced if is_same => return Ok(()),
                FileState::Synced => store::replace_file(transaction, &known.id).await?,
                // What the service could not read it will not read the next time.
                FileState::Failed if is_same && known.file_id.is_none() => {
                    let state = FileState::Queued;
                    return store::restart_file(transaction, &known.id, state, now).await;
                }
                state if is_same && state != FileState::Failed => {
                    return store::restart_file(transaction, &known.id, state, now).await;
                }
                _ if is_unasked => store::delete_synced_file(transaction, &known.id).await?,
                _ => store::remove_file(transaction, &known.id, now).await?,
            }
        }
        store::open_vectorstore(transaction, self.tenant, self.base).await?;
        let new = NewSyncedFile {
            id: &self.bases.clock.new_id().to_string(),
            base: self.base,
            document,
            sha256,
        };
        store::insert_synced_file(transaction, self.tenant, &new, now).await
    }
}
