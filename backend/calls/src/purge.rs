//! What is removed of calls that are over: characters that an earlier version left in them, and calls that are too old.

use colloquy_kernel::Base;
use colloquy_store::StoreError;

use super::store;

const DAY_MS: i64 = 24 * 3_600_000;
/// How long a call in which media never flowed is kept, in days, if calls are kept longer: one that nobody joined, or whose client only sent
/// its metadata. Nothing was said in it, and whoever sees a page may place such calls.
const SILENT_DAYS: i64 = 7;

/// Clears what calls that are over hold of their characters, and deletes the calls that are older than `calls.kept_days` or, without media,
/// than 7 days. Returns how many were deleted. Safe on many nodes at once.
///
/// # Errors
/// The database's failure. Batches before it are done.
pub async fn purge(base: &Base) -> Result<u64, StoreError> {
    let now = base.clock.now_ms();
    let kept_days = i64::from(base.config.calls.kept_days);
    let kept_since = now - kept_days * DAY_MS;
    let silent_since = now - kept_days.min(SILENT_DAYS) * DAY_MS;
    store::clear_ended(&base.store, kept_since, silent_since).await?;
    store::purge(&base.store, kept_since, silent_since).await
}
