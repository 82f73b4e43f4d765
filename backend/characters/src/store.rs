//! The SQL of saved characters.

use colloquy_accounts::Tenant;
use colloquy_store::{Dialect, Executor, Order, Slice, StoreError, Transaction, Value, statement};

use super::{
    CharacterName,
    saved::{CharacterEntry, SavedCharacter},
};

/// The query of the bytes of each version of a character of the partner `$1`, for `storage::recount_texts`.
pub const TEXTS: &str = "SELECT octet_length(personality) + octet_length(parameters) AS bytes \
     FROM character_versions WHERE partner = $1";

fn key(tenant: &Tenant, name: &CharacterName) -> Vec<Value> {
    vec![tenant.partner().as_str().into(), name.as_str().into()]
}

#[derive(sqlx::FromRow)]
struct CharacterRow {
    name: String,
    version: i64,
    personality: String,
    parameters: String,
    created_at: i64,
    updated_at: i64,
}

pub(super) async fn list(
    connection: &impl Executor,
    tenant: &Tenant,
    slice: &Slice,
) -> Result<Vec<CharacterEntry>, StoreError> {
    let mut text =
        "SELECT name, version, created_at, updated_at FROM characters WHERE partner = $1"
            .to_owned();
    let mut values = vec![tenant.partner().as_str().into()];
    slice.complete(&mut text, &mut values, "name", Order::Ascending);
    connection.fetch_all(statement(text, values)).await
}

pub(super) async fn list_versions(
    connection: &impl Executor,
    tenant: &Tenant,
    name: &CharacterName,
    before: Option<i64>,
    limit: Option<u64>,
) -> Result<Vec<CharacterEntry>, StoreError> {
    let mut text = "SELECT v.name, v.version, c.created_at, v.created_at AS updated_at \
         FROM character_versions v JOIN characters c ON c.partner = v.partner AND c.name = v.name \
         WHERE v.partner = $1 AND v.name = $2 AND v.version < $3 ORDER BY v.version DESC"
        .to_owned();
    if let Some(limit) = limit {
        text.push_str(&format!(" LIMIT {limit}"));
    }
    let mut values = key(tenant, name);
    values.push(before.unwrap_or(i64::MAX).into());
    connection.fetch_all(statement(text, values)).await
}

pub(super) async fn find(
    connection: &impl Executor,
    tenant: &Tenant,
    name: &CharacterName,
    version: Option<i64>,
) -> Result<Option<SavedCharacter>, StoreError> {
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
    let row: Option<CharacterRow> = connection.fetch_one(statement(text, values)).await?;
    let Some(row) = row else {
        return Ok(None);
    };
    Ok(Some(SavedCharacter {
        name: CharacterName::of_row(row.name),
        version: row.version,
        personality: row.personality,
        parameters: serde_json::from_str(&row.parameters).map_err(StoreError::malformed)?,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }))
}

/// `false` when the name is taken.
pub(super) async fn insert_head(
    connection: &impl Executor,
    tenant: &Tenant,
    saved: &SavedCharacter,
) -> Result<bool, StoreError> {
    let mut values = key(tenant, &saved.name);
    values.extend([
        saved.version.into(),
        saved.created_at.into(),
        saved.updated_at.into(),
    ]);
    let statement = statement(
        "INSERT INTO characters (partner, name, version, created_at, updated_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (partner, name) DO NOTHING",
        values,
    );
    Ok(connection.execute(statement).await? == 1)
}

/// Returns how many bytes of text the version has.
pub(super) async fn insert_version(
    connection: &impl Executor,
    tenant: &Tenant,
    saved: &SavedCharacter,
) -> Result<usize, StoreError> {
    let parameters = serde_json::to_string(&saved.parameters).map_err(StoreError::other)?;
    let bytes = saved.personality.len() + parameters.len();
    let mut values = key(tenant, &saved.name);
    values.extend([
        saved.version.into(),
        saved.personality.as_str().into(),
        parameters.into(),
        saved.updated_at.into(),
    ]);
    let statement = statement(
        "INSERT INTO character_versions (partner, name, version, personality, parameters, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6)",
        values,
    );
    connection.execute(statement).await?;
    Ok(bytes)
}

/// Counts the version up and gives the new head; `None` when there is no such character, or `expected` is not its
/// newest version. The row stays locked until the transaction ends, so two updates get two numbers.
pub(super) async fn raise_version(
    connection: &impl Executor,
    tenant: &Tenant,
    name: &CharacterName,
    expected: Option<i64>,
    now_ms: i64,
) -> Result<Option<CharacterEntry>, StoreError> {
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
    connection.fetch_one(statement(text, values)).await
}

/// Deletes a character; its versions go with it, by their foreign key. Returns how many bytes of text they had, or `None` without a
/// character.
pub(super) async fn delete(
    transaction: &Transaction,
    tenant: &Tenant,
    name: &CharacterName,
) -> Result<Option<i64>, StoreError> {
    // It gets no further version while they are counted. On SQLite the transaction is the lock.
    if transaction.dialect() == Dialect::Postgres {
        let text = "SELECT 1 FROM characters WHERE partner = $1 AND name = $2 FOR UPDATE";
        let locked = statement(text, key(tenant, name));
        transaction.execute(locked).await?;
    }
    let text = "SELECT CAST(COALESCE(SUM(octet_length(personality) + octet_length(parameters)), 0) AS BIGINT) \
                FROM character_versions WHERE partner = $1 AND name = $2";
    let counted = statement(text, key(tenant, name));
    let bytes: Option<i64> = transaction.fetch_scalar(counted).await?;
    let text = "DELETE FROM characters WHERE partner = $1 AND name = $2";
    let deleted = statement(text, key(tenant, name));
    let is_deleted = transaction.execute(deleted).await? == 1;
    Ok(bytes.filter(|_| is_deleted))
}
