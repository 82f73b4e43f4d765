//! Bodies that nobody read. A refusal needs none of a body, but a connection with one waiting in it cannot be used again:
//! whoever sends the next request over it finds it closed, without a word in the answer before.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, BodyDataStream, HttpBody as _},
    extract::Request,
    http::{
        HeaderValue, Version,
        header::{CONNECTION, EXPECT},
    },
    middleware::Next,
    response::Response,
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::{sync::oneshot, time::timeout};

/// What is read of a body for nothing.
const MOST_BYTES: usize = 256 * 1024;
/// How long that may take; the answer waits for it.
const PATIENCE: Duration = Duration::from_millis(500);

/// Reads what the handler has left of the body when it is little, and else says that the connection ends with this answer.
pub(super) async fn read_rest(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() || request.version() > Version::HTTP_11 {
        return next.run(request).await;
    }
    // Such a client sends nothing unless it is asked to, and reading is what asks.
    let waits = request.headers().contains_key(EXPECT);
    let (back, mut rest) = oneshot::channel();
    let lent = |body: Body| Lent {
        body: Some(body.into_data_stream()),
        back: Some(back),
    };
    let mut response = next
        .run(request.map(|body| Body::from_stream(lent(body))))
        .await;
    if let Ok(body) = rest.try_recv()
        && (waits || !is_read(body).await)
    {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
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

/// A body that comes back when its reader is done before it is.
struct Lent {
    /// Gone when it was read to its end.
    body: Option<BodyDataStream>,
    back: Option<oneshot::Sender<BodyDataStream>>,
}

impl Stream for Lent {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let piece = ready!(body.poll_next_unpin(context));
        if !matches!(piece, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(piece)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(body), Some(back)) = (self.body.take(), self.back.take()) {
            // Nobody waits for it when the client is gone.
            let _ = back.send(body);
        }
    }
}
