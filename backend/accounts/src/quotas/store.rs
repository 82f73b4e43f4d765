//! The SQL of quotas. Their counters belong to the [`ledger`](crate::ledger), and so do the budgets among the rows, which have no key.

use colloquy_store::{
    Dialect, Executor, Keyset, Order, Slice, StoreError, Transaction, Value, statement,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{CharacterPattern, Quota, QuotaState};
use crate::{
    PartnerSettings, Tenant,
    ledger::{Period, store as ledger},
};

/// Beside [`ledger::QUOTA_AMOUNTS`].
const COLUMNS: &str = "id, partner, name, mac, kinds, allowed_models, allowed_characters, disabled, created_at, updated_at, \
     expires_at, last_used_at, revoked_at, period, period_start, \
     (SELECT p.settings FROM partners p WHERE p.id = quotas.partner) AS partner_settings";

#[derive(sqlx::FromRow)]
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
    #[sqlx(flatten)]
    standing: ledger::StandingRow,
    amounts: Option<String>,
    partner_settings: Option<String>,
}

fn parse(row: QuotaRow) -> Result<QuotaState, StoreError> {
    let characters: Option<Vec<String>> = parse_list(row.allowed_characters)?;
    let partner = row.partner_settings.as_deref();
    let partner = partner.map(PartnerSettings::of_row).transpose();
    let characters = characters.map(|patterns| {
        let parse = |text: &String| CharacterPattern::parse(text).map_err(StoreError::malformed);
        patterns.iter().map(parse).collect()
    });
    Ok(QuotaState {
        quota: Quota {
            id: row.id,
            tenant: Tenant::of_row(&row.partner),
            name: row.name,
            mac: row.mac,
            kinds: serde_json::from_str(&row.kinds).map_err(StoreError::malformed)?,
            allowed_models: parse_list(row.allowed_models)?,
            allowed_characters: characters.transpose()?,
            disabled: row.disabled,
            created_at: row.created_at,
            updated_at: row.updated_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            partner: partner.map_err(StoreError::malformed)?.unwrap_or_default(),
        },
        standing: row.standing.parse_with(row.amounts.as_deref())?,
        last_used_at: row.last_used_at,
    })
}

fn parse_list<T: DeserializeOwned>(text: Option<String>) -> Result<Option<T>, StoreError> {
    text.map(|text| serde_json::from_str(&text).map_err(StoreError::malformed))
        .transpose()
}

fn list_text<T: Serialize>(list: Option<&T>) -> Result<Value, StoreError> {
    let text = list.map(serde_json::to_string).transpose();
    Ok(text.map_err(StoreError::other)?.into())
}

/// The values of `$1` to `$10`, which new rows and changed ones have in common.
fn settings(state: &QuotaState) -> Result<Vec<Value>, StoreError> {
    let QuotaState {
        quota, standing, ..
    } = state;
    let characters: Option<Vec<String>> = quota
        .allowed_characters
        .as_ref()
        .map(|patterns| patterns.iter().map(ToString::to_string).collect());
    Ok(vec![
        quota.id.as_str().into(),
        quota.name.as_str().into(),
        quota.mac.as_str().into(),
        list_text(Some(&quota.kinds))?,
        list_text(quota.allowed_models.as_ref())?,
        list_text(characters.as_ref())?,
        quota.disabled.into(),
        standing.period.as_str().into(),
        quota.updated_at.into(),
        quota.expires_at.into(),
    ])
}

pub(super) async fn insert(
    connection: &impl Executor,
    state: &QuotaState,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO quotas (id, name, mac, kinds, allowed_models, allowed_characters, disabled, period, updated_at, \
               expires_at, partner, period_start, created_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    let mut values = settings(state)?;
    values.extend([
        state.quota.tenant.partner().as_str().into(),
        state.standing.period_start.into(),
        state.quota.created_at.into(),
    ]);
    connection.execute(statement(sql, values)).await?;
    ledger::set_limits(connection, &state.quota.id, &state.standing.limits).await
}

/// Writes what can be set. The counters stay as they are.
pub(super) async fn update(
    connection: &impl Executor,
    state: &QuotaState,
) -> Result<(), StoreError> {
    let sql = "UPDATE quotas SET name = $2, mac = $3, kinds = $4, allowed_models = $5, allowed_characters = $6, \
               disabled = $7, period = $8, updated_at = $9, expires_at = $10 WHERE id = $1";
    connection.execute(statement(sql, settings(state)?)).await?;
    ledger::set_limits(connection, &state.quota.id, &state.standing.limits).await
}

/// Locks the rows that a `SELECT` finds until the transaction ends. On SQLite the transaction is the lock.
pub(crate) fn for_update(connection: &impl Executor) -> &'static str {
    match connection.dialect() {
        Dialect::Postgres => "FOR UPDATE",
        Dialect::Sqlite => "",
    }
}

