//! Which job is next: the SQL that takes a lease, and what becomes of the leases of processes that are gone.
//!
//! Partners share the places of a sort: the one with the fewest running jobs comes next, and none gets all places of a
//! process. To find it, the partners that wait are walked through in the index, one step each, so that a long queue of one of
//! them costs nothing.
//!
//! A job whose process died in the middle is a suspect. It runs alone, so that it takes no others with it if it was the
//! cause; if its process dies then, too, it is not run any more. A process that has no quiet moment for it runs it among
//! others after a while; a job may be among them only so often when a process dies.

use std::time::Duration;

use colloquy_store::{Dialect, Executor, StoreError, Value, statement};

use super::store::{COLUMNS, WorkRow};
use crate::node::{self, LOST_AFTER};

/// A job that was there when so many processes died is not run any more; nor one that was alone.
pub(super) const MOST_DEATHS: i64 = 4;

/// How long a suspect waits for a process that does nothing else.
const QUIET: Duration = Duration::from_secs(60);

/// Leases are released this long after their end if their process lives: by then it is known to be dead, if it is.
const LATE: Duration = Duration::from_secs(10);

/// A sort of which a process has room for more.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindLimit {
    pub(super) kind: &'static str,
    /// The most jobs of one partner.
    pub(super) of_partner: usize,
}

/// Who takes a lease, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease<'a> {
    pub(super) node: &'a str,
    pub(super) now: i64,
    pub(super) lasts_ms: i64,
    /// What stands for the database's time, in a test.
    pub(super) database_now: Option<i64>,
}

/// Takes the lease of a job that is due, of the partner with the fewest running jobs.
pub(super) async fn next(
    db: &impl Executor,
    limits: &[KindLimit],
    lease: Lease<'_>,
) -> Result<Option<WorkRow>, StoreError> {
    let mut values: Vec<Value> = vec![
        lease.now.into(),
        lease.lasts_ms.into(),
        lease.node.into(),
        lease.database_now.into(),
        (lease.now - QUIET.as_millis() as i64).into(),
    ];
    let mut rows = Vec::new();
    for limit in limits {
        let at = values.len();
        rows.push(format!(
            "(CAST(${} AS TEXT), CAST(${} AS BIGINT))",
            at + 1,
            at + 2
        ));
        values.extend([limit.kind.into(), (limit.of_partner as i64).into()]);
    }
    let rows = rows.join(", ");
    let due = "w.state = 'queued' AND w.run_at <= $1 AND (w.deaths = 0 OR w.run_at <= $5)";
    let first = |column: &str| {
        format!(
            "(SELECT w.{column} FROM work w WHERE w.kind = t.kind AND w.owner = t.owner AND {due} \
             ORDER BY w.run_at, w.id LIMIT 1)"
        )
    };
    let running = "SELECT COUNT(*) FROM work r WHERE r.state = 'running' AND r.kind = t.kind AND r.owner = t.owner";
    let (first_run_at, first_id) = (first("run_at"), first("id"));
    let ranked = format!(
        "WITH RECURSIVE limits(kind, bound) AS (VALUES {rows}), \
         turns(kind, bound, owner) AS (\
         SELECT s.kind, s.bound, (SELECT w.owner FROM work w WHERE w.kind = s.kind AND w.state = 'queued' \
         ORDER BY w.owner LIMIT 1) FROM limits s \
         UNION ALL \
         SELECT t.kind, t.bound, (SELECT w.owner FROM work w WHERE w.kind = t.kind AND w.state = 'queued' \
         AND w.owner > t.owner ORDER BY w.owner LIMIT 1) FROM turns t WHERE t.owner IS NOT NULL), \
         ranked AS (SELECT t.kind, t.owner, t.bound, {first_run_at} AS due, {first_id} AS first_id, \
         ({running}) AS running, ({running} AND r.node_id = $3) AS here FROM turns t WHERE t.owner IS NOT NULL)"
    );
    let best = "FROM ranked WHERE due IS NOT NULL AND here < bound ORDER BY running, due";
    let pick = match db.dialect() {
        // Two workers pick different rows without waiting for each other: one that is locked is passed over.
        Dialect::Postgres => format!(
            "{ranked} SELECT p.id FROM (SELECT kind, owner {best} LIMIT 16) b CROSS JOIN LATERAL (\
             SELECT w.id FROM work w WHERE w.kind = b.kind AND w.owner = b.owner AND {due} \
             ORDER BY w.run_at, w.id LIMIT 1 FOR UPDATE SKIP LOCKED) p LIMIT 1"
        ),
        // There is one writer at a time.
        _ => format!("{ranked} SELECT first_id {best} LIMIT 1"),
    };
    take(db, &pick, "FALSE", values).await
}

