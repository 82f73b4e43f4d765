//! The HTTP server.

use std::net::SocketAddr;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use url::Url;

/// The HTTP server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The origin as clients reach it; unset: `http://` and the address listened on.
    pub public_url: Option<Url>,
    /// The number of reverse proxies in front whose `X-Forwarded-For` entry is trusted.
    pub trusted_proxies: usize,
    /// How long running requests and calls may take to end after SIGTERM, in seconds.
    pub drain_seconds: u64,
    /// How long a stream of events may be silent before a comment keeps its connection open, in seconds.
    pub keep_alive_seconds: u32,
    /// A folder whose files are served below `/`, for the demo; unset: none.
    pub static_dir: Option<std::path::PathBuf>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            public_url: None,
            trusted_proxies: 0,
            drain_seconds: 30,
            keep_alive_seconds: 15,
            static_dir: None,
        }
    }
}

impl HttpConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.keep_alive_seconds >= 1,
            "http.keep_alive_seconds: at least 1"
        );
        if let Some(url) = &self.public_url {
            ensure!(
                matches!(url.scheme(), "http" | "https"),
                "http.public_url: use an http or https URL"
            );
        }
        Ok(())
    }
}
