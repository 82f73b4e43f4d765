//! What a client is told when a model failed.
//!
//! A model's own words about a request that it refused go to the client in the shape of the public APIs; everything else
//! is the operator's business and is told as a failure of the service.

use std::time::Duration;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse as _, Response},
};
use serde_json::json;

use super::wire::{ErrorBody, UpstreamFailure};
use crate::{
    http::ApiError,
    providers::{ProviderError, ProviderErrorKind},
};

/// What is told instead of an answer.
pub(super) fn response(error: &ProviderError) -> Response {
    let body = json!({"error": body(error).to_value()});
    let mut response = (status(error), Json(body)).into_response();
    if let Some(wait) = retry_after(error) {
        let seconds = wait.as_secs_f64().ceil().clamp(1.0, 86_400.0);
        if let Ok(value) = HeaderValue::from_str(&format!("{seconds:.0}")) {
            response.headers_mut().insert(RETRY_AFTER, value);
        }
    }
    response
}

/// What is told of an answer that is none.
pub(super) fn told(failure: UpstreamFailure) -> Response {
    let body = json!({"error": ErrorBody::from(failure).to_value()});
    (StatusCode::BAD_GATEWAY, Json(body)).into_response()
}

/// What is told instead of an answer when the server stops before there is one.
pub(super) fn stopping() -> ApiError {
    ApiError::unavailable("The server stops; ask again", Duration::from_secs(1))
}

/// What ends a stream that has begun when the server stops.
pub(super) fn stopped() -> ErrorBody {
    ErrorBody::server(
        "server_stopped",
        "The server stopped before the answer was complete",
    )
}

/// What ends a stream that has begun.
pub(super) fn body(error: &ProviderError) -> ErrorBody {
    let told = error.told.as_ref().map(|told| &told.error);
    let text = |name: &str| told?.get(name)?.as_str().map(str::to_owned);
    let (kind, code) = match error.kind {
        ProviderErrorKind::Rejected => ("invalid_request_error", "upstream_rejected"),
        ProviderErrorKind::Misconfigured => ("server_error", "upstream_misconfigured"),
        ProviderErrorKind::RateLimited => ("rate_limit_error", "upstream_rate_limited"),
        ProviderErrorKind::Timeout => ("server_error", "upstream_timeout"),
        ProviderErrorKind::Connect => ("server_error", "upstream_unreachable"),
        ProviderErrorKind::Cut => ("server_error", "upstream_cut"),
        ProviderErrorKind::Failed | ProviderErrorKind::Malformed => {
            ("server_error", "upstream_error")
        }
    };
    if !error.is_of_request() {
        let message = match error.kind {
            ProviderErrorKind::RateLimited => "The model has too many requests",
            ProviderErrorKind::Timeout => "The model did not answer in time",
            ProviderErrorKind::Cut => "The model's answer was cut off",
            _ => "The model failed",
        };
        let kind = if error.kind == ProviderErrorKind::Rejected {
            "server_error"
        } else {
            kind
        };
        return ErrorBody {
            kind: kind.to_owned(),
            code: code.to_owned(),
            message: message.to_owned(),
            param: None,
        };
    }
    ErrorBody {
        kind: text("type").unwrap_or_else(|| kind.to_owned()),
        code: text("code").unwrap_or_else(|| code.to_owned()),
        message: text("message").unwrap_or_else(|| "The model refused the request".to_owned()),
        param: text("param"),
    }
}

fn status(error: &ProviderError) -> StatusCode {
    let told = error.told.as_ref().and_then(|told| told.status);
    match error.kind {
        ProviderErrorKind::Rejected if error.is_of_request() => told
            .and_then(|status| StatusCode::from_u16(status).ok())
            .filter(StatusCode::is_client_error)
            .unwrap_or(StatusCode::BAD_GATEWAY),
        ProviderErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ProviderErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        // A model that rests.
        ProviderErrorKind::Failed if told.is_none() && error.retry_after.is_some() => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// When to come back. Whoever is told that there are too many requests is always told.
fn retry_after(error: &ProviderError) -> Option<Duration> {
    let limited = error.kind == ProviderErrorKind::RateLimited;
    error
        .retry_after
        .or(limited.then_some(Duration::from_secs(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::Told;

    fn refused(status: u16) -> ProviderError {
        let mut error = ProviderError::new("m", ProviderErrorKind::Rejected, "status");
        let told = json!({"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded", "param": "messages"});
        error.told = Some(Box::new(Told {
            status: Some(status),
            error: told,
            used: None,
        }));
        error
    }

    #[test]
    fn a_refused_request_is_told_in_the_models_words() {
        assert_eq!(status(&refused(400)), StatusCode::BAD_REQUEST);
        let body = body(&refused(400));
        assert_eq!(
            (body.code.as_str(), body.message.as_str()),
            ("context_length_exceeded", "too long")
        );
        assert_eq!(body.param.as_deref(), Some("messages"));
    }

    #[test]
    fn a_refused_key_and_a_missing_model_are_not_the_clients() {
        let key = ProviderError {
            kind: ProviderErrorKind::Misconfigured,
            ..refused(401)
        };
        for error in [key, refused(404)] {
            assert_eq!(status(&error), StatusCode::BAD_GATEWAY);
            assert_eq!(body(&error).message, "The model failed");
            assert_eq!(body(&error).kind, "server_error");
        }
    }

    #[test]
    fn waits_are_told() {
        let limited = ProviderError::new("m", ProviderErrorKind::RateLimited, "status");
        let answer = response(&limited);
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(answer.headers()[RETRY_AFTER], "1");
        let mut resting = ProviderError::new("m", ProviderErrorKind::Failed, "it rests");
        resting.retry_after = Some(Duration::from_secs(7));
        let answer = response(&resting);
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()[RETRY_AFTER], "7");
        let cut = ProviderError::new("m", ProviderErrorKind::Cut, "cut");
        assert_eq!(status(&cut), StatusCode::BAD_GATEWAY);
    }
}
