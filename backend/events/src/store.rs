//! The SQL of changes. Triggers write them (`0050_changes`).

use std::{collections::HashSet, time::Duration};

use colloquy_kernel::Base;
use colloquy_store::{Dialect, Executor, StoreError, statement};

/// How long the change of a deleted resource is kept.
const KEEP: Duration = Duration::from_secs(24 * 3_600);
/// Changes that are purged in one transaction.
const PURGED_TOGETHER: i64 = 1_000;

/// The last change of a resource.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Change {
    pub(crate) seq: i64,
    pub(crate) partner: String,
    pub(crate) kind: String,
    /// The name of the knowledge base that the resource is in, or empty.
    pub(crate) base: String,
    pub(crate) id: String,
    /// True if the resource was deleted.
    pub(crate) gone: bool,
}

const COLUMNS: &str = "seq, partner, kind, base, id, gone";

/// Returns changes above a number, in their order.
pub(crate) async fn after(
    db: &impl Executor,
    seq: i64,
    limit: i64,
) -> Result<Vec<Change>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2");
    db.fetch_all(statement(sql, [seq.into(), limit.into()]))
        .await
}

/// Returns changes of a partner above a number, in their order.
pub(crate) async fn after_of(
    db: &impl Executor,
    partner: &str,
    seq: i64,
    limit: i64,
) -> Result<Vec<Change>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM changes WHERE partner = $1 AND seq > $2 ORDER BY seq LIMIT $3"
    );
    let values = [partner.into(), seq.into(), limit.into()];
    db.fetch_all(statement(sql, values)).await
}

/// Returns the largest number that was ever assigned, or 0. On PostgreSQL its change may not be visible yet.
pub(crate) async fn assigned(db: &impl Executor) -> Result<i64, StoreError> {
    let sql = match db.dialect() {
        Dialect::Sqlite => {
            "SELECT COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0)"
        }
        Dialect::Postgres => {
            "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM changes_seq"
        }
    };
    let seq = db.fetch_scalar(statement(sql, [])).await?;
    Ok(seq.unwrap_or_default())
}

/// Returns the transactions that recorded changes and have not ended. SQLite has none that a reader could see.
pub(crate) async fn writers(db: &impl Executor) -> Result<HashSet<String>, StoreError> {
    #[derive(sqlx::FromRow)]
    struct Writer {
        transaction: String,
    }
    if db.dialect() == Dialect::Sqlite {
        return Ok(HashSet::new());
    }
    let sql = "SELECT l.virtualtransaction AS transaction FROM pg_locks l \
               WHERE l.locktype = 'advisory' AND l.classid = 1129271876 AND l.objid = 1 AND l.objsubid = 2 AND l.granted \
               AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())";
    let writers: Vec<Writer> = db.fetch_all(statement(sql, [])).await?;
    Ok(writers
        .into_iter()
        .map(|writer| writer.transaction)
        .collect())
}

/// Returns the largest number among the changes that were purged.
pub(crate) async fn forgotten(db: &impl Executor) -> Result<i64, StoreError> {
    let sql = "SELECT seq FROM changes_forgotten";
    let seq = db.fetch_scalar(statement(sql, [])).await?;
    Ok(seq.unwrap_or_default())
}

/// Purges the changes of resources that were deleted more than a day ago.
///
/// # Errors
/// The database's failure.
pub(crate) async fn purge(base: &Base) -> Result<(), StoreError> {
    let keep = i64::try_from(KEEP.as_millis()).unwrap_or(i64::MAX);
    let before = base.database_now_ms().await?.saturating_sub(keep);
    while purge_some(base, before).await? {}
    Ok(())
}

/// Purges the oldest of them; returns true if there may be more.
async fn purge_some(base: &Base, before: i64) -> Result<bool, StoreError> {
    #[derive(sqlx::FromRow)]
    struct Purged {
        seq: i64,
    }
    let transaction = base.store.begin().await?;
    // Transactions that bring deleted resources back lock their changes in any order.
    let locked = match transaction.dialect() {
        Dialect::Sqlite => "",
        Dialect::Postgres => " FOR UPDATE SKIP LOCKED",
    };
    let sql = format!(
        "DELETE FROM changes WHERE seq IN \
         (SELECT c.seq FROM changes c WHERE c.gone AND c.changed_at < $1 ORDER BY c.changed_at, c.seq LIMIT $2{locked}) RETURNING seq"
    );
    let values = [before.into(), PURGED_TOGETHER.into()];
    let purged: Vec<Purged> = transaction.fetch_all(statement(sql, values)).await?;
    let Some(newest) = purged.iter().map(|purged| purged.seq).max() else {
        return Ok(false);
    };
    let sql = "UPDATE changes_forgotten SET seq = $1 WHERE seq < $1";
    transaction.execute(statement(sql, [newest.into()])).await?;
    transaction.commit().await?;
    Ok(purged.len() as i64 == PURGED_TOGETHER)
}
