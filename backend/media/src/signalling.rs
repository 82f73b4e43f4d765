//! The WebSocket of a session: admission, framing, limits.
//!
//! A browser cannot read the status of a refused upgrade, so every socket is accepted; a refused one gets one fatal
//! `error` and is closed with the code of [`CloseCode`]. Until the signature, the expiry and the use of the URL are
//! checked, nothing of a call is touched.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{
        Path, Query, State,
        rejection::QueryRejection,
        ws::{CloseFrame, Message, WebSocket, close_code},
    },
    response::Response,
};
use colloquy_base::clock::Clock;
use colloquy_calls::{
    CallSetup, Elsewhere, SignedQuery,
    room::{self, CallSlot},
};
use colloquy_http::{
    extract::{ClientAddress, ClientNetwork},
    sockets::{SocketBounds, bounded},
};
use colloquy_protocol::{
    ClientMessage, CloseCode, MAX_FRAME_BYTES, MAX_MESSAGES_PER_SECOND, PROTOCOL_VERSION,
    ServerMessage,
};
use colloquy_store::StoreError;
use futures_util::{SinkExt as _, StreamExt as _, stream::SplitStream};
use serde_json::{Map, Value};
use tokio::sync::mpsc::{self, error::SendError};
use tokio_util::task::TaskTracker;

use super::{
    live::{Attach, NotAttached},
    session::Session,
    upgrade::SessionUpgrade,
};
use crate::Media;

/// How long a client may take to say `hello`, and to take what was sent.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a client may take to close its side.
const LINGER: Duration = Duration::from_secs(2);

/// Bounds of a session's socket. Messages are written one by one.
const BOUNDS: SocketBounds = SocketBounds {
    read_ahead: 4 * 1024,
    write_behind: 0,
    largest_in: MAX_FRAME_BYTES,
    largest_out: MAX_FRAME_BYTES,
};

/// Messages that may wait for a client that reads slowly: twice as many as the most it may ask for in a second.
const OUTBOX: usize = 2 * MAX_MESSAGES_PER_SECOND as usize;

/// Opens the session of a call: the WebSocket behind the signed URL.
pub(super) async fn session_socket(
    State(media): State<Media>,
    Path(id): Path<String>,
    query: Result<Query<SignedQuery>, QueryRejection>,
    ClientAddress(address): ClientAddress,
    ClientNetwork(network): ClientNetwork,
    SessionUpgrade(upgrade): SessionUpgrade,
) -> Response {
    bounded(upgrade, BOUNDS).on_upgrade(move |socket| async move {
        let mut wire = Wire::open(&media, socket);
        let query = query.ok().map(|Query(query)| query);
        match admit(&media, &id, query, address, network, &mut wire).await {
            Ok(Entry::First(setup, slot)) => {
                Session::start(&media, *setup, slot, wire).await;
            }
            Ok(Entry::Again(session)) => {
                if let Err(SendError(Attach { wire })) = session.send(Attach { wire }).await {
                    // The call has ended at this moment.
                    wire.refuse(CloseCode::CallNotFound.into());
                }
            }
            Err(refusal) => {
                tracing::info!(call = %id, code = refusal.code(), "session refused");
                wire.refuse(refusal);
            }
            Ok(Entry::Elsewhere(elsewhere)) => {
                tracing::info!(call = %id, "a client of a call of another node is sent back");
                wire.redirect(elsewhere);
            }
        }
    })
}

/// Why a socket was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// For a reason that has a close code of its own.
    Session(CloseCode),
    /// The server is stopping and takes no new calls. Whoever wants one tries again, as where the server is full.
    Stopping,
    /// The server failed.
    Internal,
}

