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
    /// The database's time, by which the age of heartbeats is told. RFC 3339.
    at: String,
    /// The nodes that were heard of within a week, 200 at most, those that were heard of last first.
    nodes: Vec<SystemNode>,
    /// True if there are more.
    has_more: bool,
    /// The versions of the nodes that run; several while the installation is upgraded.
    versions: BTreeSet<String>,
}

/// A node: a process of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SystemNode {
    /// New for every process.
    id: String,
    /// Stays with the data folder.
    name: String,
    /// True for the node that answers.
    is_answering: bool,
    /// `running`; `stopping` after it was told to stop, `stopped` once it is silent since then; `lost` if it is silent for 30 seconds without
    /// having been told to stop; `replaced` if another process has taken over its data folder.
    state: &'static str,
    /// The version, with the revision behind a `+` if the build knew it; null for a version that did not tell it.
    version: Option<String>,
    /// `http.node_url`: its own address, past a load balancer.
    url: Option<String>,
    /// When the process joined. RFC 3339.
    started_at: String,
    /// Its last heartbeat; there is one every 5 seconds. RFC 3339.
    heartbeat_at: String,
    /// The age of the last heartbeat, in milliseconds.
    heartbeat_age_ms: u64,
    /// Calls that hold a place on the node, at its last heartbeat; null if unknown, and for a node that does not run.
    calls: Option<u64>,
    /// The most calls at once; null if unknown.
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
