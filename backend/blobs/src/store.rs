//! The SQL of files. A row outlives its partner until the file is gone: what has no owner any more is given up.

use colloquy_accounts::storage::{self, Sum};
use colloquy_store::{Executor, StoreError, Transaction, statement};

use super::{
    BlobKey, Written,
    verifying::{Damage, Expected},
};

/// How many files are removed in one go.
const AT_ONCE: i64 = 100;
/// How many lost files are looked for in one go.
pub(super) const LOOKED_FOR: usize = 1_000;

pub(super) async fn insert(
    db: &impl Executor,
    key: &BlobKey,
    owner: &str,
    bytes: i64,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO blobs (key, owner, state, bytes, updated_at) VALUES ($1, $2, 'pending', $4, $3)";
    let values = [key.as_str().into(), owner.into(), now.into(), bytes.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Sets how many bytes a file has, or may get, that is being written.
pub(super) async fn resize(
    db: &impl Executor,
    key: &BlobKey,
    bytes: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE blobs SET bytes = $2 WHERE key = $1 AND state = 'pending'";
    let values = [key.as_str().into(), bytes.into()];
    match db.execute(statement(sql, values)).await? {
        0 => Err(StoreError::expired("the file did not arrive in time")),
        _ => Ok(()),
    }
}

pub(super) async fn keep(
    db: &impl Executor,
    written: &Written,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE blobs SET state = 'kept', bytes = $2, sha256 = $3, updated_at = $4 WHERE key = $1 AND state = 'pending'";
    let bytes = i64::try_from(written.bytes).map_err(StoreError::other)?;
    let sha256 = written.sha256.as_str();
    let values = [
        written.key.as_str().into(),
        bytes.into(),
        sha256.into(),
        now.into(),
    ];
    match db.execute(statement(sql, values)).await? {
        0 => Err(StoreError::expired("the file was not kept in time")),
        _ => Ok(()),
    }
}

/// What a file was kept with; nothing is known of one that was not kept. `None`: there is no such file.
pub(super) async fn expected(
    db: &impl Executor,
    key: &BlobKey,
) -> Result<Option<Expected>, StoreError> {
    let sql = "SELECT b.state, b.bytes, b.sha256, d.is_lost FROM blobs b LEFT JOIN damaged_blobs d ON d.key = b.key WHERE b.key = $1";
    let row: Option<FactsRow> = db.fetch_one(statement(sql, [key.as_str().into()])).await?;
    Ok(row.map(|row| Expected {
        bytes: (row.state == "kept").then_some(row.bytes.unsigned_abs()),
        sha256: row.sha256,
        damage: row.is_lost.map(|is_lost| match is_lost {
            true => Damage::Lost,
            false => Damage::Altered,
        }),
    }))
}

#[derive(sqlx::FromRow)]
struct FactsRow {
    state: String,
    bytes: i64,
    sha256: Option<String>,
    is_lost: Option<bool>,
}

/// Notes that a kept file is damaged, and returns true if it was not known to be.
pub(super) async fn note_damage(
    db: &impl Executor,
    key: &BlobKey,
    damage: Damage,
    now: i64,
) -> Result<bool, StoreError> {
    let is_lost = damage == Damage::Lost;
    let sql = "INSERT INTO damaged_blobs (key, is_lost, noted_at) \
               SELECT key, $2, $3 FROM blobs WHERE key = $1 AND state = 'kept' ON CONFLICT (key) DO NOTHING";
    let values = [key.as_str().into(), is_lost.into(), now.into()];
    if db.execute(statement(sql, values)).await? == 1 {
        return Ok(true);
    }
    let sql = "UPDATE damaged_blobs SET is_lost = $2 WHERE key = $1";
    db.execute(statement(sql, [key.as_str().into(), is_lost.into()]))
        .await?;
    Ok(false)
}

/// Notes that a file is damaged no more.
pub(super) async fn forget_damage(db: &impl Executor, key: &BlobKey) -> Result<(), StoreError> {
    let sql = "DELETE FROM damaged_blobs WHERE key = $1";
    db.execute(statement(sql, [key.as_str().into()])).await?;
    Ok(())
}

/// Counts the kept files that are damaged or lost.
pub(super) async fn damaged(db: &impl Executor) -> Result<u64, StoreError> {
    let sql =
        "SELECT COUNT(*) FROM damaged_blobs d JOIN blobs b ON b.key = d.key WHERE b.state = 'kept'";
    db.fetch_count(statement(sql, [])).await
}

/// Returns at most [`LOOKED_FOR`] lost files that follow this one, by their keys.
pub(super) async fn lost(
    db: &impl Executor,
    after: Option<&BlobKey>,
) -> Result<Vec<BlobKey>, StoreError> {
    let after = after.map_or("", BlobKey::as_str);
    let sql = "SELECT key FROM damaged_blobs WHERE is_lost AND key > $1 ORDER BY key LIMIT $2";
    let most = i64::try_from(LOOKED_FOR).unwrap_or(i64::MAX);
    let rows: Vec<KeyRow> = db
        .fetch_all(statement(sql, [after.into(), most.into()]))
        .await?;
    Ok(rows.into_iter().map(|row| row.key).collect())
}

pub(super) async fn doom(db: &impl Executor, key: &BlobKey, now: i64) -> Result<(), StoreError> {
    let sql = "UPDATE blobs SET state = 'doomed', updated_at = $2 WHERE key = $1";
    db.execute(statement(sql, [key.as_str().into(), now.into()]))
        .await?;
    Ok(())
}

/// Gives up the files whose keys a query finds by this value.
pub(super) async fn doom_found(
    db: &impl Executor,
    query: &str,
    value: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = format!("UPDATE blobs SET state = 'doomed', updated_at = $2 WHERE key IN ({query})");
    db.execute(statement(sql, [value.into(), now.into()]))
        .await?;
    Ok(())
}

pub(super) async fn doom_pending(
    db: &impl Executor,
    key: &BlobKey,
    now: i64,
) -> Result<(), StoreError> {
    let sql =
        "UPDATE blobs SET state = 'doomed', updated_at = $2 WHERE key = $1 AND state = 'pending'";
    db.execute(statement(sql, [key.as_str().into(), now.into()]))
        .await?;
    Ok(())
}

/// Gives up what has been pending since this time or before, and what belongs to nobody any more.
pub(super) async fn doom_abandoned(
    db: &impl Executor,
    since: i64,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE blobs SET state = 'doomed', updated_at = $2 \
               WHERE (state = 'pending' AND updated_at <= $1) OR (owner IS NULL AND state <> 'doomed')";
    db.execute(statement(sql, [since.into(), now.into()]))
        .await?;
    Ok(())
}

/// Resets to now since when files are pending, where that is after `latest`, by a clock that was ahead. They may be written still, by a node whose
/// clock is ahead.
pub(super) async fn bring_back(
    db: &impl Executor,
    now: i64,
    latest: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE blobs SET updated_at = $1 WHERE state = 'pending' AND updated_at > $2";
    db.execute(statement(sql, [now.into(), latest.into()]))
        .await?;
    Ok(())
}

/// Some of the files that nobody refers to.
pub(super) async fn doomed(db: &impl Executor) -> Result<Vec<BlobKey>, StoreError> {
    let sql = "SELECT key FROM blobs WHERE state = 'doomed' ORDER BY updated_at, key LIMIT $1";
    let rows: Vec<KeyRow> = db.fetch_all(statement(sql, [AT_ONCE.into()])).await?;
    Ok(rows.into_iter().map(|row| row.key).collect())
}

#[derive(sqlx::FromRow)]
struct KeyRow {
    key: BlobKey,
}

#[derive(sqlx::FromRow)]
struct RemovedRow {
    owner: Option<String>,
    bytes: i64,
}

/// Removes the row of a file that is gone, whose bytes its partner no longer stores then.
pub(super) async fn remove(transaction: &Transaction, key: &BlobKey) -> Result<(), StoreError> {
    let sql = "DELETE FROM blobs WHERE key = $1 AND state = 'doomed' RETURNING owner, bytes";
    let removed: Option<RemovedRow> = transaction
        .fetch_one(statement(sql, [key.as_str().into()]))
        .await?;
    match removed {
        Some(RemovedRow {
            owner: Some(owner),
            bytes,
        }) => storage::release(transaction, &owner, Sum::Files, bytes).await,
        _ => Ok(()),
    }
}