impl Refusal {
    /// The stable code.
    fn code(self) -> &'static str {
        match self {
            Self::Session(code) => code.code(),
            Self::Stopping => CloseCode::Capacity.code(),
            Self::Internal => "INTERNAL",
        }
    }

    /// The number in the close frame.
    fn close(self) -> u16 {
        match self {
            Self::Session(code) => code.number(),
            Self::Stopping => CloseCode::Capacity.number(),
            Self::Internal => close_code::ERROR,
        }
    }

    /// What happened, for a developer.
    fn message(self) -> &'static str {
        match self {
            Self::Session(CloseCode::InvalidSignature) => {
                "the signed URL or the resume token is not valid"
            }
            Self::Session(CloseCode::UrlExpired) => {
                "the signed URL has expired; create another call"
            }
            Self::Session(CloseCode::CallInUse) => {
                "the signed URL was used before, and the call has its client"
            }
            Self::Session(CloseCode::CallNotFound) => "there is no such call, or it is over",
            Self::Session(CloseCode::RateLimited) => {
                "too many session attempts came from this address; try again in a minute"
            }
            Self::Session(CloseCode::Capacity) => {
                "the server has no room for another call; try again later"
            }
            Self::Session(CloseCode::CallElsewhere) => "another node holds the call; try again",
            Self::Session(CloseCode::Normal | CloseCode::Protocol) => {
                "the session's protocol was not followed"
            }
            Self::Stopping => {
                "the server is stopping and takes no new calls; try again in a moment"
            }
            Self::Internal => "the server failed; try again later",
        }
    }
}

impl From<CloseCode> for Refusal {
    fn from(code: CloseCode) -> Self {
        Self::Session(code)
    }
}

/// What a client wants after `hello`.
enum Entry {
    /// The signed URL was spent for it just now.
    First(Box<CallSetup>, CallSlot),
    /// It continues a session of this node.
    Again(mpsc::Sender<Attach>),
    /// Another node holds the call.
    Elsewhere(Elsewhere),
}

/// Counts the attempts of an address. To come back with a resume token is none, be it to the wrong node: after a cut, all pages
/// of an office do.
async fn admit(
    media: &Media,
    id: &str,
    query: Option<SignedQuery>,
    address: IpAddr,
    network: Option<IpAddr>,
    wire: &mut Wire,
) -> Result<Entry, Refusal> {
    let count_attempt = || {
        let counted = media.limits.check_attempt(address);
        counted.map_err(|_| Refusal::from(CloseCode::RateLimited))
    };
    let Some(query) = query else {
        count_attempt()?;
        return Err(CloseCode::InvalidSignature.into());
    };
    let url = colloquy_calls::check_session_url(media, id, &query);
    // An expired URL that we signed may still carry a resume token in its `hello`.
    if let Err(code) = url
        && code != CloseCode::UrlExpired
    {
        count_attempt()?;
        return Err(code.into());
    }
    let Some(place) = media.waiting.enter(id, address) else {
        return Err(CloseCode::RateLimited.into());
    };
    let resume = wire.hello().await?;
    drop(place);
    if let Some(token) = resume {
        let refused = match media.live.resume(id, &token) {
            Ok(session) => return Ok(Entry::Again(session)),
            Err(NotAttached::NoSession) => match elsewhere(media, id, &query).await {
                Some(elsewhere) => return Ok(Entry::Elsewhere(elsewhere)),
                None => CloseCode::CallNotFound,
            },
            Err(_) => CloseCode::InvalidSignature,
        };
        count_attempt()?;
        return Err(refused.into());
    }
    count_attempt()?;
    url?;
    let refused = match begin(media, id, network, wire.metadata.as_ref()).await {
        Err(Refusal::Internal) => return Err(Refusal::Internal),
        Err(refused) => refused,
        entry => return entry,
    };
    // The page was reloaded or opened twice, and the load balancer picked this node.
    match elsewhere(media, id, &query).await {
        Some(elsewhere) => Ok(Entry::Elsewhere(elsewhere)),
        None => Err(refused),
    }
}

