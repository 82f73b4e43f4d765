//! The check before a call: `POST /v2/calls/check`, an offer without a call, and the backend's answer to it.

use crate::ErrorCode;
use crate::wire::{Fields, Frame};

/// The URL and the JSON body of the request.
#[must_use]
pub fn check_request(backend_url: &str, offer: &str) -> (String, String) {
    let url = String::from_iter([backend_url.trim_end_matches('/'), "/v2/calls/check"]);
    (url, Frame::object().text("sdp", offer).end())
}

/// What the backend answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckAnswer {
    status: u16,
    sdp: Option<String>,
}

impl CheckAnswer {
    /// Reads the parsed body, `None` when it is no JSON object.
    #[must_use]
    pub fn read<F: Fields>(status: u16, body: Option<&F>) -> Self {
        let data = body.and_then(|body| body.object("data"));
        let sdp = data.and_then(|data| data.text("sdp"));
        Self { status, sdp }
    }

    /// The session description, or why there is none.
    ///
    /// # Errors
    /// What the status says; `Protocol` for a success without a description.
    pub fn sdp(self) -> Result<String, ErrorCode> {
        if (200..300).contains(&self.status) {
            return self.sdp.ok_or(ErrorCode::Protocol);
        }
        Err(ErrorCode::from_http_status(self.status))
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
        let sdp = |status, body: Value| CheckAnswer::read(status, Some(&body)).sdp();
        assert_eq!(sdp(200, json!({"data": {"sdp": "v=0"}})), Ok("v=0".into()));
        assert_eq!(sdp(200, json!({})), Err(ErrorCode::Protocol));
        assert_eq!(sdp(404, json!({})), Err(ErrorCode::Network));
        assert_eq!(sdp(429, json!({})), Err(ErrorCode::RateLimited));
        assert_eq!(sdp(503, json!({})), Err(ErrorCode::Capacity));
    }
}
