//! What kind of failure a service's own words mean.

use colloquy_formats::UpstreamFailure;
use reqwest::StatusCode;

use super::ProviderErrorKind;

/// What kind of failure it is, as far as the service says.
pub(super) fn error_kind(told: &UpstreamFailure) -> ProviderErrorKind {
    let status = told.status.and_then(|code| StatusCode::from_u16(code).ok());
    if let Some(status) = status {
        return kind_of(status);
    }
    let words = [told.code.as_deref(), told.kind.as_deref()];
    let says = |kinds: [&str; 2]| words.iter().flatten().any(|word| kinds.contains(word));
    if says(["rate_limit_exceeded", "rate_limit_error"]) {
        ProviderErrorKind::RateLimited
    } else if says(["invalid_request_error", "invalid_prompt"]) {
        ProviderErrorKind::Rejected
    } else {
        ProviderErrorKind::Failed
    }
}

/// What a status means.
pub(super) fn kind_of(status: StatusCode) -> ProviderErrorKind {
    match status {
        StatusCode::TOO_MANY_REQUESTS => ProviderErrorKind::RateLimited,
        StatusCode::REQUEST_TIMEOUT => ProviderErrorKind::Timeout,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ProviderErrorKind::Misconfigured,
        _ if status.is_server_error() => ProviderErrorKind::Failed,
        _ => ProviderErrorKind::Rejected,
    }
}

#[cfg(test)]
mod tests {
    use colloquy_formats::{ModelApi, failure};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_says_more_than_words() {
        for (said, kind) in [
            (json!({"code": "overloaded"}), ProviderErrorKind::Failed),
            (
                json!({"code": "rate_limit_exceeded"}),
                ProviderErrorKind::RateLimited,
            ),
            (
                json!({"code": 429, "type": "server_error"}),
                ProviderErrorKind::RateLimited,
            ),
            (
                json!({"type": "invalid_request_error"}),
                ProviderErrorKind::Rejected,
            ),
            (
                json!({"status": 401, "type": "invalid_request_error"}),
                ProviderErrorKind::Misconfigured,
            ),
        ] {
            let told = failure(ModelApi::Chat, &json!({"error": said})).unwrap();
            assert_eq!(error_kind(&told), kind, "{said}");
        }
    }
}
