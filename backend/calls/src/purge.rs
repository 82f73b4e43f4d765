//! What is removed of calls that are over: characters that an earlier version left in them, calls that are too old, and those that their
//! partner deletes.

use colloquy_accounts::{
    Tenant,
    storage::{self, Sum},
};
use colloquy_kernel::{Base, Kernel, node};
use colloquy_store::StoreError;

use super::{
    ended::{self, Held, Reached},
    error::DeleteError,
};

const DAY_MS: i64 = 24 * 3_600_000;
/// How long a call in which media never flowed is kept, in days, if calls are kept longer: one that nobody joined, or whose client only sent
/// its metadata. Nothing was said in it, and whoever sees a page may place such calls.
const SILENT_DAYS: i64 = 7;

/// Clears what calls that are over hold of their characters, and deletes the calls that are older than `calls.kept_days` or, without media,
/// than 7 days, and releases their bytes. Calls of publishable keys have half of their partner's storage at most, so that visitors of pages
/// do not fill it; the oldest are deleted. Returns how many were deleted. Safe on many nodes at once.
///
/// # Errors
/// The database's failure. Batches before it are done.
pub async fn purge(base: &Base) -> Result<u64, StoreError> {
    let now = base.clock.now_ms();
    let kept_days = i64::from(base.config.calls.kept_days);
    let kept_since = now - kept_days * DAY_MS;
    let silent_since = now - kept_days.min(SILENT_DAYS) * DAY_MS;
    ended::clear(&base.store, kept_since, silent_since).await?;
    let mut purged = ended::purge(&base.store, kept_since, silent_since).await?;
    let held = Held::now(base).await?;
    for (partner, most) in storage::half_full(base).await? {
        let deleted = ended::bound_pages(&base.store, &partner, most, held).await?;
        if deleted > 0 {
            tracing::warn!(
                partner,
                deleted,
                "the oldest calls of publishable keys were deleted: such calls have half of their partner's storage at most"
            );
        }
        purged += deleted;
    }
    Ok(purged)
}

/// Deletes a call that is over, of the tenant or, where that is `None`, of any partner. Its transcript and metadata go with it and release
/// their bytes. Deliveries of its webhook have a payload of their own, go on and count; records of its usage stay.
///
/// The outcome of a call that was presumed lost and is deleted before its node is heard again is not stored. One whose node is heard runs on, and is
/// not deleted.
pub(super) async fn delete(
    kernel: &Kernel,
    tenant: Option<&Tenant>,
    id: &str,
) -> Result<(), DeleteError> {
    let held = Held::now(kernel).await?;
    let reached = Reached {
        tenant,
        id,
        held,
        lost_before: node::lost_before(kernel).await?,
    };
    match ended::is_over(kernel.store.db(), reached).await? {
        None => return Err(DeleteError::Unknown),
        Some(false) => return Err(DeleteError::Open),
        // No call that is over begins again, unless its node is heard at this moment.
        Some(true) => {}
    }
    let transaction = kernel.store.begin().await?;
    let deleted = ended::delete(&transaction, reached).await?;
    let call = deleted.ok_or(DeleteError::Unknown)?;
    storage::release(&transaction, &call.partner, Sum::Texts, call.bytes).await?;
    transaction.commit().await?;
    Ok(())
}
