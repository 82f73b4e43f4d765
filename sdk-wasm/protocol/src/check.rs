//! The check before a call: `POST /v2/calls/check`, an offer without a call, and the backend's answer to it; and a WebSocket, since a
//! proxy may let requests through and none of these.

use crate::create::answered;
use crate::wire::{Fields, Frame};
use crate::{CallError, ErrorCode};

/// The digit of the longest wait, in seconds, before a backend that refused a check is asked once more. A visitor waits for the report.
const LONGEST_RETRY: u8 = b'5';

/// The URL and the JSON body of the request.
#[must_use]
pub fn check_request(backend_url: &str, offer: &str) -> (String, String) {
    let url = String::from_iter([backend_url.trim_end_matches('/'), "/v2/calls/check"]);
    (url, Frame::object().text("sdp", offer).end())
}

/// The URL of a WebSocket that says and takes nothing; its path is like that of a session.
#[must_use]
pub fn check_socket_url(backend_url: &str) -> String {
    // A scheme may be written in capitals.
    let (scheme, rest) = match backend_url.split_at_checked(4) {
        Some((http, rest)) if http.eq_ignore_ascii_case("http") => ("ws", rest),
        _ => ("", backend_url),
    };
    let rest = rest.trim_end_matches('/');
    String::from_iter([scheme, rest, "/v2/calls/check/session"])
}

/// The failure of that WebSocket at a backend that answers requests.
#[must_use]
pub fn no_socket(url: &str) -> CallError {
    let message = String::from_iter([
        "The backend answers HTTP, but no WebSocket opens at ",
        url,
        ". A proxy in front of it does not pass the headers Upgrade and Connection on, or the page's \
         Content-Security-Policy lacks this origin in connect-src.",
    ]);
    CallError {
        code: ErrorCode::Network,
        message,
    }
}

/// What the backend answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckAnswer {
    status: u16,
    sdp: Option<String>,
    retry_after_ms: Option<u32>,
}

impl CheckAnswer {
    /// Reads the header `Retry-After` and the parsed body, `None` when it is no JSON object.
    #[must_use]
    pub fn read<F: Fields>(status: u16, retry_after: Option<&str>, body: Option<&F>) -> Self {
        let data = body.and_then(|body| body.object("data"));
        let sdp = data.and_then(|data| data.text("sdp"));
        // One digit: longer waits are too long, and a parser of integers would be code in the page.
        let retry_after_ms = match retry_after.map(str::as_bytes) {
            Some([digit @ b'0'..=LONGEST_RETRY]) if matches!(status, 429 | 503) => {
                Some(u32::from(*digit - b'0') * 1_000)
            }
            _ => None,
        };
        Self {
            status,
            sdp,
            retry_after_ms,
        }
    }

    /// Returns the milliseconds after which a backend with too many checks at a time takes another one, or `None` if it did not refuse the
    /// check for that, did not say when to ask again, or said a time of more than 5 seconds.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u32> {
        self.retry_after_ms
    }

    /// The session description, or why there is none. `url` is where the request went.
    ///
    /// # Errors
    /// What the status says; `Protocol` for a success without a description.
    pub fn sdp(self, url: &str) -> Result<String, CallError> {
        let code = match self.sdp {
            Some(sdp) if (200..300).contains(&self.status) => return Ok(sdp),
            None if (200..300).contains(&self.status) => ErrorCode::Protocol,
            _ => ErrorCode::from_http_status(self.status),
        };
        Err(CallError::with_detail(code, &answered(self.status, url)))
    }
}

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_request_carries_the_offer() {
        let (url, body) = check_request("https://calls.example.org/", "v=0\r\n");
        assert_eq!(url, "https://calls.example.org/v2/calls/check");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body, json!({"sdp": "v=0\r\n"}));
    }

    #[test]
    fn answers_become_a_description_or_a_code() {
        let sdp = |status, body: Value| {
            CheckAnswer::read(status, None, Some(&body)).sdp("https://h/v2/calls/check")
        };
        assert_eq!(sdp(200, json!({"data": {"sdp": "v=0"}})), Ok("v=0".into()));
        let failure = |status| sdp(status, json!({})).unwrap_err();
        assert_eq!(failure(200).code, ErrorCode::Protocol);
        assert_eq!(failure(404).code, ErrorCode::Network);
        assert_eq!(failure(429).code, ErrorCode::RateLimited);
        assert_eq!(failure(503).code, ErrorCode::Capacity);
        let message = failure(404).message;
        assert!(
            message.ends_with("(HTTP status 404 from POST https://h/v2/calls/check)"),
            "{message}"
        );
    }

    #[test]
    fn a_busy_backend_says_when_to_ask_again() {
        let retry_after_ms =
            |status, header| CheckAnswer::read(status, header, Some(&json!({}))).retry_after_ms();
        assert_eq!(retry_after_ms(429, Some("2")), Some(2_000));
        assert_eq!(retry_after_ms(503, Some("5")), Some(5_000));
        assert_eq!(retry_after_ms(429, Some("0")), Some(0));
        let date = "Wed, 21 Oct 2026 07:28:00 GMT";
        for header in ["6", "10", "60", "-1", "", "1.5", date] {
            assert_eq!(retry_after_ms(429, Some(header)), None, "{header}");
        }
        assert_eq!(retry_after_ms(429, None), None);
        for status in [200, 400, 500] {
            assert_eq!(retry_after_ms(status, Some("2")), None, "{status}");
        }
    }

    #[test]
    fn the_socket_is_beside_the_sessions() {
        for (backend, socket) in [
            (
                "https://h:8443/voice/",
                "wss://h:8443/voice/v2/calls/check/session",
            ),
            ("http://[::1]", "ws://[::1]/v2/calls/check/session"),
        ] {
            assert_eq!(check_socket_url(backend), socket);
            assert!(no_socket(socket).message.contains(socket));
        }
    }
}
