//! The SQL of the outbox.

use colloquy_accounts::{Tenant, storage};
use colloquy_fetch::FetchError;
use colloquy_store::{Executor, Order, Slice, Store, StoreError, Value, statement};
use reqwest::StatusCode;

/// How many attempts of a delivery are kept, the newest ones. A partner may send a delivery again as often as it likes.
const MAX_ATTEMPTS: i64 = 100;
/// The bytes that a delivery counts beside its URL and payload: its row with the short columns and the indexes, and a few attempts.
const ROW_BYTES: usize = 1_024;
/// The bytes of a delivery, in SQL.
const BYTES: &str = "1024 + octet_length(url) + octet_length(payload)";

/// The query of the bytes of each delivery of the partner `$1`, for `storage::recount_texts`.
pub const TEXTS: &str = "SELECT 1024 + octet_length(url) + octet_length(payload) AS bytes FROM webhook_deliveries WHERE partner = $1";

pub(super) struct NewDelivery<'a> {
    pub(super) id: &'a str,
    pub(super) tenant: &'a Tenant,
    pub(super) event: &'a str,
    pub(super) subject: &'a str,
    pub(super) url: &'a str,
    pub(super) payload: String,
    pub(super) now: i64,
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct Delivery {
    pub(super) id: String,
    pub(super) event: String,
    pub(super) subject: String,
    pub(super) url: String,
    pub(super) payload: String,
    pub(super) state: String,
    pub(super) attempts: i64,
    pub(super) round_attempts: i64,
    pub(super) next_attempt_at: Option<i64>,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
}

