//! The SQL of partners, keys and server secrets.

use colloquy_kernel::{Base, jobs::Run};
use colloquy_store::{Dialect, Executor, Order, Slice, StoreError, Transaction, Value, statement};

use super::{
    PartnerId, PartnerSettings, Tenant,
    keys::{KeyKind, StoredKey},
    partners::Partner,
};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// With what a partner stores as its limit sees it: without files that are deleted and not removed yet.
const PARTNER: &str = "SELECT id, display_name, settings, created_at, updated_at, \
     (SELECT s.bytes + s.texts - (SELECT CAST(COALESCE(SUM(d.bytes), 0) AS BIGINT) FROM blobs d \
     WHERE d.owner = s.partner AND d.state = 'doomed') FROM partner_storage s WHERE s.partner = partners.id) AS stored_bytes FROM partners";
const KEY: &str = "SELECT id, kind, partner, name, mac, scopes, allowed_origins, created_at, expires_at, last_used_at, \
     revoked_at, (SELECT p.settings FROM partners p WHERE p.id = api_keys.partner) AS partner_settings FROM api_keys";

#[derive(sqlx::FromRow)]
struct PartnerRow {
    id: String,
    display_name: String,
    settings: String,
    created_at: i64,
    updated_at: i64,
    stored_bytes: Option<i64>,
}

impl PartnerRow {
    fn parse(self) -> Result<Partner, StoreError> {
        Ok(Partner {
            id: PartnerId::of_row(&self.id),
            display_name: self.display_name,
            settings: PartnerSettings::of_row(&self.settings).map_err(StoreError::malformed)?,
            created_at: self.created_at,
            updated_at: self.updated_at,
            stored_bytes: self.stored_bytes.unwrap_or_default().max(0).unsigned_abs(),
        })
    }
}

#[derive(sqlx::FromRow)]
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
    partner_settings: Option<String>,
}

impl KeyRow {
    fn parse(self) -> Result<StoredKey, StoreError> {
        let settings = match &self.partner_settings {
            Some(settings) => PartnerSettings::of_row(settings).map_err(StoreError::malformed)?,
            None => PartnerSettings::default(),
        };
        Ok(StoredKey {
            kind: KeyKind::from_stored(&self.kind)
                .ok_or_else(|| StoreError::malformed("api_keys.kind holds an unknown kind"))?,
            id: self.id,
            partner: self.partner.as_deref().map(PartnerId::of_row),
            name: self.name,
            mac: self.mac,
            scopes: parse_list(self.scopes)?,
            allowed_origins: parse_list(self.allowed_origins)?,
            created_at: self.created_at,
            expires_at: self.expires_at,
            last_used_at: self.last_used_at,
            revoked_at: self.revoked_at,
            partner_rate: settings.requests_per_minute,
        })
    }
}

fn parse_list<T: serde::de::DeserializeOwned>(
    text: Option<String>,
) -> Result<Option<T>, StoreError> {
    text.map(|text| serde_json::from_str(&text).map_err(StoreError::malformed))
        .transpose()
}

fn list_text<T: serde::Serialize>(list: Option<&T>) -> Result<Option<String>, StoreError> {
    list.map(|list| serde_json::to_string(list).map_err(StoreError::other))
        .transpose()
}

/// Whether the partner is stored.
///
/// # Errors
/// The database's failure.
pub async fn partner_exists(
    connection: &impl Executor,
    tenant: &Tenant,
) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) FROM partners WHERE id = $1";
    let values = [tenant.partner().as_str().into()];
    Ok(connection.fetch_count(statement(sql, values)).await? > 0)
}

pub(super) async fn find_partner(
    connection: &impl Executor,
    tenant: &Tenant,
) -> Result<Option<Partner>, StoreError> {
    let statement = statement(
        format!("{PARTNER} WHERE id = $1"),
        vec![tenant.partner().as_str().into()],
    );
    let row: Option<PartnerRow> = connection.fetch_one(statement).await?;
    row.map(PartnerRow::parse).transpose()
}

