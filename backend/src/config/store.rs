//! Database and files.

use std::path::PathBuf;

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::Secret;

/// Database and files.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// The data folder, made when it is missing.
    pub dir: PathBuf,
    /// `sqlite://PATH` or `postgres://..`; unset: `colloquy.db` in the data folder.
    pub database_url: Option<Secret>,
    /// Where files go, `file:///PATH` or `s3://BUCKET/PREFIX`. Accepted so that installations can set it; no capability
    /// keeps files yet.
    pub blob_url: Option<String>,
    /// The most database connections.
    pub max_connections: u32,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("colloquy-data"),
            database_url: None,
            blob_url: None,
            max_connections: 8,
        }
    }
}

impl StoreConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.max_connections >= 1,
            "store.max_connections: at least 1"
        );
        if let Some(url) = &self.database_url {
            let url = url.reveal();
            ensure!(
                ["sqlite:", "postgres:", "postgresql:"]
                    .iter()
                    .any(|scheme| url.starts_with(scheme)),
                "store.database_url: use sqlite://PATH or postgres://.."
            );
        }
        Ok(())
    }
}
