//! The upgrade of a request to a WebSocket.
//!
//! A proxy that is not told to passes neither `Upgrade` nor `Connection` on (RFC 9110 section 7.6.1), so what it makes of a browser's
//! handshake is a plain request. A page cannot read the answer; whoever looks into the browser's network log or the server's own finds
//! out there what is wrong.

use axum::{
    extract::{FromRef, FromRequestParts, WebSocketUpgrade},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use colloquy_http::{ApiError, WarnedBefore};

use crate::Media;

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

/// The upgrade that a session's address is for. Anything else is answered with 426, which says what is missing, and is warned of in the log
/// once a minute at most, since anybody can send such requests.
pub(crate) struct SessionUpgrade(pub(crate) WebSocketUpgrade);

impl<S: Send + Sync> FromRequestParts<S> for SessionUpgrade
where
    Media: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        match WebSocketUpgrade::from_request_parts(parts, state).await {
            Ok(upgrade) => Ok(Self(upgrade)),
            Err(rejection) => {
                let media = Media::from_ref(state);
                // Anybody can send one that names no proxy, and hides no warning of one.
                let subject = match proxy(&parts.headers) {
                    Some(_) => "a session that a proxy passed on without its upgrade",
                    None => "a session without an upgrade",
                };
                let may_warn = media.limits.may_warn(subject);
                Err(refuse(&parts.headers, &rejection.body_text(), may_warn))
            }
        }
    }
}

fn refuse(headers: &HeaderMap, reason: &str, may_warn: bool) -> Response {
    let proxy = proxy(headers);
    let proxy = proxy.map(|proxy| format!(" ({proxy})")).unwrap_or_default();
    let message = format!(
        "A WebSocket begins here, and the request is none: {reason}. If a browser sent it, a proxy{proxy} did not pass the headers \
         Upgrade and Connection on; tell it to, with HTTP/1.1"
    );
    let source: Box<dyn std::error::Error + Send + Sync> = match may_warn {
        true => message.as_str().into(),
        false => Box::new(WarnedBefore(message.clone())),
    };
    let error = ApiError {
        source: Some(source.into()),
        ..ApiError::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message)
    };
    let mut response = error.into_response();
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
    use super::*;

    fn refused(headers: &[(&'static str, &str)]) -> (HeaderMap, String) {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()));
        let response = refuse(&headers.collect(), "no Upgrade", true);
        assert_eq!(response.status(), 426);
        let error = response.extensions().get::<ApiError>().unwrap();
        (response.headers().clone(), error.message.clone())
    }

    #[test]
    fn a_request_that_the_log_was_warned_of_before_is_told_the_same() {
        for may_warn in [true, false] {
            let response = refuse(&HeaderMap::new(), "no Upgrade", may_warn);
            let error = response.extensions().get::<ApiError>().unwrap();
            let source = error.source.as_ref().unwrap();
            assert_eq!(source.to_string(), error.message);
            assert_eq!(source.is::<WarnedBefore>(), !may_warn);
        }
    }

    #[test]
    fn a_request_without_an_upgrade_names_the_proxy_that_dropped_it() {
        let (headers, message) =
            refused(&[("x-real-ip", "192.0.2.9"), ("via", "1.1 edge.example")]);
        assert_eq!(headers["upgrade"], "websocket");
        assert!(
            message.contains("a proxy (1.1 edge.example) did not pass"),
            "{message}"
        );
        let (_, message) = refused(&[("x-forwarded-for", "192.0.2.9")]);
        assert!(
            message.contains("(which sent x-forwarded-for)"),
            "{message}"
        );
        let (_, message) = refused(&[]);
        assert!(message.contains("a proxy did not pass"), "{message}");
        let long = "v".repeat(5_000);
        assert!(refused(&[("via", &long)]).1.len() < 500);
    }
}
