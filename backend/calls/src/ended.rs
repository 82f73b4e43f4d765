//! The SQL of calls that are over: retention, the bound of those without media, deletion.

use colloquy_accounts::{Tenant, storage};
use colloquy_kernel::Base;
use colloquy_store::{Dialect, Executor, Store, StoreError, Transaction, statement};

use super::store::{self, CLEARED, NODE_LOST};

/// How many calls are changed in one statement.
const AT_ONCE: i64 = 500;

/// The most bytes that the calls of a publishable key have that ended without media. Anybody who sees the page places and joins such calls,
/// and would fill the storage of the partner with their metadata.
const MAX_SILENT_BYTES: u64 = 64 * 1024 * 1024;

/// How long a call whose node is out of reach is kept at least, in milliseconds: the node may still live, and tell how the call ended.
const LOST_HELD_MS: i64 = 10 * 60_000;

/// The times by which calls are held that were presumed lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// Those that were presumed lost at this time or before are held no longer.
    until: i64,
    /// Those that were presumed lost after this were so by a clock that was ahead, and are not held.
    pub(super) latest: i64,
}

impl Held {
    /// The times as of now.
    ///
    /// # Errors
    /// The database's failure.
    pub(super) async fn now(base: &Base) -> Result<Self, StoreError> {
        Ok(Self {
            until: base.clock.now_ms() - LOST_HELD_MS,
            latest: base.latest_now_ms().await?,
        })
    }
}

/// Returns the condition of calls that can be deleted: those that are over, unless they were presumed lost between `$4` and `$5`, or so and run on.
fn over() -> String {
    format!(
        "state IN ('completed', 'error') \
         AND (COALESCE(error_code, '') <> '{NODE_LOST}' OR ended_at <= $4 OR ended_at > $5) AND NOT {}",
        store::runs_on()
    )
}

/// The condition of calls that a bound may delete: all but those that were presumed lost (`$4`) between `$5` and `$6`.
const NOT_HELD: &str = "(COALESCE(error_code, '') <> $4 OR ended_at <= $5 OR ended_at > $6)";

/// The condition of calls in which media never flowed. A call that was not marked as ongoing, since the database was away, has a length or
/// a transcript.
const WITHOUT_MEDIA: &str =
    "ongoing_at IS NULL AND transcript IS NULL AND COALESCE(call_seconds, 0) = 0";

/// The calls that a key reaches: those of the partner `$3`, or all calls where that is null.
const REACHED: &str = "id = $2 AND (CAST($3 AS TEXT) IS NULL OR partner = $3)";

/// Clears the characters of calls that are over and have them still: those that ended under a version that kept them. They do not count in
/// the storage of their partners. Calls that [`purge`] deletes are left to it, so that two nodes do not wait for each other's rows. Networks
/// are cleared as well that a node of an earlier version left when it began or ended a call.
pub(super) async fn clear(
    store: &Store,
    kept_since: i64,
    silent_since: i64,
) -> Result<(), StoreError> {
    let characters = format!(
        "UPDATE calls SET {CLEARED} WHERE id IN \
         (SELECT id FROM calls WHERE ended_at IS NOT NULL AND character_json <> '' \
         AND NOT (ended_at <= $2 OR (ended_at <= $3 AND {WITHOUT_MEDIA})) ORDER BY id LIMIT $1)"
    );
    in_batches(store, &characters, &[kept_since, silent_since]).await?;
    let networks = "UPDATE calls SET page_network = NULL WHERE id IN \
                    (SELECT id FROM calls WHERE page_network IS NOT NULL AND state <> 'starting' ORDER BY id LIMIT $1)";
    in_batches(store, networks, &[]).await
}

/// Runs a statement, which changes at most `$1` rows, until it finds no more. `times` are its other values.
async fn in_batches(store: &Store, sql: &str, times: &[i64]) -> Result<(), StoreError> {
    let db = store.patient();
    loop {
        let values = std::iter::once(&AT_ONCE).chain(times);
        let batch = statement(sql.to_owned(), values.map(|&value| value.into()));
        if db.execute(batch).await? < AT_ONCE.unsigned_abs() {
            return Ok(());
        }
    }
}

/// Deletes the calls that ended at `kept_since` or before, and those without media that ended at `silent_since` or before, and releases
/// their bytes. Returns how many they were.
pub(super) async fn purge(
    store: &Store,
    kept_since: i64,
    silent_since: i64,
) -> Result<u64, StoreError> {
    let ended = "DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2) \
                 RETURNING partner, ended_bytes AS bytes";
    let silent = format!(
        "DELETE FROM calls WHERE id IN \
         (SELECT id FROM calls WHERE ended_at <= $1 AND {WITHOUT_MEDIA} ORDER BY ended_at LIMIT $2) \
         RETURNING partner, ended_bytes AS bytes"
    );
    let ended = storage::purge_texts(store, ended, kept_since).await?;
    Ok(ended + storage::purge_texts(store, &silent, silent_since).await?)
}