/// Takes the lease of a suspect, for a process that does nothing else.
pub(super) async fn suspect(
    db: &impl Executor,
    limits: &[KindLimit],
    lease: Lease<'_>,
) -> Result<Option<WorkRow>, StoreError> {
    let lock = match db.dialect() {
        Dialect::Postgres => "FOR UPDATE SKIP LOCKED",
        _ => "",
    };
    let mut values: Vec<Value> = vec![
        lease.now.into(),
        lease.lasts_ms.into(),
        lease.node.into(),
        lease.database_now.into(),
    ];
    let places: Vec<String> = (5..5 + limits.len()).map(|n| format!("${n}")).collect();
    values.extend(limits.iter().map(|limit| Value::from(limit.kind)));
    let pick = format!(
        "SELECT id FROM work WHERE state = 'queued' AND deaths > 0 AND run_at <= $1 AND kind IN ({}) \
         ORDER BY run_at, id LIMIT 1 {lock}",
        places.join(", ")
    );
    take(db, &pick, "TRUE", values).await
}

async fn take(
    db: &impl Executor,
    pick: &str,
    alone: &str,
    values: Vec<Value>,
) -> Result<Option<WorkRow>, StoreError> {
    let sql = format!(
        "UPDATE work SET state = 'running', fence = fence + 1, attempts = attempts + 1, alone = {alone}, \
         lease_until = {} + $2, node_id = $3, updated_at = $1 WHERE id = ({pick}) RETURNING {COLUMNS}",
        node::database_time(db, 4)
    );
    db.fetch_one(statement(sql, values)).await
}

/// Says that others run beside a suspect now.
pub(super) async fn join(db: &impl Executor, id: &str, fence: i64) -> Result<(), StoreError> {
    let sql = "UPDATE work SET alone = FALSE WHERE id = $1 AND fence = $2 AND state = 'running'";
    db.execute(statement(sql, [id.into(), fence.into()]))
        .await
        .map(|_| ())
}

/// Queues what processes that are gone held, which counts as a death of their process, and what living ones have lost. What is said of
/// nodes and leases is in the database's time, `now` in this node's.
pub(super) async fn release(
    db: &impl Executor,
    own_node: &str,
    lost_before: i64,
    now: i64,
) -> Result<u64, StoreError> {
    let gone = format!(
        "COALESCE(node_id, '') <> $2 AND COALESCE(node_id, '') NOT IN ({})",
        node::LIVING
    );
    let sql = format!(
        "UPDATE work SET state = 'queued', run_at = $3, updated_at = $3, lease_until = NULL, node_id = NULL, alone = FALSE, \
         deaths = CASE WHEN NOT ({gone}) THEN deaths WHEN alone THEN {MOST_DEATHS} ELSE deaths + 1 END \
         WHERE state = 'running' AND (({gone}) OR lease_until <= $4)"
    );
    let values = [
        lost_before.into(),
        own_node.into(),
        now.into(),
        // While nodes get their time anew, so do leases.
        (lost_before + (LOST_AFTER - LATE).as_millis() as i64).into(),
    ];
    db.execute(statement(sql, values)).await
}
