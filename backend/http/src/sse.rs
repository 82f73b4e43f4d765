//! Responses that are streams of server-sent events (WHATWG HTML, section 9.2).

use axum::{
    body::Body,
    http::{
        HeaderValue,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::Response,
};

/// Returns the response with a stream of events as its body.
#[must_use]
pub fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Without it, buffering proxies would deliver the stream at its end.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
