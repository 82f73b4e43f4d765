//! The SQL of calls that are over: retention, the bound of those without media, deletion.

use colloquy_accounts::{Tenant, storage};
use colloquy_store::{Dialect, Executor, Store, StoreError, Transaction, statement};

use super::{CallState, store::CLEARED};

/// How many calls are changed in one statement.
const AT_ONCE: i64 = 500;

/// The most bytes that the calls of a publishable key have that ended without media. Anybody who sees the page places and joins such calls,
/// and would fill the storage of the partner with their metadata.
const MAX_SILENT_BYTES: u64 = 64 * 1024 * 1024;

/// The condition of calls in which media never flowed. A call that was not marked as ongoing, since the database was away, has a length or
/// a transcript.
const WITHOUT_MEDIA: &str =
    "ongoing_at IS NULL AND transcript IS NULL AND COALESCE(call_seconds, 0) = 0";

/// The calls that a key reaches: those of the partner `$2`, or all calls where that is null.
const REACHED: &str = "id = $1 AND (CAST($2 AS TEXT) IS NULL OR partner = $2)";

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
) -> Result<(), StoreError> {
    loop {
        let sql = "SELECT CAST(COALESCE(SUM(silent_bytes), 0) AS BIGINT) FROM calls WHERE page_key = $1 AND silent_bytes > 0";
        let held = transaction.fetch_count(statement(sql, [page_key.into()]));
        let excess = held.await?.saturating_sub(MAX_SILENT_BYTES);
        if excess == 0 {
            return Ok(());
        }
        let deleted = delete_oldest_silent(transaction, page_key, excess).await?;
        if deleted.is_empty() {
            // Other transactions are deleting them.
            return Ok(());
        }
        tracing::info!(
            key = page_key,
            deleted = deleted.len(),
            "the oldest calls of a publishable key that ended without media were deleted, since such calls have 64 MiB of metadata"
        );
        let released = deleted.into_iter().map(|call| (call.partner, call.bytes));
        storage::release_texts(transaction, released.collect()).await?;
    }
}

/// Deletes as many of the oldest calls as have `excess` bytes together, at most [`AT_ONCE`]. These have 500 KB at least, more than the metadata
/// of one call.
async fn delete_oldest_silent(
    db: &impl Executor,
    page_key: &str,
    excess: u64,
) -> Result<Vec<DeletedCall>, StoreError> {
    let lock = match db.dialect() {
        // Whoever deletes one of them waits for the sum of the partner, which this transaction holds; so locked rows are passed over.
        Dialect::Postgres => "FOR UPDATE SKIP LOCKED",
        // There is one writer at a time.
        Dialect::Sqlite => "",
    };
    let sql = format!(
        "WITH oldest AS MATERIALIZED (SELECT id, ended_at, silent_bytes FROM calls WHERE page_key = $1 AND silent_bytes > 0 \
         ORDER BY ended_at, id LIMIT $3 {lock}), \
         summed AS (SELECT id, SUM(silent_bytes) OVER (ORDER BY ended_at, id) - silent_bytes AS older_bytes FROM oldest) \
         DELETE FROM calls WHERE id IN (SELECT id FROM summed WHERE older_bytes < $2) RETURNING partner, ended_bytes AS bytes"
    );
    let values = [
        page_key.into(),
        storage::counted(excess).into(),
        AT_ONCE.into(),
    ];
    db.fetch_all(statement(sql, values)).await
}

/// Returns the state of a call of the tenant, or of any call where that is `None`.
pub(super) async fn state(
    db: &impl Executor,
    tenant: Option<&Tenant>,
    id: &str,
) -> Result<Option<CallState>, StoreError> {
    let sql = format!("SELECT state FROM calls WHERE {REACHED}");
    let state: Option<String> = db.fetch_scalar(statement(sql, reached(tenant, id))).await?;
    let parsed = state.map(|state| {
        let unknown = || StoreError::malformed(format!("call {id} has no known state"));
        CallState::parse(&state).ok_or_else(unknown)
    });
    parsed.transpose()
}

/// Deletes a call that is over; `None` if there is no such call any more.
pub(super) async fn delete(
    db: &impl Executor,
    tenant: Option<&Tenant>,
    id: &str,
) -> Result<Option<DeletedCall>, StoreError> {
    let sql = format!(
        "DELETE FROM calls WHERE {REACHED} AND state IN ('completed', 'error') RETURNING partner, ended_bytes AS bytes"
    );
    db.fetch_one(statement(sql, reached(tenant, id))).await
}

fn reached(tenant: Option<&Tenant>, id: &str) -> [colloquy_store::Value; 2] {
    let partner = tenant.map(|tenant| tenant.partner().as_str().to_owned());
    [id.into(), partner.into()]
}
