//! Room for bodies: how much memory all requests together may take for what they were sent, and how it is shared.
//!
//! A body counts while it is read, with what has arrived of it; then with what it becomes, until its request is answered.
//! A large answer that is there as a whole counts until it is sent, as far as its request has counted before: handlers
//! that read much for a small request take the memory of it themselves ([`Share::grow`]). One partner alone gets half of
//! the room, the next one half of what is left ([`colloquy_base::memory`]). Messages of a WebSocket count by frame instead
//! ([`intake`](crate::intake)).

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use bytes::{Bytes, BytesMut};
use colloquy_base::json;
pub use colloquy_base::memory::NoRoom;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::task::spawn_blocking;

use super::{
    ApiError, Edge,
    extract::{cut_off, too_large},
    guarded::Guarded,
};

/// What a body becomes is held this many times: by the request, by what a model is sent, and by what is kept or by a
/// second model.
const COPIES: usize = 3;
/// The first piece of a body that arrives in several.
const FIRST_BYTES: usize = 16 * 1024;
/// When this part of an announced body is there, room is made for all of it, so that it is not copied from one piece of
/// memory to a larger one.
const ARRIVED_PART: usize = 8;
/// From here on a body is large, and so is an answer.
const LARGE_BYTES: usize = 256 * 1024;
/// Who is no partner; no identifier is written like this.
const ADMINISTRATORS: &str = "*";
/// When to try again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// What one request holds. The last clone gives it back.
#[derive(Debug, Clone)]
pub struct Share(Arc<Part>);

#[derive(Debug)]
struct Part {
    edge: Edge,
    /// Whose request it is, once that is known.
    owner: Mutex<(String, usize)>,
}

impl Share {
    /// A share of nobody's, with nothing in it.
    pub fn new(edge: Edge) -> Self {
        let owner = Mutex::default();
        Self(Arc::new(Part { edge, owner }))
    }

    /// The largest body that handlers get who set no bound of their own.
    pub(super) fn body_bytes(&self) -> usize {
        self.0.edge.body_bytes
    }

    /// Says whose request it is: a partner's, or the administrators'. Requests without a key are nobody's.
    pub fn belongs_to(&self, partner: Option<&str>) {
        let mut owner = self.0.owner.lock().unwrap_or_else(PoisonError::into_inner);
        // Keys stand in front of bodies, so nothing is held yet.
        if owner.1 == 0 {
            partner.unwrap_or(ADMINISTRATORS).clone_into(&mut owner.0);
        }
    }

    /// Takes more.
    ///
    /// # Errors
    /// When there is no room, now or ever.
    pub fn grow(&self, bytes: usize) -> Result<(), NoRoom> {
        let mut owner = self.0.owner.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.0.edge.bodies.take(&owner.0, bytes) {
            metrics::counter!("colloquy_http_bodies_refused_total").increment(1);
            return Err(
                match self.0.edge.bodies.fits(owner.1.saturating_add(bytes)) {
                    true => NoRoom::Now,
                    false => NoRoom::Ever,
                },
            );
        }
        owner.1 += bytes;
        Ok(())
    }

    /// Gives back what is held beyond so many bytes.
    fn shrink_to(&self, bytes: usize) {
        let mut owner = self.0.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let beyond = owner.1.saturating_sub(bytes);
        if beyond > 0 {
            self.0.edge.bodies.give_back(&owner.0, beyond);
            owner.1 -= beyond;
        }
    }

    fn is_empty(&self) -> bool {
        let owner = self.0.owner.lock().unwrap_or_else(PoisonError::into_inner);
        owner.1 == 0
    }
}

impl From<NoRoom> for ApiError {
    /// 503, or 413 where it is of no use to try again.
    fn from(why: NoRoom) -> Self {
        match why {
            NoRoom::Now => {
                let message = "There is no memory for this request now; try again later";
                Self::unavailable(message, TRY_AGAIN)
            }
            NoRoom::Ever => Self {
                message: "The request takes more memory than this server has for one, with the conversation that it continues"
                    .to_owned(),
                ..too_large()
            },
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let owner = self.owner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if owner.1 > 0 {
            self.edge.bodies.give_back(&owner.0, owner.1);
        }
    }
}

/// Takes what a body becomes that was read and is counted already.
///
/// # Errors
/// 503 when there is no room for it.
pub async fn grow_for(share: &Share, text: Bytes) -> Result<(), ApiError> {
    let becomes = off_thread(text.len(), move || json::taken(&text)).await?;
    Ok(share.grow(COPIES.saturating_mul(becomes))?)
}

/// Reads a body up to a limit, of which so many bytes are announced. It counts as it arrives: memory that nothing was
/// written to takes none, so a slow body holds only what is there of it.
///
/// # Errors
/// 413 when it is larger, 503 when there is no room for it, 400 when it does not arrive.
pub(super) async fn read(
    request: Request,
    limit: usize,
    announced: Option<usize>,
) -> Result<Bytes, ApiError> {
    let share = request.extensions().get::<Share>().cloned();
    let grow = |bytes: usize| match &share {
        Some(share) => share.grow(bytes),
        None => Ok(()),
    };
    let mut body = request.into_body();
    // Most bodies are one piece, which is not copied.
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| cut_off())?.into_data() else {
            continue;
        };
        let length = first.len() + whole.len() + piece.len();
        if length > limit {
            return Err(too_large());
        }
        grow(piece.len())?;
        if first.is_empty() && whole.is_empty() {
            first = piece;
            continue;
        }
        if length > whole.capacity() {
            let room = match announced {
                Some(announced) if announced / ARRIVED_PART <= length => announced.max(length),
                _ => length.max(2 * whole.capacity()).max(FIRST_BYTES).min(limit),
            };
            whole.reserve(room - whole.len());
        }
        whole.extend_from_slice(&std::mem::take(&mut first));
        whole.extend_from_slice(&piece);
    }
    let bytes = if whole.is_empty() {
        first
    } else {
        whole.freeze()
    };
    if let Some(share) = &share {
        grow_for(share, bytes.clone()).await?;
    }
    Ok(bytes)
}

