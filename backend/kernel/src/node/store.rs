//! The SQL of nodes. Their times are the database's.

use colloquy_store::{Dialect, Executor, StoreError, statement};

use super::pulse::DRIFT;
use crate::CLOCKS_OFF;

/// The SQL of the database's time, in place of which a test has the time that is bound here.
pub(super) fn now(db: &impl Executor, place: usize) -> String {
    let now = db.dialect().now_ms();
    format!("COALESCE(CAST(${place} AS BIGINT), {now})")
}

/// What a node says of itself.
pub(super) struct Card<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) place: Option<&'a str>,
    pub(super) url: Option<&'a str>,
    pub(super) version: &'a str,
}

/// The state that a node stores with each heartbeat.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    pub(super) stopping: bool,
    pub(super) calls: Option<i64>,
    pub(super) max_calls: Option<i64>,
}

/// Stores a node; returns the time of its first heartbeat.
pub(super) async fn insert(
    db: &impl Executor,
    card: &Card<'_>,
    at: Option<i64>,
) -> Result<i64, StoreError> {
    let now = now(db, 6);
    let sql = format!(
        "INSERT INTO nodes (id, name, place, url, version, started_at, heartbeat_at) VALUES ($1, $2, $3, $4, $5, {now}, {now}) \
         RETURNING heartbeat_at"
    );
    let values = [
        card.id.into(),
        card.name.into(),
        card.place.map(str::to_owned).into(),
        card.url.map(str::to_owned).into(),
        card.version.into(),
        at.into(),
    ];
    let beat = db.fetch_scalar(statement(sql, values)).await?;
    beat.ok_or_else(|| StoreError::other("the node was not stored"))
}

/// Holds the name of a node until the transaction ends, which on SQLite does so for all names.
pub(super) async fn lock(db: &impl Executor, name: &str) -> Result<(), StoreError> {
    if db.dialect() == Dialect::Postgres {
        let sql = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        db.execute(statement(sql, [name.into()])).await?;
    }
    Ok(())
}

/// A node that clients reach without the load balancer.
#[derive(sqlx::FromRow)]
struct Reached {
    url: String,
}

pub(super) async fn origins(
    db: &impl Executor,
    lost_before: i64,
) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT DISTINCT url FROM nodes WHERE url IS NOT NULL AND ended_at IS NULL AND heartbeat_at >= $1 ORDER BY url";
    let found: Vec<Reached> = db.fetch_all(statement(sql, [lost_before.into()])).await?;
    Ok(found.into_iter().map(|node| node.url).collect())
}

pub(super) async fn end_earlier(
    db: &impl Executor,
    name: &str,
    at: Option<i64>,
) -> Result<(), StoreError> {
    let now = now(db, 2);
    let sql = format!("UPDATE nodes SET ended_at = {now} WHERE name = $1 AND ended_at IS NULL");
    db.execute(statement(sql, [name.into(), at.into()])).await?;
    Ok(())
}

/// A node as its last heartbeat left it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(super) struct Beat {
    pub(super) id: String,
    pub(super) heartbeat_at: i64,
}

/// The nodes of this name that count as living and run on another folder than this one. Earlier versions stored no folder,
/// and heartbeats of the node's own clock: such a node may run on another one, and be heard of late.
pub(super) async fn elsewhere(
    db: &impl Executor,
    name: &str,
    place: &str,
    lost_before: i64,
) -> Result<Vec<Beat>, StoreError> {
    let sql = "SELECT id, heartbeat_at FROM nodes \
               WHERE name = $1 AND ended_at IS NULL \
               AND ((place <> $2 AND heartbeat_at >= $3) OR (place IS NULL AND heartbeat_at >= $4))";
    let lost_before_by_own_clock = lost_before - CLOCKS_OFF.as_millis() as i64;
    let values = [
        name.into(),
        place.into(),
        lost_before.into(),
        lost_before_by_own_clock.into(),
    ];
    db.fetch_all(statement(sql, values)).await
}

/// The row of a node after its heartbeat.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Stored {
    pub(super) heartbeat_at: i64,
    ended_at: Option<i64>,
}

impl Stored {
    /// Whether somebody has taken the node for dead.
    pub(super) fn was_ended(&self) -> bool {
        self.ended_at.is_some()
    }
}

/// Stores a heartbeat; `None` when the node has no row any more.
pub(super) async fn heartbeat(
    db: &impl Executor,
    id: &str,
    told: Told,
    at: Option<i64>,
) -> Result<Option<Stored>, StoreError> {
    let now = now(db, 5);
    let sql = format!(
        "UPDATE nodes SET heartbeat_at = {now}, stopping = $2, calls = $3, max_calls = $4 WHERE id = $1 RETURNING heartbeat_at, ended_at"
    );
    let values = [
        id.into(),
        told.stopping.into(),
        told.calls.into(),
        told.max_calls.into(),
        at.into(),
    ];
    db.fetch_one(statement(sql, values)).await
}

/// A node as the table has it.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct NodeRow {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) url: Option<String>,
    pub(super) version: Option<String>,
    pub(super) started_at: i64,
    pub(super) heartbeat_at: i64,
    pub(super) ended_at: Option<i64>,
    pub(super) stopping: bool,
    pub(super) calls: Option<i64>,
    pub(super) max_calls: Option<i64>,
}

/// The nodes that were heard of last, so many at most.
pub(super) async fn list(db: &impl Executor, most: i64) -> Result<Vec<NodeRow>, StoreError> {
    let sql = "SELECT id, name, url, version, started_at, heartbeat_at, ended_at, stopping, calls, max_calls FROM nodes \
               ORDER BY CASE WHEN ended_at IS NULL THEN 0 ELSE 1 END, heartbeat_at DESC, id DESC LIMIT $1";
    db.fetch_all(statement(sql, [most.into()])).await
}

/// Lets a node live again that was taken for dead.
pub(super) async fn revive(db: &impl Executor, id: &str) -> Result<(), StoreError> {
    let sql = "UPDATE nodes SET ended_at = NULL WHERE id = $1";
    db.execute(statement(sql, [id.into()])).await?;
    Ok(())
}

/// Heartbeats that are far ahead of this time become heartbeats of this time: the clock went back.
pub(super) async fn bring_back(db: &impl Executor, now: i64) -> Result<(), StoreError> {
    let sql = "UPDATE nodes SET heartbeat_at = $1 WHERE heartbeat_at > $2";
    let ahead = now + DRIFT.as_millis() as i64;
    db.execute(statement(sql, [now.into(), ahead.into()]))
        .await?;
    Ok(())
}

pub(super) async fn forget(db: &impl Executor, before: i64) -> Result<(), StoreError> {
    let sql = "DELETE FROM nodes WHERE heartbeat_at < $1";
    db.execute(statement(sql, [before.into()])).await?;
    Ok(())
}
