//! The one UDP port of all calls.
//!
//! A STUN binding request belongs to the call whose ICE user name fragment stands in it. Everything else belongs to the
//! call that its path was bound to, which a call asks for once a request from there has shown the right password. A path
//! that is bound stays with its call while the call hears from it, so that nobody takes it away by forging it; a call has
//! few of them. One socket is bound per address of the machine's interfaces, or one for `media.public_ip` (see
//! [`crate::endpoint`]).
//!
//! Anybody can fill that socket's buffer faster than it is read. So a path that is bound gets a socket of its own on the
//! same port, connected to its client: the system puts what comes from there into a buffer that strangers do not reach, and
//! the call's own task reads it. What names a call without coming from one of its paths waits in a small queue of its own, behind what does.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    future::poll_fn,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::BytesMut;
use colloquy_config::MediaConfig;
use tokio::{net::UdpSocket, sync::mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    endpoint::{self, Endpoint, MAX_DATAGRAM_BYTES},
    ice::{Addresses, MAX_PATHS},
};

/// Datagrams from its own paths that may wait for a call's task, when they come by the port's socket. At 50 packets a second this is several seconds of audio;
/// what comes beyond is lost as it would be on the network.
const INBOX: usize = 256;

/// Binding requests from elsewhere that may wait for a call's task: more than a client sends while it looks for a path.
const UNBOUND_INBOX: usize = 32;

/// How long a path stays with its call after the last request from it that had the right password. Clients send one
/// every five seconds or so (RFC 7675 section 5.1).
const BOUND: Duration = Duration::from_secs(15);

/// The sockets that a call may open. A client that comes from ever more addresses is served by the port's own socket from
/// there on, since a socket costs more than a datagram does.
const MAX_SOCKETS: usize = 4 * MAX_PATHS;

/// Datagrams that the buffer of a path has room for, before another is allocated.
const PATH_BUFFER: usize = 8;

/// Datagrams that are read in a row although they are not the call's own.
const READS_AT_ONCE: usize = 64;

/// A datagram for a call.
#[derive(Debug)]
pub struct Datagram {
    /// The bytes.
    pub bytes: BytesMut,
    /// The address of the machine that it was sent to, and where it came from.
    pub addresses: Addresses,
}

/// The sockets of the port and the calls behind them.
#[derive(Debug)]
pub struct Net {
    endpoints: Vec<Endpoint>,
    routes: Mutex<Routes>,
    /// Runs what reads the sockets.
    tasks: TaskTracker,
    /// How many places there were.
    places: AtomicU64,
}

#[derive(Debug, Default)]
struct Routes {
    by_fragment: HashMap<Box<[u8]>, InboxSender>,
    by_path: HashMap<Addresses, Binding>,
}

/// The call that a path belongs to.
#[derive(Debug)]
struct Binding {
    inbox: InboxSender,
    heard: Instant,
}

/// What a call is sent: from its own paths, and from elsewhere.
#[derive(Debug)]
pub struct Inbox {
    net: Arc<Net>,
    place: u64,
    paths: Paths,
    /// From its paths, by way of the port's socket.
    bound: mpsc::Receiver<Datagram>,
    unbound: mpsc::Receiver<Datagram>,
    buffer: BytesMut,
}

#[derive(Debug, Clone)]
struct InboxSender {
    /// The number of the call's place.
    place: u64,
    bound: mpsc::Sender<Datagram>,
    unbound: mpsc::Sender<Datagram>,
}

/// The paths of a call that were bound, oldest first; its place changes them, its inbox reads their sockets.
type Paths = Arc<Mutex<VecDeque<Path>>>;

/// A call's place on the port; dropping it closes the place.
#[derive(Debug)]
pub struct Place {
    net: Arc<Net>,
    inbox: InboxSender,
    fragment: Option<Box<[u8]>>,
    paths: Paths,
    /// How many sockets were opened for them.
    sockets: usize,
}

/// A path that was bound, and its socket. Without one the path is served by the port's socket alone.
#[derive(Debug)]
struct Path {
    addresses: Addresses,
    socket: Option<UdpSocket>,
}

