//! The SQL of entries.

use std::{collections::BTreeMap, time::Duration};

use colloquy_accounts::{Credential, Principal, Tenant};
use colloquy_kernel::Base;
use colloquy_store::{Executor, Keyset, Order, StoreError, Value, statement};

use crate::operations::{Operation, Resource};

/// Entries that are purged together.
const PURGED_TOGETHER: u64 = 1_000;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// A change that is about to be made.
#[derive(Debug)]
pub(crate) struct NewEntry<'a> {
    pub(crate) operation: &'static Operation,
    pub(crate) principal: &'a Principal,
    pub(crate) credential: Credential,
    /// The partner whose data it is about; `None` if only the row of the resource tells, or none.
    pub(crate) partner: Option<&'a str>,
    pub(crate) subject: Option<&'a str>,
    pub(crate) parameters: &'a BTreeMap<String, String>,
    pub(crate) request_id: &'a str,
}

/// A stored entry.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) at: i64,
    pub(crate) key_id: String,
    pub(crate) key_name: String,
    #[sqlx(try_from = "String")]
    pub(crate) credential: Credential,
    pub(crate) administrator: bool,
    pub(crate) partner: Option<String>,
    pub(crate) action: String,
    pub(crate) method: String,
    pub(crate) path: String,
    #[sqlx(try_from = "String")]
    pub(crate) resource: Resource,
    pub(crate) subject: Option<String>,
    pub(crate) parameters: String,
    pub(crate) status: Option<i64>,
    pub(crate) request_id: String,
}

/// Whose log is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reader<'a> {
    /// An administrator: the log of all.
    All,
    /// An administrator: the log of a partner, and of those that had its name before.
    Administrator(&'a Tenant),
    /// A partner: its own log.
    Partner(&'a Tenant),
}

/// Which entries are listed.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub(crate) action: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) subject: Option<String>,
    /// The earliest time.
    pub(crate) from: Option<i64>,
    /// The time before which they are.
    pub(crate) until: Option<i64>,
}

/// Stores an entry without a status.
pub(crate) async fn insert(base: &Base, id: &str, entry: &NewEntry<'_>) -> Result<(), StoreError> {
    let db = base.store.db();
    let NewEntry {
        operation,
        principal,
        ..
    } = entry;
    let administrator = principal.own_tenant().is_none();
    let parameters = serde_json::to_string(entry.parameters).map_err(StoreError::other)?;
    let names = match entry.credential {
        Credential::Quota => "quotas",
        Credential::Key | Credential::Session => "api_keys",
    };
    // No path of an administrator's request names the partner of these.
    let partner = match operation.resource.owner_table() {
        Some(table) if administrator => {
            format!("COALESCE($6, (SELECT o.partner FROM {table} o WHERE o.id = $11))")
        }
        _ => "$6".to_owned(),
    };
    let sql = format!(
        "INSERT INTO audit_entries (id, at, key_id, key_name, credential, administrator, partner, partner_since, \
         action, method, path, resource, subject, parameters, request_id) \
         VALUES ($1, COALESCE($2, {now}), $3, COALESCE((SELECT k.name FROM {names} k WHERE k.id = $3), ''), $4, $5, {partner}, \
         (SELECT p.created_at FROM partners p WHERE p.id = {partner}), $7, $8, $9, $10, $11, $12, $13)",
        now = db.dialect().now_ms(),
    );
    let values = [
        id.into(),
        base.clock.database_now_ms().into(),
        principal.key_id.as_str().into(),
        entry.credential.as_str().into(),
        administrator.into(),
        entry.partner.into(),
        operation.action.into(),
        operation.method.into(),
        operation.path.into(),
        operation.resource.as_str().into(),
        entry.subject.into(),
        parameters.into(),
        entry.request_id.into(),
    ];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// Completes an entry with the status of the response and the name of the resource that was created.
pub(crate) async fn complete(
    db: &impl Executor,
    id: &str,
    status: u16,
    created: Option<&str>,
) -> Result<(), StoreError> {
    // The partner that was created did not exist before.
    let sql = "UPDATE audit_entries SET status = $2, subject = COALESCE($3, subject), partner_since = COALESCE(partner_since, \
               (SELECT p.created_at FROM partners p WHERE p.id = audit_entries.partner)) WHERE id = $1";
    let values = [id.into(), i64::from(status).into(), created.into()];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// Removes an entry.
pub(crate) async fn remove(db: &impl Executor, id: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM audit_entries WHERE id = $1";
    db.execute(statement(sql, [id.into()])).await.map(|_| ())
}

/// Returns entries, newest first.
pub(crate) async fn list(
    db: &impl Executor,
    reader: Reader<'_>,
    filter: &Filter,
    keyset: &Keyset,
) -> Result<Vec<Entry>, StoreError> {
    let mut sql = "SELECT id, at, key_id, key_name, credential, administrator, partner, action, method, path, resource, subject, \
                   parameters, status, request_id FROM audit_entries e WHERE "
        .to_owned();
    let mut values: Vec<Value> = Vec::new();
    match reader {
        Reader::All => sql.push_str("TRUE"),
        Reader::Administrator(tenant) => {
            values.push(tenant.partner().as_str().into());
            sql.push_str("e.partner = $1");
        }
        // A partner of this name that was deleted has other entries.
        Reader::Partner(tenant) => {
            values.push(tenant.partner().as_str().into());
            sql.push_str("e.partner = $1 AND e.partner_since = (SELECT p.created_at FROM partners p WHERE p.id = $1)");
        }
    }
    let texts = [
        ("action", &filter.action),
        ("key_id", &filter.key),
        ("subject", &filter.subject),
    ];
    for (column, text) in texts {
        if let Some(text) = text {
            values.push(text.as_str().into());
            sql.push_str(&format!(" AND e.{column} = ${}", values.len()));
        }
    }
    // Partners are not told the keys of administrators, by filters neither.
    if matches!(reader, Reader::Partner(_)) && filter.key.is_some() {
        sql.push_str(" AND NOT e.administrator");
    }
    for (comparison, time) in [(">=", filter.from), ("<", filter.until)] {
        if let Some(time) = time {
            values.push(time.into());
            sql.push_str(&format!(" AND e.at {comparison} ${}", values.len()));
        }
    }
    keyset.complete(&mut sql, &mut values, ("e.at", "e.id"), Order::Descending);
    db.fetch_all(statement(sql, values)).await
}

/// Returns true if there is an entry of a partner, or of one that had its name before.
pub(crate) async fn has_entries(db: &impl Executor, tenant: &Tenant) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) FROM (SELECT id FROM audit_entries WHERE partner = $1 LIMIT 1) e";
    let values = [tenant.partner().as_str().into()];
    Ok(db.fetch_count(statement(sql, values)).await? > 0)
}

/// Purges the entries that are older than `limits.audit_days`.
///
/// # Errors
/// The database's failure.
pub(crate) async fn purge(base: &Base) -> Result<(), StoreError> {
    let kept = DAY * base.config.limits.audit_days;
    let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
    let before = base.database_now_ms().await?.saturating_sub(kept);
    let sql = "DELETE FROM audit_entries WHERE id IN (SELECT e.id FROM audit_entries e WHERE e.at < $1 ORDER BY e.at LIMIT $2)";
    loop {
        let values = [before.into(), (PURGED_TOGETHER as i64).into()];
        let purged = base.store.db().execute(statement(sql, values)).await?;
        if purged < PURGED_TOGETHER {
            return Ok(());
        }
    }
}
