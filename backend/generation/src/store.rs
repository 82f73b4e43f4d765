//! The SQL of stored responses.

use colloquy_base::json;
use colloquy_store::{Executor, StoreError, statement};
use serde_json::Value;

use super::stored::{MAX_TURNS, StoredResponse};

/// Leaves one alone that is stored.
pub(super) async fn insert(
    db: &impl Executor,
    quota: &str,
    row: &StoredResponse,
    now: i64,
    expires_at: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO responses (id, quota, previous_id, input, response, created_at, expires_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING";
    let values = [
        row.id.as_str().into(),
        quota.into(),
        row.previous_id.clone().into(),
        serde_json::to_string(&row.input)
            .map_err(StoreError::other)?
            .into(),
        serde_json::to_string(&row.response)
            .map_err(StoreError::other)?
            .into(),
        now.into(),
        expires_at.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

pub(super) async fn find(
    db: &impl Executor,
    quota: &str,
    id: &str,
    now: i64,
) -> Result<Option<StoredResponse>, StoreError> {
    let sql = "SELECT id, previous_id, input, response FROM responses WHERE id = $1 AND quota = $2 AND expires_at > $3";
    let row: Option<Row> = db
        .fetch_one(statement(sql, [id.into(), quota.into(), now.into()]))
        .await?;
    row.map(Row::parse).transpose()
}

/// How long the responses are that lead to this one, with itself and their input: in characters, of which each has a byte
/// at least.
pub(super) async fn chain_length(
    db: &impl Executor,
    quota: &str,
    id: &str,
    now: i64,
) -> Result<u64, StoreError> {
    let sql = "WITH RECURSIVE turns (previous_id, length, back) AS ( \
                 SELECT previous_id, length(input) + length(response), 0 FROM responses \
                 WHERE id = $1 AND quota = $2 AND expires_at > $3 \
                 UNION ALL \
                 SELECT r.previous_id, length(r.input) + length(r.response), t.back + 1 FROM responses r \
                 JOIN turns t ON r.id = t.previous_id \
                 WHERE r.quota = $2 AND r.expires_at > $3 AND t.back < $4) \
               SELECT CAST(COALESCE(SUM(length), 0) AS BIGINT) FROM turns";
    let values = [id.into(), quota.into(), now.into(), (MAX_TURNS - 1).into()];
    db.fetch_count(statement(sql, values)).await
}

/// The responses that lead to this one, and itself; oldest first.
pub(super) async fn chain(
    db: &impl Executor,
    quota: &str,
    id: &str,
    now: i64,
) -> Result<Chain, StoreError> {
    let sql = "WITH RECURSIVE turns (id, previous_id, input, response, back) AS ( \
                 SELECT id, previous_id, input, response, 0 FROM responses \
                 WHERE id = $1 AND quota = $2 AND expires_at > $3 \
                 UNION ALL \
                 SELECT r.id, r.previous_id, r.input, r.response, t.back + 1 FROM responses r \
                 JOIN turns t ON r.id = t.previous_id \
                 WHERE r.quota = $2 AND r.expires_at > $3 AND t.back < $4) \
               SELECT id, previous_id, input, response FROM turns ORDER BY back DESC";
    let values = [id.into(), quota.into(), now.into(), (MAX_TURNS - 1).into()];
    Ok(Chain(db.fetch_all(statement(sql, values)).await?))
}

/// Responses that lead to each other, as they are stored.
pub(super) struct Chain(Vec<Row>);

impl Chain {
    /// The memory that they take once they are parsed, in bytes.
    pub(super) fn weight(&self) -> usize {
        let weights = self
            .0
            .iter()
            .flat_map(|row| [&row.input, &row.response])
            .map(|text| json::weigh(text.as_bytes()).bytes);
        weights.fold(0, usize::saturating_add)
    }

    /// The responses, oldest first.
    pub(super) fn parsed(self) -> Result<Vec<StoredResponse>, StoreError> {
        self.0.into_iter().map(Row::parse).collect()
    }
}

/// Whether there was one.
pub(super) async fn delete(
    db: &impl Executor,
    quota: &str,
    id: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM responses WHERE id = $1 AND quota = $2 AND expires_at > $3";
    let changed = db
        .execute(statement(sql, [id.into(), quota.into(), now.into()]))
        .await?;
    Ok(changed == 1)
}

pub(super) async fn prune(db: &impl Executor, now: i64) -> Result<(), StoreError> {
    let sql = "DELETE FROM responses WHERE expires_at <= $1";
    db.execute(statement(sql, [now.into()])).await.map(|_| ())
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    previous_id: Option<String>,
    input: String,
    response: String,
}

impl Row {
    fn parse(self) -> Result<StoredResponse, StoreError> {
        let parsed =
            |text: String| serde_json::from_str::<Value>(&text).map_err(StoreError::malformed);
        let input = match parsed(self.input)? {
            Value::Array(items) => items,
            _ => return Err(StoreError::malformed("a stored input is not a list")),
        };
        Ok(StoredResponse {
            id: self.id,
            previous_id: self.previous_id,
            input,
            response: parsed(self.response)?,
        })
    }
}
