//! The queues of jobs as operators see them. Nothing here reads more rows than it says: counts stop at [`MOST_COUNTED`], and what waits is found
//! in the index `work_queued`, what runs in `work_running`, what failed in `work_updated`.

use colloquy_store::{Executor, StoreError, Value, statement};

/// The highest count: one more is counted, which says that there are more.
pub const MOST_COUNTED: u64 = 10_000;
/// The most waiting jobs of a kind, earliest first, whose earlier failures are read.
const MOST_EXAMINED: i64 = 1_000;
/// The most failures that are listed for a kind.
const MOST_REASONS: i64 = 3;
/// The most characters of a reason.
const REASON_CHARS: usize = 500;

/// The jobs of a kind. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// The kind.
    pub kind: String,
    /// Jobs that are due and wait for a worker.
    pub due: u64,
    /// Jobs that wait for a later time.
    pub later: u64,
    /// The time at which the oldest job that is due became due.
    pub oldest_due_at: Option<i64>,
    /// The time at which the next job becomes due.
    pub next_at: Option<i64>,
    /// Running jobs by node.
    pub running: Vec<RunningJobs>,
    /// Jobs that were given up, as far as they are kept.
    pub failed: u64,
    /// Earlier failures of waiting jobs, the most frequent first.
    pub failures: Vec<QueueFailure>,
}

/// The running jobs of a kind on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningJobs {
    /// The id of the node.
    pub node: String,
    /// The number of jobs.
    pub jobs: u64,
}

/// Jobs that failed and wait for another attempt.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct QueueFailure {
    /// The last failure, cut where it is long.
    pub reason: String,
    /// Among the earliest jobs that wait, the number of those that failed like this.
    pub jobs: i64,
    /// The most attempts of any of these.
    pub attempts: i64,
}

#[derive(sqlx::FromRow)]
struct WaitingRow {
    kind: String,
    due: i64,
    later: i64,
    oldest_due_at: Option<i64>,
    next_at: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct RunningRow {
    kind: String,
    node: String,
    jobs: i64,
}

#[derive(sqlx::FromRow)]
struct FailedRow {
    kind: String,
    jobs: i64,
}

/// Returns the queues of these kinds, in their order, at a time of this node's clock.
///
/// # Errors
/// The database's failure.
pub async fn queues(
    db: &impl Executor,
    kinds: &[&str],
    now: i64,
) -> Result<Vec<Queue>, StoreError> {
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let waiting = waiting(db, kinds, now).await?;
    let running = running(db).await?;
    let failed = failed(db).await?;
    let mut queues = Vec::with_capacity(kinds.len());
    for kind in kinds {
        let row = waiting.iter().find(|row| row.kind == *kind);
        let of = |count: fn(&WaitingRow) -> i64| row.map_or(0, |row| count(row).unsigned_abs());
        let is_waiting = of(|row| row.due) + of(|row| row.later) > 0;
        queues.push(Queue {
            kind: (*kind).to_owned(),
            due: of(|row| row.due),
            later: of(|row| row.later),
            oldest_due_at: row.and_then(|row| row.oldest_due_at),
            next_at: row.and_then(|row| row.next_at),
            running: running
                .iter()
                .filter(|row| row.kind == *kind)
                .map(|row| RunningJobs {
                    node: row.node.clone(),
                    jobs: row.jobs.unsigned_abs(),
                })
                .collect(),
            failed: failed
                .iter()
                .find(|row| row.kind == *kind)
                .map_or(0, |row| row.jobs.unsigned_abs()),
            failures: match is_waiting {
                true => failures(db, kind).await?,
                false => Vec::new(),
            },
        });
    }
    Ok(queues)
}

async fn waiting(
    db: &impl Executor,
    kinds: &[&str],
    now: i64,
) -> Result<Vec<WaitingRow>, StoreError> {
    let mut values: Vec<Value> = vec![now.into(), (MOST_COUNTED as i64 + 1).into()];
    let mut rows = Vec::new();
    for kind in kinds {
        values.push((*kind).into());
        rows.push(format!("(CAST(${} AS TEXT))", values.len()));
    }
    let count = |condition: &str| {
        format!(
            "(SELECT COUNT(*) FROM (SELECT 1 FROM work w WHERE w.kind = k.kind AND {condition} LIMIT $2) AS counted)"
        )
    };
    let sql = format!(
        "WITH kinds(kind) AS (VALUES {}) SELECT k.kind, {} AS due, {} AS later, \
         (SELECT MIN(w.run_at) FROM work w WHERE w.kind = k.kind AND w.state = 'queued' AND w.run_at <= $1) AS oldest_due_at, \
         (SELECT MIN(w.run_at) FROM work w WHERE w.kind = k.kind AND w.state = 'queued' AND w.run_at > $1) AS next_at FROM kinds k",
        rows.join(", "),
        count("w.state = 'queued' AND w.run_at <= $1"),
        count("w.state = 'queued' AND w.run_at > $1"),
    );
    db.fetch_all(statement(sql, values)).await
}

/// Returns the running jobs by kind and node: no more than the workers of all nodes run.
async fn running(db: &impl Executor) -> Result<Vec<RunningRow>, StoreError> {
    let sql = "SELECT kind, COALESCE(node_id, '') AS node, COUNT(*) AS jobs FROM work WHERE state = 'running' \
               GROUP BY kind, node_id ORDER BY kind, node_id";
    db.fetch_all(statement(sql, [])).await
}

async fn failed(db: &impl Executor) -> Result<Vec<FailedRow>, StoreError> {
    let sql = "SELECT w.kind, COUNT(*) AS jobs FROM (SELECT kind FROM work WHERE state = 'failed' ORDER BY updated_at DESC LIMIT $1) w \
               GROUP BY w.kind";
    let most = MOST_COUNTED as i64 + 1;
    db.fetch_all(statement(sql, [most.into()])).await
}

async fn failures(db: &impl Executor, kind: &str) -> Result<Vec<QueueFailure>, StoreError> {
    let sql = "SELECT w.last_error AS reason, COUNT(*) AS jobs, MAX(w.attempts) AS attempts FROM (\
               SELECT last_error, attempts FROM work WHERE kind = $1 AND state = 'queued' ORDER BY run_at LIMIT $2) w \
               WHERE w.last_error IS NOT NULL GROUP BY w.last_error ORDER BY jobs DESC, reason LIMIT $3";
    let values = [kind.into(), MOST_EXAMINED.into(), MOST_REASONS.into()];
    let mut failures: Vec<QueueFailure> = db.fetch_all(statement(sql, values)).await?;
    for failure in &mut failures {
        if let Some((end, _)) = failure.reason.char_indices().nth(REASON_CHARS) {
            failure.reason.truncate(end);
            failure.reason.push('…');
        }
    }
    Ok(failures)
}
