//! Ends of calls that somebody asks for.
//!
//! A call that nobody has joined ends at once. One that runs is ended by its node: at once if that is this one, else when the node
//! looks for such calls next ([`HEARTBEAT`](colloquy_kernel::node::HEARTBEAT)).

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use colloquy_store::{Executor, StoreError, statement};
use serde_json::Map;
use tokio_util::sync::CancellationToken;

use super::{Outcome, finish, store::NODE_LOST};
use crate::Calls;

/// The error of a call that was ended before its media connected.
pub const CANCELLED: &str = "CANCELLED";

/// The calls that run on this node.
#[derive(Debug, Default)]
pub(super) struct RunningCalls {
    ends: Mutex<HashMap<String, CancellationToken>>,
}

impl RunningCalls {
    /// Listens for the request to end a call that was taken for this node.
    pub(super) fn listen(self: &Arc<Self>, id: &str) -> EndRequests {
        let requested = CancellationToken::new();
        self.lock().insert(id.to_owned(), requested.clone());
        EndRequests {
            running: Arc::clone(self),
            id: id.to_owned(),
            requested,
        }
    }

    /// Tells a call of this node that its end was asked for. Calls of other nodes are none of this one's.
    fn request(&self, id: &str) {
        if let Some(requested) = self.lock().get(id) {
            requested.cancel();
        }
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether the end of a call was asked for, as long as the call runs.
#[derive(Debug)]
pub struct EndRequests {
    running: Arc<RunningCalls>,
    id: String,
    requested: CancellationToken,
}

impl EndRequests {
    /// Waits until somebody asks for the end of the call.
    pub async fn requested(&self) {
        self.requested.cancelled().await;
    }
}

impl Drop for EndRequests {
    fn drop(&mut self) {
        self.running.lock().remove(&self.id);
    }
}

/// Asks for the end of a call. Asking again, or for a call that is over, changes nothing.
///
/// # Errors
/// The database's failure.
pub(super) async fn request(calls: &Calls, id: &str) -> Result<(), StoreError> {
    let now = calls.clock.now_ms();
    match store_request(calls.store.db(), id, now).await? {
        None => {}
        Some(EndRequest { is_taken: true }) => calls.running.request(id),
        // Nobody can take it any more.
        Some(EndRequest { is_taken: false }) => {
            let outcome = Outcome {
                error: Some(Cow::Borrowed(CANCELLED)),
                call_time: Duration::ZERO,
                server_time: Duration::ZERO,
                transcript: Vec::new(),
                visitor: Map::new(),
            };
            finish(calls, id, outcome).await?;
        }
    }
    Ok(())
}

/// Looks for calls of this node whose end was asked for at another.
///
/// # Errors
/// The database's failure.
pub async fn look_for_end_requests(calls: &Calls) -> Result<(), StoreError> {
    if calls.running.is_empty() {
        return Ok(());
    }
    let own_node = &calls.kernel.node.id;
    for id in requests(calls.store.db(), own_node).await? {
        calls.running.request(&id);
    }
    Ok(())
}

/// A call whose end was asked for.
#[derive(Debug, sqlx::FromRow)]
struct EndRequest {
    /// Whether a node has taken it, which is to end it.
    is_taken: bool,
}

/// Records that somebody asks for the end of a call. `None` when it is over. One that was presumed lost may run on.
async fn store_request(
    db: &impl Executor,
    id: &str,
    now: i64,
) -> Result<Option<EndRequest>, StoreError> {
    let sql = format!(
        "UPDATE calls SET end_requested_at = COALESCE(end_requested_at, $2) \
         WHERE id = $1 AND (state IN ('starting', 'ongoing') OR error_code = '{NODE_LOST}') \
         RETURNING taken_at IS NOT NULL AS is_taken"
    );
    db.fetch_one(statement(sql, [id.into(), now.into()])).await
}

/// Returns the calls of a node whose end was asked for.
async fn requests(db: &impl Executor, node: &str) -> Result<Vec<String>, StoreError> {
    #[derive(sqlx::FromRow)]
    struct Row {
        id: String,
    }
    let sql = "SELECT id FROM calls WHERE node_id = $1 AND end_requested_at IS NOT NULL";
    let rows: Vec<Row> = db.fetch_all(statement(sql, [node.into()])).await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}