impl Net {
    /// Binds the port on `media.public_ip`, or on the addresses of all interfaces; these tasks are to read it.
    ///
    /// # Errors
    /// When the interfaces cannot be listed, or the port is taken on one of them.
    pub fn open(
        config: &MediaConfig,
        http_listen: SocketAddr,
        tasks: &TaskTracker,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            endpoints: endpoint::bind_all(config, http_listen)?,
            routes: Mutex::default(),
            tasks: tasks.clone(),
            places: AtomicU64::new(0),
        })
    }

    /// The addresses that clients reach this node at.
    pub fn candidates(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.endpoints.iter().map(Endpoint::candidate)
    }

    /// Reads from the sockets, in tasks of their own, until it is over.
    pub fn start(self: Arc<Self>, over: &CancellationToken) {
        for index in 0..self.endpoints.len() {
            let net = Arc::clone(&self);
            let over = over.clone();
            self.tasks.spawn(async move {
                let Some(endpoint) = net.endpoints.get(index) else {
                    return;
                };
                tokio::select! {
                    () = over.cancelled() => {}
                    () = endpoint.read(|datagram| net.route(datagram)) => {}
                }
            });
        }
    }

    fn endpoint(&self, local: SocketAddr) -> io::Result<&Endpoint> {
        self.endpoints
            .iter()
            .find(|endpoint| endpoint.has(local))
            .or(self.endpoints.first())
            .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Gives a datagram to the call that it is for.
    fn route(&self, datagram: Datagram) {
        let sender = {
            let routes = self.routes();
            let bound = routes.by_path.get(&datagram.addresses);
            let bound = bound.map(|binding| &binding.inbox);
            match stun_fragment(&datagram.bytes) {
                Some(fragment) => routes.by_fragment.get(fragment).map(|named| {
                    let is_bound = bound.is_some_and(|bound| bound.is_same(named));
                    if is_bound {
                        &named.bound
                    } else {
                        &named.unbound
                    }
                }),
                None => bound.map(|bound| &bound.bound),
            }
            .cloned()
        };
        if sender.is_some_and(|sender| sender.try_send(datagram).is_err()) {
            metrics::counter!("colloquy_media_datagrams_dropped_total").increment(1);
        }
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        lock(&self.routes)
    }

    /// Sends a datagram from an address of the machine. What the system cannot take at once is lost, as on the network.
    pub fn send(&self, addresses: Addresses, bytes: &[u8]) {
        let endpoint = self.endpoint(addresses.local);
        let sent = endpoint.and_then(|endpoint| endpoint.send(addresses, bytes));
        if let Err(error) = sent {
            tracing::trace!(%error, "sending a datagram");
        }
    }

    /// A place for a call, and its inbox.
    pub fn place(self: &Arc<Self>) -> (Place, Inbox) {
        let (bound, bound_in) = mpsc::channel(INBOX);
        let (unbound, unbound_in) = mpsc::channel(UNBOUND_INBOX);
        let place = self.places.fetch_add(1, Ordering::Relaxed);
        let paths = Paths::default();
        (
            Place {
                net: Arc::clone(self),
                inbox: InboxSender {
                    place,
                    bound,
                    unbound,
                },
                fragment: None,
                paths: Arc::clone(&paths),
                sockets: 0,
            },
            Inbox {
                net: Arc::clone(self),
                place,
                paths,
                bound: bound_in,
                unbound: unbound_in,
                buffer: BytesMut::new(),
            },
        )
    }
}

impl Inbox {
    /// The next datagram, those of the call's own paths first; `None` when the place is gone.
    pub async fn recv(&mut self) -> Option<Datagram> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Datagram>> {
        if let Some(datagram) = self.poll_paths(Some(context)) {
            return Poll::Ready(Some(datagram));
        }
        let bound = self.bound.poll_recv(context);
        if let Poll::Ready(Some(datagram)) = bound {
            return Poll::Ready(Some(datagram));
        }
        match (self.unbound.poll_recv(context), bound) {
            (Poll::Ready(Some(datagram)), _) => Poll::Ready(Some(datagram)),
            (Poll::Ready(None), Poll::Ready(None)) => Poll::Ready(None),
            _ => Poll::Pending,
        }
    }

    /// The next datagram that is there already.
    pub fn try_recv(&mut self) -> Option<Datagram> {
        let own = self.poll_paths(None);
        let bound = own.or_else(|| self.bound.try_recv().ok());
        bound.or_else(|| self.unbound.try_recv().ok())
    }

