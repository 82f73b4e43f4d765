//! The SQL of quotas. Their counters belong to the [`ledger`](crate::accounts::ledger).

use sea_orm::{ConnectionTrait, DbBackend, FromQueryResult, QueryResult, Value};
use serde::{Serialize, de::DeserializeOwned};

use super::{CharacterPattern, Quota, QuotaState, not_found};
use crate::{
    accounts::{Tenant, ledger::store as ledger},
    http::ApiError,
    store::statement,
};

const COLUMNS: &str = "id, partner, name, mac, kinds, allowed_models, allowed_characters, disabled, created_at, updated_at, \
     expires_at, last_used_at, revoked_at";

#[derive(FromQueryResult)]
struct QuotaRow {
    id: String,
    partner: String,
    name: String,
    mac: String,
    kinds: String,
    allowed_models: Option<String>,
    allowed_characters: Option<String>,
    disabled: bool,
    created_at: i64,
    updated_at: i64,
    expires_at: Option<i64>,
    last_used_at: Option<i64>,
    revoked_at: Option<i64>,
}

fn parse(row: &QueryResult) -> Result<QuotaState, ApiError> {
    let standing = ledger::standing(row)?;
    let row = QuotaRow::from_query_result(row, "")?;
    let characters: Option<Vec<String>> = parse_list(row.allowed_characters)?;
    let characters = characters.map(|patterns| {
        let parse = |text: &String| CharacterPattern::parse(text);
        patterns.iter().map(parse).collect()
    });
    Ok(QuotaState {
        quota: Quota {
            id: row.id,
            tenant: Tenant::of_row(&row.partner),
            name: row.name,
            mac: row.mac,
            kinds: serde_json::from_str(&row.kinds).map_err(ApiError::internal)?,
            allowed_models: parse_list(row.allowed_models)?,
            allowed_characters: characters.transpose()?,
            disabled: row.disabled,
            created_at: row.created_at,
            updated_at: row.updated_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
        },
        standing,
        last_used_at: row.last_used_at,
    })
}

fn parse_list<T: DeserializeOwned>(text: Option<String>) -> Result<Option<T>, ApiError> {
    text.map(|text| serde_json::from_str(&text).map_err(ApiError::internal))
        .transpose()
}

fn list_text<T: Serialize>(list: Option<&T>) -> Result<Value, ApiError> {
    let text = list.map(serde_json::to_string).transpose();
    Ok(text.map_err(ApiError::internal)?.into())
}

/// The values of `$1` to `$14`, which new rows and changed ones have in common.
fn settings(state: &QuotaState) -> Result<Vec<Value>, ApiError> {
    let QuotaState {
        quota, standing, ..
    } = state;
    let characters: Option<Vec<String>> = quota
        .allowed_characters
        .as_ref()
        .map(|patterns| patterns.iter().map(ToString::to_string).collect());
    let limit = |limit: Option<u64>| match limit {
        Some(limit) => ledger::integer(limit),
        None => Value::BigInt(None),
    };
    Ok(vec![
        quota.id.as_str().into(),
        quota.name.as_str().into(),
        quota.mac.as_str().into(),
        list_text(Some(&quota.kinds))?,
        list_text(quota.allowed_models.as_ref())?,
        list_text(characters.as_ref())?,
        quota.disabled.into(),
        standing.period.as_str().into(),
        limit(standing.limits.tokens),
        limit(standing.limits.cost),
        limit(standing.limits.characters),
        limit(standing.limits.seconds),
        quota.updated_at.into(),
        quota.expires_at.into(),
    ])
}

pub(super) async fn insert(
    connection: &impl ConnectionTrait,
    state: &QuotaState,
) -> Result<(), ApiError> {
    let sql = "INSERT INTO quotas (id, name, mac, kinds, allowed_models, allowed_characters, disabled, period, \
               limit_tokens, limit_cost, limit_characters, limit_seconds, updated_at, expires_at, partner, period_start, \
               created_at, used_tokens, used_cost, used_characters, used_seconds, reserved_tokens, reserved_cost, \
               reserved_characters, reserved_seconds) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 0, 0, 0, 0, 0, 0, 0, 0)";
    let mut values = settings(state)?;
    values.extend([
        state.quota.tenant.partner().as_str().into(),
        state.standing.period_start.into(),
        state.quota.created_at.into(),
    ]);
    connection
        .execute_raw(statement(connection, sql, values))
        .await?;
    Ok(())
}

