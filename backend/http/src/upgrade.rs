//! The upgrade of a request to a WebSocket, and the answer to a request that asks for none.
//!
//! A proxy that is not told to passes neither `Upgrade` nor `Connection` on (RFC 9110 section 7.6.1), so what it makes of a browser's
//! handshake is a plain request. A page cannot read the answer; whoever looks into the browser's network log or the server's own finds
//! out there what is wrong.

use axum::{
    extract::{FromRequestParts as _, WebSocketUpgrade},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};

use super::{ApiError, WarnedBefore};

/// How much of a proxy's name is shown.
const SHOWN_CHARS: usize = 100;

/// Headers that proxies add.
const FROM_PROXIES: [&str; 5] = [
    "forwarded",
    "x-forwarded-for",
    "x-real-ip",
    "x-forwarded-host",
    "x-forwarded-proto",
];

/// Takes the upgrade to a WebSocket out of a request.
///
/// # Errors
/// [`NoUpgrade`] for a request that asks for none, which is answered with 426.
pub async fn upgrade(parts: &mut Parts) -> Result<WebSocketUpgrade, NoUpgrade> {
    let upgrade = WebSocketUpgrade::from_request_parts(parts, &()).await;
    upgrade.map_err(|rejection| NoUpgrade::new(&parts.headers, &rejection.body_text()))
}

/// A request that should open a WebSocket and asks for none. The answer is 426, which says what is missing and names the proxy that may have
/// dropped it.
#[derive(Debug)]
pub struct NoUpgrade {
    error: ApiError,
    names_proxy: bool,
}

impl NoUpgrade {
    fn new(headers: &HeaderMap, reason: &str) -> Self {
        let proxy = proxy(headers);
        let named = proxy.as_ref().map(|proxy| format!(" ({proxy})"));
        let named = named.unwrap_or_default();
        let message = format!(
            "A WebSocket begins here, and the request is none: {reason}. If a browser sent it, a proxy{named} did not pass the headers \
             Upgrade and Connection on; tell it to, with HTTP/1.1"
        );
        Self {
            error: ApiError::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message),
            names_proxy: proxy.is_some(),
        }
    }

    /// Returns true if a proxy has left its name or its headers in the request.
    #[must_use]
    pub fn names_proxy(&self) -> bool {
        self.names_proxy
    }

    /// Has the log tell of the request: with a warning, or for debugging where it was warned of such requests a moment ago.
    #[must_use]
    pub fn logged(mut self, may_warn: bool) -> Self {
        let message = self.error.message.clone();
        let source: Box<dyn std::error::Error + Send + Sync> = match may_warn {
            true => message.into(),
            false => Box::new(WarnedBefore(message)),
        };
        self.error.source = Some(source.into());
        self
    }
}

impl IntoResponse for NoUpgrade {
    fn into_response(self) -> Response {
        let mut response = self.error.into_response();
        for (name, value) in [
            (header::UPGRADE, "websocket"),
            (header::CONNECTION, "upgrade"),
            (header::SEC_WEBSOCKET_VERSION, "13"),
        ] {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// The name that a proxy gives itself, or the header that shows that there is one. What else stands in these headers is the visitor's.
fn proxy(headers: &HeaderMap) -> Option<String> {
    let via = headers.get(header::VIA).and_then(|via| via.to_str().ok());
    if let Some(via) = via {
        return Some(via.chars().take(SHOWN_CHARS).collect());
    }
    let shows = FROM_PROXIES
        .into_iter()
        .find(|name| headers.contains_key(*name));
    shows.map(|name| format!("which sent {name}"))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn refused(headers: &[(&'static str, &str)]) -> NoUpgrade {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()));
        NoUpgrade::new(&headers.collect(), "no Upgrade")
    }

    #[tokio::test]
    async fn a_plain_request_is_told_what_is_missing() {
        let (mut parts, ()) = Request::new(()).into_parts();
        let refused = upgrade(&mut parts).await.unwrap_err();
        assert!(!refused.names_proxy());
        let response = refused.into_response();
        assert_eq!(response.status(), 426);
        assert_eq!(response.headers()["upgrade"], "websocket");
        assert_eq!(response.headers()["connection"], "upgrade");
        let error = response.extensions().get::<ApiError>().unwrap();
        assert_eq!(error.code, "upgrade_required");
        assert!(error.source.is_none());
    }

    #[test]
    fn a_request_that_the_log_was_warned_of_before_is_told_the_same() {
        for may_warn in [true, false] {
            let response = refused(&[]).logged(may_warn).into_response();
            let error = response.extensions().get::<ApiError>().unwrap();
            let source = error.source.as_ref().unwrap();
            assert_eq!(source.to_string(), error.message);
            assert_eq!(source.is::<WarnedBefore>(), !may_warn);
        }
    }

    #[test]
    fn a_request_without_an_upgrade_names_the_proxy_that_dropped_it() {
        let via = refused(&[("x-real-ip", "192.0.2.9"), ("via", "1.1 edge.example")]);
        assert!(via.names_proxy());
        let message = via.error.message;
        assert!(
            message.contains("a proxy (1.1 edge.example) did not pass"),
            "{message}"
        );
        let message = refused(&[("x-forwarded-for", "192.0.2.9")]).error.message;
        assert!(
            message.contains("(which sent x-forwarded-for)"),
            "{message}"
        );
        let message = refused(&[]).error.message;
        assert!(message.contains("a proxy did not pass"), "{message}");
        let long = "v".repeat(5_000);
        assert!(refused(&[("via", &long)]).error.message.len() < 500);
    }
}