    /// What came on the sockets of the call's paths. With a context the task is woken when there is something.
    fn poll_paths(&mut self, mut context: Option<&mut Context<'_>>) -> Option<Datagram> {
        let paths = Arc::clone(&self.paths);
        let mut reads = 0;
        for path in lock(&paths).iter() {
            let Some(socket) = &path.socket else { continue };
            // What is not the call's own has its turn, too, but may not keep the task for ever.
            while reads < READS_AT_ONCE {
                match self.read(socket, path.addresses) {
                    Ok(Some(datagram)) => return Some(datagram),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let ready = context
                            .as_mut()
                            .map(|context| socket.poll_recv_ready(context));
                        if !matches!(ready, Some(Poll::Ready(Ok(())))) {
                            break;
                        }
                    }
                    Ok(None) => reads += 1,
                    // A peer that has gone answers with ICMP, which the system reports on the next read.
                    Err(error) => {
                        tracing::debug!(%error, "reading from a path of a call");
                        reads += 1;
                    }
                }
            }
        }
        if reads == READS_AT_ONCE
            && let Some(context) = context
        {
            context.waker().wake_by_ref();
        }
        None
    }

    /// Reads what is there on the socket of a path. What is not surely the call's goes the way of everything else: what came
    /// from anybody in the moment before the socket was connected, binding requests, and a path that another call has by now.
    fn read(&mut self, socket: &UdpSocket, path: Addresses) -> io::Result<Option<Datagram>> {
        if self.buffer.capacity() < MAX_DATAGRAM_BYTES {
            self.buffer.reserve(PATH_BUFFER * MAX_DATAGRAM_BYTES);
        }
        let (_, from) = socket.try_recv_buf_from(&mut self.buffer)?;
        let datagram = Datagram {
            bytes: self.buffer.split(),
            addresses: Addresses {
                remote: from,
                ..path
            },
        };
        let is_own = from == path.remote
            && stun_fragment(&datagram.bytes).is_none()
            && self.net.routes().is_bound(path, self.place);
        if is_own {
            return Ok(Some(datagram));
        }
        self.net.route(datagram);
        Ok(None)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InboxSender {
    fn is_same(&self, other: &Self) -> bool {
        self.place == other.place
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

    /// Routes what comes on this path to the call, after a request on it that had the right password. A path that another
    /// call hears from stays with that one. Beyond [`MAX_PATHS`] paths, the oldest is let go.
    pub fn bind(&mut self, path: Addresses, now: Instant) {
        let binding = || Binding {
            inbox: self.inbox.clone(),
            heard: now,
        };
        match self.net.routes().by_path.entry(path) {
            Entry::Occupied(mut entry) => {
                if entry.get().inbox.is_same(&self.inbox) {
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
        let socket = self.open(path);
        let mut paths = lock(&self.paths);
        paths.retain(|earlier| earlier.addresses != path);
        paths.push_back(Path {
            addresses: path,
            socket,
        });
        if paths.len() > MAX_PATHS
            && let Some(oldest) = paths.pop_front()
        {
            self.net
                .routes()
                .release(oldest.addresses, self.inbox.place);
        }
    }

    /// A socket for a path, while the call may have one more.
    fn open(&mut self, path: Addresses) -> Option<UdpSocket> {
        if self.sockets == MAX_SOCKETS {
            return None;
        }
        self.sockets += 1;
        let endpoint = self.net.endpoint(path.local);
        let socket = endpoint.and_then(|endpoint| endpoint.connect(path));
        let socket = socket.inspect_err(|error| {
            tracing::debug!(%error, "a path of a call has no socket of its own");
        });
        socket.ok()
    }
}

impl Routes {
    /// Whether a path belongs to the call that has this place.
    fn is_bound(&self, path: Addresses, place: u64) -> bool {
        let binding = self.by_path.get(&path);
        binding.is_some_and(|binding| binding.inbox.place == place)
    }

    /// Lets a path go if it still belongs to the call that has this place.
    fn release(&mut self, path: Addresses, place: u64) {
        if self.is_bound(path, place) {
            self.by_path.remove(&path);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let paths = std::mem::take(&mut *lock(&self.paths));
        let mut routes = self.net.routes();
        if let Some(fragment) = &self.fragment {
            routes.by_fragment.remove(fragment);
        }
        for path in paths {
            routes.release(path.addresses, self.inbox.place);
        }
    }
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
#[path = "net_tests.rs"]
pub(crate) mod tests;