/// Opens the session of a call with its signed URL alone.
async fn begin(
    media: &Media,
    id: &str,
    network: Option<IpAddr>,
    metadata: Option<&Map<String, Value>>,
) -> Result<Entry, Refusal> {
    match media.live.reopen(id) {
        Ok(session) => return Ok(Entry::Again(session)),
        Err(NotAttached::NoSession) => {}
        Err(_) => return Err(CloseCode::CallInUse.into()),
    }
    if media.kernel.shutdown.is_cancelled() {
        return Err(Refusal::Stopping);
    }
    let failed = |error: StoreError| {
        tracing::error!(call = %id, %error, "taking a call failed");
        Refusal::Internal
    };
    let seat = room::seat(media, id, network).await.map_err(failed)??;
    let taken = colloquy_calls::take(media, id, metadata).await;
    let setup = taken.map_err(failed)??;
    Ok(Entry::First(Box::new(setup), seat))
}

/// The other node that holds a call. While the database is away nobody knows whether there is one, so the client may ask again.
async fn elsewhere(media: &Media, id: &str, query: &SignedQuery) -> Option<Elsewhere> {
    match colloquy_calls::held_elsewhere(media, id, query).await {
        Ok(elsewhere) => elsewhere,
        Err(error) => {
            media
                .store
                .complain("looking for the node of a call", &error);
            Some(Elsewhere { url: None })
        }
    }
}

/// What an error of the socket says about the client: whether it broke the protocol or is gone. The socket takes what is sent
/// in either case, and what is left of a frame is read away while the connection ends.
fn broken(error: &axum::Error) -> ClientInput {
    let source = std::error::Error::source(error);
    match source.and_then(|source| source.downcast_ref::<tungstenite::Error>()) {
        Some(tungstenite::Error::Capacity(_)) => {
            ClientInput::Violation("the frame is larger than 64 KiB")
        }
        Some(tungstenite::Error::Utf8(_)) => ClientInput::Violation("messages are UTF-8"),
        Some(tungstenite::Error::Protocol(
            tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
        )) => ClientInput::Lost,
        Some(tungstenite::Error::Protocol(_)) => {
            ClientInput::Violation("the frame breaks the protocol of WebSockets")
        }
        _ => ClientInput::Lost,
    }
}

/// A client's connection, as the session sees it.
#[derive(Debug)]
pub(super) struct Wire {
    incoming: SplitStream<WebSocket>,
    outbox: mpsc::Sender<Message>,
    clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    window: (Instant, u32),
    /// The page's `customMetadata`, from `hello`.
    metadata: Option<Map<String, Value>>,
    /// Whether the page listens to what becomes known of its visitor, from `hello`.
    pub(super) wants_user_info: bool,
}

/// What came from the client.
#[derive(Debug)]
pub(super) enum ClientInput {
    /// A message.
    Message(ClientMessage),
    /// Something that the protocol forbids.
    Violation(&'static str),
    /// The connection is gone.
    Lost,
}

impl Wire {
    fn open(media: &Media, socket: WebSocket) -> Self {
        let (mut sink, incoming) = socket.split();
        let (outbox, mut messages) = mpsc::channel::<Message>(OUTBOX);
        media.kernel.tasks.spawn(async move {
            while let Some(message) = messages.recv().await {
                let last = matches!(message, Message::Close(_));
                let sent = tokio::time::timeout(PATIENCE, sink.send(message)).await;
                if last || !matches!(sent, Ok(Ok(()))) {
                    break;
                }
            }
            let _ = tokio::time::timeout(PATIENCE, sink.close()).await;
        });
        let clock = Arc::clone(&media.clock);
        let window = (clock.instant(), 0);
        Self {
            incoming,
            outbox,
            clock,
            tasks: media.kernel.tasks.clone(),
            window,
            metadata: None,
            wants_user_info: false,
        }
    }

