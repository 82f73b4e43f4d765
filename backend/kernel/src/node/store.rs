//! The SQL of nodes.

use colloquy_store::{Executor, StoreError, statement};

pub(super) async fn insert(
    db: &impl Executor,
    id: &str,
    name: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO nodes (id, name, started_at, heartbeat_at) VALUES ($1, $2, $3, $4)";
    let values = [id.into(), name.into(), now.into(), now.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

pub(super) async fn end_earlier(
    db: &impl Executor,
    name: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE nodes SET ended_at = $2 WHERE name = $1 AND ended_at IS NULL";
    db.execute(statement(sql, [name.into(), now.into()]))
        .await?;
    Ok(())
}

pub(super) async fn heartbeat(db: &impl Executor, id: &str, now: i64) -> Result<(), StoreError> {
    let sql = "UPDATE nodes SET heartbeat_at = $2 WHERE id = $1";
    db.execute(statement(sql, [id.into(), now.into()])).await?;
    Ok(())
}

pub(super) async fn forget(db: &impl Executor, before: i64) -> Result<(), StoreError> {
    let sql = "DELETE FROM nodes WHERE heartbeat_at < $1";
    db.execute(statement(sql, [before.into()])).await?;
    Ok(())
}
