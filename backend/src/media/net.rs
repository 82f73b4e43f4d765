//! The one UDP port of all calls.
//!
//! A datagram belongs to the call whose ICE user name fragment stands in its STUN binding request; from then on its
//! source address tells. One socket is bound per interface, since a socket bound to all of them cannot tell the address
//! that a datagram was sent to.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context as _;
use bytes::BytesMut;
use rtc::shared::ifaces::ifaces;
use tokio::{net::UdpSocket, sync::mpsc};

use crate::{app::App, config::MediaConfig};

/// Datagrams that may wait for a call's task. At 50 packets a second this is several seconds of audio; what comes beyond
/// is lost as it would be on the network.
const INBOX: usize = 256;

/// The largest datagram that WebRTC sends.
const MAX_DATAGRAM_BYTES: usize = 2048;

/// A datagram for a call.
#[derive(Debug)]
pub(super) struct Datagram {
    /// The bytes.
    pub(super) bytes: BytesMut,
    /// Where it came from.
    pub(super) from: SocketAddr,
    /// The candidate address it was sent to.
    pub(super) to: SocketAddr,
}

/// The sockets of the port and the calls behind them.
#[derive(Debug)]
pub(super) struct Net {
    sockets: Vec<Endpoint>,
    routes: Mutex<Routes>,
}

#[derive(Debug)]
struct Endpoint {
    socket: UdpSocket,
    /// The address that clients reach the socket at.
    candidate: SocketAddr,
}

#[derive(Debug, Default)]
struct Routes {
    by_fragment: HashMap<Box<[u8]>, mpsc::Sender<Datagram>>,
    by_source: HashMap<SocketAddr, mpsc::Sender<Datagram>>,
}

/// A call's place on the port; dropping it closes the place.
#[derive(Debug)]
pub(super) struct Place {
    net: Arc<Net>,
    inbox: mpsc::Sender<Datagram>,
    fragments: Vec<Box<[u8]>>,
}

impl Net {
    /// Binds the port on every interface.
    ///
    /// # Errors
    /// When no interface has an address, or the port is taken on all of them.
    pub(super) async fn open(
        config: &MediaConfig,
        http_listen: SocketAddr,
    ) -> anyhow::Result<Self> {
        let mut sockets = Vec::new();
        let mut port = config.udp_port;
        for bind in bind_addresses(config, http_listen)? {
            let socket = UdpSocket::bind((bind, port))
                .await
                .with_context(|| format!("media.udp_port: cannot bind {bind} port {port}"))?;
            // With port 0 the first socket chooses and the others follow, so that one rule in a firewall will do.
            port = socket.local_addr()?.port();
            let candidate = SocketAddr::new(config.public_ip.unwrap_or(bind), port);
            sockets.push(Endpoint { socket, candidate });
        }
        Ok(Self {
            sockets,
            routes: Mutex::default(),
        })
    }

    /// The addresses that clients reach this node at.
    pub(super) fn candidates(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.sockets.iter().map(|endpoint| endpoint.candidate)
    }

    /// Reads from the sockets until the server has drained.
    pub(super) fn start(self: Arc<Self>, app: &App) {
        for index in 0..self.sockets.len() {
            let net = Arc::clone(&self);
            let over = app.drain_over.clone();
            app.tasks.spawn(async move {
                tokio::select! {
                    () = over.cancelled() => {}
                    () = net.read(index) => {}
                }
            });
        }
    }

    async fn read(&self, index: usize) {
        let Some(endpoint) = self.sockets.get(index) else {
            return;
        };
        let mut buffer = BytesMut::with_capacity(64 * MAX_DATAGRAM_BYTES);
        loop {
            buffer.reserve(MAX_DATAGRAM_BYTES);
            match endpoint.socket.recv_buf_from(&mut buffer).await {
                Ok((_, from)) => {
                    let bytes = buffer.split();
                    self.route(Datagram {
                        bytes,
                        from,
                        to: endpoint.candidate,
                    });
                }
                // A peer that has gone answers with ICMP, which the system reports on the next read.
                Err(error) => tracing::debug!(%error, "reading from the media port"),
            }
        }
    }

    fn route(&self, datagram: Datagram) {
        let inbox = {
            let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
            // A binding request names its call, also when the address belonged to another call before.
            match stun_fragment(&datagram.bytes) {
                Some(fragment) => {
                    let Some(inbox) = routes.by_fragment.get(fragment).cloned() else {
                        return;
                    };
                    let known = routes
                        .by_source
                        .get(&datagram.from)
                        .is_some_and(|known| known.same_channel(&inbox));
                    if !known {
                        routes.by_source.insert(datagram.from, inbox.clone());
                    }
                    inbox
                }
                None => match routes.by_source.get(&datagram.from) {
                    Some(inbox) => inbox.clone(),
                    None => return,
                },
            }
        };
        if inbox.try_send(datagram).is_err() {
            metrics::counter!("colloquy_media_datagrams_dropped_total").increment(1);
        }
    }