/// Does work on a body of so many bytes: large ones are nothing for the threads that serve everybody.
///
/// # Errors
/// 500 when the work panics.
pub async fn off_thread<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    if bytes < LARGE_BYTES {
        return Ok(work());
    }
    spawn_blocking(work).await.map_err(ApiError::internal)
}

/// Gives each request its share of the room, until it is answered. A large answer keeps as much of it as it has bytes until
/// they are sent.
pub(super) async fn hold(State(edge): State<Edge>, mut request: Request, next: Next) -> Response {
    let share = Share::new(edge);
    request.extensions_mut().insert(share.clone());
    let response = next.run(request).await;
    if share.is_empty() {
        return response;
    }
    let Some(bytes) = response.body().size_hint().exact() else {
        return response.map(|body| Body::new(Guarded::new(body, share)));
    };
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if bytes < LARGE_BYTES {
        return response;
    }
    // Of the request nothing is left.
    share.shrink_to(bytes);
    response.map(|body| Body::new(CountedBody { body, share }))
}

/// The body of a large answer that is there as a whole. A connection takes all of it before it sends any, and drops the
/// body then, so the bytes hold the share.
struct CountedBody {
    body: Body,
    share: Share,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let counted = |bytes: Bytes| {
            Bytes::from_owner(CountedBytes {
                bytes,
                _share: self.share.clone(),
            })
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(counted))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes of an answer. They count until the last reference to them is dropped.
struct CountedBytes {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use axum::{Extension, Router, middleware, routing::get};
    use colloquy_base::clock::SystemClock;
    use colloquy_config::Config;
    use tokio_util::sync::CancellationToken;
    use tower::ServiceExt as _;

    use super::*;

    const MEMORY: usize = 4_000_000;
    const PARTNER: &str = "acme";

    /// Routes that take a megabyte of the partner's memory, and answer with fewer bytes: a large part of it, or few.
    fn routes(edge: &Edge) -> Router {
        let answer = |bytes: usize| {
            get(move |Extension(share): Extension<Share>| async move {
                share.belongs_to(Some(PARTNER));
                share.grow(1_000_000)?;
                Ok::<_, ApiError>(vec![b'x'; bytes])
            })
        };
        Router::new()
            .route("/large", answer(600_000))
            .route("/small", answer(1_000))
            .layer(middleware::from_fn_with_state(edge.clone(), hold))
    }

    async fn asked(routes: &Router, path: &str) -> Response {
        let request = Request::get(path).body(Body::empty()).unwrap();
        routes.clone().oneshot(request).await.unwrap()
    }

    /// Returns true if the partner can take so many bytes.
    fn is_free(edge: &Edge, bytes: usize) -> bool {
        let share = Share::new(edge.clone());
        share.belongs_to(Some(PARTNER));
        share.grow(bytes).is_ok()
    }

    #[tokio::test]
    async fn a_large_answer_counts_until_its_bytes_are_dropped() {
        let mut config = Config::default();
        config.limits.body_memory_bytes = MEMORY;
        let edge = Edge::new(&config, Arc::new(SystemClock), CancellationToken::new());
        let routes = routes(&edge);
        let small = asked(&routes, "/small").await;
        assert!(is_free(&edge, MEMORY / 2), "little is not counted");
        drop(small);

        // Of each 600,000 bytes are left: two of them, and the million of a third request are more than the half.
        let mut large = asked(&routes, "/large").await;
        assert!(is_free(&edge, 1_400_000) && !is_free(&edge, 1_400_001));
        let second = asked(&routes, "/large").await;
        assert_eq!(second.body().size_hint().exact(), Some(600_000));
        let refused = asked(&routes, "/large").await;
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.headers()["retry-after"], "2");
        drop(second);

        // As a connection does: it takes the bytes and drops the body.
        let frame = large.body_mut().frame().await.unwrap().unwrap();
        let bytes = frame.into_data().unwrap();
        assert_eq!(bytes.len(), 600_000);
        drop(large);
        let part = bytes.slice(599_999..);
        drop(bytes);
        assert!(!is_free(&edge, 1_400_001), "a part keeps all of it");
        drop(part);
        assert!(is_free(&edge, MEMORY / 2));
    }
}
