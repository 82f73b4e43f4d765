//! The upgrade of a request to a WebSocket, and the answer to a request that asks for none.
//!
//! A proxy that is not told to passes neither `Upgrade` nor `Connection` on (RFC 9110 section 7.6.1), so what it makes of a browser's
//! handshake is a plain request. A page cannot read the answer; whoever looks into the browser's network log or the server's own finds
//! out there what is wrong.

use axum::{
    extract::{FromRequestParts as _, WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
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
    upgrade.map_err(|rejection| NoUpgrade::new(&parts.headers, &rejection))
}

/// A request that should open a WebSocket and asks for none. The answer is 426, which says what is missing and, where the upgrade itself is,
/// names the proxy that may have dropped it.
#[derive(Debug)]
pub struct NoUpgrade {
    error: ApiError,
}

impl NoUpgrade {
    fn new(headers: &HeaderMap, rejection: &WebSocketUpgradeRejection) -> Self {
        let reason = rejection.body_text();
        let mut message = format!("A WebSocket begins here, and the request is none: {reason}");
        if lacks_upgrade(rejection) {
            let named = proxy(headers).map(|proxy| format!(" ({proxy})"));
            let named = named.unwrap_or_default();
            message.push_str(&format!(
                ". If a browser sent it, a proxy{named} did not pass the headers Upgrade and Connection on; tell it to, with HTTP/1.1"
            ));
        }
        Self {
            error: ApiError::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message),
        }
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

/// Returns true if what is missing is what proxies drop, or the version of HTTP that they speak unless told otherwise. They pass the headers
/// of WebSockets on.
fn lacks_upgrade(rejection: &WebSocketUpgradeRejection) -> bool {
    matches!(
        rejection,
        WebSocketUpgradeRejection::InvalidConnectionHeader(_)
            | WebSocketUpgradeRejection::InvalidUpgradeHeader(_)
            | WebSocketUpgradeRejection::ConnectionNotUpgradable(_)
    )
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

    /// The message of the answer to a request with these headers.
    async fn message(headers: &[(&str, &str)]) -> String {
        refused(headers).await.error.message
    }

    async fn refused(headers: &[(&str, &str)]) -> NoUpgrade {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        upgrade(&mut parts).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_plain_request_is_told_what_is_missing() {
        let response = refused(&[]).await.into_response();
        assert_eq!(response.status(), 426);
        assert_eq!(response.headers()["upgrade"], "websocket");
        assert_eq!(response.headers()["connection"], "upgrade");
        let error = response.extensions().get::<ApiError>().unwrap();
        assert_eq!(error.code, "upgrade_required");
        assert!(error.source.is_none());
    }

    #[tokio::test]
    async fn a_request_that_the_log_was_warned_of_before_is_told_the_same() {
        for may_warn in [true, false] {
            let response = refused(&[]).await.logged(may_warn).into_response();
            let error = response.extensions().get::<ApiError>().unwrap();
            let source = error.source.as_ref().unwrap();
            assert_eq!(source.to_string(), error.message);
            assert_eq!(source.is::<WarnedBefore>(), !may_warn);
        }
    }

    #[tokio::test]
    async fn a_request_without_an_upgrade_names_the_proxy_that_dropped_it() {
        let via = message(&[("x-real-ip", "192.0.2.9"), ("via", "1.1 edge.example")]).await;
        assert!(
            via.contains("a proxy (1.1 edge.example) did not pass"),
            "{via}"
        );
        let shown = message(&[("x-forwarded-for", "192.0.2.9")]).await;
        assert!(shown.contains("(which sent x-forwarded-for)"), "{shown}");
        let none = message(&[]).await;
        assert!(none.contains("a proxy did not pass"), "{none}");
        let long = "v".repeat(5_000);
        assert!(message(&[("via", &long)]).await.len() < 500);
    }

    #[tokio::test]
    async fn no_proxy_is_blamed_for_what_proxies_pass_on() {
        let upgrade = [
            ("via", "1.1 edge.example"),
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
        ];
        let with_key = [
            &upgrade[..],
            &[("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==")],
        ]
        .concat();
        for (headers, missing) in [
            (&upgrade[..], "`Sec-WebSocket-Key` header missing"),
            (&with_key[..], "`Sec-WebSocket-Version` header"),
        ] {
            let told = message(headers).await;
            assert!(told.contains(missing) && !told.contains("proxy"), "{told}");
        }
    }
}
