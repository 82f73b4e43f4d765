//! Responses over a WebSocket: `response.create` messages come in, and the events of their streams go out, one after another.
//!
//! Each message is a request of its own, which takes the way of all others: key, rate, quota, models, settlement. A socket
//! makes one response at a time; a client that goes away cancels it, and one that reads slowly holds up its own model alone.
//! What a socket may take is bounded: places on the node ([`room`]), the size of a message, the memory of messages that were announced and
//! not answered ([`colloquy_http::intake`]), messages in a second, the time of a message, time without a response and time in all.

mod create;
mod room;

use std::{
    convert::Infallible,
    error::Error as _,
    future::{pending, poll_fn},
    io::ErrorKind,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use axum::{
    extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code},
    http::{HeaderMap, StatusCode, request::Parts},
    response::Response,
};
use bytes::Bytes;
use colloquy_accounts::quotas::{Quota, QuotaKind};
use colloquy_base::clock::runtime_now;
use colloquy_http::{
    ApiError,
    intake::Intake,
    memory::Share,
    sockets::{SocketBounds, bounded},
};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{
    select,
    sync::Notify,
    time::{Instant, sleep, sleep_until, timeout},
};
use tungstenite::error::{Error as SocketError, ProtocolError};

pub(crate) use self::room::TextSockets;
use self::{create::Running, room::SocketPlace};
use super::{failure, stored::Recent};
use crate::Generation;

/// What is read ahead for a socket. Its memory is taken at once, also for sockets that never say anything.
const READ_AHEAD_BYTES: usize = 8 * 1024;
/// What is collected for a socket before it is written. More of it would count like messages.
const WRITE_BEHIND_BYTES: usize = 8 * 1024;
/// Messages, pings among them, that a client may send in a second.
const MAX_MESSAGES_PER_SECOND: u32 = 100;
/// How long a client may take to close its side, and to take the last words of a server that stops.
const LINGER: Duration = Duration::from_secs(2);
/// Messages up to this size need no room beyond that of their request. The buffers have twice as much for them, each way.
const SMALL_BYTES: usize = 64 * 1024;

/// Opens the WebSocket that a request asks for.
///
/// # Errors
/// 403 when the quota is for something else, 429 when the partner has too many sockets, 503 when the server stops.
pub(super) fn open(
    generation: Generation,
    quota: &Quota,
    parts: Parts,
    upgrade: WebSocketUpgrade,
) -> Result<Response, ApiError> {
    quota.require_kind(QuotaKind::Text)?;
    if generation.kernel.shutdown.is_cancelled() {
        return Err(failure::stopping());
    }
    let partner = quota.tenant.partner().as_str().to_owned();
    let place = generation.text_sockets.enter(&partner).ok_or_else(full)?;
    let limits = &generation.config.limits;
    let bounds = SocketBounds {
        read_ahead: READ_AHEAD_BYTES,
        write_behind: WRITE_BEHIND_BYTES,
        largest_in: limits.text_body_bytes,
        // Each event is counted in this memory before it is written, and pongs are written before more is read.
        largest_out: limits.body_memory_bytes,
    };
    let upgrade = bounded(upgrade, bounds);
    Ok(upgrade.on_upgrade(move |socket| async move {
        Connection::new(generation, socket, parts, partner, place)
            .serve()
            .await;
    }))
}

fn full() -> ApiError {
    let refused = ApiError::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_connections",
        "There are too many open connections; close one or try again later",
    );
    ApiError {
        retry_after: Some(LINGER),
        ..refused
    }
}

/// Why a connection ends.
struct End {
    code: u16,
    reason: &'static str,
    /// What the client is told before.
    error: Option<Box<ApiError>>,
    /// True if the buffers of the socket are given up as soon as the client was told. The front still reads what comes.
    at_once: bool,
}

impl End {
    fn new(code: u16, reason: &'static str, error: Option<ApiError>) -> Self {
        Self {
            code,
            reason,
            error: error.map(Box::new),
            at_once: false,
        }
    }

    fn at_once(mut self) -> Self {
        self.at_once = true;
        self
    }
}

/// The end of a conversation: `None` when the client is gone.
type Ended = Option<End>;

