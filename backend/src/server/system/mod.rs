//! The installation as administrators see it: nodes, queues, waiting work, and the models and settings of the node that answers.
//!
//! Each answer names the node that gives it, and the time. Nothing here asks a service: what is told of models is what requests found out.

mod models;
mod nodes;
mod queues;
mod settings;

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    accounts::Caller,
    app::App,
    clock::rfc3339,
    http::ApiError,
    kernel::{router::DescribedRouter, routes},
    node::REVISION,
    store::{Dialect, Executor as _},
};

pub(crate) use self::settings::SystemSetting;

/// The routes, of the interface [`crate::http::Interface::MANAGEMENT`].
pub(super) fn routes() -> DescribedRouter<App> {
    DescribedRouter::new()
        .routes(routes!(read_system))
        .routes(routes!(nodes::list_system_nodes))
        .routes(routes!(queues::list_system_queues))
        .routes(routes!(models::list_system_models))
        .routes(routes!(settings::list_system_settings))
}

/// The node that answers the request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AnsweringNode {
    /// The id of its process; each start makes a new one.
    id: String,
    /// The name of the node, which its data folder keeps over restarts.
    name: String,
}

impl AnsweringNode {
    fn of(app: &App) -> Self {
        Self {
            id: app.kernel.node.id.clone(),
            name: app.kernel.node.name.clone(),
        }
    }
}

/// The kind of a database.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum DatabaseKind {
    Sqlite,
    Postgres,
}

/// The server that answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SystemView {
    answered_by: AnsweringNode,
    /// The time of the answer by the clock of the node, RFC 3339.
    at: String,
    /// The version of the server.
    version: &'static str,
    /// The Git revision of the sources; null if `GIT_REVISION` was not set for the build.
    revision: Option<&'static str>,
    database: DatabaseKind,
    /// The number of the newest migration of the database.
    schema_version: i64,
    /// Seconds since the start of the server.
    uptime_seconds: u64,
}

/// Returns the version of the server that answers, and of its database; administrators only.
#[utoipa::path(get, path = "/api/system", tag = "operations", responses((status = 200, body = SystemView)))]
pub(super) async fn read_system(
    State(app): State<App>,
    Caller(principal): Caller,
) -> Result<Json<SystemView>, ApiError> {
    principal.require_admin()?;
    let now = app.clock.instant();
    Ok(Json(SystemView {
        answered_by: AnsweringNode::of(&app),
        at: rfc3339(app.clock.now_ms()),
        version: env!("CARGO_PKG_VERSION"),
        revision: REVISION,
        database: match app.store.db().dialect() {
            Dialect::Sqlite => DatabaseKind::Sqlite,
            Dialect::Postgres => DatabaseKind::Postgres,
        },
        schema_version: app.store.schema_version().await?,
        uptime_seconds: now.saturating_duration_since(app.kernel.started).as_secs(),
    }))
}
