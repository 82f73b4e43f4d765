//! The SQL of sessions and of links.

use std::ops::RangeInclusive;

use colloquy_accounts::keys::{CONFIGURED_KEY_ID, KnownKey};
use colloquy_store::{Executor, StoreError, placeholders, statement};

/// The key of a session or a link.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct KeyColumns {
    key_id: Option<String>,
    key_mac: String,
}

impl KeyColumns {
    /// Returns the key. Without an id it is that of the configuration, which has no row to refer to.
    pub(crate) fn known(self) -> KnownKey {
        KnownKey {
            id: self.key_id.unwrap_or_else(|| CONFIGURED_KEY_ID.to_owned()),
            mac: self.key_mac,
        }
    }
}

#[derive(Debug, sqlx::FromRow)]
pub(crate) struct SessionRow {
    pub(crate) id_sha256: String,
    #[sqlx(flatten)]
    pub(crate) key: KeyColumns,
    pub(crate) created_at: i64,
    pub(crate) last_used_at: i64,
}

#[derive(Debug, sqlx::FromRow)]
pub(crate) struct LinkRow {
    #[sqlx(flatten)]
    pub(crate) key: KeyColumns,
    pub(crate) expires_at: i64,
}

fn row_id(key: &KnownKey) -> Option<&str> {
    (key.id != CONFIGURED_KEY_ID).then_some(key.id.as_str())
}

pub(crate) async fn insert_session(
    db: &impl Executor,
    sha256: &str,
    key: &KnownKey,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO console_sessions (id_sha256, key_id, key_mac, created_at, last_used_at) VALUES ($1, $2, $3, $4, $4)";
    let values = [
        sha256.into(),
        row_id(key).into(),
        key.mac.as_str().into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// Removes sessions of a key beyond a number: the ones used longest ago, and never that of `kept`.
pub(crate) async fn bound_sessions(
    db: &impl Executor,
    kept: &str,
    key: &KnownKey,
    most: i64,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM console_sessions WHERE key_mac = $1 AND id_sha256 <> $2 AND id_sha256 NOT IN \
               (SELECT id_sha256 FROM console_sessions WHERE key_mac = $1 AND id_sha256 <> $2 ORDER BY last_used_at DESC, created_at DESC LIMIT $3)";
    let values = [key.mac.as_str().into(), kept.into(), (most - 1).into()];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// Returns those of the sessions that there are.
pub(crate) async fn find_sessions(
    db: &impl Executor,
    sha256s: &[&str],
) -> Result<Vec<SessionRow>, StoreError> {
    let mut values = Vec::new();
    let listed = placeholders(&mut values, sha256s.iter().copied());
    let sql = format!(
        "SELECT id_sha256, key_id, key_mac, created_at, last_used_at FROM console_sessions WHERE id_sha256 IN ({listed})"
    );
    db.fetch_all(statement(sql, values)).await
}

pub(crate) async fn note_use(db: &impl Executor, sha256: &str, now: i64) -> Result<(), StoreError> {
    let sql = "UPDATE console_sessions SET last_used_at = $2 WHERE id_sha256 = $1";
    let values = [sha256.into(), now.into()];
    db.execute(statement(sql, values)).await.map(|_| ())
}

pub(crate) async fn delete_session(db: &impl Executor, sha256: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM console_sessions WHERE id_sha256 = $1";
    db.execute(statement(sql, [sha256.into()]))
        .await
        .map(|_| ())
}

pub(crate) async fn delete_sessions_of(
    db: &impl Executor,
    key: &KnownKey,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM console_sessions WHERE key_mac = $1";
    let values = [key.mac.as_str().into()];
    db.execute(statement(sql, values)).await.map(|_| ())
}

pub(crate) async fn insert_link(
    db: &impl Executor,
    sha256: &str,
    key: &KnownKey,
    expires_at: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO console_links (token_sha256, key_id, key_mac, expires_at) VALUES ($1, $2, $3, $4)";
    let values = [
        sha256.into(),
        row_id(key).into(),
        key.mac.as_str().into(),
        expires_at.into(),
    ];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// Removes links of a key beyond a number: the ones that expire first, and never that of `kept`.
pub(crate) async fn bound_links(
    db: &impl Executor,
    kept: &str,
    key: &KnownKey,
    most: i64,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM console_links WHERE key_mac = $1 AND token_sha256 <> $2 AND token_sha256 NOT IN \
               (SELECT token_sha256 FROM console_links WHERE key_mac = $1 AND token_sha256 <> $2 ORDER BY expires_at DESC LIMIT $3)";
    let values = [key.mac.as_str().into(), kept.into(), (most - 1).into()];
    db.execute(statement(sql, values)).await.map(|_| ())
}

pub(crate) async fn find_link(
    db: &impl Executor,
    sha256: &str,
) -> Result<Option<LinkRow>, StoreError> {
    let sql = "SELECT key_id, key_mac, expires_at FROM console_links WHERE token_sha256 = $1";
    db.fetch_one(statement(sql, [sha256.into()])).await
}

/// Deletes a link; returns false if there is none any more.
pub(crate) async fn delete_link(db: &impl Executor, sha256: &str) -> Result<bool, StoreError> {
    let sql = "DELETE FROM console_links WHERE token_sha256 = $1";
    let deleted = db.execute(statement(sql, [sha256.into()])).await?;
    Ok(deleted > 0)
}

pub(crate) async fn delete_links_of(db: &impl Executor, key: &KnownKey) -> Result<(), StoreError> {
    let sql = "DELETE FROM console_links WHERE key_mac = $1";
    let values = [key.mac.as_str().into()];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// Removes sessions that were begun at no time of these, or used last too long ago.
pub(crate) async fn purge_sessions(
    db: &impl Executor,
    created: &RangeInclusive<i64>,
    used_before: i64,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM console_sessions WHERE created_at <= $1 OR created_at > $2 OR last_used_at <= $3";
    let values = [
        (*created.start()).into(),
        (*created.end()).into(),
        used_before.into(),
    ];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// Removes links that expire at no time of these.
pub(crate) async fn purge_links(
    db: &impl Executor,
    expires: &RangeInclusive<i64>,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM console_links WHERE expires_at <= $1 OR expires_at > $2";
    let values = [(*expires.start()).into(), (*expires.end()).into()];
    db.execute(statement(sql, values)).await.map(|_| ())
}
