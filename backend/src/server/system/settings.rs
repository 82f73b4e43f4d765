//! The effective settings of the node that answers.

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::AnsweringNode;
use crate::{
    accounts::Caller,
    app::App,
    clock::rfc3339,
    config::{Origin, Setting},
    http::ApiError,
};

/// The settings of the node that answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SystemSettings {
    answered_by: AnsweringNode,
    /// The time of the answer by the clock of the node, RFC 3339.
    at: String,
    /// The settings file; null if there is none.
    file: Option<String>,
    /// All settings, in alphabetical order.
    settings: Vec<SystemSetting>,
}

/// A setting. Secrets are left out.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SystemSetting {
    /// The key as a TOML file names it, such as `http.listen`.
    pub(crate) key: String,
    /// The effective value; null if unset, and for a secret. Addresses are shown without user names, passwords, values of the query, and fragments.
    pub(crate) value: Value,
    /// The default value; null if the key has none.
    pub(crate) default: Value,
    /// True for a secret, whose value is not shown.
    pub(crate) is_secret: bool,
    /// True if there is a value.
    pub(crate) is_set: bool,
    /// True if the value differs from the default.
    pub(crate) is_changed: bool,
    /// Source of the value: `default`, `file`, `environment`, or `server` for one that the server chose at its start, such as the public URL.
    pub(crate) origin: &'static str,
    /// The name of the environment variable; null for other sources.
    pub(crate) variable: Option<String>,
}

/// Lists all settings of the node that answers, with their origin and without secrets; administrators only.
#[utoipa::path(get, path = "/api/system/settings", tag = "operations", responses((status = 200, body = SystemSettings)))]
pub(super) async fn list_system_settings(
    State(app): State<App>,
    Caller(principal): Caller,
) -> Result<Json<SystemSettings>, ApiError> {
    principal.require_admin()?;
    let settings = app.config.settings();
    let settings = settings.map_err(|error| ApiError::internal(error.to_string()))?;
    let file = app.config.file.as_ref();
    Ok(Json(SystemSettings {
        answered_by: AnsweringNode::of(&app),
        at: rfc3339(app.clock.now_ms()),
        file: file.map(|file| file.display().to_string()),
        settings: settings.into_iter().map(Into::into).collect(),
    }))
}

impl From<Setting> for SystemSetting {
    fn from(setting: Setting) -> Self {
        let (origin, variable) = match setting.origin {
            Origin::Default if setting.is_changed => ("server", None),
            Origin::Default => ("default", None),
            Origin::File => ("file", None),
            Origin::Environment(variable) => ("environment", Some(variable)),
        };
        Self {
            key: setting.key,
            value: setting.value,
            default: setting.default,
            is_secret: setting.is_secret,
            is_set: setting.is_set,
            is_changed: setting.is_changed,
            origin,
            variable,
        }
    }
}