/// Locks a quota of a partner. What is read in the same statement may be older than the lock, what is read after it is not.
pub(super) async fn lock(
    transaction: &Transaction,
    tenant: &Tenant,
    id: &str,
) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT id FROM quotas WHERE id = $1 AND partner = $2 AND purpose = 'key' {}",
        for_update(transaction)
    );
    let values = [id.into(), tenant.partner().as_str().into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// A quota of a partner.
pub(super) async fn find(
    connection: &impl Executor,
    tenant: &Tenant,
    id: &str,
) -> Result<Option<QuotaState>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, {} FROM quotas WHERE id = $1 AND partner = $2 AND purpose = 'key'",
        ledger::QUOTA_AMOUNTS
    );
    let values = [id.into(), tenant.partner().as_str().into()];
    let row = connection.fetch_one(statement(sql, values)).await?;
    row.map(parse).transpose()
}

/// The one finder without a tenant: the key's secret part is what proves whose it is.
pub(super) async fn find_by_id(
    connection: &impl Executor,
    id: &str,
) -> Result<Option<Quota>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, {} FROM quotas WHERE id = $1 AND purpose = 'key'",
        ledger::QUOTA_AMOUNTS
    );
    let row = connection.fetch_one(statement(sql, [id.into()])).await?;
    let state = row.map(parse).transpose()?;
    Ok(state.map(|state| state.quota))
}

pub(super) async fn list(
    connection: &impl Executor,
    tenant: &Tenant,
    slice: &Slice,
) -> Result<Vec<QuotaState>, StoreError> {
    let mut sql = format!(
        "SELECT {COLUMNS}, {} FROM quotas WHERE partner = $1 AND purpose = 'key'",
        ledger::QUOTA_AMOUNTS
    );
    let mut values = vec![tenant.partner().as_str().into()];
    // Ids sort by their time.
    slice.complete(&mut sql, &mut values, "id", Order::Descending);
    let rows = connection.fetch_all(statement(sql, values)).await?;
    rows.into_iter().map(parse).collect()
}

/// A quota, and the part that is used or reserved of the limit of which most is, in millionths; -1 without limits, and for a quota that was revoked.
#[derive(sqlx::FromRow)]
struct RankedRow {
    #[sqlx(flatten)]
    quota: QuotaRow,
    key: i64,
}

/// Returns a part of the quotas of a partner, those first of whose limits most is used or reserved in the period of the time `now_ms`, with the part
/// in millionths: -1 without limits, and for quotas that were revoked.
pub(super) async fn list_by_limit(
    connection: &impl Executor,
    tenant: &Tenant,
    now_ms: i64,
    keyset: &Keyset,
) -> Result<Vec<(QuotaState, i64)>, StoreError> {
    // Usage of an earlier period counts as 0, also before the next request resets the row.
    let used = "(CASE WHEN q.period_start < CASE q.period WHEN 'day' THEN $2 WHEN 'month' THEN $3 ELSE 0 END THEN 0 ELSE a.used + a.reserved END)";
    let mut sql = format!(
        "WITH x AS MATERIALIZED (SELECT q.id AS ranked, CASE WHEN q.revoked_at IS NOT NULL THEN -1 ELSE COALESCE((SELECT MAX({}) \
         FROM quota_amounts a WHERE a.quota = q.id AND a.limit_amount IS NOT NULL), -1) END AS key \
         FROM quotas q WHERE q.partner = $1 AND q.purpose = 'key') \
         SELECT {COLUMNS}, {}, x.key AS key FROM quotas JOIN x ON x.ranked = quotas.id WHERE TRUE",
        ledger::part_of_limit(used, "a.limit_amount"),
        ledger::QUOTA_AMOUNTS
    );
    let mut values = vec![
        tenant.partner().as_str().into(),
        Period::Day.start(now_ms).into(),
        Period::Month.start(now_ms).into(),
    ];
    keyset.complete(
        &mut sql,
        &mut values,
        ("x.key", "quotas.id"),
        Order::Descending,
    );
    let rows: Vec<RankedRow> = connection.fetch_all(statement(sql, values)).await?;
    rows.into_iter()
        .map(|row| Ok((parse(row.quota)?, row.key)))
        .collect()
}

/// Keeps the time of the first revocation. `false` when there is no such quota.
pub(super) async fn revoke(
    connection: &impl Executor,
    tenant: &Tenant,
    id: &str,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE quotas SET revoked_at = COALESCE(revoked_at, $3) WHERE id = $1 AND partner = $2 AND purpose = 'key'";
    let values = [id.into(), tenant.partner().as_str().into(), now_ms.into()];
    let changed = connection.execute(statement(sql, values)).await?;
    Ok(changed == 1)
}

/// Locks the quotas of a partner in the order in which the ledger locks them, so that deleting the partner and writing
/// usage wait for each other instead of failing.
pub(crate) async fn lock_all(
    connection: &impl Executor,
    tenant: &Tenant,
) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT id FROM quotas WHERE partner = $1 ORDER BY id {}",
        for_update(connection)
    );
    let values = [tenant.partner().as_str().into()];
    connection.execute(statement(sql, values)).await?;
    Ok(())
}
