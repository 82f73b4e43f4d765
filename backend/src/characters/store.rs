//! The SQL of saved characters.

use sea_orm::{ConnectionTrait, FromQueryResult, QueryResult, Statement, Value};

use super::{
    CharacterName,
    saved::{CharacterEntry, SavedCharacter},
};
use crate::{accounts::Tenant, http::ApiError};

fn sql(connection: &impl ConnectionTrait, text: &str, values: Vec<Value>) -> Statement {
    Statement::from_sql_and_values(connection.get_database_backend(), text, values)
}

fn key(tenant: &Tenant, name: &CharacterName) -> Vec<Value> {
    vec![tenant.partner().as_str().into(), name.as_str().into()]
}

#[derive(FromQueryResult)]
struct EntryRow {
    name: String,
    version: i64,
    created_at: i64,
    updated_at: i64,
}

impl EntryRow {
    fn parse(row: &QueryResult) -> Result<CharacterEntry, ApiError> {
        let row = Self::from_query_result(row, "")?;
        Ok(CharacterEntry {
            name: row.name,
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

#[derive(FromQueryResult)]
struct CharacterRow {
    name: String,
    version: i64,
    personality: String,
    parameters: String,
    created_at: i64,
    updated_at: i64,
}

pub(super) async fn list(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
) -> Result<Vec<CharacterEntry>, ApiError> {
    let statement = sql(
        connection,
        "SELECT name, version, created_at, updated_at FROM characters WHERE partner = $1 ORDER BY name",
        vec![tenant.partner().as_str().into()],
    );
    let rows = connection.query_all_raw(statement).await?;
    rows.iter().map(EntryRow::parse).collect()
}

pub(super) async fn list_versions(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
    name: &CharacterName,
) -> Result<Vec<CharacterEntry>, ApiError> {
    let statement = sql(
        connection,
        "SELECT v.name, v.version, c.created_at, v.created_at AS updated_at \
         FROM character_versions v JOIN characters c ON c.partner = v.partner AND c.name = v.name \
         WHERE v.partner = $1 AND v.name = $2 ORDER BY v.version DESC",
        key(tenant, name),
    );
    let rows = connection.query_all_raw(statement).await?;
    rows.iter().map(EntryRow::parse).collect()
}

pub(super) async fn find(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
    name: &CharacterName,
    version: Option<i64>,
) -> Result<Option<SavedCharacter>, ApiError> {
    let mut values = key(tenant, name);
    let wanted = match version {
        Some(version) => {
            values.push(version.into());
            "$3"
        }
        None => "c.version",
    };
    let text = format!(
        "SELECT v.name, v.version, v.personality, v.parameters, c.created_at, v.created_at AS updated_at \
         FROM characters c JOIN character_versions v ON v.partner = c.partner AND v.name = c.name \
         AND v.version = {wanted} WHERE c.partner = $1 AND c.name = $2"
    );
    let row = connection
        .query_one_raw(sql(connection, &text, values))
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let row = CharacterRow::from_query_result(&row, "")?;
    Ok(Some(SavedCharacter {
        name: CharacterName::of_row(row.name),
        version: row.version,
        personality: row.personality,
        parameters: serde_json::from_str(&row.parameters).map_err(ApiError::internal)?,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }))
}

/// `false` when the name is taken.
pub(super) async fn insert_head(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
    saved: &SavedCharacter,
) -> Result<bool, ApiError> {
    let mut values = key(tenant, &saved.name);
    values.extend([
        saved.version.into(),
        saved.created_at.into(),
        saved.updated_at.into(),
    ]);
    let statement = sql(
        connection,
        "INSERT INTO characters (partner, name, version, created_at, updated_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (partner, name) DO NOTHING",
        values,
    );
    Ok(connection.execute_raw(statement).await?.rows_affected() == 1)
}

pub(super) async fn insert_version(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
    saved: &SavedCharacter,
) -> Result<(), ApiError> {
    let parameters = serde_json::to_string(&saved.parameters).map_err(ApiError::internal)?;
    let mut values = key(tenant, &saved.name);
    values.extend([
        saved.version.into(),
        saved.personality.as_str().into(),
        parameters.into(),
        saved.updated_at.into(),
    ]);
    let statement = sql(
        connection,
        "INSERT INTO character_versions (partner, name, version, personality, parameters, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6)",
        values,
    );
    connection.execute_raw(statement).await?;
    Ok(())
}

/// Counts the version up and gives the new head; `None` when there is no such character, or `expected` is not its
/// newest version. The row stays locked until the transaction ends, so two updates get two numbers.
pub(super) async fn raise_version(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
    name: &CharacterName,
    expected: Option<i64>,
    now_ms: i64,
) -> Result<Option<CharacterEntry>, ApiError> {
    let mut values = key(tenant, name);
    values.push(now_ms.into());
    let condition = match expected {
        Some(expected) => {
            values.push(expected.into());
            "AND version = $4"
        }
        None => "",
    };
    let text = format!(
        "UPDATE characters SET version = version + 1, updated_at = $3 WHERE partner = $1 AND name = $2 {condition} \
         RETURNING name, version, created_at, updated_at"
    );
    let row = connection
        .query_one_raw(sql(connection, &text, values))
        .await?;
    row.as_ref().map(EntryRow::parse).transpose()
}

/// The versions go with it, by their foreign key. `false` when there was none.
pub(super) async fn delete(
    connection: &impl ConnectionTrait,
    tenant: &Tenant,
    name: &CharacterName,
) -> Result<bool, ApiError> {
    let statement = sql(
        connection,
        "DELETE FROM characters WHERE partner = $1 AND name = $2",
        key(tenant, name),
    );
    Ok(connection.execute_raw(statement).await?.rows_affected() == 1)
}
