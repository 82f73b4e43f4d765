//! What a server whose disk is nearly full says to requests that would store something: what is left is for deletion and for the ends of
//! calls.

use std::{sync::atomic::Ordering, time::Duration};

use axum::{
    extract::{Request, State},
    http::{Method, StatusCode},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{ApiError, Edge};

/// When a disk that is full may have room again.
const RETRY: Duration = Duration::from_secs(10);

/// The disk is nearly full, so that nothing but deletion may store anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "The server's disk is nearly full, so that only deleting and changing limits is possible; delete files, or have the operator make room on the disk \
     (store.disk_reserve_bytes)"
)]
pub struct DiskLow;

/// 507.
impl From<DiskLow> for ApiError {
    fn from(error: DiskLow) -> Self {
        let status = StatusCode::INSUFFICIENT_STORAGE;
        Self {
            retry_after: Some(RETRY),
            ..Self::new(status, "insufficient_storage", error.to_string())
        }
    }
}

impl Edge {
    /// Checks that the disk has room for what a request would store. Requests whose method says so are checked before their handler; a
    /// handler checks what is asked for in another way, such as a message on a WebSocket.
    ///
    /// # Errors
    /// When the disk is nearly full.
    pub fn require_disk(&self) -> Result<(), DiskLow> {
        match self.disk_low.load(Ordering::Relaxed) {
            true => Err(DiskLow),
            false => Ok(()),
        }
    }

    /// Notes whether the disk is so full that nothing but deletion may store anything.
    pub fn set_disk_low(&self, is_low: bool) {
        self.disk_low.store(is_low, Ordering::Relaxed);
    }
}

/// Paths whose `PUT` changes limits of partners and quotas, as an operator does to make room.
const LIMITS: [&str; 2] = ["/api/partners/", "/api/quotas/"];

/// The path whose `POST` deletes.
const BULK_DELETION: &str = "/api/bulk/delete/";

/// Returns true if a request with this method and path is refused while the disk is low: one that creates or changes something. Changes of
/// limits pass, unless their handler finds that they store more than before, and so does a new key for a quota in place of one that leaked.
#[must_use]
pub fn needs_disk(method: &Method, path: &str) -> bool {
    let stores = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
    let is_limit = || LIMITS.iter().any(|prefix| path.starts_with(prefix));
    // `/api/quotas/{partner}/{quota}/rotate`; a partner may be called `rotate`.
    let rotates = || path.ends_with("/rotate") && path.split('/').count() == 6;
    stores
        && !path.starts_with(BULK_DELETION)
        && !(is_limit() && (*method == Method::PUT || rotates()))
}

/// Refuses requests that [need the disk](needs_disk) while it is low. `DELETE` and the sockets of calls pass; the handlers of requests that pass
/// find [`DiskLow`] among the extensions.
pub(super) async fn refuse_without_space(
    State(edge): State<Edge>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Err(low) = edge.require_disk() {
        if needs_disk(request.method(), request.uri().path()) {
            return ApiError::from(low).into_response();
        }
        request.extensions_mut().insert(low);
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::{Router, body::Body, routing::get};
    use colloquy_base::clock::SystemClock;
    use colloquy_config::Config;
    use tokio_util::sync::CancellationToken;
    use tower::ServiceExt as _;

    use super::*;
    use crate::Interface;

    #[tokio::test]
    async fn a_disk_that_is_nearly_full_takes_deletions_alone() {
        let clock = Arc::new(SystemClock);
        let edge = Edge::new(&Config::default(), clock, CancellationToken::new());
        let handler = async || "done";
        let routes = get(handler).post(handler).put(handler).delete(handler);
        let routes = Router::<()>::new()
            .route("/api/documents", routes.clone())
            .route("/api/partners/acme", routes.clone())
            .route("/api/quotas/{partner}", routes.clone())
            .route("/api/quotas/acme/1/rotate", routes.clone())
            .route("/api/bulk/{action}/acme/kb", routes.clone())
            .route("/api/keys/acme", routes);
        let routes = Interface::MANAGEMENT.wrap(&edge, routes);
        let asked = async |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path);
            let request = request.body(Body::empty()).unwrap();
            routes.clone().oneshot(request).await.unwrap().status()
        };
        let status = async |method: Method| asked(method, "/api/documents").await;
        assert_eq!(status(Method::POST).await, StatusCode::OK);
        edge.set_disk_low(true);
        for (method, expected) in [
            (Method::POST, StatusCode::INSUFFICIENT_STORAGE),
            (Method::PUT, StatusCode::INSUFFICIENT_STORAGE),
            (Method::GET, StatusCode::OK),
            (Method::DELETE, StatusCode::OK),
        ] {
            assert_eq!(status(method.clone()).await, expected, "{method}");
        }
        let lowered = asked(Method::PUT, "/api/partners/acme").await;
        assert_eq!(lowered, StatusCode::OK, "a limit can be lowered");
        let rotated = asked(Method::POST, "/api/quotas/acme/1/rotate").await;
        assert_eq!(rotated, StatusCode::OK, "a key can be replaced");
        let deleted = asked(Method::POST, "/api/bulk/delete/acme/kb").await;
        assert_eq!(deleted, StatusCode::OK, "documents can be deleted");
        for path in [
            "/api/quotas/acme",
            "/api/quotas/rotate",
            "/api/keys/acme",
            "/api/partners/acme",
            "/api/bulk/retry/acme/kb",
        ] {
            let created = asked(Method::POST, path).await;
            assert_eq!(created, StatusCode::INSUFFICIENT_STORAGE, "{path}");
        }
        let refused = ApiError::from(edge.require_disk().unwrap_err());
        assert_eq!(refused.status, StatusCode::INSUFFICIENT_STORAGE);
        edge.set_disk_low(false);
        assert_eq!(edge.require_disk(), Ok(()));
        assert_eq!(status(Method::POST).await, StatusCode::OK);
    }
}
