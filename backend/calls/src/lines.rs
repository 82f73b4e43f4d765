//! The lines of calls that run, for those who follow them. The transcript of a call that is over is stored with its end, and does not depend on
//! these.

use colloquy_store::{Dialect, Executor, StoreError, statement};
use tokio::sync::mpsc;

use super::{TranscriptLine, store::NODE_LOST};
use crate::Calls;

/// Lines that may wait for the database. Further ones are missing until the call is over.
const WAITING: usize = 256;

/// Stores the lines of a call while it runs, in the background and in their order.
#[derive(Debug)]
pub struct LineLog(mpsc::Sender<(u64, TranscriptLine)>);

impl LineLog {
    /// Begins with the lines of a call that this node runs.
    #[must_use]
    pub fn start(calls: &Calls, id: &str) -> Self {
        let (sender, mut lines) = mpsc::channel(WAITING);
        let (calls, id) = (calls.clone(), id.to_owned());
        let tasks = calls.kernel.tasks.clone();
        tasks.spawn(async move {
            while let Some((number, line)) = lines.recv().await {
                if let Err(error) = store(calls.store.db(), &id, number, &line).await {
                    calls
                        .store
                        .complain("storing a line of a call that runs", &error);
                }
            }
        });
        Self(sender)
    }

    /// Stores the line with this number, or replaces it.
    pub fn said(&self, number: u64, line: TranscriptLine) {
        // A database that is away costs a follower lines, not the call.
        let _ = self.0.try_send((number, line));
    }
}

/// Stores a line of a call that is not over. A line without words is removed.
async fn store(
    db: &impl Executor,
    id: &str,
    number: u64,
    line: &TranscriptLine,
) -> Result<(), StoreError> {
    let number = number.cast_signed();
    if line.text.is_empty() {
        let sql = "DELETE FROM call_lines WHERE call_id = $1 AND line = $2";
        let values = [id.into(), number.into()];
        return db.execute(statement(sql, values)).await.map(|_| ());
    }
    // A call that was presumed lost may run on. A line that comes while the call ends waits for that, and is not left behind. SQLite has one writer anyway.
    let lock = match db.dialect() {
        Dialect::Postgres => "FOR NO KEY UPDATE",
        Dialect::Sqlite => "",
    };
    let sql = format!(
        "INSERT INTO call_lines (call_id, line, originator, text, at_ms, interrupted, reply) \
         SELECT id, $2, $3, $4, $5, $6, $7 FROM calls WHERE id = $1 AND (ended_at IS NULL OR error_code = '{NODE_LOST}') {lock} \
         ON CONFLICT (call_id, line) DO UPDATE SET text = excluded.text, interrupted = excluded.interrupted, reply = excluded.reply"
    );
    let reply = line.reply.as_ref().map(serde_json::to_string).transpose();
    let values = [
        id.into(),
        number.into(),
        line.originator.as_str().into(),
        line.text.as_str().into(),
        line.at_ms.cast_signed().into(),
        line.interrupted.into(),
        reply.map_err(StoreError::other)?.into(),
    ];
    db.execute(statement(sql, values)).await.map(|_| ())
}

#[derive(Debug, sqlx::FromRow)]
struct LineRow {
    originator: String,
    text: String,
    at_ms: i64,
    interrupted: bool,
    /// JSON.
    reply: Option<String>,
}

/// Returns what has been said so far in a call that runs, oldest first.
pub(super) async fn of(db: &impl Executor, id: &str) -> Result<Vec<TranscriptLine>, StoreError> {
    let sql = "SELECT originator, text, at_ms, interrupted, reply FROM call_lines WHERE call_id = $1 ORDER BY at_ms, line";
    let rows: Vec<LineRow> = db.fetch_all(statement(sql, [id.into()])).await?;
    let lines = rows.into_iter().map(|row| {
        let originator = serde_json::from_value(row.originator.into());
        let reply = row.reply.as_deref().map(serde_json::from_str).transpose();
        Ok(TranscriptLine {
            originator: originator.map_err(StoreError::malformed)?,
            text: row.text,
            at_ms: row.at_ms.cast_unsigned(),
            interrupted: row.interrupted,
            reply: reply.map_err(StoreError::malformed)?,
        })
    });
    lines.collect()
}
