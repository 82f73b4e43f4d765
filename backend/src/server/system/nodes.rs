//! The nodes of the installation.

use std::collections::BTreeSet;

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::AnsweringNode;
use crate::{
    accounts::Caller,
    app::App,
    clock::rfc3339,
    http::ApiError,
    node::{self, KnownNode, NodeState},
};

/// The nodes of the installation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SystemNodes {
    answered_by: AnsweringNode,
    /// The time of the answer by the clock of the database, as all times here, RFC 3339.
    at: String,
    /// The nodes with a heartbeat within the last week, newest heartbeat first and replaced nodes last; 200 at most.
    nodes: Vec<SystemNode>,
    /// True if the installation has more nodes than are listed.
    has_more: bool,
    /// The versions of the nodes that run; several while the installation is upgraded.
    versions: BTreeSet<String>,
}

/// A node: a process of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SystemNode {
    /// The id of the process; each start makes a new one.
    id: String,
    /// The name of the node, which its data folder keeps over restarts.
    name: String,
    /// True for the node that answers.
    is_answering: bool,
    /// `running`; `stopping` after the process was told to stop; `stopped` and `lost` after 30 seconds without a heartbeat, if it was told to stop and if
    /// not; `replaced` if another process has taken over its data folder.
    state: &'static str,
    /// The version of the server, followed by `+` and the Git revision if the build had one; null for a version that did not store it.
    version: Option<String>,
    /// The address of this node alone, past a load balancer (`http.node_url`); null if that is not set.
    url: Option<String>,
    /// The time at which the process started, RFC 3339.
    started_at: String,
    /// The time of the last heartbeat, RFC 3339; running nodes send one every 5 seconds.
    heartbeat_at: String,
    /// The age of the last heartbeat, in milliseconds.
    heartbeat_age_ms: u64,
    /// Calls that held a place on the node at its last heartbeat; null if unknown, and if the node is neither `running` nor `stopping`.
    calls: Option<u64>,
    /// The most calls that the node takes at once; null if unknown.
    max_calls: Option<u64>,
}

/// Lists the nodes of the installation; administrators only.
#[utoipa::path(get, path = "/api/system/nodes", tag = "operations", responses((status = 200, body = SystemNodes)))]
pub(super) async fn list_system_nodes(
    State(app): State<App>,
    Caller(principal): Caller,
) -> Result<Json<SystemNodes>, ApiError> {
    principal.require_admin()?;
    let known = node::list(&app.kernel).await?;
    let nodes: Vec<SystemNode> = known
        .nodes
        .into_iter()
        .map(|node| view(&app, node, known.now))
        .collect();
    let running = nodes.iter().filter(|node| is_heard(node.state));
    Ok(Json(SystemNodes {
        answered_by: AnsweringNode::of(&app),
        at: rfc3339(known.now),
        versions: running.filter_map(|node| node.version.clone()).collect(),
        nodes,
        has_more: known.has_more,
    }))
}

fn is_heard(state: &str) -> bool {
    matches!(state, "running" | "stopping")
}

fn view(app: &App, node: KnownNode, now: i64) -> SystemNode {
    let state = match node.state {
        NodeState::Running => "running",
        NodeState::Stopping => "stopping",
        NodeState::Stopped => "stopped",
        NodeState::Lost => "lost",
        NodeState::Replaced => "replaced",
    };
    let is_answering = node.id == app.kernel.node.id;
    // This node knows better than its last heartbeat.
    let own = is_answering.then(|| app.calls.room.load());
    let calls = own.map(|load| load.calls as u64).or(node.calls);
    SystemNode {
        is_answering,
        calls: calls.filter(|_| is_heard(state)),
        max_calls: own.map(|load| load.max_calls as u64).or(node.max_calls),
        id: node.id,
        name: node.name,
        state,
        version: node.version,
        url: node.url,
        started_at: rfc3339(node.started_at),
        heartbeat_at: rfc3339(node.heartbeat_at),
        heartbeat_age_ms: u64::try_from(now - node.heartbeat_at).unwrap_or(0),
    }
}
