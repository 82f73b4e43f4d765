//! The SQL of what waits in knowledge bases for a budget or a service, for operators.

use colloquy_kernel::{MOST_WAITING, WaitReason, WaitingKind, WaitingWork, jobs::MOST_COUNTED};
use colloquy_store::{Executor, StoreError, statement};

use super::{IS_BLOCKED, to_do};
use crate::budget::BLOCKED;

/// Knowledge bases that are listed of each kind, those of which the most waits; the last one tells of more.
const MOST_BASES: i64 = MOST_WAITING as i64 + 1;

#[derive(sqlx::FromRow)]
struct WaitingRow {
    partner: Option<String>,
    base: Option<String>,
    waiting: i64,
    why: Option<String>,
    since: Option<i64>,
    next_at: Option<i64>,
}

/// Returns what waits, by knowledge base: documents, found in the index `knowledge_documents_blocked`; channels, in `knowledge_channels_blocked`;
/// files for vector stores, in `vectorstores_held`. `now` is this node's time.
pub(crate) async fn waiting_work(
    db: &impl Executor,
    now: i64,
) -> Result<Vec<WaitingWork>, StoreError> {
    let most = MOST_COUNTED as i64 + 1;
    let documents = format!(
        "SELECT b.partner, b.name AS base, w.waiting, w.since, CAST(NULL AS BIGINT) AS next_at, \
         (SELECT CASE WHEN 'blocked' IN (d.digitizing, d.rewriting) THEN d.processing_error ELSE d.embedding_error END \
         FROM knowledge_documents d WHERE d.base_id = w.base_id AND {IS_BLOCKED} ORDER BY d.created_at, d.id LIMIT 1) AS why \
         FROM (SELECT c.base_id, COUNT(*) AS waiting, MIN(c.blocked_at) AS since FROM (\
         SELECT d.base_id, d.blocked_at FROM knowledge_documents d WHERE {IS_BLOCKED} LIMIT $1) c GROUP BY c.base_id) w \
         JOIN knowledge_bases b ON b.id = w.base_id WHERE b.deletion_requested_at IS NULL ORDER BY w.waiting DESC, b.id LIMIT $2"
    );
    let documents: Vec<WaitingRow> = db
        .fetch_all(statement(documents, [most.into(), MOST_BASES.into()]))
        .await?;
    let channels = "SELECT b.partner, b.name AS base, w.waiting, CAST(NULL AS BIGINT) AS since, CAST(NULL AS BIGINT) AS next_at, CAST(NULL AS TEXT) AS why \
                    FROM (SELECT f.base_id, COUNT(*) AS waiting FROM (\
                    SELECT c.base_id FROM knowledge_channels c WHERE c.status = 'budget_blocked' LIMIT $1) f GROUP BY f.base_id) w \
                    JOIN knowledge_bases b ON b.id = w.base_id WHERE b.deletion_requested_at IS NULL ORDER BY w.waiting DESC, b.id LIMIT $2";
    let channels: Vec<WaitingRow> = db
        .fetch_all(statement(channels, [most.into(), MOST_BASES.into()]))
        .await?;
    let held = format!(
        "SELECT v.owner AS partner, b.name AS base, v.last_error AS why, CAST(NULL AS BIGINT) AS since, v.held_until AS next_at, \
         (SELECT COUNT(*) FROM (SELECT 1 FROM vectorstore_files f WHERE f.base_id = v.base_id AND {} LIMIT $1) AS counted) AS waiting \
         FROM vectorstores v LEFT JOIN knowledge_bases b ON b.id = v.base_id WHERE v.held_until > $3 ORDER BY v.held_until, v.base_id LIMIT $2",
        to_do(false)
    );
    let values = [most.into(), MOST_BASES.into(), now.into()];
    let held: Vec<WaitingRow> = db.fetch_all(statement(held, values)).await?;
    let of = |kind, reason| move |row| work(row, kind, reason);
    let documents = documents.into_iter();
    let documents = documents.map(of(WaitingKind::Documents, WaitReason::Budget));
    let channels = channels.into_iter();
    let channels = channels.map(of(WaitingKind::Channels, WaitReason::Budget));
    let held = held.into_iter();
    let held = held.map(of(WaitingKind::VectorstoreFiles, WaitReason::Service));
    Ok(documents.chain(channels).chain(held).collect())
}

fn work(row: WaitingRow, kind: WaitingKind, reason: WaitReason) -> WaitingWork {
    let told = |why: String| {
        let told = why.strip_prefix(BLOCKED).unwrap_or(&why).trim();
        told.to_owned()
    };
    WaitingWork {
        kind,
        partner: row.partner,
        base: row.base,
        count: row.waiting.unsigned_abs(),
        reason,
        detail: row.why.map(told),
        since: row.since,
        next_at: row.next_at,
    }
}
