//! The one UDP port of all calls.
//!
//! A STUN binding request belongs to the call whose ICE user name fragment stands in it. Everything else belongs to the
//! call that its source address was bound to, which a call asks for once a request from there has shown the right
//! password. An address that is bound stays with its call while the call hears from it, so that nobody takes it away by
//! forging it; a call has few of them. One socket is bound per interface, since a socket bound to all of them cannot tell
//! the address that a datagram was sent to.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use bytes::BytesMut;
use colloquy_config::MediaConfig;
use rtc::shared::ifaces::ifaces;
use tokio::{net::UdpSocket, sync::mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::ice::MAX_PATHS;

/// Datagrams that may wait for a call's task. At 50 packets a second this is several seconds of audio; what comes beyond
/// is lost as it would be on the network.
const INBOX: usize = 256;

/// How long an address stays with its call after the last request from it that had the right password. Clients send one
/// every five seconds or so (RFC 7675 section 5.1).
const BOUND: Duration = Duration::from_secs(15);

/// The largest datagram that WebRTC sends.
const MAX_DATAGRAM_BYTES: usize = 2048;

/// A datagram for a call.
#[derive(Debug)]
pub struct Datagram {
    /// The bytes.
    pub bytes: BytesMut,
    /// Where it came from.
    pub from: SocketAddr,
    /// The candidate address it was sent to.
    pub to: SocketAddr,
}

/// The sockets of the port and the calls behind them.
#[derive(Debug)]
pub struct Net {
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
    by_source: HashMap<SocketAddr, Binding>,
}

/// The call that an address belongs to.
#[derive(Debug)]
struct Binding {
    inbox: mpsc::Sender<Datagram>,
    heard: Instant,
}

/// A call's place on the port; dropping it closes the place.
#[derive(Debug)]
pub struct Place {
    net: Arc<Net>,
    inbox: mpsc::Sender<Datagram>,
    fragment: Option<Box<[u8]>>,
    /// The addresses that were bound, oldest first.
    sources: VecDeque<SocketAddr>,
}

impl Net {
    /// Binds the port on every interface.
    ///
    /// # Errors
    /// When the interfaces cannot be listed, or the port is taken on one of them.
    pub async fn open(config: &MediaConfig, http_listen: SocketAddr) -> anyhow::Result<Self> {
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
    pub fn candidates(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.sockets.iter().map(|endpoint| endpoint.candidate)
    }

    /// Reads from the sockets, in tasks of their own, until it is over.
    pub fn start(self: Arc<Self>, tasks: &TaskTracker, over: &CancellationToken) {
        for index in 0..self.sockets.len() {
            let net = Arc::clone(&self);
            let over = over.clone();
            tasks.spawn(async move {
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
            let routes = self.routes();
            match stun_fragment(&datagram.bytes) {
                Some(fragment) => routes.by_fragment.get(fragment).cloned(),
                None => {
                    let bound = routes.by_source.get(&datagram.from);
                    bound.map(|binding| binding.inbox.clone())
                }
            }
        };
        if inbox.is_some_and(|inbox| inbox.try_send(datagram).is_err()) {
            metrics::counter!("colloquy_media_datagrams_dropped_total").increment(1);
        }
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a datagram from a candidate address. What the system cannot take at once is lost, as on the network.
    pub fn send(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
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
    pub fn place(self: &Arc<Self>) -> (Place, mpsc::Receiver<Datagram>) {
        let (inbox, datagrams) = mpsc::channel(INBOX);
        (
            Place {
                net: Arc::clone(self),
                inbox,
                fragment: None,
                sources: VecDeque::new(),
            },
            datagrams,
        )
    }
}

impl Place {
    /// Routes binding requests for this local user name fragment to the call, and no longer those for an earlier one.
    pub fn listen(&mut self, fragment: &str) {
        let fragment: Box<[u8]> = fragment.as_bytes().into();
        let mut routes = self.net.routes();
        if let Some(earlier) = self.fragment.take() {
            routes.by_fragment.remove(&earlier);
        }
        routes
            .by_fragment
            .insert(fragment.clone(), self.inbox.clone());
        self.fragment = Some(fragment);
    }

    /// Routes what comes from this address to the call, after a request from there that had the right password. An address
    /// that another call hears from stays with that one. Beyond [`MAX_PATHS`] addresses, the oldest is let go.
    pub fn bind(&mut self, source: SocketAddr, now: Instant) {
        let mut routes = self.net.routes();
        let binding = || Binding {
            inbox: self.inbox.clone(),
            heard: now,
        };
        match routes.by_source.entry(source) {
            Entry::Occupied(mut entry) => {
                if entry.get().inbox.same_channel(&self.inbox) {
                    entry.get_mut().heard = now;
                    return;
                }
                if now < entry.get().heard + BOUND {
                    return;
                }
                entry.insert(binding());
            }
            Entry::Vacant(entry) => {
                entry.insert(binding());
            }
        }
        self.sources.retain(|earlier| *earlier != source);
        self.sources.push_back(source);
        if self.sources.len() > MAX_PATHS
            && let Some(oldest) = self.sources.pop_front()
        {
            routes.release(oldest, &self.inbox);
        }
    }
}

impl Routes {
    /// Lets an address go if it still belongs to the call.
    fn release(&mut self, source: SocketAddr, inbox: &mpsc::Sender<Datagram>) {
        if let Entry::Occupied(entry) = self.by_source.entry(source)
            && entry.get().inbox.same_channel(inbox)
        {
            entry.remove();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut routes = self.net.routes();
        if let Some(fragment) = &self.fragment {
            routes.by_fragment.remove(fragment);
        }
        for source in &self.sources {
            routes.release(*source, &self.inbox);
        }
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
    use colloquy_base::clock::{Clock as _, SystemClock};

    async fn net() -> Arc<Net> {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Arc::new(Net::open(&MediaConfig::default(), listen).await.unwrap())
    }

    fn datagram(bytes: &[u8], port: u16) -> Datagram {
        Datagram {
            bytes: BytesMut::from(bytes),
            from: SocketAddr::from(([10, 0, 0, 9], port)),
            to: SocketAddr::from(([10, 0, 0, 1], 1)),
        }
    }

    #[tokio::test]
    async fn a_name_without_its_password_takes_no_address_from_a_call() {
        let (net, now) = (net().await, SystemClock.instant());
        let (mut first, mut firsts) = net.place();
        let (mut second, mut seconds) = net.place();
        first.listen("first");
        second.listen("second");
        let source = datagram(b"", 1).from;
        // Nothing is bound by what anybody can write.
        net.route(datagram(&binding_request("first:x"), 1));
        assert!(firsts.try_recv().is_ok());
        net.route(datagram(&[128, 1], 1));
        assert!(firsts.try_recv().is_err());
        first.bind(source, now);
        net.route(datagram(&binding_request("second:x"), 1));
        assert!(seconds.try_recv().is_ok());
        net.route(datagram(&[128, 1], 1));
        assert!(firsts.try_recv().is_ok());
        // Nor by another call while the first one hears from there.
        second.bind(source, now + BOUND / 2);
        net.route(datagram(&[128, 1], 1));
        assert!(firsts.try_recv().is_ok());
        second.bind(source, now + BOUND);
        net.route(datagram(&[128, 1], 1));
        assert!(seconds.try_recv().is_ok());
        drop(first);
        net.route(datagram(&[128, 1], 1));
        assert!(
            seconds.try_recv().is_ok(),
            "an address of another call was let go"
        );
        drop(second);
        let routes = net.routes();
        assert!(routes.by_source.is_empty() && routes.by_fragment.is_empty());
    }

    #[tokio::test]
    async fn a_call_has_one_name_and_few_addresses() {
        let (net, now) = (net().await, SystemClock.instant());
        let (mut place, _inbox) = net.place();
        for number in 0..1_000 {
            place.listen(&format!("name{number}"));
            place.bind(datagram(b"", number).from, now);
        }
        let routes = net.routes();
        assert_eq!(routes.by_fragment.len(), 1);
        assert_eq!(routes.by_source.len(), MAX_PATHS);
    }

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
