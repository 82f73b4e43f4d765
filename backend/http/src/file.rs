//! Answers that are files.

use axum::http::HeaderValue;
use url::form_urlencoded::byte_serialize;

/// The `Content-Disposition` of a file of this name (RFC 6266).
#[must_use]
pub fn attachment(name: &str) -> HeaderValue {
    let encoded: String = byte_serialize(name.as_bytes()).collect();
    let encoded = encoded.replace('+', "%20");
    HeaderValue::try_from(format!("attachment; filename*=UTF-8''{encoded}"))
        .unwrap_or(HeaderValue::from_static("attachment"))
}
