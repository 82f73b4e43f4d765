//! The connections of the HTTP server: how many there are, how long each may be silent, and how they end.
//!
//! One task accepts, and one task serves each connection, HTTP/1.1 only: what stands in front of a server of this kind
//! speaks it, and one protocol has one set of limits. Everything here is before any key is looked at, so it is bounded:
//! connections in all and from one address ([`admission`]), the time for headers, between requests and for a write that
//! makes no progress ([`watch`], [`io`]), and what is read of a connection that is ending ([`linger`]). The time for bodies
//! is a matter of requests: `http/bodies.rs`.
//!
//! A server that is told to stop lets go of its connections: those that are idle end after a moment, and each answer ends
//! its own, so that clients turn to another server while this one still serves them. It keeps accepting until its calls and
//! answers have ended, so that a call that lost its connection finds the server again; `http/draining.rs` refuses what is new.

mod admission;
mod connection;
mod io;
mod linger;
mod watch;

use std::{io::ErrorKind, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use colloquy_config::HttpConfig;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    admission::Admission,
    io::Io,
    linger::Linger,
    watch::{Limits, Watch},
};
use crate::intake::Intake;

/// The most bytes of a request's head.
const HEAD_BYTES: usize = 64 * 1024;

/// The most bytes that are read or written ahead for a connection. One read may bring nearly as many again.
const BUFFER_BYTES: usize = 64 * 1024;

/// Connections beyond the bound that are told so at a time. The others are closed without a word.
const TOLD: usize = 64;

/// How long to wait after the system had no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(100);

/// How long the last answers may take to leave once nothing is in progress.
const LAST_BYTES: Duration = Duration::from_millis(1_500);

/// What a connection beyond the bound gets, whatever it would have asked.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\nconnection: close\r\n\
content-type: application/json\r\ncontent-length: 54\r\n\r\n\
{\"detail\":\"Too many connections\",\"code\":\"unavailable\"}";

/// The listener and its connections.
#[derive(Debug)]
pub struct Front {
    shared: Arc<Shared>,
    accepting: TaskTracker,
}

/// What the connections of a server share.
#[derive(Debug)]
struct Shared {
    limits: Limits,
    admission: Admission,
    linger: Linger,
    told: Arc<Semaphore>,
    /// Cancelled when the server is told to stop: connections end after their answer.
    leaving: CancellationToken,
    /// Cancelled when nobody is waited for any more.
    stop: CancellationToken,
    connections: TaskTracker,
    /// A token for each request until its answer has left.
    requests: TaskTracker,
}

impl Front {
    /// Accepts connections from now on and answers their requests with `router`. From `leaving` on, no connection outlives its
    /// next answer.
    pub fn open(
        config: &HttpConfig,
        listener: TcpListener,
        router: Router,
        leaving: CancellationToken,
    ) -> Self {
        let shared = Arc::new(Shared {
            limits: Limits::new(config),
            admission: Admission::new(config),
            linger: Linger::default(),
            told: Arc::new(Semaphore::new(TOLD)),
            leaving,
            stop: CancellationToken::new(),
            connections: TaskTracker::new(),
            requests: TaskTracker::new(),
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            // The watch has a time for headers and another one between requests.
            .header_read_timeout(None)
            .max_buf_size(BUFFER_BYTES)
            .max_header_size(HEAD_BYTES);
        let accepting = TaskTracker::new();
        accepting.spawn(accept(Arc::clone(&shared), listener, http, router));
        accepting.close();
        Self { shared, accepting }
    }

    /// Waits until no request is in progress. Connections go on being accepted.
    pub async fn answered(&self) {
        self.shared.requests.close();
        self.shared.requests.wait().await;
    }

    /// Stops accepting and ends what is left.
    pub async fn close(self) {
        let Self { shared, accepting } = self;
        shared.admission.close();
        accepting.wait().await;
        shared.connections.close();
        let left = async {
            shared.connections.wait().await;
            shared.linger.ended().await;
        };
        if tokio::time::timeout(LAST_BYTES, left).await.is_err() {
            tracing::debug!("connections were cut at the end");
        }
        shared.stop.cancel();
        shared.linger.cut();
    }
}

/// Takes connections until the front closes.
async fn accept(shared: Arc<Shared>, listener: TcpListener, http: http1::Builder, router: Router) {
    // Turns it into what requests need once, not for each of them.
    let router: Router = router.with_state(());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shared.admission.closed() => break,
        };
        match accepted {
            Ok((stream, peer)) => take(&shared, &http, &router, stream, peer),
            // The client went away before it was accepted.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionAborted
                        | ErrorKind::ConnectionReset
                        | ErrorKind::ConnectionRefused
                        | ErrorKind::Interrupted
                ) => {}
            Err(error) => {
                // No file descriptors or no memory, for one: asking again at once would find the same.
                tracing::error!(%error, "a connection could not be accepted");
                metrics::counter!("colloquy_http_accept_errors_total").increment(1);
                tokio::time::sleep(NO_ROOM).await;
            }
        }
    }
}

fn take(
    shared: &Arc<Shared>,
    http: &http1::Builder,
    router: &Router,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let Some(slot) = shared.admission.admit(peer.ip()) else {
        return refuse(shared, stream);
    };
    // Each piece of an answer goes out when it is there, not when the client has acknowledged the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection that is gone already");
    }
    let watch = Arc::new(Watch::new());
    let intake = Intake::default();
    let io = Io::new(
        stream,
        slot,
        Arc::clone(&watch),
        intake.clone(),
        shared.linger.clone(),
        shared.limits.write_stall,
    );
    let served = connection::serve(
        Arc::clone(shared),
        http.clone(),
        router.clone(),
        io,
        peer,
        watch,
        intake,
    );
    shared.connections.spawn(served);
}

/// Tells a connection beyond the bound to come back, as long as that is cheap.
fn refuse(shared: &Arc<Shared>, stream: TcpStream) {
    metrics::counter!("colloquy_http_connections_refused_total").increment(1);
    let Ok(permit) = Arc::clone(&shared.told).try_acquire_owned() else {
        return;
    };
    shared.linger.refuse(stream, BUSY, permit);
}
