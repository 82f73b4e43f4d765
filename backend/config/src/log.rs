//! Logs.

use serde::{Deserialize, Serialize};

/// Logs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// What is logged, in the syntax of `tracing_subscriber::EnvFilter`.
    pub filter: String,
    /// How a line looks.
    pub format: LogFormat,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            filter: "info,sqlx=warn,rtc=error".to_owned(),
            format: LogFormat::default(),
        }
    }
}
