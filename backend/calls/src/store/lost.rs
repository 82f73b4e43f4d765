//! The SQL of calls whose end nobody else writes: those that nobody joined in time, and those of nodes that are gone.

use std::time::Duration;

use colloquy_accounts::Tenant;
use colloquy_kernel::node;
use colloquy_store::{Executor, StoreError, statement};

use super::{CLEARED, METADATA_BYTES, NODE_LOST, SILENT_BYTES};

/// A call that nobody took in time.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct MissedCall {
    pub(crate) id: String,
    pub(crate) partner: String,
    pub(crate) character_bytes: i64,
    pub(crate) page_key: Option<String>,
    pub(crate) created_at: i64,
}

/// `starting` calls that nobody took until `database_now` become `error`, and those that were created after the time `latest`, by a clock that was
/// ahead. Nothing tells their webhook, so that goes, too. They have no metadata.
pub(crate) async fn end_not_joined(
    db: &impl Executor,
    now: i64,
    database_now: i64,
    latest: i64,
) -> Result<Vec<MissedCall>, StoreError> {
    let sql = format!(
        "UPDATE calls SET state = 'error', error_code = 'NOT_JOINED', ended_at = $1, updated_at = $1, webhook_url = NULL, \
         silent_bytes = {SILENT_BYTES}, {CLEARED} \
         WHERE state = 'starting' AND taken_at IS NULL AND (expires_at <= $2 OR created_at > $3) \
         RETURNING id, partner, character_bytes, page_key, created_at"
    );
    let values = [now.into(), database_now.into(), latest.into()];
    db.fetch_all(statement(sql, values)).await
}

/// A call whose node is gone.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct LostCall {
    pub(crate) id: String,
    pub(crate) partner: String,
    pub(crate) character_bytes: i64,
    pub(crate) ended_bytes: i64,
    pub(crate) silent_bytes: i64,
    pub(crate) page_key: Option<String>,
    time_limit_seconds: i64,
    ongoing_at: Option<i64>,
    heartbeat_at: Option<i64>,
}

impl LostCall {
    /// Returns the time that media flowed until the node's last heartbeat, both on the database's clock; `None` if the node
    /// is unknown.
    pub(crate) fn call_time(&self) -> Option<Duration> {
        let Some(ongoing_at) = self.ongoing_at else {
            return Some(Duration::ZERO);
        };
        let flowed = (self.heartbeat_at? - ongoing_at).max(0).unsigned_abs();
        let limit = Duration::from_secs(self.time_limit_seconds.unsigned_abs());
        Some(Duration::from_millis(flowed).min(limit))
    }
}

/// Calls that were taken by nodes which are gone become `error`.
pub(crate) async fn end_lost(
    db: &impl Executor,
    own_node: &str,
    lost_before: i64,
    now: i64,
) -> Result<Vec<LostCall>, StoreError> {
    let sql = format!(
        "UPDATE calls SET state = 'error', error_code = '{NODE_LOST}', ended_at = $3, updated_at = $3, \
         ended_bytes = {METADATA_BYTES}, silent_bytes = {SILENT_BYTES}, {CLEARED} \
         WHERE state IN ('starting', 'ongoing') AND taken_at IS NOT NULL AND node_id <> $2 AND node_id NOT IN ({}) \
         RETURNING id, partner, character_bytes, ended_bytes, silent_bytes, page_key, time_limit_seconds, ongoing_at, \
         (SELECT heartbeat_at FROM nodes WHERE nodes.id = calls.node_id) AS heartbeat_at",
        node::LIVING
    );
    let values = [lost_before.into(), own_node.into(), now.into()];
    db.fetch_all(statement(sql, values)).await
}

pub(crate) async fn count_open(db: &impl Executor, tenant: &Tenant) -> Result<u64, StoreError> {
    let sql = "SELECT COUNT(*) FROM calls WHERE partner = $1 AND state IN ('starting', 'ongoing')";
    db.fetch_count(statement(sql, [tenant.partner().as_str().into()]))
        .await
}