struct Connection {
    generation: Generation,
    socket: WebSocket,
    /// The request that opened it, with the key.
    parts: Parts,
    partner: String,
    /// What the connection counts its messages in. Dropped behind the socket, whose buffers are counted here.
    intake: Intake,
    /// What the buffers of the socket keep, which never shrink: twice as much as the largest message either way, as they double when they grow.
    kept: Share,
    largest_in: usize,
    largest_out: usize,
    recent: Arc<Recent>,
    running: Option<Running>,
    /// Since when nothing runs.
    idle_since: Instant,
    /// Until when requests are taken.
    until: Instant,
    /// The running second, and the messages in it.
    window: (Instant, u32),
    _place: SocketPlace,
}

/// What a connection waits for.
enum SocketEvent {
    /// Something came from the client.
    Received(Option<Result<Message, axum::Error>>),
    /// Something is there for it; `None` when the response is complete.
    Produced(Option<Vec<Message>>),
    /// The message that is arriving takes too long.
    Late,
    /// Nothing runs, and the server stops.
    Stopping,
    /// Nothing runs, and a time is over.
    Silence,
}

impl Connection {
    fn new(
        generation: Generation,
        socket: WebSocket,
        parts: Parts,
        partner: String,
        place: SocketPlace,
    ) -> Self {
        let now = runtime_now();
        let lifetime = Duration::from_secs(generation.config.limits.text_socket_seconds.into());
        let connection = Self {
            intake: parts.extensions.get().cloned().unwrap_or_default(),
            kept: Share::new(generation.edge.clone()),
            largest_in: SMALL_BYTES,
            largest_out: SMALL_BYTES,
            recent: Arc::default(),
            running: None,
            idle_since: now,
            until: now + lifetime,
            window: (now, 0),
            _place: place,
            generation,
            socket,
            parts,
            partner,
        };
        connection.kept.belongs_to(Some(&connection.partner));
        connection
    }

    async fn serve(mut self) {
        let Err(ended) = self.talk().await;
        // Cancels what still runs, and settles it.
        self.running = None;
        if let Some(end) = ended {
            self.close(end).await;
        }
    }

    async fn talk(&mut self) -> Result<Infallible, Ended> {
        let most = self.generation.config.limits.text_body_bytes;
        if !self.intake.open(&self.generation.edge, &self.partner, most) {
            let message = "messages begin after the answer that opens the connection";
            let error = ApiError::invalid("body", message);
            let end = End::new(close_code::PROTOCOL, "early", Some(error));
            return Err(Some(end.at_once()));
        }
        loop {
            match self.wait().await {
                SocketEvent::Received(message) => self.hear(message).await?,
                SocketEvent::Produced(Some(messages)) => self.send(messages).await?,
                SocketEvent::Produced(None) => {
                    self.running = None;
                    self.idle_since = runtime_now();
                }
                SocketEvent::Late => self.check_message()?,
                SocketEvent::Stopping => {
                    return Err(Some(End::new(close_code::AWAY, "server_stopped", None)));
                }
                SocketEvent::Silence => {
                    self.check_time()?;
                    self.send([Message::Ping(Bytes::new())]).await?;
                }
            }
        }
    }

    async fn wait(&mut self) -> SocketEvent {
        let keep_alive = Duration::from_secs(self.generation.config.http.keep_alive_seconds.into());
        let look = (runtime_now() + keep_alive)
            .min(self.idle_until())
            .min(self.until);
        let is_late = self.intake.late_at().is_some_and(|at| at <= runtime_now());
        let late = late(&self.intake);
        match &mut self.running {
            // The rest of a late message may wait to be read; a response that always has more does not keep it waiting.
            Some(running) if is_late => select! {
                biased;
                message = self.socket.next() => SocketEvent::Received(message),
                () = late => SocketEvent::Late,
                made = running.next() => SocketEvent::Produced(made),
            },
            // A client may send its next message as soon as it has the last event: by then the response has to be over.
            Some(running) => select! {
                biased;
                made = running.next() => SocketEvent::Produced(made),
                message = self.socket.next() => SocketEvent::Received(message),
                () = late => SocketEvent::Late,
            },
            None => select! {
                biased;
                message = self.socket.next() => SocketEvent::Received(message),
                () = late => SocketEvent::Late,
                () = self.generation.kernel.shutdown.cancelled() => SocketEvent::Stopping,
                () = sleep_until(look) => SocketEvent::Silence,
            },
        }
    }

