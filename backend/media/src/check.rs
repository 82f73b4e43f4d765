//! The check before a call: the backend answers an offer and looks for a path, as it does for a call, without a call.
//!
//! Anybody may ask, as anybody may open a session's socket; so attempts are counted per address, and few run at a time, in all and from one
//! network.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
use colloquy_base::counts::Counts;
use colloquy_http::{
    ApiError,
    extract::{ApiJson, ClientNetwork, client_address},
    sockets::{MAX_CONTROL_BYTES, SocketBounds, bounded},
};
use colloquy_transport::{
    net::{Inbox, Place},
    offer::Offer,
    peer::{Peer, PeerEvent},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{session::excerpt, upgrade::SessionUpgrade};
use crate::Media;

/// How long a check may take.
const LONGEST: Duration = Duration::from_secs(15);

/// How long a path that was found stays, so that the page sees it, too.
const LINGER: Duration = Duration::from_secs(2);

/// Checks at a time; each holds a WebRTC stack.
const AT_A_TIME: usize = 32;

/// Checks at a time from one network, an IPv4 address or a /64 of IPv6, so that the visitors of one leave places to others.
const AT_A_TIME_OF_NETWORK: usize = AT_A_TIME / 4;

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

/// The checks that run, by network; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct CheckRoom(Arc<Mutex<Counts<Option<IpAddr>>>>);

impl CheckRoom {
    /// Takes a place for a check of a client in this network.
    ///
    /// Clients without a network may be all visitors behind a proxy that the settings do not count.
    fn take(&self, network: Option<IpAddr>) -> Result<CheckPlace, ApiError> {
        let mut running = self.lock();
        if network.is_some() && running.of(&network) >= AT_A_TIME_OF_NETWORK {
            return Err(ApiError {
                message: "Too many checks from this network at a time".to_owned(),
                ..ApiError::rate_limited(BUSY)
            });
        }
        if running.all() >= AT_A_TIME {
            return Err(ApiError::unavailable("Too many checks at a time", BUSY));
        }
        running.add(&network, 1);
        drop(running);
        let room = self.clone();
        Ok(CheckPlace { room, network })
    }

    fn lock(&self) -> MutexGuard<'_, Counts<Option<IpAddr>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a check, given back when it is dropped.
#[derive(Debug)]
struct CheckPlace {
    room: CheckRoom,
    network: Option<IpAddr>,
}

impl Drop for CheckPlace {
    fn drop(&mut self) {
        self.room.lock().remove(&self.network, 1);
    }
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
        (status = 429, description = "RATE_LIMITED: too many attempts from this address, or too many checks at a time from its network (an IPv4 \
            address, or a /64 of IPv6); Retry-After says when to ask again"),
        (status = 503, description = "UNAVAILABLE: too many checks at a time; Retry-After says when to ask again"),
    ),
)]
pub(crate) async fn check_path(
    State(media): State<Media>,
    _: Attempt,
    ClientNetwork(network): ClientNetwork,
    ApiJson(CheckRequest { sdp }): ApiJson<CheckRequest>,
) -> Result<Json<CheckEnvelope>, ApiError> {
    let offer = Offer::parse(&sdp)
        .map_err(|error| ApiError::invalid("sdp", format!("Not an offer of a call: {error}")))?;
    let room = media.checks.take(network)?;
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
    _room: CheckPlace,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes places until one is refused. Returns how many there were, and the status of the refusal.
    fn fill(room: &CheckRoom, places: &mut Vec<CheckPlace>, network: Option<&str>) -> (usize, u16) {
        let network = network.map(|network| network.parse().unwrap());
        for taken in 0..=AT_A_TIME {
            match room.take(network) {
                Ok(place) => places.push(place),
                Err(error) => {
                    assert_eq!(error.retry_after, Some(BUSY));
                    return (taken, error.status.as_u16());
                }
            }
        }
        unreachable!("nothing is refused")
    }

    #[test]
    fn one_network_leaves_places_to_others() {
        let room = CheckRoom::default();
        let mut places = Vec::new();
        let mut fill_from = |network| fill(&room, &mut places, network);
        assert_eq!(fill_from(Some("192.0.2.1")), (8, 429));
        assert_eq!(fill_from(Some("192.0.2.1")), (0, 429));
        assert_eq!(fill_from(Some("2001:db8:0:1::")), (8, 429));
        // Whoever comes from no network of its own is not told from others.
        assert_eq!(fill_from(None), (16, 503));
        assert_eq!(fill_from(Some("192.0.2.3")), (0, 503));
        // A check that ends gives its place back to whoever comes.
        places.truncate(31);
        assert_eq!(fill(&room, &mut places, Some("192.0.2.3")), (1, 503));
        drop(places);
        assert_eq!(*room.lock(), Counts::default());
    }
}