/// Writes what can be set. The counters stay as they are.
pub(super) async fn update(
    connection: &impl ConnectionTrait,
    state: &QuotaState,
) -> Result<(), ApiError> {
    let sql = "UPDATE quotas SET name = $2, mac = $3, kinds = $4, allowed_models = $5, allowed_characters = $6, \
               disabled = $7, period = $8, limit_tokens = $9, limit_cost = $10, limit_characters = $11, \
               limit_seconds = $12, updated_at = $13, expires_at = $14 WHERE id = $1";
    connection
        .execute_raw(statement(connection, sql, settings(state)?))
        .await?;
    Ok(())
}

/// Whether a row is locked until the transaction ends. On SQLite the transaction is the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    Yes,
    No,
}

impl Lock {
    fn sql(self, connection: &impl ConnectionTrait) -> &'static str {
        match (self, connection.get_database_backend()) {
            (Self::Yes, DbBackend::Postgres) => "FOR UPDATE",
            _ => "",
        }
    }
}

/// A quota of a partner; 404 when there is none.
pub(super) async fn find(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
    id: &str,
    lock: Lock,
) -> Result<QuotaState, ApiError> {
    let sql = format!(
        "SELECT {COLUMNS}, {} FROM quotas WHERE id = $1 AND partner = $2 {}",
        ledger::STANDING,
        lock.sql(connection),
    );
    let values = [id.into(), tenant.partner().as_str().into()];
    let row = connection
        .query_one_raw(statement(connection, &sql, values))
        .await?;
    parse(&row.ok_or_else(not_found)?)
}

/// The one finder without a tenant: the key's secret part is what proves whose it is.
pub(super) async fn find_by_id(
    connection: &impl ConnectionTrait,
    id: &str,
) -> Result<Option<Quota>, ApiError> {
    let sql = format!(
        "SELECT {COLUMNS}, {} FROM quotas WHERE id = $1",
        ledger::STANDING
    );
    let row = connection
        .query_one_raw(statement(connection, &sql, [id.into()]))
        .await?;
    let state = row.as_ref().map(parse).transpose()?;
    Ok(state.map(|state| state.quota))
}

pub(super) async fn list(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
) -> Result<Vec<QuotaState>, ApiError> {
    let sql = format!(
        "SELECT {COLUMNS}, {} FROM quotas WHERE partner = $1 ORDER BY created_at DESC, id DESC",
        ledger::STANDING
    );
    let values = [tenant.partner().as_str().into()];
    let rows = connection
        .query_all_raw(statement(connection, &sql, values))
        .await?;
    rows.iter().map(parse).collect()
}

/// Keeps the time of the first revocation. `false` when there is no such quota.
pub(super) async fn revoke(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
    id: &str,
    now_ms: i64,
) -> Result<bool, ApiError> {
    let sql =
        "UPDATE quotas SET revoked_at = COALESCE(revoked_at, $3) WHERE id = $1 AND partner = $2";
    let values = [id.into(), tenant.partner().as_str().into(), now_ms.into()];
    let result = connection
        .execute_raw(statement(connection, sql, values))
        .await?;
    Ok(result.rows_affected() == 1)
}

/// Locks the quotas of a partner in the order in which the ledger locks them, so that deleting the partner and writing
/// usage wait for each other instead of failing.
pub(in crate::accounts) async fn lock_all(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
) -> Result<(), ApiError> {
    let sql = format!(
        "SELECT id FROM quotas WHERE partner = $1 ORDER BY id {}",
        Lock::Yes.sql(connection)
    );
    let values = [tenant.partner().as_str().into()];
    connection
        .query_all_raw(statement(connection, &sql, values))
        .await?;
    Ok(())
}
