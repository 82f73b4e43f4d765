//! Failures that a server reports, in place of an answer or in the middle of one.

use reqwest::StatusCode;
use serde_json::Value;

use super::super::{ModelApi, ProviderErrorKind, TokenUsage};

/// A failure that a server reports.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    /// The kind.
    pub(super) kind: ProviderErrorKind,
    /// The short code, for logs.
    pub(super) code: Option<String>,
    /// What the server says, for the client that sent the request: it may repeat the request.
    pub(super) error: Value,
    /// What was used all the same: a response that failed tells it.
    pub(super) used: Option<TokenUsage>,
}

/// The failure in a body or an event: `{"error": {..}}`, an `error` event, or a response that failed.
pub(super) fn failure(value: &Value) -> Option<Failure> {
    let kind = value.get("type").and_then(Value::as_str);
    let error = match kind {
        Some("response.failed") => value
            .pointer("/response/error")
            .cloned()
            .unwrap_or(Value::Null),
        _ => match value.get("error") {
            Some(error) if !error.is_null() => error.clone(),
            _ if kind == Some("error") => value.clone(),
            _ => return None,
        },
    };
    let code = short_code(&error);
    let kind = match code.as_deref() {
        Some("rate_limit_exceeded" | "rate_limit_error") => ProviderErrorKind::RateLimited,
        Some("invalid_request_error" | "invalid_prompt") => ProviderErrorKind::Rejected,
        _ => ProviderErrorKind::Failed,
    };
    let response = value.get("response").unwrap_or(value);
    let used = match response.get("usage") {
        Some(Value::Object(usage)) => TokenUsage::read(ModelApi::Responses, usage),
        _ => None,
    };
    Some(Failure {
        kind,
        code,
        error,
        used,
    })
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

/// The short code of an error, `{"code" | "type"}`. Codes are words; anything else is not shown.
fn short_code(error: &Value) -> Option<String> {
    let code = ["code", "type"]
        .into_iter()
        .find_map(|name| error.get(name)?.as_str())?;
    let short = code.len() <= 64
        && code
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    short.then(|| code.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failures_of_both_apis() {
        let told = json!({"message": "about the visitor", "code": "overloaded"});
        for body in [
            json!({"error": told}),
            json!({"type": "response.failed", "response": {"error": told}}),
            json!({"type": "error", "error": told}),
        ] {
            let found = failure(&body).unwrap();
            assert_eq!(found.code.as_deref(), Some("overloaded"), "{body}");
            assert_eq!(
                (found.kind, &found.error),
                (ProviderErrorKind::Failed, &told),
                "{body}"
            );
        }
        let flat = json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"});
        assert_eq!(failure(&flat).unwrap().kind, ProviderErrorKind::RateLimited);
        for fine in [
            json!({"error": null, "choices": []}),
            json!({"type": "response.completed", "response": {"error": null}}),
        ] {
            assert_eq!(failure(&fine), None, "{fine}");
        }
    }

    #[test]
    fn a_code_is_a_word() {
        assert_eq!(short_code(&json!({"code": "he said: hello"})), None);
        assert_eq!(
            short_code(&json!({"code": 7, "type": "server_error"})).as_deref(),
            Some("server_error")
        );
    }
}
