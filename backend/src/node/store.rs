//! The SQL of nodes.

use sea_orm::{ConnectionTrait, DbErr};

use crate::store::statement;

pub(super) async fn insert<C: ConnectionTrait>(
    db: &C,
    id: &str,
    name: &str,
    now: i64,
) -> Result<(), DbErr> {
    let sql = "INSERT INTO nodes (id, name, started_at, heartbeat_at) VALUES ($1, $2, $3, $4)";
    db.execute_raw(statement(
        db,
        sql,
        [id.into(), name.into(), now.into(), now.into()],
    ))
    .await
    .map(|_| ())
}

pub(super) async fn end_earlier<C: ConnectionTrait>(
    db: &C,
    name: &str,
    now: i64,
) -> Result<(), DbErr> {
    let sql = "UPDATE nodes SET ended_at = $2 WHERE name = $1 AND ended_at IS NULL";
    db.execute_raw(statement(db, sql, [name.into(), now.into()]))
        .await
        .map(|_| ())
}

pub(super) async fn heartbeat<C: ConnectionTrait>(db: &C, id: &str, now: i64) -> Result<(), DbErr> {
    let sql = "UPDATE nodes SET heartbeat_at = $2 WHERE id = $1";
    db.execute_raw(statement(db, sql, [id.into(), now.into()]))
        .await
        .map(|_| ())
}

pub(super) async fn forget<C: ConnectionTrait>(db: &C, before: i64) -> Result<(), DbErr> {
    let sql = "DELETE FROM nodes WHERE heartbeat_at < $1";
    db.execute_raw(statement(db, sql, [before.into()]))
        .await
        .map(|_| ())
}
