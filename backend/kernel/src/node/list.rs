//! The nodes as operators see them.

use colloquy_store::StoreError;

use super::{lost_before, store};
use crate::Kernel;

/// The most nodes that are listed. Rows of processes that are gone stay for a week, and a process that crashes at its start leaves one each time.
const MOST_NODES: usize = 200;

/// The state of a node as others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// The node was heard of lately.
    Running,
    /// The node was heard of lately, and had been told to stop.
    Stopping,
    /// The node is silent, and had been told to stop.
    Stopped,
    /// The node is silent, and presumed lost.
    Lost,
    /// Another process has taken over its data folder.
    Replaced,
}

/// A node of the installation. Times are the database's, in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownNode {
    /// New for every process.
    pub id: String,
    /// Stays with the data folder.
    pub name: String,
    /// The address of this node alone, past a load balancer; `None` unless its settings name one.
    pub url: Option<String>,
    /// The version of the server; `None` for a version that stored none.
    pub version: Option<String>,
    /// The state at the time of the list.
    pub state: NodeState,
    /// The time at which the process started.
    pub started_at: i64,
    /// The time of the last heartbeat.
    pub heartbeat_at: i64,
    /// Calls that held a place at the last heartbeat.
    pub calls: Option<u64>,
    /// The most calls at once.
    pub max_calls: Option<u64>,
}

/// The nodes of the installation at a time of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTimes {
    /// The database's time, in milliseconds since 1970, which tells the age of heartbeats.
    pub now: i64,
    /// The nodes, those that were heard of last first, and behind them those that were replaced.
    pub nodes: Vec<KnownNode>,
    /// True if there are more.
    pub has_more: bool,
}

/// Lists the nodes of the installation that have been heard of within a week, 200 at most.
///
/// # Errors
/// The database's failure.
pub async fn list(kernel: &Kernel) -> Result<NodeTimes, StoreError> {
    let lost_before = lost_before(kernel).await?;
    let mut rows = store::list(kernel.store.db(), MOST_NODES as i64 + 1).await?;
    let has_more = rows.len() > MOST_NODES;
    rows.truncate(MOST_NODES);
    Ok(NodeTimes {
        now: kernel.database_now_ms().await?,
        nodes: rows
            .into_iter()
            .map(|row| known(row, lost_before))
            .collect(),
        has_more,
    })
}

fn known(row: store::NodeRow, lost_before: i64) -> KnownNode {
    let state = match (row.ended_at, row.heartbeat_at < lost_before, row.stopping) {
        (Some(_), ..) => NodeState::Replaced,
        (None, true, true) => NodeState::Stopped,
        (None, true, false) => NodeState::Lost,
        (None, false, true) => NodeState::Stopping,
        (None, false, false) => NodeState::Running,
    };
    KnownNode {
        id: row.id,
        name: row.name,
        url: row.url,
        version: row.version,
        state,
        started_at: row.started_at,
        heartbeat_at: row.heartbeat_at,
        calls: row.calls.map(i64::unsigned_abs),
        max_calls: row.max_calls.map(i64::unsigned_abs),
    }
}
