//! What `webrtc` runs on: Tokio as the crate uses it by itself, but that its datagrams go through the client's network and
//! its tasks end with the client.

use std::{
    io::{self, IoSliceMut},
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::task::{AbortHandle, JoinSet};
use webrtc::runtime::{
    AsyncInterval, AsyncTcpListener, AsyncTcpStream, AsyncUdpSocket, JoinHandle, RecvMeta,
    TokioRuntime, Transmit,
};

use super::super::{
    network::{Conditions, Network},
    now,
};

type Job<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The runtime of one connection.
#[derive(Debug)]
pub(super) struct Runtime {
    tokio: TokioRuntime,
    network: Arc<Mutex<Network>>,
    tasks: Arc<Tasks>,
}

impl Runtime {
    pub(super) fn new(network: Network) -> Self {
        Self {
            tokio: TokioRuntime,
            network: Arc::new(Mutex::new(network)),
            tasks: Arc::default(),
        }
    }

    /// Changes the network.
    pub(super) fn conditions(&self, conditions: Conditions) {
        lock(&self.network).set(conditions);
    }

    /// Ends all tasks; the stack would go on without its owner.
    pub(super) fn stop(&self) {
        lock(&self.tasks.0).abort_all();
    }
}

/// The tasks of a connection that have not ended.
#[derive(Debug, Default)]
struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = lock(&self.0);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(future)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl webrtc::runtime::Runtime for Runtime {
    fn spawn(&self, future: Job<()>) -> Box<dyn JoinHandle> {
        Box::new(Task(self.tasks.spawn(future)))
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Ok(Arc::new(Socket {
            socket: self.tokio.wrap_udp_socket(socket)?,
            network: Arc::clone(&self.network),
            tasks: Arc::clone(&self.tasks),
            let_out: AtomicBool::new(false),
        }))
    }

    fn wrap_tcp_listener(
        &self,
        listener: std::net::TcpListener,
    ) -> io::Result<Arc<dyn AsyncTcpListener>> {
        self.tokio.wrap_tcp_listener(listener)
    }

    fn connect_tcp<'a>(
        &'a self,
        remote: SocketAddr,
    ) -> Pin<Box<dyn Future<Output = io::Result<Arc<dyn AsyncTcpStream>>> + Send + 'a>> {
        self.tokio.connect_tcp(remote)
    }

    fn resolve_host<'a>(
        &'a self,
        host: &'a str,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>> {
        self.tokio.resolve_host(host)
    }

    fn sleep(&self, duration: Duration) -> Job<()> {
        self.tokio.sleep(duration)
    }

    fn interval(&self, period: Duration) -> Box<dyn AsyncInterval> {
        self.tokio.interval(period)
    }

    fn block_on(&self, future: Pin<Box<dyn Future<Output = ()> + '_>>) {
        self.tokio.block_on(future);
    }

    fn yield_now(&self) -> Job<()> {
        self.tokio.yield_now()
    }
}

/// A task that is its connection's; without the handle it goes on.
struct Task(AbortHandle);

impl JoinHandle for Task {
    fn detach(&self) {}

    fn abort(&self) {
        self.0.abort();
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

/// A socket of the crate on the client's network. Its `max_gso_segments` is one, so that each datagram is sent by itself.
#[derive(Debug)]
struct Socket {
    socket: Arc<dyn AsyncUdpSocket>,
    network: Arc<Mutex<Network>>,
    tasks: Arc<Tasks>,
    /// Whether the network has let the datagram out that waits for room; it is asked once.
    let_out: AtomicBool,
}

impl Socket {
    /// Sends what is late when its time comes.
    fn send_later(&self, at: std::time::Instant) {
        let (socket, network) = (Arc::clone(&self.socket), Arc::clone(&self.network));
        self.tasks.spawn(async move {
            tokio::time::sleep_until(at.into()).await;
            loop {
                let due = lock(&network).due(now());
                let Some((to, bytes)) = due else { return };
                let _ = socket.send_to(&bytes, to).await;
            }
        });
    }

    /// Takes the lost ones out of datagrams of `stride` bytes each; returns the length of what is left.
    fn keep_received(&self, bytes: &mut [u8], stride: usize) -> usize {
        let mut network = lock(&self.network);
        let mut kept = 0;
        for start in (0..bytes.len()).step_by(stride.max(1)) {
            let end = bytes.len().min(start + stride.max(1));
            if bytes
                .get(start..end)
                .is_some_and(|bytes| !network.loses(bytes))
            {
                bytes.copy_within(start..end, kept);
                kept += end - start;
            }
        }
        kept
    }
}

impl AsyncUdpSocket for Socket {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn poll_send(&self, cx: &mut Context<'_>, transmit: &Transmit<'_>) -> Poll<io::Result<usize>> {
        if !self.let_out.swap(false, Ordering::Relaxed) {
            let mut network = lock(&self.network);
            if !network.lets_out(transmit.contents, transmit.destination, now()) {
                let next = network.next_due();
                drop(network);
                if let Some(at) = next {
                    self.send_later(at);
                }
                return Poll::Ready(Ok(transmit.contents.len()));
            }
        }
        let sent = self.socket.poll_send(cx, transmit);
        self.let_out.store(sent.is_pending(), Ordering::Relaxed);
        sent
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.socket.poll_recv(cx, buffers, metas))?;
        for (buffer, meta) in buffers.iter_mut().zip(metas).take(count) {
            let received = buffer.get_mut(..meta.len).unwrap_or_default();
            meta.len = self.keep_received(received, meta.stride);
        }
        Poll::Ready(Ok(count))
    }

    fn max_gro_segments(&self) -> usize {
        self.socket.max_gro_segments()
    }
}