    /// Waits for `hello` and returns its resume token.
    async fn hello(&mut self) -> Result<Option<String>, Refusal> {
        let Ok(heard) = tokio::time::timeout(PATIENCE, self.hear()).await else {
            return Err(CloseCode::Protocol.into());
        };
        match heard {
            ClientInput::Message(ClientMessage::Hello {
                protocol: PROTOCOL_VERSION..,
                metadata,
                resume,
                user_info,
                ..
            }) => {
                self.metadata = metadata;
                self.wants_user_info = user_info;
                Ok(resume)
            }
            _ => Err(CloseCode::Protocol.into()),
        }
    }

    /// The next message. Dropping the future loses nothing.
    pub(super) async fn hear(&mut self) -> ClientInput {
        loop {
            let message = match self.incoming.next().await {
                // A page that goes away: Firefox cuts its sockets before the page could say `hang_up`.
                Some(Ok(Message::Close(Some(frame)))) if frame.code == close_code::AWAY => {
                    return ClientInput::Message(ClientMessage::HangUp);
                }
                Some(Ok(Message::Close(_))) | None => return ClientInput::Lost,
                Some(Ok(message)) => message,
                Some(Err(error)) => return broken(&error),
            };
            if !self.count_message() {
                return ClientInput::Violation("more than 100 messages came within a second");
            }
            let text = match message {
                Message::Text(text) => text,
                Message::Binary(_) => {
                    return ClientInput::Violation("messages are JSON text frames");
                }
                // The pong that answers a ping is queued by now.
                Message::Ping(_) | Message::Pong(_) | Message::Close(_) => continue,
            };
            // A list would be taken for an object, its elements by their places.
            let is_object = text.trim_start().starts_with('{');
            match serde_json::from_str(&text) {
                Ok(_) if !is_object => {
                    return ClientInput::Violation("the frame is no message of the protocol");
                }
                Ok(ClientMessage::Unknown) => {}
                Ok(message) => return ClientInput::Message(message),
                Err(_) => return ClientInput::Violation("the frame is no message of the protocol"),
            }
        }
    }

    /// Counts a message, pings and pongs of the WebSocket among them. Returns false if it is one too many.
    fn count_message(&mut self) -> bool {
        let now = self.clock.instant();
        if now.duration_since(self.window.0) >= Duration::from_secs(1) {
            self.window = (now, 0);
        }
        self.window.1 += 1;
        self.window.1 <= MAX_MESSAGES_PER_SECOND
    }

    /// Sends a message; `false` when the client is gone or reads too slowly.
    pub(super) fn say(&self, message: &ServerMessage) -> bool {
        match serde_json::to_string(message) {
            Ok(text) => self.outbox.try_send(Message::Text(text.into())).is_ok(),
            Err(error) => {
                tracing::error!(%error, "a message could not be written");
                true
            }
        }
    }

    /// Closes the connection after everything said before. What still comes from the client is read for a while: a
    /// socket that is closed with unread data is reset, and the client would not learn why.
    pub(super) fn close(mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame {
            code,
            reason: reason.into(),
        };
        let _ = self.outbox.try_send(Message::Close(Some(frame)));
        let rest = async move { while let Some(Ok(_)) = self.incoming.next().await {} };
        let tasks = self.tasks;
        tasks.spawn(async move {
            let _ = tokio::time::timeout(LINGER, rest).await;
        });
    }

    /// Names the node that holds the call, if it has an address of its own, and closes. This is no error: the client comes back.
    fn redirect(self, elsewhere: Elsewhere) {
        if let Some(url) = elsewhere.url {
            self.say(&ServerMessage::Redirect { url });
        }
        let code = CloseCode::CallElsewhere;
        self.close(code.number(), code.code());
    }

    /// Says why and closes.
    pub(super) fn refuse(self, refusal: Refusal) {
        self.say(&ServerMessage::Error {
            code: refusal.code().to_owned(),
            message: refusal.message().to_owned(),
            fatal: true,
        });
        self.close(refusal.close(), refusal.code());
    }
}