/// A call that was deleted.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct DeletedCall {
    pub(super) partner: String,
    /// How many of its bytes counted.
    pub(super) bytes: i64,
}

/// Deletes the oldest calls of a publishable key that ended without media until the others have [`MAX_SILENT_BYTES`] at most, and releases
/// their bytes. The transaction has changed the sum of the partner, so ends that are stored together see each other.
pub(super) async fn bound_silent(
    transaction: &Transaction,
    page_key: &str,
    held: Held,
) -> Result<(), StoreError> {
    loop {
        // The index has all of it, also calls that a node of an earlier version ended again with media, which are not deleted.
        let sql = "SELECT CAST(COALESCE(SUM(silent_bytes), 0) AS BIGINT) FROM calls WHERE page_key = $1 AND silent_bytes > 0";
        let kept = transaction.fetch_count(statement(sql, [page_key.into()]));
        let mut excess = kept.await?.saturating_sub(MAX_SILENT_BYTES);
        if excess > 0 {
            // Nothing else makes room for those whose outcomes may still come.
            excess = excess.saturating_sub(held_silent(transaction, page_key, held).await?);
        }
        if excess == 0 {
            return Ok(());
        }
        // They would be the newest for as long as the clock was ahead.
        let mut deleted = delete_oldest_silent(transaction, page_key, excess, held, true).await?;
        if deleted.is_empty() {
            deleted = delete_oldest_silent(transaction, page_key, excess, held, false).await?;
        }
        if deleted.is_empty() {
            // Other transactions are deleting them, or the outcomes of all may still come.
            return Ok(());
        }
        tracing::info!(
            key = page_key,
            deleted = deleted.len(),
            "the oldest calls of a publishable key that ended without media were deleted: all of them, counted with 1 KiB each at least, \
             have 64 MiB"
        );
        let released = deleted.into_iter().map(|call| (call.partner, call.bytes));
        storage::release_texts(transaction, released.collect()).await?;
    }
}

/// Returns how many bytes the calls of a publishable key have that [`NOT_HELD`] leaves out.
async fn held_silent(db: &impl Executor, page_key: &str, held: Held) -> Result<u64, StoreError> {
    let sql = "SELECT CAST(COALESCE(SUM(silent_bytes), 0) AS BIGINT) FROM calls \
               WHERE page_key = $1 AND silent_bytes > 0 AND ended_at > $3 AND ended_at <= $4 AND error_code = $2";
    let values = [
        page_key.into(),
        NODE_LOST.into(),
        held.until.into(),
        held.latest.into(),
    ];
    db.fetch_count(statement(sql, values)).await
}

/// Deletes as many of the oldest calls as have `excess` bytes together, at most [`AT_ONCE`]: of those that ended by a clock ahead, or of the
/// others. Each has 1 KiB at least, so no more rows than that takes are locked.
async fn delete_oldest_silent(
    db: &impl Executor,
    page_key: &str,
    excess: u64,
    held: Held,
    by_a_clock_ahead: bool,
) -> Result<Vec<DeletedCall>, StoreError> {
    let lock = match db.dialect() {
        // Whoever deletes one of them waits for the sum of the partner, which this transaction holds; so locked rows are passed over.
        Dialect::Postgres => "FOR UPDATE SKIP LOCKED",
        // There is one writer at a time.
        Dialect::Sqlite => "",
    };
    let side = if by_a_clock_ahead { ">" } else { "<=" };
    let sql = format!(
        "WITH oldest AS MATERIALIZED (SELECT id, ended_at, silent_bytes FROM calls WHERE page_key = $1 AND silent_bytes > 0 \
         AND {WITHOUT_MEDIA} AND {NOT_HELD} AND ended_at {side} $6 ORDER BY ended_at, id LIMIT $3 {lock}), \
         summed AS (SELECT id, SUM(silent_bytes) OVER (ORDER BY ended_at, id) - silent_bytes AS older_bytes FROM oldest) \
         DELETE FROM calls WHERE id IN (SELECT id FROM summed WHERE older_bytes < $2) RETURNING partner, ended_bytes AS bytes"
    );
    let values = [
        page_key.into(),
        storage::counted(excess).into(),
        storage::counted(excess / 1024 + 1).min(AT_ONCE).into(),
        NODE_LOST.into(),
        held.until.into(),
        held.latest.into(),
    ];
    db.fetch_all(statement(sql, values)).await
}

