//! What the layers around the routes need of the server.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    ops::Deref,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use axum::extract::{ConnectInfo, Request};
use colloquy_base::{clock::Clock, memory::MemoryPool};
use colloquy_config::Config;
use tokio_util::sync::CancellationToken;

use super::extract::forwarded_for;

/// What the layers around the routes share; cheap to clone.
#[derive(Debug, Clone)]
pub struct Edge(Arc<Parts>);

/// What [`Edge`] holds.
#[derive(Debug)]
pub struct Parts {
    pub(super) clock: Arc<dyn Clock>,
    /// Cancelled when the server stops taking work.
    pub(super) shutdown: CancellationToken,
    /// Whether the disk is so full that nothing but deletion may store anything.
    pub(super) disk_low: AtomicBool,
    /// Room for bodies.
    pub(super) bodies: MemoryPool,
    /// The largest body that handlers get who set no bound of their own.
    pub(super) body_bytes: usize,
    /// How long a body may pause.
    pub(super) body_pause: Duration,
    /// How long a body may take.
    pub(super) body_time: Duration,
    trusted_proxies: usize,
}

impl Deref for Edge {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Edge {
    /// The edge of a server with these settings, until `shutdown`.
    #[must_use]
    pub fn new(config: &Config, clock: Arc<dyn Clock>, shutdown: CancellationToken) -> Self {
        Self(Arc::new(Parts {
            clock,
            shutdown,
            disk_low: AtomicBool::new(false),
            bodies: MemoryPool::new(config.limits.body_memory_bytes),
            body_bytes: config.limits.body_bytes,
            body_pause: Duration::from_millis(config.http.body_pause_ms.into()),
            body_time: Duration::from_millis(config.http.body_ms.into()),
            trusted_proxies: config.http.trusted_proxies,
        }))
    }

    /// The address of the client: of the connection, or what the outermost trusted proxy saw.
    pub(super) fn client_address(&self, request: &Request) -> IpAddr {
        let connection = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let peer = connection.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |info| info.0.ip());
        forwarded_for(request.headers(), self.trusted_proxies).unwrap_or(peer)
    }
}
