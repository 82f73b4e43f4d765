//! How long the body of a request may take, and what becomes of one that nobody read.
//!
//! A body is given up when it pauses for `http.body_pause_ms` or takes longer than `http.body_ms`, both counted while a
//! handler waits for it: the answer is 408. A refusal needs none of a body, but a connection with one waiting in it cannot
//! be used again: whoever sends the next request over it finds it closed, without a word in the answer before. So what is
//! left of a body is read when it is little; when it is more, the answer says that the connection ends, and what still
//! comes is thrown away while it does (`http/front/linger.rs`).

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, BodyDataStream, HttpBody as _},
    extract::{Request, State},
    http::{
        HeaderValue, StatusCode, Version,
        header::{CONNECTION, EXPECT},
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use colloquy_base::clock::runtime_now;
use futures_util::{Stream, StreamExt as _};
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep, sleep_until, timeout},
};

use super::{ApiError, Edge};

/// What is read of a body for nothing.
const MOST_BYTES: usize = 256 * 1024;
/// How long that may take; the answer waits for it.
const PATIENCE: Duration = Duration::from_millis(500);

/// Bounds the time for the body. Reads what the handler has left of it when it is little, and else says that the connection
/// ends with this answer.
pub(super) async fn bound(State(edge): State<Edge>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() || request.version() > Version::HTTP_11 {
        return next.run(request).await;
    }
    // Such a client sends nothing unless it is asked to, and reading is what asks.
    let waits = request.headers().contains_key(EXPECT);
    let (back, mut rest) = oneshot::channel();
    let late = Arc::new(AtomicBool::new(false));
    let lent = |body: Body| TimedBody {
        body: Some(body.into_data_stream()),
        back: Some(back),
        pause: edge.body_pause,
        in_all: edge.body_time,
        until: None,
        timer: None,
        late: Arc::clone(&late),
    };
    let mut response = next
        .run(request.map(|body| Body::from_stream(lent(body))))
        .await;
    let is_late = late.load(Ordering::Relaxed);
    if is_late && !response.status().is_success() {
        response = too_slow().into_response();
    }
    let is_left = match rest.try_recv() {
        Ok(body) => waits || !is_read(body).await,
        Err(_) => false,
    };
    if is_late || is_left {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

fn too_slow() -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        "body_timeout",
        "The body did not arrive in time",
    )
}

/// Reads a body; whether that was all of it.
async fn is_read(mut body: BodyDataStream) -> bool {
    let reading = async {
        let mut bytes = 0;
        while let Some(Ok(piece)) = body.next().await {
            bytes += piece.len();
            if bytes > MOST_BYTES {
                return false;
            }
        }
        true
    };
    timeout(PATIENCE, reading).await.unwrap_or(false)
}

/// A body that comes in time, and comes back when its reader is done before it is.
struct TimedBody {
    /// Gone when it was read to its end.
    body: Option<BodyDataStream>,
    back: Option<oneshot::Sender<BodyDataStream>>,
    pause: Duration,
    in_all: Duration,
    /// When all of it has to be there, from the first wait on.
    until: Option<Instant>,
    /// Runs while a piece is waited for.
    timer: Option<Pin<Box<Sleep>>>,
    /// Set when it did not come in time.
    late: Arc<AtomicBool>,
}

impl Stream for TimedBody {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        let piece = match body.poll_next_unpin(context) {
            Poll::Ready(piece) => piece,
            Poll::Pending => {
                let timer = this.timer.get_or_insert_with(|| {
                    let now = runtime_now();
                    let until = *this.until.get_or_insert(now + this.in_all);
                    Box::pin(sleep_until(until.min(now + this.pause)))
                });
                ready!(timer.as_mut().poll(context));
                this.late.store(true, Ordering::Relaxed);
                this.body = None;
                return Poll::Ready(Some(Err(axum::Error::new(too_slow()))));
            }
        };
        this.timer = None;
        if !matches!(piece, Some(Ok(_))) {
            this.body = None;
        }
        Poll::Ready(piece)
    }
}

impl Drop for TimedBody {
    fn drop(&mut self) {
        if let (Some(body), Some(back)) = (self.body.take(), self.back.take()) {
            // Nobody waits for it when the client is gone.
            let _ = back.send(body);
        }
    }
}