pub(super) async fn list_partners(
    connection: &impl Executor,
    slice: &Slice,
) -> Result<Vec<Partner>, StoreError> {
    let (mut text, mut values) = (format!("{PARTNER} WHERE TRUE"), vec![]);
    slice.complete(&mut text, &mut values, "id", Order::Ascending);
    let statement = statement(text, values);
    let rows: Vec<PartnerRow> = connection.fetch_all(statement).await?;
    rows.into_iter().map(PartnerRow::parse).collect()
}

/// `false` when it exists.
pub(super) async fn insert_partner(
    connection: &impl Executor,
    partner: &Partner,
) -> Result<bool, StoreError> {
    let settings = serde_json::to_string(&partner.settings).map_err(StoreError::other)?;
    let statement = statement(
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
    Ok(connection.execute(statement).await? == 1)
}

pub(super) async fn update_partner(
    connection: &impl Executor,
    partner: &Partner,
) -> Result<(), StoreError> {
    let settings = serde_json::to_string(&partner.settings).map_err(StoreError::other)?;
    let statement = statement(
        "UPDATE partners SET display_name = $2, settings = $3, updated_at = $4 WHERE id = $1",
        vec![
            partner.id.as_str().into(),
            partner.display_name.as_str().into(),
            settings.into(),
            partner.updated_at.into(),
        ],
    );
    connection.execute(statement).await?;
    Ok(())
}

/// Locks a partner's row until the transaction ends, also against what would refer to it.
pub(super) async fn lock_partner(
    transaction: &Transaction,
    tenant: &Tenant,
) -> Result<(), StoreError> {
    // On SQLite the transaction is the lock.
    if transaction.dialect() == Dialect::Postgres {
        let text = "SELECT 1 FROM partners WHERE id = $1 FOR UPDATE";
        let values = vec![tenant.partner().as_str().into()];
        transaction.execute(statement(text, values)).await?;
    }
    Ok(())
}

/// Locks a partner until the transaction ends, against other changes of it and against others who count what it has. On SQLite the
/// transaction is the lock.
///
/// # Errors
/// The database's failure.
pub async fn hold_partner(transaction: &Transaction, tenant: &Tenant) -> Result<(), StoreError> {
    if transaction.dialect() == Dialect::Postgres {
        let text = "SELECT 1 FROM partners WHERE id = $1 FOR NO KEY UPDATE";
        let values = vec![tenant.partner().as_str().into()];
        transaction.execute(statement(text, values)).await?;
    }
    Ok(())
}

/// Keeps a partner from being deleted until the transaction ends: whoever deletes one locks it first, so that nobody waits for what
/// the other has locked. On SQLite the transaction is the lock.
///
/// # Errors
/// The database's failure.
pub async fn share_partner(transaction: &Transaction, tenant: &Tenant) -> Result<(), StoreError> {
    if transaction.dialect() == Dialect::Postgres {
        let text = "SELECT 1 FROM partners WHERE id = $1 FOR KEY SHARE";
        let values = vec![tenant.partner().as_str().into()];
        transaction.execute(statement(text, values)).await?;
    }
    Ok(())
}

/// Like [`share_partner`], for the partner of a quota.
///
/// # Errors
/// The database's failure.
pub async fn share_partner_of_quota(
    transaction: &Transaction,
    quota: &str,
) -> Result<(), StoreError> {
    if transaction.dialect() == Dialect::Postgres {
        let text = "SELECT 1 FROM partners p JOIN quotas q ON q.partner = p.id WHERE q.id = $1 FOR KEY SHARE OF p";
        transaction.execute(statement(text, [quota.into()])).await?;
    }
    Ok(())
}

/// Begins a transaction of a job that works for a partner, who is not deleted before it ends.
///
/// # Errors
/// When the job is somebody else's by now, or the database fails.
pub async fn begin_run(base: &Base, tenant: &Tenant, run: &Run) -> anyhow::Result<Transaction> {
    let transaction = base.store.begin().await?;
    share_partner(&transaction, tenant).await?;
    anyhow::ensure!(run.holds(&transaction).await?, "the lease is lost");
    Ok(transaction)
}

/// When the last partner of this name was deleted, in milliseconds since 1970.
pub(super) async fn deleted_at(
    connection: &impl Executor,
    id: &PartnerId,
) -> Result<Option<i64>, StoreError> {
    let text = "SELECT deleted_at FROM deleted_partners WHERE id = $1";
    connection
        .fetch_scalar(statement(text, [id.as_str().into()]))
        .await
}

/// Remembers when a partner was deleted; names that have rested for long are forgotten.
pub(super) async fn note_deleted(
    transaction: &Transaction,
    tenant: &Tenant,
    now_ms: i64,
) -> Result<(), StoreError> {
    let text = "DELETE FROM deleted_partners WHERE id = $1 OR deleted_at < $2";
    let values = vec![tenant.partner().as_str().into(), (now_ms - DAY_MS).into()];
    transaction.execute(statement(text, values)).await?;
    let text = "INSERT INTO deleted_partners (id, deleted_at) VALUES ($1, $2)";
    let values = vec![tenant.partner().as_str().into(), now_ms.into()];
    transaction.execute(statement(text, values)).await?;
    Ok(())
}

/// Everything of it goes with it, by the foreign keys. `false` when there was none.
pub(super) async fn delete_partner(
    connection: &impl Executor,
    tenant: &Tenant,
) -> Result<bool, StoreError> {
    let statement = statement(
        "DELETE FROM partners WHERE id = $1",
        vec![tenant.partner().as_str().into()],
    );
    Ok(connection.execute(statement).await? == 1)
}

pub(super) async fn insert_key(
    connection: &impl Executor,
    key: &StoredKey,
) -> Result<(), StoreError> {
    let statement = statement(
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
    connection.execute(statement).await?;
    Ok(())
}

/// The one finder without a tenant: the key's secret part is what proves whose it is.
pub(super) async fn find_key(
    connection: &impl Executor,
    id: &str,
) -> Result<Option<StoredKey>, StoreError> {
    let statement = statement(format!("{KEY} WHERE id = $1"), vec![id.into()]);
    let row: Option<KeyRow> = connection.fetch_one(statement).await?;
    row.map(KeyRow::parse).transpose()
}

pub(super) async fn list_keys(
    connection: &impl Executor,
    tenant: Option<&Tenant>,
    slice: &Slice,
) -> Result<Vec<StoredKey>, StoreError> {
    let (condition, mut values) = owned_by(tenant, 1);
    let mut text = format!("{KEY} WHERE {condition}");
    // Ids sort by their time.
    slice.complete(&mut text, &mut values, "id", Order::Descending);
    let statement = statement(text, values);
    let rows: Vec<KeyRow> = connection.fetch_all(statement).await?;
    rows.into_iter().map(KeyRow::parse).collect()
}

/// Keeps the time of the first revocation. `false` when there is no such key there.
pub(super) async fn revoke_key(
    connection: &impl Executor,
    tenant: Option<&Tenant>,
    id: &str,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let (condition, owner) = owned_by(tenant, 3);
    let mut values = vec![id.into(), now_ms.into()];
    values.extend(owner);
    let statement = statement(
        format!(
            "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 AND {condition}"
        ),
        values,
    );
    Ok(connection.execute(statement).await? == 1)
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
    connection: &impl Executor,
    id: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let statement = statement(
        "UPDATE api_keys SET last_used_at = $2 WHERE id = $1",
        vec![id.into(), now_ms.into()],
    );
    connection.execute(statement).await.map(|_| ())
}

pub(super) async fn read_secret(
    connection: &impl Executor,
    name: &str,
) -> Result<Option<String>, StoreError> {
    let statement = statement(
        "SELECT value FROM server_secrets WHERE name = $1",
        vec![name.into()],
    );
    connection.fetch_scalar(statement).await
}

/// Leaves a stored value alone.
pub(super) async fn insert_secret(
    connection: &impl Executor,
    name: &str,
    value: &str,
) -> Result<(), StoreError> {
    let statement = statement(
        "INSERT INTO server_secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
        vec![name.into(), value.into()],
    );
    connection.execute(statement).await.map(|_| ())
}