/// Deletes as many of the oldest calls of a partner's publishable keys as have `excess` bytes together, at most [`AT_ONCE`]: of those that ended
/// by a clock ahead, or of the others.
async fn delete_oldest_of_pages(
    db: &impl Executor,
    partner: &str,
    excess: u64,
    held: Held,
    by_a_clock_ahead: bool,
) -> Result<Vec<DeletedCall>, StoreError> {
    let side = if by_a_clock_ahead { ">" } else { "<=" };
    let sql = format!(
        "WITH oldest AS (SELECT id, ended_at, ended_bytes FROM calls \
         WHERE partner = $1 AND page_key IS NOT NULL AND ended_bytes > 0 AND {NOT_HELD} AND ended_at {side} $6 \
         ORDER BY ended_at, id LIMIT $3), \
         summed AS (SELECT id, SUM(ended_bytes) OVER (ORDER BY ended_at, id) - ended_bytes AS older_bytes FROM oldest) \
         DELETE FROM calls WHERE id IN (SELECT id FROM summed WHERE older_bytes < $2) \
         RETURNING partner, ended_bytes AS bytes"
    );
    let values = [
        partner.into(),
        storage::counted(excess).into(),
        AT_ONCE.into(),
        NODE_LOST.into(),
        held.until.into(),
        held.latest.into(),
    ];
    db.fetch_all(statement(sql, values)).await
}

/// Deletes the oldest calls of the publishable keys of a partner until the others have `most` bytes at most, a batch in each transaction, and
/// releases their bytes. Returns how many were deleted.
pub(super) async fn bound_pages(
    store: &Store,
    partner: &str,
    most: u64,
    held: Held,
) -> Result<u64, StoreError> {
    let mut purged = 0;
    loop {
        let transaction = store.begin_patient().await?;
        let sql = "SELECT CAST(COALESCE(SUM(ended_bytes), 0) AS BIGINT) FROM calls \
                   WHERE partner = $1 AND page_key IS NOT NULL AND ended_bytes > 0";
        let kept = transaction.fetch_count(statement(sql, [partner.into()]));
        let excess = kept.await?.saturating_sub(most);
        if excess == 0 {
            return Ok(purged);
        }
        // They would be the newest for as long as the clock was ahead.
        let mut deleted = delete_oldest_of_pages(&transaction, partner, excess, held, true).await?;
        if deleted.is_empty() {
            deleted = delete_oldest_of_pages(&transaction, partner, excess, held, false).await?;
        }
        if deleted.is_empty() {
            // Another node has deleted them, or the outcomes of all may still come.
            return Ok(purged);
        }
        purged += deleted.len() as u64;
        let released = deleted.into_iter().map(|call| (call.partner, call.bytes));
        storage::release_texts(&transaction, released.collect()).await?;
        transaction.commit().await?;
    }
}

/// A call that somebody may want to delete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reached<'a> {
    /// The partner whose call it is; any partner's where this is `None`.
    pub(super) tenant: Option<&'a Tenant>,
    pub(super) id: &'a str,
    pub(super) held: Held,
    /// The time since which living nodes were heard.
    pub(super) lost_before: i64,
}

impl Reached<'_> {
    fn values(self) -> [colloquy_store::Value; 5] {
        let partner = self
            .tenant
            .map(|tenant| tenant.partner().as_str().to_owned());
        [
            self.lost_before.into(),
            self.id.into(),
            partner.into(),
            self.held.until.into(),
            self.held.latest.into(),
        ]
    }
}

/// Returns true if the call can be deleted; `None` if there is none.
pub(super) async fn is_over(
    db: &impl Executor,
    reached: Reached<'_>,
) -> Result<Option<bool>, StoreError> {
    let sql = format!(
        "SELECT CAST(CASE WHEN {} THEN 1 ELSE 0 END AS BIGINT) FROM calls WHERE {REACHED}",
        over()
    );
    let over: Option<i64> = db.fetch_scalar(statement(sql, reached.values())).await?;
    Ok(over.map(|over| over == 1))
}

/// Deletes a call that is over; `None` if there is no such call any more.
pub(super) async fn delete(
    db: &impl Executor,
    reached: Reached<'_>,
) -> Result<Option<DeletedCall>, StoreError> {
    let sql = format!(
        "DELETE FROM calls WHERE {REACHED} AND {} RETURNING partner, ended_bytes AS bytes",
        over()
    );
    db.fetch_one(statement(sql, reached.values())).await
}
