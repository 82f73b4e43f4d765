//! The SQL of stored responses.

use sea_orm::{ConnectionTrait, DbErr, QueryResult};
use serde_json::Value;

use super::stored::{MAX_TURNS, StoredResponse};
use crate::{
    http::ApiError,
    store::{self, statement},
};

pub(super) async fn insert(
    db: &impl ConnectionTrait,
    quota: &str,
    row: &StoredResponse,
    now: i64,
    expires_at: i64,
) -> Result<(), ApiError> {
    let sql = "INSERT INTO responses (id, quota, previous_id, input, response, created_at, expires_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let values = [
        row.id.as_str().into(),
        quota.into(),
        row.previous_id.clone().into(),
        serde_json::to_string(&row.input)
            .map_err(ApiError::internal)?
            .into(),
        serde_json::to_string(&row.response)
            .map_err(ApiError::internal)?
            .into(),
        now.into(),
        expires_at.into(),
    ];
    db.execute_raw(statement(db, sql, values)).await?;
    Ok(())
}

pub(super) async fn find(
    db: &impl ConnectionTrait,
    quota: &str,
    id: &str,
    now: i64,
) -> Result<Option<StoredResponse>, ApiError> {
    let sql = "SELECT id, previous_id, input, response FROM responses WHERE id = $1 AND quota = $2 AND expires_at > $3";
    let row = db
        .query_one_raw(statement(db, sql, [id.into(), quota.into(), now.into()]))
        .await?;
    row.as_ref().map(parse).transpose()
}

/// How long the responses are that lead to this one, with itself and their input: in characters, of which each has a byte
/// at least.
pub(super) async fn chain_length(
    db: &impl ConnectionTrait,
    quota: &str,
    id: &str,
    now: i64,
) -> Result<u64, DbErr> {
    let sql = "WITH RECURSIVE turns (previous_id, length, back) AS ( \
                 SELECT previous_id, length(input) + length(response), 0 FROM responses \
                 WHERE id = $1 AND quota = $2 AND expires_at > $3 \
                 UNION ALL \
                 SELECT r.previous_id, length(r.input) + length(r.response), t.back + 1 FROM responses r \
                 JOIN turns t ON r.id = t.previous_id \
                 WHERE r.quota = $2 AND r.expires_at > $3 AND t.back < $4) \
               SELECT CAST(COALESCE(SUM(length), 0) AS BIGINT) FROM turns";
    let values = [id.into(), quota.into(), now.into(), (MAX_TURNS - 1).into()];
    store::count(db, sql, values).await
}

/// The responses that lead to this one, and itself; oldest first.
pub(super) async fn chain(
    db: &impl ConnectionTrait,
    quota: &str,
    id: &str,
    now: i64,
) -> Result<Vec<StoredResponse>, ApiError> {
    let sql = "WITH RECURSIVE turns (id, previous_id, input, response, back) AS ( \
                 SELECT id, previous_id, input, response, 0 FROM responses \
                 WHERE id = $1 AND quota = $2 AND expires_at > $3 \
                 UNION ALL \
                 SELECT r.id, r.previous_id, r.input, r.response, t.back + 1 FROM responses r \
                 JOIN turns t ON r.id = t.previous_id \
                 WHERE r.quota = $2 AND r.expires_at > $3 AND t.back < $4) \
               SELECT id, previous_id, input, response FROM turns ORDER BY back DESC";
    let values = [id.into(), quota.into(), now.into(), (MAX_TURNS - 1).into()];
    let rows = db.query_all_raw(statement(db, sql, values)).await?;
    rows.iter().map(parse).collect()
}

/// Whether there was one.
pub(super) async fn delete(
    db: &impl ConnectionTrait,
    quota: &str,
    id: &str,
    now: i64,
) -> Result<bool, DbErr> {
    let sql = "DELETE FROM responses WHERE id = $1 AND quota = $2 AND expires_at > $3";
    let done = db
        .execute_raw(statement(db, sql, [id.into(), quota.into(), now.into()]))
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(super) async fn prune(db: &impl ConnectionTrait, now: i64) -> Result<(), DbErr> {
    let sql = "DELETE FROM responses WHERE expires_at <= $1";
    db.execute_raw(statement(db, sql, [now.into()]))
        .await
        .map(|_| ())
}

fn parse(row: &QueryResult) -> Result<StoredResponse, ApiError> {
    let json = |column: &str| -> Result<Value, ApiError> {
        let text: String = row.try_get("", column)?;
        serde_json::from_str(&text).map_err(ApiError::internal)
    };
    let input = match json("input")? {
        Value::Array(items) => items,
        _ => return Err(ApiError::internal("a stored input is not a list")),
    };
    Ok(StoredResponse {
        id: row.try_get("", "id")?,
        previous_id: row.try_get("", "previous_id")?,
        input,
        response: json("response")?,
    })
}