impl Delivery {
    pub(super) fn is_pending(&self) -> bool {
        self.state == "pending"
    }
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct AttemptRow {
    pub(super) number: i64,
    pub(super) started_at: i64,
    pub(super) duration_ms: i64,
    pub(super) status: Option<i64>,
    pub(super) error: Option<String>,
}

pub(super) struct Attempt {
    pub(super) started_at: i64,
    pub(super) duration_ms: i64,
    pub(super) result: Result<StatusCode, FetchError>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Progress {
    Succeeded,
    Failed,
    RetryAt(i64),
}

const COLUMNS: &str = "id, event, subject, url, payload, state, attempts, round_attempts, next_attempt_at, created_at, \
                       updated_at";

/// Returns how many bytes the delivery counts.
pub(super) async fn insert(db: &impl Executor, new: NewDelivery<'_>) -> Result<usize, StoreError> {
    let bytes = ROW_BYTES + new.url.len() + new.payload.len();
    let sql = "INSERT INTO webhook_deliveries (id, partner, event, subject, url, payload, state, attempts, \
               round_attempts, next_attempt_at, created_at, updated_at) \
               VALUES ($1, $2, $3, $4, $5, $6, 'pending', 0, 0, $7, $7, $7)";
    let values = [
        new.id.into(),
        new.tenant.partner().as_str().into(),
        new.event.into(),
        new.subject.into(),
        new.url.into(),
        new.payload.into(),
        new.now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(bytes)
}

/// A delivery, for the job that delivers it.
pub(super) async fn load(db: &impl Executor, id: &str) -> Result<Option<Delivery>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM webhook_deliveries WHERE id = $1");
    db.fetch_one(statement(sql, [id.into()])).await
}

pub(super) async fn find(
    db: &impl Executor,
    tenant: &Tenant,
    id: &str,
) -> Result<Option<Delivery>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM webhook_deliveries WHERE partner = $1 AND id = $2");
    let values = [tenant.partner().as_str().into(), id.into()];
    db.fetch_one(statement(sql, values)).await
}

/// Which deliveries to list.
#[derive(Debug, Default)]
pub(super) struct DeliveryFilter {
    /// Those in this state.
    pub(super) state: Option<&'static str>,
    /// Those about this subject.
    pub(super) subject: Option<String>,
    /// Those created at this time or later, in milliseconds since 1970.
    pub(super) created_from: Option<i64>,
    /// Those created before this time.
    pub(super) created_before: Option<i64>,
}

/// A part of the deliveries, newest first: ids sort by their time.
pub(super) async fn list(
    db: &impl Executor,
    tenant: &Tenant,
    filter: DeliveryFilter,
    slice: &Slice,
) -> Result<Vec<Delivery>, StoreError> {
    let mut sql = format!("SELECT {COLUMNS} FROM webhook_deliveries WHERE partner = $1");
    let mut values: Vec<Value> = vec![tenant.partner().as_str().into()];
    let conditions: [(&str, Option<Value>); 4] = [
        ("state =", filter.state.map(Into::into)),
        ("subject =", filter.subject.map(Into::into)),
        ("created_at >=", filter.created_from.map(Into::into)),
        ("created_at <", filter.created_before.map(Into::into)),
    ];
    for (condition, value) in conditions {
        if let Some(value) = value {
            values.push(value);
            sql.push_str(&format!(" AND {condition} ${}", values.len()));
        }
    }
    slice.complete(&mut sql, &mut values, "id", Order::Descending);
    db.fetch_all(statement(sql, values)).await
}

/// The newest attempts, oldest first.
pub(super) async fn attempts(
    db: &impl Executor,
    delivery: &Delivery,
) -> Result<Vec<AttemptRow>, StoreError> {
    let sql = "SELECT number, started_at, duration_ms, status, error FROM webhook_attempts \
               WHERE delivery_id = $1 ORDER BY number DESC LIMIT $2";
    let values = [delivery.id.as_str().into(), MAX_ATTEMPTS.into()];
    let mut attempts: Vec<AttemptRow> = db.fetch_all(statement(sql, values)).await?;
    attempts.reverse();
    Ok(attempts)
}

pub(super) async fn record(
    db: &impl Executor,
    delivery: &Delivery,
    attempt: &Attempt,
    progress: Progress,
    now: i64,
) -> Result<(), StoreError> {
    let (status, error) = match &attempt.result {
        Ok(status) => (Some(i64::from(status.as_u16())), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let sql = "INSERT INTO webhook_attempts (delivery_id, number, started_at, duration_ms, status, error) \
               VALUES ($1, $2, $3, $4, $5, $6)";
    let number = delivery.attempts + 1;
    let values = [
        delivery.id.as_str().into(),
        number.into(),
        attempt.started_at.into(),
        attempt.duration_ms.into(),
        status.into(),
        error.into(),
    ];
    db.execute(statement(sql, values)).await?;
    let sql = "DELETE FROM webhook_attempts WHERE delivery_id = $1 AND number <= $2";
    let oldest = [delivery.id.as_str().into(), (number - MAX_ATTEMPTS).into()];
    db.execute(statement(sql, oldest)).await?;
    let (state, next) = match progress {
        Progress::Succeeded => ("succeeded", None),
        Progress::Failed => ("failed", None),
        Progress::RetryAt(at) => ("pending", Some(at)),
    };
    let sql = "UPDATE webhook_deliveries SET state = $2, next_attempt_at = $3, attempts = $4, \
               round_attempts = round_attempts + 1, updated_at = $5 WHERE id = $1";
    let values = [
        delivery.id.as_str().into(),
        state.into(),
        next.into(),
        number.into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// Begins a new round of attempts.
pub(super) async fn restart(
    db: &impl Executor,
    tenant: &Tenant,
    id: &str,
    now: i64,
) -> Result<Option<Delivery>, StoreError> {
    let sql = format!(
        "UPDATE webhook_deliveries SET state = 'pending', round_attempts = 0, next_attempt_at = $3, updated_at = $3 \
         WHERE partner = $1 AND id = $2 RETURNING {COLUMNS}"
    );
    let values = [tenant.partner().as_str().into(), id.into(), now.into()];
    db.fetch_one(statement(sql, values)).await
}

/// Ends a delivery without another attempt. It can be sent again.
pub(super) async fn give_up(db: &impl Executor, id: &str, now: i64) -> Result<(), StoreError> {
    let sql = "UPDATE webhook_deliveries SET state = 'failed', next_attempt_at = NULL, updated_at = $2 \
               WHERE id = $1 AND state = 'pending'";
    db.execute(statement(sql, [id.into(), now.into()]))
        .await
        .map(|_| ())
}

/// Deletes the deliveries that ended before a time, with their attempts, and releases their bytes.
pub(super) async fn purge(store: &Store, before: i64) -> Result<u64, StoreError> {
    const OLD: &str = "state IN ('succeeded', 'failed') AND updated_at < $1";
    // Looked at once more, since a delivery may be sent again meanwhile.
    let sql = format!(
        "DELETE FROM webhook_deliveries \
         WHERE id IN (SELECT id FROM webhook_deliveries WHERE {OLD} ORDER BY updated_at LIMIT $2) AND {OLD} \
         RETURNING partner, CAST({BYTES} AS BIGINT) AS bytes"
    );
    storage::purge_texts(store, &sql, before).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_counts_what_is_released() {
        let expected =
            format!("SELECT {BYTES} AS bytes FROM webhook_deliveries WHERE partner = $1");
        assert_eq!(TEXTS, expected);
        assert!(BYTES.starts_with(&format!("{ROW_BYTES} + ")));
    }
}
