//! What happens to every request around its handler: request id, span, log lines, metrics, error shape, panics.

use std::{
    any::Any,
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use colloquy_base::clock::runtime_now;
use colloquy_observability::Span;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;
use tracing::{Instrument as _, field::Empty};

use super::{ApiError, Edge, WarnedBefore, extract::ClientNetwork};

pub(super) const REQUEST_ID: &str = "x-request-id";

/// A request as it came, for handlers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Its id; also in the response and in each log line.
    pub id: String,
    /// When it came.
    pub at: Instant,
    /// The address of the client: of the connection, or what the outermost trusted proxy saw.
    pub address: IpAddr,
}

/// Gives the request its id and span, counts it, and logs its end.
pub async fn observe(State(edge): State<Edge>, mut request: Request, next: Next) -> Response {
    let id = request_id(&edge, &request);
    let address = edge.client_address(&request);
    let network = ClientNetwork(edge.client_network(&request));
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("unmatched", MatchedPath::as_str).to_owned();
    let method = known_method(request.method());
    let observed = Observed::new(&edge, request.headers(), method, route, id, address);
    request.extensions_mut().insert(observed.arrival.clone());
    request.extensions_mut().insert(network);
    let mut response = observed.around(next.run(request)).await;
    observed.answered(&response);
    if let Ok(value) = HeaderValue::from_str(&observed.arrival.id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let Observed { span, trace, .. } = observed;
    response.map(|body| Body::new(Streamed { body, span, trace }))
}

/// A request that is being looked at: its span, its trace, its counters.
#[derive(Debug)]
pub struct Observed {
    /// As its handlers see it.
    pub arrival: Arrival,
    edge: Edge,
    method: &'static str,
    route: String,
    started: std::time::Instant,
    span: tracing::Span,
    trace: Span,
}

impl Observed {
    /// A request that came just now.
    pub fn new(
        edge: &Edge,
        headers: &HeaderMap,
        method: &'static str,
        route: String,
        id: String,
        address: IpAddr,
    ) -> Self {
        let span = tracing::info_span!(
            "request",
            request_id = %id,
            method,
            route,
            key_id = Empty,
            status = Empty,
            latency_ms = Empty,
        );
        Self {
            edge: edge.clone(),
            trace: trace(headers, method, &route, &id),
            started: edge.clock.instant(),
            arrival: Arrival {
                id,
                at: runtime_now(),
                address,
            },
            method,
            route,
            span,
        }
    }

    /// What is logged and asked in the future belongs to the request.
    pub fn around<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        self.trace.around(future.instrument(self.span.clone()))
    }

    /// The head of the answer is there.
    pub fn answered(&self, response: &Response) {
        let now = self.edge.clock.instant();
        let latency = now.saturating_duration_since(self.started);
        let status = response.status();
        let _entered = self.span.enter();
        self.span.record("status", status.as_u16());
        self.span.record("latency_ms", latency.as_millis() as u64);
        log_end(response, &self.route);
        let code = i64::from(status.as_u16());
        self.trace.set("http.response.status_code", code);
        if status.is_server_error() {
            self.trace.fail(status.as_u16().to_string());
        }
        count(self.method, self.route.clone(), status, latency);
    }
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
fn trace(headers: &HeaderMap, method: &'static str, route: &str, id: &str) -> Span {
    let trace = Span::of_request(headers, || format!("{method} {route}"));
    if trace.is_recording() {
        trace.set("http.request.method", method);
        trace.set("http.route", route.to_owned());
        trace.set("colloquy.request_id", id.to_owned());
    }
    trace
}

/// The client's id when it is short and plain, else a new one.
fn request_id(edge: &Edge, request: &Request) -> String {
    let sane = |id: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        (1..=128).contains(&id.len()) && id.chars().all(plain)
    };
    let given = request.headers().get(REQUEST_ID);
    given
        .and_then(|value| value.to_str().ok())
        .filter(sane)
        .map_or_else(|| edge.clock.new_id().to_string(), str::to_owned)
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
        Some((error, source)) if source.is::<WarnedBefore>() => {
            tracing::debug!(
                code = error.code,
                source = chain(&**source),
                "request refused"
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

/// What a client gets when a handler panicked. The panic's own message is on standard error.
pub(super) fn panicked(_payload: Box<dyn Any + Send + 'static>) -> Response {
    ApiError::internal("a handler panicked").into_response()
}
