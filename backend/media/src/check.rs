//! The check before a call: the backend answers an offer and looks for a path, as it does for a call, without a call.
//!
//! Anybody may ask, as anybody may open a session's socket; so attempts are counted per address, and few run at a time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::{
        FromRef, FromRequestParts, State,
        ws::{CloseFrame, Message, WebSocket, close_code},
    },
    http::request::Parts,
    response::Response,
};
use colloquy_http::{
    ApiError,
    extract::{ApiJson, client_address},
    sockets::{MAX_CONTROL_BYTES, SocketBounds, bounded},
};
use colloquy_transport::{
    net::{Inbox, Place},
    offer::Offer,
    peer::{Peer, PeerEvent},
};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use utoipa::ToSchema;

use super::{session::excerpt, upgrade::SessionUpgrade};
use crate::Media;

/// How long a check may take.
const LONGEST: Duration = Duration::from_secs(15);

/// How long a path that was found stays, so that the page sees it, too.
const LINGER: Duration = Duration::from_secs(2);

/// Checks at a time; each holds a WebRTC stack.
const AT_A_TIME: usize = 32;

/// When to try again once that many run.
const BUSY: Duration = Duration::from_secs(2);

/// Bounds of a check's socket, which takes no message. Control frames have to pass.
const SOCKET_BOUNDS: SocketBounds = SocketBounds {
    read_ahead: 512,
    write_behind: 0,
    largest_in: MAX_CONTROL_BYTES,
    largest_out: MAX_CONTROL_BYTES,
};

/// Pings and pongs that a client may send before it closes its side of a check's socket.
const MAX_CONTROL_FRAMES: usize = 16;

/// Room for checks.
pub(super) fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(AT_A_TIME))
}

/// A page's offer.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct CheckRequest {
    /// A session description of the type `offer` with one audio section, 16 KiB at most.
    sdp: String,
}

/// The backend's answer to the offer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckEnvelope {
    data: CheckView,
}

#[derive(Debug, Serialize, ToSchema)]
struct CheckView {
    /// A session description of the type `answer`, which holds all candidates.
    sdp: String,
}

/// Answers an offer without a call, so that a page learns before a call whether its media port can be reached. The
/// connection is closed two seconds after it came about, and after 15 seconds in any case. It asks for no key.
#[utoipa::path(
    post, path = "/v2/calls/check", tag = "calls",
    request_body = CheckRequest,
    security(()),
    responses(
        (status = 200, body = CheckEnvelope),
        (status = 400, description = "INVALID_PARAMETERS: `sdp` is no offer that could be a call"),
        (status = 429, description = "RATE_LIMITED: too many attempts from this address"),
        (status = 503, description = "UNAVAILABLE: too many checks at a time; Retry-After says when to ask again"),
    ),
)]
pub(crate) async fn check_path(
    State(media): State<Media>,
    _: Attempt,
    ApiJson(CheckRequest { sdp }): ApiJson<CheckRequest>,
) -> Result<Json<CheckEnvelope>, ApiError> {
    let offer = Offer::parse(&sdp)
        .map_err(|error| ApiError::invalid("sdp", format!("Not an offer of a call: {error}")))?;
    let Ok(room) = Arc::clone(&media.checks).try_acquire_owned() else {
        return Err(ApiError::unavailable("Too many checks at a time", BUSY));
    };
    let now = media.clock.instant();
    let net = &media.net;
    let identity = &media.identity;
    let mut peer = Peer::new(identity, net.candidates(), &offer, rand::random(), now)
        .map_err(|error| ApiError::internal(error.into_boxed_dyn_error()))?;
    let (mut place, datagrams) = net.place();
    let (answer, fragment) = peer.accept(&offer, now).map_err(|error| {
        ApiError::invalid(
            "sdp",
            format!("Not an offer of a call: {}", excerpt(&error)),
        )
    })?;
    place.listen(&fragment);
    let probe = Probe {
        media: media.clone(),
        peer,
        until: now + LONGEST,
        found: false,
        place,
        _room: room,
    };
    media.kernel.tasks.spawn(probe.run(datagrams));
    Ok(Json(CheckEnvelope {
        data: CheckView { sdp: answer },
    }))
}

/// Opens a WebSocket that says nothing and is closed at once, so that a page learns before a call whether one gets through. Its path has
/// the shape of a session's, since proxies are set up by path. Nothing is read of it but the client's answer, a close frame, and a few pings
/// and pongs before it.
pub(crate) async fn check_socket(_: Attempt, SessionUpgrade(upgrade): SessionUpgrade) -> Response {
    bounded(upgrade, SOCKET_BOUNDS).on_upgrade(|socket| async move {
        let _ = tokio::time::timeout(LINGER, close_at_once(socket)).await;
    })
}

/// Closes a socket and waits for the client's side of it. A message instead, a frame that is larger than those of control, or a flood of pings
/// ends the connection: the close code has been sent, and a second one may not follow (RFC 6455, section 5.5.1).
async fn close_at_once(mut socket: WebSocket) {
    let close = CloseFrame {
        code: close_code::NORMAL,
        reason: "CHECKED".into(),
    };
    // A client that is gone already needs no answer.
    let _ = socket.send(Message::Close(Some(close))).await;
    // What it answers is read, since a socket that is closed with something unread is reset.
    for _ in 0..MAX_CONTROL_FRAMES {
        match socket.recv().await {
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            _ => break,
        }
    }
}

/// An attempt that the address may make. It comes before the body, which anybody can send.
pub(crate) struct Attempt;

impl<S: Send + Sync> FromRequestParts<S> for Attempt
where
    Media: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let address = client_address(parts);
        Media::from_ref(state).limits.check_attempt(address)?;
        Ok(Self)
    }
}

/// A running check.
struct Probe {
    media: Media,
    peer: Peer,
    until: Instant,
    /// Whether a path was found.
    found: bool,
    place: Place,
    _room: OwnedSemaphorePermit,
}

impl Probe {
    async fn run(mut self, mut datagrams: Inbox) {
        loop {
            let now = self.media.clock.instant();
            if self.peer.next_tick().is_some_and(|at| at <= now) {
                self.peer.tick(now);
            }
            while let Some(event) = self.peer.poll() {
                if event == PeerEvent::Connected && !self.found {
                    self.found = true;
                    self.until = now + LINGER;
                }
            }
            self.peer.flush(&self.media.net);
            if now >= self.until {
                break;
            }
            let tick = self.peer.next_tick().unwrap_or(self.until);
            let wake = tick.min(self.until);
            tokio::select! {
                Some(datagram) = datagrams.recv() => {
                    let now = self.media.clock.instant();
                    let path = datagram.addresses;
                    if self.peer.receive(datagram, now) {
                        self.place.bind(path, now);
                    }
                }
                () = tokio::time::sleep_until(wake.into()) => {}
                () = self.media.kernel.shutdown.cancelled() => break,
            }
        }
        self.peer.close(&self.media.net);
        metrics::counter!("colloquy_media_checks_total", "found" => self.found.to_string())
            .increment(1);
    }
}
