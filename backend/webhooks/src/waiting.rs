//! The deliveries that wait for their receivers, and those that failed lately.

use colloquy_kernel::{MOST_WAITING, WaitReason, WaitingKind, WaitingWork, jobs::MOST_COUNTED};
use colloquy_store::{Executor, StoreError, statement};

/// Partners that are listed, those with the most deliveries; the last one tells of more.
const MOST_PARTNERS: i64 = MOST_WAITING as i64 + 1;

#[derive(sqlx::FromRow)]
struct WaitingRow {
    partner: String,
    deliveries: i64,
    since: Option<i64>,
    next_at: Option<i64>,
}

/// Counts by partner the deliveries that wait for another attempt, and those that failed since a time. Both are found in the index
/// `webhook_deliveries_state`.
pub(super) async fn deliveries(
    db: &impl Executor,
    failed_since: i64,
) -> Result<Vec<WaitingWork>, StoreError> {
    let most = MOST_COUNTED as i64 + 1;
    let sql = "SELECT d.partner, COUNT(*) AS deliveries, MIN(d.created_at) AS since, MIN(d.next_attempt_at) AS next_at FROM (\
               SELECT partner, attempts, created_at, next_attempt_at FROM webhook_deliveries WHERE state = 'pending' LIMIT $1) d \
               WHERE d.attempts > 0 GROUP BY d.partner ORDER BY deliveries DESC, d.partner LIMIT $2";
    let pending: Vec<WaitingRow> = db
        .fetch_all(statement(sql, [most.into(), MOST_PARTNERS.into()]))
        .await?;
    let sql = "SELECT d.partner, COUNT(*) AS deliveries, MIN(d.updated_at) AS since, CAST(NULL AS BIGINT) AS next_at FROM (\
               SELECT partner, updated_at FROM webhook_deliveries WHERE state = 'failed' AND updated_at >= $3 ORDER BY updated_at DESC LIMIT $1) d \
               GROUP BY d.partner ORDER BY deliveries DESC, d.partner LIMIT $2";
    let values = [most.into(), MOST_PARTNERS.into(), failed_since.into()];
    let failed: Vec<WaitingRow> = db.fetch_all(statement(sql, values)).await?;
    let of = |reason| move |row| work(row, reason);
    let pending = pending.into_iter().map(of(WaitReason::Receiver));
    let failed = failed.into_iter().map(of(WaitReason::Failed));
    Ok(pending.chain(failed).collect())
}

fn work(row: WaitingRow, reason: WaitReason) -> WaitingWork {
    WaitingWork {
        kind: WaitingKind::Webhooks,
        partner: Some(row.partner),
        base: None,
        count: row.deliveries.unsigned_abs(),
        reason,
        detail: None,
        since: row.since,
        next_at: row.next_at,
    }
}
