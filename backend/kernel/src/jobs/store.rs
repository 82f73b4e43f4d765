//! The SQL of the `work` table.

use colloquy_store::{Executor, StoreError, statement};

use crate::node;

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// It waits for its time and a worker.
    Queued,
    /// A worker holds its lease.
    Running,
    /// It waits for something outside.
    Blocked,
    /// It ended well.
    Done,
    /// It used up its attempts, or its processes died.
    Failed,
}

impl JobState {
    /// The name in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Blocked => "blocked",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct WorkRow {
    /// The job's id.
    pub id: String,
    /// Its sort.
    pub kind: String,
    /// Whose work it is; empty for the server's own.
    pub owner: String,
    /// What it is about, JSON.
    pub payload: String,
    /// Its state, as [`JobState::as_str`] writes it.
    pub state: String,
    /// How often it was begun since it last made progress.
    pub attempts: i64,
    /// How often its process died, since it last came to an end.
    pub deaths: i64,
    /// Whether it runs without other jobs beside it.
    pub alone: bool,
    /// The fencing token of the last lease.
    pub fence: i64,
    /// When it runs next, in milliseconds since 1970.
    pub run_at: i64,
    /// What went wrong last, or what it waits for.
    pub last_error: Option<String>,
}

pub(super) struct NewWork {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) owner: String,
    pub(super) dedup_key: Option<String>,
    pub(super) payload: String,
    pub(super) run_at: i64,
    pub(super) now: i64,
}

pub(super) const COLUMNS: &str =
    "id, kind, owner, payload, state, attempts, deaths, alone, fence, run_at, last_error";

pub(super) async fn insert(db: &impl Executor, new: NewWork) -> Result<(), StoreError> {
    let sql = "INSERT INTO work (id, kind, dedup_key, payload, state, run_at, attempts, again, fence, created_at, \
               updated_at, owner) VALUES ($1, $2, $3, $4, 'queued', $5, 0, FALSE, 0, $6, $6, $7) \
               ON CONFLICT (kind, dedup_key) WHERE state IN ('queued', 'running', 'blocked') DO UPDATE SET \
               again = (work.again OR work.state = 'running'), \
               run_at = CASE WHEN work.state = 'queued' AND excluded.run_at < work.run_at THEN excluded.run_at \
               ELSE work.run_at END";
    let values = [
        new.id.into(),
        new.kind.into(),
        new.dedup_key.into(),
        new.payload.into(),
        new.run_at.into(),
        new.now.into(),
        new.owner.into(),
    ];
    db.execute(statement(sql, values)).await.map(|_| ())
}

/// Makes jobs due that were queued after a time, and moves those that were to wait by as much as the clock was ahead.
pub(super) async fn bring_back(
    db: &impl Executor,
    after: i64,
    now: i64,
) -> Result<u64, StoreError> {
    let sql = "UPDATE work SET run_at = run_at - (updated_at - $2), updated_at = $2 WHERE state = 'queued' AND updated_at > $1";
    db.execute(statement(sql, [after.into(), now.into()])).await
}

/// How many jobs of a sort wait although they are due.
pub(super) async fn count_due(db: &impl Executor, kind: &str, now: i64) -> Result<u64, StoreError> {
    let sql = "SELECT COUNT(*) FROM work WHERE kind = $1 AND state = 'queued' AND run_at <= $2";
    db.fetch_count(statement(sql, [kind.into(), now.into()]))
        .await
}

/// Returns true if a job of this sort and key is not finished.
pub(super) async fn is_unfinished(
    db: &impl Executor,
    kind: &str,
    dedup_key: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) FROM work WHERE kind = $1 AND dedup_key = $2 AND state IN ('queued', 'running', 'blocked')";
    let unfinished = statement(sql, [kind.into(), dedup_key.into()]);
    Ok(db.fetch_count(unfinished).await? > 0)
}

/// Extends a lease from now on, by the database's time or what stands for it in a test; `false` when it is lost.
pub(super) async fn renew(
    db: &impl Executor,
    id: &str,
    fence: i64,
    lasts_ms: i64,
    database_now: Option<i64>,
) -> Result<bool, StoreError> {
    let sql = format!(
        "UPDATE work SET lease_until = {} + $3 WHERE id = $1 AND fence = $2 AND state = 'running'",
        node::database_time(db, 4)
    );
    let values = [
        id.into(),
        fence.into(),
        lasts_ms.into(),
        database_now.into(),
    ];
    let changed = db.execute(statement(sql, values)).await?;
    Ok(changed == 1)
}

/// Locks the row for the transaction; `false` when the lease is lost.
pub(super) async fn touch(db: &impl Executor, id: &str, fence: i64) -> Result<bool, StoreError> {
    let sql = "UPDATE work SET fence = fence WHERE id = $1 AND fence = $2 AND state = 'running'";
    let changed = db
        .execute(statement(sql, [id.into(), fence.into()]))
        .await?;
    Ok(changed == 1)
}

/// How a run ends in the table.
pub(super) struct Ending<'a> {
    pub(super) state: JobState,
    /// When it runs next, if it does.
    pub(super) run_at: i64,
    /// The attempts to remember.
    pub(super) attempts: i64,
    /// The deaths of its processes to remember.
    pub(super) deaths: i64,
    pub(super) last_error: Option<&'a str>,
    pub(super) now: i64,
}

/// Ends a run; `false` when the lease is lost. A job that was queued again while it ran goes back to the queue at
/// once, whatever the run came to.
pub(super) async fn end(
    db: &impl Executor,
    id: &str,
    fence: i64,
    ending: &Ending<'_>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE work SET state = CASE WHEN again THEN 'queued' ELSE $3 END, \
               run_at = CASE WHEN again THEN $7 ELSE $4 END, \
               attempts = CASE WHEN again THEN 0 ELSE $5 END, \
               deaths = CASE WHEN again THEN 0 ELSE $8 END, alone = FALSE, \
               again = FALSE, lease_until = NULL, node_id = NULL, last_error = $6, updated_at = $7 \
               WHERE id = $1 AND fence = $2 AND state = 'running'";
    let values = [
        id.into(),
        fence.into(),
        ending.state.as_str().into(),
        ending.run_at.into(),
        ending.attempts.into(),
        ending.last_error.map(str::to_owned).into(),
        ending.now.into(),
        ending.deaths.into(),
    ];
    let changed = db.execute(statement(sql, values)).await?;
    Ok(changed == 1)
}

pub(super) async fn unblock(
    db: &impl Executor,
    kind: &str,
    dedup_key: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE work SET state = 'queued', run_at = $3, attempts = 0, updated_at = $3 \
               WHERE kind = $1 AND dedup_key = $2 AND state = 'blocked'";
    let values = [kind.into(), dedup_key.into(), now.into()];
    let changed = db.execute(statement(sql, values)).await?;
    Ok(changed > 0)
}

pub(super) async fn find(
    db: &impl Executor,
    kind: &str,
    dedup_key: &str,
) -> Result<Option<WorkRow>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM work WHERE kind = $1 AND dedup_key = $2 ORDER BY id DESC LIMIT 1"
    );
    let values = [kind.into(), dedup_key.into()];
    db.fetch_one(statement(sql, values)).await
}

/// Removes finished rows that nobody needs any more.
pub(super) async fn purge(db: &impl Executor, before: i64) -> Result<u64, StoreError> {
    let sql = "DELETE FROM work WHERE state IN ('done', 'failed') AND updated_at < $1";
    db.execute(statement(sql, [before.into()])).await
}