    fn idle_until(&self) -> Instant {
        let idle = self.generation.config.limits.text_socket_idle_seconds;
        self.idle_since + Duration::from_secs(idle.into())
    }

    /// Ends a connection whose time is over while nothing runs.
    fn check_time(&self) -> Result<(), Ended> {
        let now = runtime_now();
        if now >= self.until {
            let seconds = self.generation.config.limits.text_socket_seconds;
            let error = ApiError::new(
                StatusCode::BAD_REQUEST,
                "websocket_connection_limit_reached",
                format!("A connection takes requests for {seconds} s; open another one to go on"),
            );
            return Err(Some(End::new(
                close_code::AWAY,
                "websocket_connection_limit_reached",
                Some(error),
            )));
        }
        if now >= self.idle_until() {
            return Err(Some(End::new(close_code::NORMAL, "idle", None)));
        }
        Ok(())
    }

    /// Ends a connection whose message takes too long.
    fn check_message(&self) -> Result<(), Ended> {
        if self.intake.late_at().is_none_or(|at| at > runtime_now()) {
            return Ok(());
        }
        let message = "The message did not arrive in time";
        let error = ApiError::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", message);
        let end = End::new(close_code::POLICY, "body_timeout", Some(error));
        Err(Some(end.at_once()))
    }

    async fn hear(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), Ended> {
        let message = match message {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(self.broken(&error)),
            None => return Err(None),
        };
        self.count_message()?;
        match message {
            Message::Text(text) => self.create(text.into()).await,
            Message::Binary(_) => Err(Some(End::new(
                close_code::UNSUPPORTED,
                "binary",
                Some(ApiError::invalid(
                    "body",
                    "messages are JSON in text frames",
                )),
            ))),
            // The pong is written before more is read, so that pongs do not pile up for a client that does not read them.
            Message::Ping(_) => self.send(None::<Message>).await,
            Message::Pong(_) => Ok(()),
            Message::Close(_) => Err(None),
        }
    }

    async fn create(&mut self, text: Bytes) -> Result<(), Ended> {
        let grown = text.len().saturating_sub(self.largest_in);
        self.largest_in += grown;
        // The memory of a message that is refused stays counted until the buffers of the socket are gone.
        self.keep(grown)?;
        let Some(room) = self.intake.take_message() else {
            return Err(None);
        };
        if self.running.is_some() {
            let error = ApiError::new(
                StatusCode::BAD_REQUEST,
                "response_already_in_flight",
                "A response is being made on this connection; wait for its end, or open another connection",
            );
            let (message, _) = create::error_message(error, HeaderMap::new(), None);
            return self.send([message]).await;
        }
        self.check_time()?;
        let (parts, recent) = (self.parts.clone(), Arc::clone(&self.recent));
        self.running = Some(Running::start(&self.generation, parts, room, text, recent));
        Ok(())
    }

    /// Takes room for the buffer of messages, the largest of which has grown by so much.
    fn keep(&self, grown: usize) -> Result<(), Ended> {
        match grown {
            0 => Ok(()),
            _ => self.kept.grow(grown.saturating_mul(2)).map_err(no_room),
        }
    }

    fn count_message(&mut self) -> Result<(), Ended> {
        let now = runtime_now();
        if now.duration_since(self.window.0) >= Duration::from_secs(1) {
            self.window = (now, 0);
        }
        self.window.1 += 1;
        if self.window.1 <= MAX_MESSAGES_PER_SECOND {
            return Ok(());
        }
        let error = ApiError::rate_limited(Duration::from_secs(1));
        Err(Some(End::new(
            close_code::POLICY,
            "rate_limited",
            Some(error),
        )))
    }

