//! The SQL of partners, keys and server secrets.

use sea_orm::{ConnectionTrait, DbErr, FromQueryResult, QueryResult, Statement, Value};

use super::{
    PartnerId, Tenant,
    keys::{KeyKind, StoredKey},
    partners::Partner,
};
use crate::http::ApiError;

const PARTNER: &str = "SELECT id, display_name, settings, created_at, updated_at FROM partners";
const KEY: &str = "SELECT id, kind, partner, name, mac, scopes, allowed_origins, created_at, expires_at, last_used_at, \
     revoked_at FROM api_keys";

fn sql(
    connection: &impl ConnectionTrait,
    text: impl Into<String>,
    values: Vec<Value>,
) -> Statement {
    Statement::from_sql_and_values(connection.get_database_backend(), text.into(), values)
}

#[derive(FromQueryResult)]
struct PartnerRow {
    id: String,
    display_name: String,
    settings: String,
    created_at: i64,
    updated_at: i64,
}

impl PartnerRow {
    fn parse(row: &QueryResult) -> Result<Partner, ApiError> {
        let row = Self::from_query_result(row, "")?;
        Ok(Partner {
            id: PartnerId(row.id),
            display_name: row.display_name,
            settings: serde_json::from_str(&row.settings).map_err(ApiError::internal)?,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

#[derive(FromQueryResult)]
struct KeyRow {
    id: String,
    kind: String,
    partner: Option<String>,
    name: String,
    mac: String,
    scopes: Option<String>,
    allowed_origins: Option<String>,
    created_at: i64,
    expires_at: Option<i64>,
    last_used_at: Option<i64>,
    revoked_at: Option<i64>,
}

impl KeyRow {
    fn parse(row: &QueryResult) -> Result<StoredKey, ApiError> {
        let row = Self::from_query_result(row, "")?;
        Ok(StoredKey {
            kind: KeyKind::from_stored(&row.kind)
                .ok_or_else(|| ApiError::internal("api_keys.kind holds an unknown kind"))?,
            id: row.id,
            partner: row.partner.map(PartnerId),
            name: row.name,
            mac: row.mac,
            scopes: parse_list(row.scopes)?,
            allowed_origins: parse_list(row.allowed_origins)?,
            created_at: row.created_at,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            revoked_at: row.revoked_at,
        })
    }
}

fn parse_list<T: serde::de::DeserializeOwned>(text: Option<String>) -> Result<Option<T>, ApiError> {
    text.map(|text| serde_json::from_str(&text).map_err(ApiError::internal))
        .transpose()
}

fn list_text<T: serde::Serialize>(list: Option<&T>) -> Result<Option<String>, ApiError> {
    list.map(|list| serde_json::to_string(list).map_err(ApiError::internal))
        .transpose()
}

/// Whether the partner is stored.
///
/// # Errors
/// The database's failure.
pub async fn partner_exists(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
) -> Result<bool, ApiError> {
    let statement = sql(
        connection,
        "SELECT 1 FROM partners WHERE id = $1",
        vec![tenant.partner().as_str().into()],
    );
    Ok(connection.query_one_raw(statement).await?.is_some())
}

pub(super) async fn find_partner(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
) -> Result<Option<Partner>, ApiError> {
    let statement = sql(
        connection,
        format!("{PARTNER} WHERE id = $1"),
        vec![tenant.partner().as_str().into()],
    );
    let row = connection.query_one_raw(statement).await?;
    row.as_ref().map(PartnerRow::parse).transpose()
}

pub(super) async fn list_partners(
    connection: &impl ConnectionTrait,
) -> Result<Vec<Partner>, ApiError> {
    let statement = sql(connection, format!("{PARTNER} ORDER BY id"), vec![]);
    let rows = connection.query_all_raw(statement).await?;
    rows.iter().map(PartnerRow::parse).collect()
}

/// `false` when it exists.
pub(super) async fn insert_partner(
    connection: &impl ConnectionTrait,
    partner: &Partner,
) -> Result<bool, ApiError> {
    let settings = serde_json::to_string(&partner.settings).map_err(ApiError::internal)?;
    let statement = sql(
        connection,
        "INSERT INTO partners (id, display_name, settings, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING",
        vec![
            partner.id.as_str().into(),
            partner.display_name.as_str().into(),
            settings.into(),
            partner.created_at.into(),
            partner.updated_at.into(),
        ],
    );
    Ok(connection.execute_raw(statement).await?.rows_affected() == 1)
}

pub(super) async fn update_partner(
    connection: &impl ConnectionTrait,
    partner: &Partner,
) -> Result<(), ApiError> {
    let settings = serde_json::to_string(&partner.settings).map_err(ApiError::internal)?;
    let statement = sql(
        connection,
        "UPDATE partners SET display_name = $2, settings = $3, updated_at = $4 WHERE id = $1",
        vec![
            partner.id.as_str().into(),
            partner.display_name.as_str().into(),
            settings.into(),
            partner.updated_at.into(),
        ],
    );
    connection.execute_raw(statement).await?;
    Ok(())
}

/// Keys, quotas and characters go with it, by their foreign keys. `false` when there was none.
pub(super) async fn delete_partner(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
) -> Result<bool, ApiError> {
    let statement = sql(
        connection,
        "DELETE FROM partners WHERE id = $1",
        vec![tenant.partner().as_str().into()],
    );
    Ok(connection.execute_raw(statement).await?.rows_affected() == 1)
}

pub(super) async fn insert_key(
    connection: &impl ConnectionTrait,
    key: &StoredKey,
) -> Result<(), ApiError> {
    let statement = sql(
        connection,
        "INSERT INTO api_keys (id, kind, partner, name, mac, scopes, allowed_origins, created_at, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        vec![
            key.id.as_str().into(),
            key.kind.as_str().into(),
            key.partner
                .as_ref()
                .map(|partner| partner.as_str().to_owned())
                .into(),
            key.name.as_str().into(),
            key.mac.as_str().into(),
            list_text(key.scopes.as_ref())?.into(),
            list_text(key.allowed_origins.as_ref())?.into(),
            key.created_at.into(),
            key.expires_at.into(),
        ],
    );
    connection.execute_raw(statement).await?;
    Ok(())
}

/// The one finder without a tenant: the key's secret part is what proves whose it is.
pub(super) async fn find_key(
    connection: &impl ConnectionTrait,
    id: &str,
) -> Result<Option<StoredKey>, ApiError> {
    let statement = sql(connection, format!("{KEY} WHERE id = $1"), vec![id.into()]);
    let row = connection.query_one_raw(statement).await?;
    row.as_ref().map(KeyRow::parse).transpose()
}

pub(super) async fn list_keys(
    connection: &impl ConnectionTrait,
    tenant: Option<&Tenant>,
) -> Result<Vec<StoredKey>, ApiError> {
    let (condition, values) = owned_by(tenant, 1);
    let statement = sql(
        connection,
        format!("{KEY} WHERE {condition} ORDER BY created_at DESC, id DESC"),
        values,
    );
    let rows = connection.query_all_raw(statement).await?;
    rows.iter().map(KeyRow::parse).collect()
}

/// Keeps the time of the first revocation. `false` when there is no such key there.
pub(super) async fn revoke_key(
    connection: &impl ConnectionTrait,
    tenant: Option<&Tenant>,
    id: &str,
    now_ms: i64,
) -> Result<bool, ApiError> {
    let (condition, owner) = owned_by(tenant, 3);
    let mut values = vec![id.into(), now_ms.into()];
    values.extend(owner);
    let statement = sql(
        connection,
        format!(
            "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 AND {condition}"
        ),
        values,
    );
    Ok(connection.execute_raw(statement).await?.rows_affected() == 1)
}

/// The condition that a key belongs to a partner, or to the operators.
fn owned_by(tenant: Option<&Tenant>, position: usize) -> (String, Vec<Value>) {
    match tenant {
        Some(tenant) => (
            format!("partner = ${position}"),
            vec![tenant.partner().as_str().into()],
        ),
        None => ("partner IS NULL".to_owned(), vec![]),
    }
}

pub(super) async fn note_use(
    connection: &impl ConnectionTrait,
    id: &str,
    now_ms: i64,
) -> Result<(), DbErr> {
    let statement = sql(
        connection,
        "UPDATE api_keys SET last_used_at = $2 WHERE id = $1",
        vec![id.into(), now_ms.into()],
    );
    connection.execute_raw(statement).await.map(|_| ())
}

pub(super) async fn read_secret(
    connection: &impl ConnectionTrait,
    name: &str,
) -> Result<Option<String>, DbErr> {
    let statement = sql(
        connection,
        "SELECT value FROM server_secrets WHERE name = $1",
        vec![name.into()],
    );
    let row = connection.query_one_raw(statement).await?;
    row.map(|row| row.try_get("", "value")).transpose()
}

/// Leaves a stored value alone.
pub(super) async fn insert_secret(
    connection: &impl ConnectionTrait,
    name: &str,
    value: &str,
) -> Result<(), DbErr> {
    let statement = sql(
        connection,
        "INSERT INTO server_secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
        vec![name.into(), value.into()],
    );
    connection.execute_raw(statement).await.map(|_| ())
}
