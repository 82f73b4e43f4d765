//! The vector store of a service elsewhere.

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Secret, check_secret, providers::check_url};

/// Where the final content of documents is brought, of partners for whom that is switched on: an OpenAI-compatible server with files and
/// vector stores.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VectorstoreConfig {
    /// The server's base URL, up to and including `/v1`; unset: there is none.
    pub base_url: Option<Url>,
    /// The server's key.
    pub api_key: Option<Secret>,
    /// How many requests a minute a partner's documents may take of it, unless the partner's settings say another number.
    pub requests_per_minute: u32,
    /// How long the server may take to make a file searchable, in seconds; one that takes longer has failed.
    pub indexing_seconds: u32,
}

impl Default for VectorstoreConfig {
    fn default() -> Self {
        Self {
            base_url: None,
            api_key: None,
            requests_per_minute: 120,
            indexing_seconds: 1_800,
        }
    }
}

impl VectorstoreConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            (1..=6_000).contains(&self.requests_per_minute),
            "vectorstore.requests_per_minute: 1 to 6000"
        );
        ensure!(
            (1..=86_400).contains(&self.indexing_seconds),
            "vectorstore.indexing_seconds: 1 to 86400"
        );
        check_secret("vectorstore.api_key", self.api_key.as_ref())?;
        check_url("vectorstore.base_url", self.base_url.as_ref())
    }
}