    /// Sends messages, and the pong that is queued. A server that stops waits for a client that takes nothing no longer than it has to, and
    /// where nothing runs, the connection's time goes on. A client that owes the rest of a message meanwhile, which cannot be read, may take
    /// nothing for as long as it may pause.
    async fn send(
        &mut self,
        messages: impl IntoIterator<Item = Message, IntoIter: Send> + Send,
    ) -> Result<(), Ended> {
        let over = self.generation.kernel.drain_over.clone();
        let stopped = async {
            over.cancelled().await;
            sleep(LINGER).await;
        };
        let ends_at = self
            .running
            .is_none()
            .then(|| self.idle_until().min(self.until));
        let shutdown = self.generation.kernel.shutdown.clone();
        let unused = async move {
            let Some(at) = ends_at else {
                return pending().await;
            };
            select! {
                () = shutdown.cancelled() => sleep(LINGER).await,
                () = sleep_until(at) => {}
            }
        };
        let intake = self.intake.clone();
        let pause = Duration::from_millis(self.generation.config.http.body_pause_ms.into());
        let progress = Notify::new();
        let late = async {
            while timeout(pause, progress.notified()).await.is_ok() {}
            late(&intake).await;
        };
        let sent = async {
            for message in messages {
                if let Message::Text(text) = &message {
                    let grown = text.len().saturating_sub(self.largest_out);
                    self.largest_out += grown;
                    self.keep(grown)?;
                }
                self.socket.feed(message).await.map_err(|_| None)?;
                progress.notify_one();
            }
            self.socket.flush().await.map_err(|_| None)
        };
        select! {
            biased;
            sent = sent => sent,
            () = stopped => Err(None),
            () = unused => Err(None),
            () = late => self.check_message().and(Err(None)),
        }
    }

    /// What an error of the socket says about the client: what it did wrong, or that it is gone.
    fn broken(&self, error: &axum::Error) -> Ended {
        let most = self.generation.config.limits.text_body_bytes;
        let source = error.source()?;
        match source.downcast_ref::<SocketError>()? {
            SocketError::Capacity(_) => {
                let error = ApiError::invalid("body", format!("at most {most} bytes"));
                let error = error.with_code("body_too_large");
                Some(End::new(close_code::SIZE, "body_too_large", Some(error)))
            }
            SocketError::Utf8(_) => {
                let error = ApiError::invalid("body", "messages are UTF-8");
                Some(End::new(close_code::INVALID, "body", Some(error)))
            }
            SocketError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
            SocketError::Protocol(_) => Some(End::new(close_code::PROTOCOL, "protocol", None)),
            SocketError::Io(error) if error.kind() == ErrorKind::OutOfMemory => {
                no_room(ApiError::unavailable(
                    "There is no room for this message now; try again later",
                    LINGER,
                ))
            }
            _ => None,
        }
    }

    /// Says why and closes. What still comes is read for a while: a socket that is closed with unread data is reset, and the
    /// client would not learn why.
    async fn close(mut self, end: End) {
        let parting = async {
            if let Some(error) = end.error {
                let (message, _) = create::error_message(*error, HeaderMap::new(), None);
                self.socket.feed(message).await?;
            }
            let frame = CloseFrame {
                code: end.code,
                reason: end.reason.into(),
            };
            self.socket.send(Message::Close(Some(frame))).await?;
            if !end.at_once {
                while let Some(Ok(_)) = self.socket.next().await {}
            }
            Ok::<(), axum::Error>(())
        };
        let _ = timeout(LINGER, parting).await;
    }
}

/// Waits until the message that is arriving has taken too long. Each poll looks at it again: a message that begins, or goes on, while the socket
/// is polled by the same task counts at once.
async fn late(intake: &Intake) {
    let mut alarm = pin!(sleep_until(runtime_now()));
    poll_fn(|context| {
        let Some(at) = intake.late_at() else {
            return Poll::Pending;
        };
        if alarm.deadline() != at {
            alarm.as_mut().reset(at);
        }
        alarm.as_mut().poll(context)
    })
    .await;
}

fn no_room(error: impl Into<ApiError>) -> Ended {
    let error = error.into();
    let end = End::new(close_code::AGAIN, "unavailable", Some(error));
    Some(end.at_once())
}
