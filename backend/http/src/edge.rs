//! What the layers around the routes need of the server.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    ops::Deref,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use axum::{
    extract::{ConnectInfo, Request},
    http::HeaderMap,
};
use colloquy_base::{clock::Clock, memory::MemoryPool};
use colloquy_config::Config;
use tokio_util::sync::CancellationToken;

use super::{
    extract::{forwarded_address, forwarded_entry, forwarded_for},
    limits::network,
};

/// Stands for the network of clients whose address a trusted proxy did not tell.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

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
        forwarded_for(request.headers(), self.trusted_proxies).unwrap_or_else(|| peer(request))
    }

    /// The network of the client, as [`own_network`] tells it.
    pub(super) fn client_network(&self, request: &Request) -> Option<IpAddr> {
        own_network(request.headers(), self.trusted_proxies, peer(request))
    }
}

/// The address that the connection comes from.
fn peer(request: &Request) -> IpAddr {
    let connection = request.extensions().get::<ConnectInfo<SocketAddr>>();
    connection.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |info| info.0.ip())
}

/// Returns the network of a client that is told from others: by a trusted proxy, or by a connection from a public address. Any other
/// connection may be one of a proxy that the settings do not count, or of a container's gateway, and all clients come from there: `None`.
/// Entries before the one that the outermost trusted proxy appended are the client's own claim and change nothing. If that one is no address,
/// which the client may have brought about, the network is [`UNKNOWN`], which all such clients share.
fn own_network(headers: &HeaderMap, trusted_proxies: usize, peer: IpAddr) -> Option<IpAddr> {
    match forwarded_entry(headers, trusted_proxies) {
        Some(entry) => Some(forwarded_address(entry).map_or(UNKNOWN, network)),
        None => is_public(peer).then(|| network(peer)),
    }
}

/// Returns false for addresses of private networks, of this machine, and of networks behind a carrier's NAT (RFC 6598).
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            let [first, second, ..] = ip.octets();
            let is_shared = first == 100 && second & 0b1100_0000 == 64;
            !(is_shared
                || ip.is_private()
                || ip.is_loopback()
                || ip.is_link_local()
                || ip.is_unspecified())
        }
        IpAddr::V6(ip) => {
            !(ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_unique_local()
                || ip.is_unicast_link_local())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(forwarded: Option<&str>, trusted_proxies: usize, peer: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        if let Some(forwarded) = forwarded {
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
        }
        let network = own_network(&headers, trusted_proxies, peer.parse().unwrap());
        network.map(|network| network.to_string())
    }

    #[test]
    fn clients_behind_a_trusted_proxy_are_told_apart() {
        let network = |network: &str| Some(network.to_owned());
        let forwarded = Some("6.6.6.6, 7.7.7.7");
        assert_eq!(own(forwarded, 1, "127.0.0.1"), network("7.7.7.7"));
        assert_eq!(own(forwarded, 2, "127.0.0.1"), network("6.6.6.6"));
        // One of the proxy's own network.
        let private = Some("10.0.0.7");
        assert_eq!(own(private, 1, "127.0.0.1"), network("10.0.0.7"));
        // Whatever that client claims.
        let claimed = Some("6.6.6.6, 10.0.0.7");
        assert_eq!(own(claimed, 1, "127.0.0.1"), network("10.0.0.7"));
        let six = Some("2001:db8:1:2:3::4");
        assert_eq!(own(six, 1, "::1"), network("2001:db8:1:2::"));
        let mapped = Some("::ffff:192.0.2.1");
        assert_eq!(own(mapped, 1, "::1"), network("192.0.2.1"));
    }

    #[test]
    fn clients_whose_address_a_trusted_proxy_does_not_tell_share_a_network() {
        let unknown = Some(UNKNOWN.to_string());
        for entry in ["junk", "", " ", "unknown", "6.6.6.6, junk", "6.6.6.6,"] {
            for peer in ["127.0.0.1", "198.51.100.7"] {
                assert_eq!(own(Some(entry), 1, peer), unknown, "{entry:?} {peer}");
            }
        }
        let mut headers = HeaderMap::new();
        let bytes = axum::http::HeaderValue::from_bytes(b"6.6.6.6, \xff").unwrap();
        headers.insert("x-forwarded-for", bytes);
        let network = own_network(&headers, 1, Ipv4Addr::LOCALHOST.into());
        assert_eq!(network, Some(UNKNOWN));
        let quoted = own(Some("\"[2001:db8:1:2:3::4]:443\""), 1, "127.0.0.1");
        assert_eq!(quoted.as_deref(), Some("2001:db8:1:2::"));
        // Fewer entries than trusted proxies.
        assert_eq!(own(Some("junk"), 2, "127.0.0.1"), None);
    }

    #[test]
    fn clients_behind_a_proxy_that_is_not_trusted_are_not_told_apart() {
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.17.0.1",
            "192.168.1.1",
            "169.254.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "0.0.0.0",
            "::ffff:10.1.2.3",
            "::1",
            "::",
            "fd00::1",
            "fe80::1",
        ];
        for peer in private {
            assert_eq!(own(None, 0, peer), None, "{peer}");
            assert_eq!(own(Some("192.0.2.1"), 0, peer), None, "{peer}");
            // The proxy says nothing.
            assert_eq!(own(None, 1, peer), None, "{peer}");
        }
        for peer in ["100.63.0.1", "100.128.0.1", "198.51.100.7", "172.32.0.1"] {
            assert_eq!(own(None, 0, peer).as_deref(), Some(peer));
            // Whatever the client says.
            assert_eq!(own(Some("192.0.2.1"), 0, peer).as_deref(), Some(peer));
        }
        let six = own(None, 0, "2001:db8:1:2::3");
        assert_eq!(six.as_deref(), Some("2001:db8:1:2::"));
    }
}
