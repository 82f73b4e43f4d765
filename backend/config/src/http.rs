//! The HTTP server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Secret, providers::check_url, secret::check_key};

/// The HTTP server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The origin as clients reach it; unset: `http://` and the address listened on.
    pub public_url: Option<Url>,
    /// Origin that reaches this node directly, not through the load balancer. Clients of a call that this node holds are redirected to it;
    /// unset: they retry the load balancer until it picks this node.
    pub node_url: Option<Url>,
    /// The number of reverse proxies in front whose `X-Forwarded-For` entry is trusted. With 0, all visitors behind a proxy have its address:
    /// they share its failed attempts a minute, and connections from private addresses have no share of a publishable key's rate of their own,
    /// and no bound on their calls beside that of the key.
    pub trusted_proxies: usize,
    /// The most connections at once; fewer when the system allows too few open files.
    pub max_connections: usize,
    /// The most connections at once from one address, or one /64 of IPv6; 0: as many as there may be. With
    /// `trusted_proxies` it does not apply, since all connections come from the proxy.
    pub max_connections_per_address: usize,
    /// How long the head of a request may take, in milliseconds.
    pub header_ms: u32,
    /// How long a connection may wait for its next request, in milliseconds.
    pub idle_ms: u32,
    /// How long a body may pause while it is read, in milliseconds.
    pub body_pause_ms: u32,
    /// How long a body may take in all, in milliseconds.
    pub body_ms: u32,
    /// How long a client may take nothing of its answer, in milliseconds.
    pub write_stall_ms: u32,
    /// What `/metrics` asks for as an API key, beside admin keys; unset: nothing.
    pub metrics_key: Option<Secret>,
    /// What `/health/deep` asks for as an API key, beside admin keys; unset: nothing.
    pub health_key: Option<Secret>,
    /// Seconds after SIGTERM during which requests are still accepted while `/health` returns 503 `draining`, so that load balancers
    /// drain this node, at most 3600. SIGINT skips them.
    pub lame_duck_seconds: u64,
    /// How long running requests and calls may take to end after that, in seconds.
    pub drain_seconds: u64,
    /// How long a stream of events may be silent before a comment keeps its connection open, in seconds.
    pub keep_alive_seconds: u32,
    /// A folder whose files are served below `/`, for the demo; unset: none. They share the origin of the console, so their
    /// scripts can act with the session of whoever is signed in.
    pub static_dir: Option<std::path::PathBuf>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            public_url: None,
            node_url: None,
            trusted_proxies: 0,
            max_connections: 4_096,
            max_connections_per_address: 1_024,
            header_ms: 15_000,
            idle_ms: 75_000,
            body_pause_ms: 30_000,
            body_ms: 600_000,
            write_stall_ms: 120_000,
            metrics_key: None,
            health_key: None,
            lame_duck_seconds: 5,
            drain_seconds: 30,
            keep_alive_seconds: 15,
            static_dir: None,
        }
    }
}

impl HttpConfig {
    /// The origin as clients reach this server: `http.public_url`, else the address listened on. No slash at its end.
    #[must_use]
    pub fn origin(&self) -> String {
        if let Some(url) = &self.public_url {
            return url.as_str().trim_end_matches('/').to_owned();
        }
        let mut address = self.listen;
        if address.ip().is_unspecified() {
            address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        format!("http://{address}")
    }

    /// The origin of this node alone, if the settings name one. No slash at its end.
    #[must_use]
    pub fn node_origin(&self) -> Option<String> {
        let url = self.node_url.as_ref()?;
        Some(url.as_str().trim_end_matches('/').to_owned())
    }

    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.keep_alive_seconds >= 1,
            "http.keep_alive_seconds: at least 1"
        );
        ensure!(
            self.max_connections >= 1,
            "http.max_connections: at least 1"
        );
        ensure!(
            self.lame_duck_seconds <= 3_600,
            "http.lame_duck_seconds: at most 3600"
        );
        for (field, value) in [
            ("header_ms", self.header_ms),
            ("idle_ms", self.idle_ms),
            ("body_pause_ms", self.body_pause_ms),
            ("body_ms", self.body_ms),
            ("write_stall_ms", self.write_stall_ms),
        ] {
            ensure!(value >= 1, "http.{field}: at least 1");
        }
        check_key("http.metrics_key", self.metrics_key.as_ref())?;
        check_key("http.health_key", self.health_key.as_ref())?;
        for (field, url) in [
            ("public_url", &self.public_url),
            ("node_url", &self.node_url),
        ] {
            check_url(&format!("http.{field}"), url.as_ref())?;
        }
        Ok(())
    }
}
