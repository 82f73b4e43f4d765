//! What a server that stops says to new work. It goes on answering, so that calls can come back and operators can look.

use std::time::Duration;

use axum::{
    extract::{Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{ApiError, Edge};

/// When to try again: another node, or this one once it has started again.
const RETRY: Duration = Duration::from_secs(2);

/// Refuses what would begin something new. Reading is nothing new, and neither is the socket of a call, which finds out
/// itself whether it goes on with one.
pub(super) async fn refuse_new(State(edge): State<Edge>, request: Request, next: Next) -> Response {
    let reads = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    if edge.shutdown.is_cancelled() && !reads {
        return ApiError::unavailable("The server is shutting down", RETRY).into_response();
    }
    next.run(request).await
}