    /// Sends a datagram from a candidate address. What the system cannot take at once is lost, as on the network.
    pub(super) fn send(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let endpoint = self
            .sockets
            .iter()
            .find(|endpoint| endpoint.candidate == from);
        let Some(endpoint) = endpoint.or(self.sockets.first()) else {
            return;
        };
        if let Err(error) = endpoint.socket.try_send_to(bytes, to) {
            tracing::trace!(%error, "sending a datagram");
        }
    }

    /// A place for a call, and its inbox.
    pub(super) fn place(self: &Arc<Self>) -> (Place, mpsc::Receiver<Datagram>) {
        let (inbox, datagrams) = mpsc::channel(INBOX);
        (
            Place {
                net: Arc::clone(self),
                inbox,
                fragments: Vec::new(),
            },
            datagrams,
        )
    }
}

impl Place {
    /// Routes binding requests for this local user name fragment to the call, besides the earlier ones.
    pub(super) fn listen(&mut self, fragment: &str) {
        let fragment: Box<[u8]> = fragment.as_bytes().into();
        if !self.fragments.contains(&fragment) {
            let mut routes = self
                .net
                .routes
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            routes
                .by_fragment
                .insert(fragment.clone(), self.inbox.clone());
            self.fragments.push(fragment);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut routes = self
            .net
            .routes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for fragment in &self.fragments {
            routes.by_fragment.remove(fragment);
        }
        routes
            .by_source
            .retain(|_, inbox| !inbox.same_channel(&self.inbox));
    }
}

/// The addresses to bind: all interfaces, loopback only when nothing else is there or the HTTP server is local too.
fn bind_addresses(config: &MediaConfig, http_listen: SocketAddr) -> anyhow::Result<Vec<IpAddr>> {
    if config.public_ip.is_some() {
        return Ok(vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)]);
    }
    let mut addresses: Vec<IpAddr> = ifaces()
        .context("listing the network interfaces")?
        .into_iter()
        .filter_map(|interface| interface.addr.map(|address| address.ip()))
        .filter(|ip| match ip {
            IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
            IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
        })
        .collect();
    addresses.sort();
    addresses.dedup();
    if addresses.is_empty() || http_listen.ip().is_loopback() {
        addresses.push(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    Ok(addresses)
}

/// The receiver's user name fragment in a STUN binding request (RFC 8489, RFC 8445 section 7.2.2): `USERNAME` is
/// `<receiver's fragment>:<sender's fragment>`.
fn stun_fragment(bytes: &[u8]) -> Option<&[u8]> {
    const BINDING_REQUEST: [u8; 2] = [0, 1];
    const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
    const USERNAME: u16 = 0x0006;
    if bytes.get(..2)? != BINDING_REQUEST || bytes.get(4..8)? != MAGIC_COOKIE {
        return None;
    }
    let mut rest = bytes.get(20..)?;
    loop {
        let header = rest.get(..4)?;
        let kind = u16::from_be_bytes([header[0], header[1]]);
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let value = rest.get(4..4 + length)?;
        if kind == USERNAME {
            return value.split(|byte| *byte == b':').next();
        }
        rest = rest.get(4 + length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding_request(username: &str) -> Vec<u8> {
        let mut bytes = vec![0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
        bytes.extend([7; 12]);
        bytes.extend([0x80, 0x22, 0, 3, b'a', b'b', b'c', 0]);
        bytes.extend([0, 6, 0, u8::try_from(username.len()).unwrap()]);
        bytes.extend(username.as_bytes());
        bytes.extend(vec![0; username.len().next_multiple_of(4) - username.len()]);
        bytes
    }

    #[test]
    fn a_binding_request_names_its_call() {
        assert_eq!(
            stun_fragment(&binding_request("server:client")),
            Some(b"server".as_slice())
        );
    }

    #[test]
    fn cut_and_foreign_datagrams_name_none() {
        let whole = binding_request("server:client");
        for length in 0..whole.len() - 3 {
            assert_eq!(stun_fragment(&whole[..length]), None, "{length}");
        }
        let mut response = whole;
        response[0] = 1;
        assert_eq!(stun_fragment(&response), None);
        assert_eq!(stun_fragment(&[0x80, 0x6f, 0, 1]), None);
    }
}
