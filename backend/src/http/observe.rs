//! What happens to every request around its handler: request id, span, log lines, metrics, error shape, panics.

use std::{
    any::Any,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    extract::{MatchedPath, Request, State},
    http::{HeaderValue, Method, StatusCode, header::CONTENT_TYPE},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;
use tracing::{Instrument as _, field::Empty};

use super::{ApiError, ErrorContext, ErrorShape};
use crate::{App, observability::Span};

const REQUEST_ID: &str = "x-request-id";

/// A request as it came, for handlers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Its id; also in the response and in each log line.
    pub id: String,
    /// When it came.
    pub at: Instant,
}

/// Gives the request its id and span, counts it, and logs its end.
pub(super) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let id = request_id(&app, &request);
    let method = known_method(request.method());
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("unmatched", MatchedPath::as_str)
        .to_owned();
    request.extensions_mut().insert(Arrival {
        id: id.clone(),
        at: Instant::now(),
    });
    let span = tracing::info_span!(
        "request",
        request_id = %id,
        method,
        route,
        key_id = Empty,
        status = Empty,
        latency_ms = Empty,
    );
    let trace = trace(&request, method, &route, &id);
    let started = app.clock.instant();
    let handled = next.run(request).instrument(span.clone());
    let mut response = trace.around(handled).await;
    let latency = app.clock.instant().saturating_duration_since(started);

    let entered = span.enter();
    span.record("status", response.status().as_u16());
    span.record("latency_ms", latency.as_millis() as u64);
    log_end(&response, &route);
    let status = response.status();
    trace.set("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        trace.fail(status.as_u16().to_string());
    }
    count(method, route, status, latency);
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    drop(entered);
    response.map(|body| Body::new(Streamed { body, span, trace }))
}

/// A body that is made while it is sent: what is logged and asked meanwhile belongs to the request, whose trace ends with
/// it.
struct Streamed {
    body: Body,
    span: tracing::Span,
    trace: Span,
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, span, trace } = &mut *self;
        let _entered = span.enter();
        let _current = trace.enter();
        Pin::new(body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The trace of a request, in the words of OpenTelemetry's conventions for HTTP. Without a status its client went away first.
fn trace(request: &Request, method: &'static str, route: &str, id: &str) -> Span {
    let trace = Span::of_request(request.headers(), || format!("{method} {route}"));
    if trace.is_recording() {
        trace.set("http.request.method", method);
        trace.set("http.route", route.to_owned());
        trace.set("colloquy.request_id", id.to_owned());
    }
    trace
}

/// The client's id when it is short and plain, else a new one.
fn request_id(app: &App, request: &Request) -> String {
    let sane = |id: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        (1..=128).contains(&id.len()) && id.chars().all(plain)
    };
    let given = request.headers().get(REQUEST_ID);
    given
        .and_then(|value| value.to_str().ok())
        .filter(sane)
        .map_or_else(|| app.clock.new_id().to_string(), str::to_owned)
}

/// The method as a label: anybody can invent methods, and labels are kept for ever.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn log_end(response: &Response, route: &str) {
    let error = response.extensions().get::<ApiError>();
    match error.and_then(|error| error.source.as_ref().map(|source| (error, source))) {
        Some((error, source)) if error.status.is_server_error() => {
            tracing::error!(
                code = error.code,
                source = chain(&**source),
                "request failed"
            );
        }
        Some((error, source)) => {
            tracing::warn!(
                code = error.code,
                source = chain(&**source),
                "request refused"
            );
        }
        None if matches!(route, "/health" | "/metrics") => tracing::debug!("request"),
        None => tracing::info!(code = error.map(|error| error.code), "request"),
    }
}

/// An error and its causes in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn count(method: &'static str, route: String, status: StatusCode, latency: Duration) {
    let status = status.as_u16().to_string();
    metrics::counter!("colloquy_http_requests_total", "method" => method, "route" => route.clone(), "status" => status)
        .increment(1);
    metrics::histogram!("colloquy_http_request_duration_seconds", "method" => method, "route" => route)
        .record(latency.as_secs_f64());
}

/// Gives every error the body of its interface, also those that the framework made without a handler.
pub(super) async fn shape(request: Request, next: Next) -> Response {
    let shape = ErrorShape::of_path(request.uri().path());
    let arrival = request.extensions().get::<Arrival>();
    let context = ErrorContext {
        request_id: arrival.map(|it| it.id.clone()).unwrap_or_default(),
        endpoint: request.uri().path().to_owned(),
    };
    let response = next.run(request).await;
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if is_error && response.extensions().get::<ApiError>().is_none() && !has_json(&response) {
        let (parts, _body) = response.into_parts();
        let mut response = framework_error(status).into_response();
        for (name, value) in &parts.headers {
            // `Allow` of a 405, for one.
            if !response.headers().contains_key(name) && *name != "content-length" {
                response.headers_mut().append(name, value.clone());
            }
        }
        return shape.apply(response, &context);
    }
    shape.apply(response, &context)
}

fn has_json(response: &Response) -> bool {
    let value = response.headers().get(CONTENT_TYPE);
    value.is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
}

fn framework_error(status: StatusCode) -> ApiError {
    let (code, message) = match status {
        StatusCode::NOT_FOUND => ("not_found", "There is nothing at this address"),
        StatusCode::METHOD_NOT_ALLOWED => (
            "method_not_allowed",
            "The address does not take this method",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => return super::extract::too_large(),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (
            "unsupported_media_type",
            "The body has the wrong content type",
        ),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
            ("invalid_body", "The request is malformed")
        }
        status if status.is_server_error() => ("internal", "Internal error"),
        _ => ("refused", "The request was refused"),
    };
    ApiError::new(status, code, message)
}

/// What a client gets when a handler panicked. The panic's own message is on standard error.
pub(super) fn panicked(_payload: Box<dyn Any + Send + 'static>) -> Response {
    ApiError::internal("a handler panicked").into_response()
}
