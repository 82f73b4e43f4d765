//! What a client is told when there is no answer: the edge of every request for text.
//!
//! A model's own words about a request that it refused go to the client in the shape of the public APIs; everything else
//! is the operator's business and is told as a failure of the service.

use std::time::Duration;

use axum::http::StatusCode;
use colloquy_formats::ErrorBody;
use colloquy_http::ApiError;
use colloquy_providers::{ProviderError, ProviderErrorKind};

use super::error::AnswerError;

impl From<AnswerError> for ApiError {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Model(error) => Self {
                retry_after: retry_after(&error),
                ..of_model(status(&error), kind_and_code(&error).1, &body(&error))
            },
            AnswerError::NoAnswer(failure) => {
                let body = ErrorBody::from(&*failure);
                of_model(StatusCode::BAD_GATEWAY, "upstream_error", &body)
            }
            AnswerError::Invalid(invalid) => invalid.into(),
            AnswerError::Unpaid(error) => error.into(),
            AnswerError::Store(error) => error.into(),
            AnswerError::Stopping => stopping(),
        }
    }
}

/// A model's failure: the service's code for it, and what the public APIs are told.
fn of_model(status: StatusCode, code: &'static str, body: &ErrorBody) -> ApiError {
    let error = ApiError::new(status, code, body.message.clone());
    ApiError {
        field: body.param.clone(),
        ..error.with_public(body.to_value())
    }
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

/// What ends a stream whose response could not be stored, as it was asked to be.
pub(super) fn not_stored() -> ErrorBody {
    ErrorBody::server("not_stored", "The response could not be stored; ask again")
}

/// The kind and the code of a failure, where its model has told none.
fn kind_and_code(error: &ProviderError) -> (&'static str, &'static str) {
    match error.kind {
        ProviderErrorKind::Rejected => ("invalid_request_error", "upstream_rejected"),
        ProviderErrorKind::Misconfigured => ("server_error", "upstream_misconfigured"),
        ProviderErrorKind::RateLimited => ("rate_limit_error", "upstream_rate_limited"),
        ProviderErrorKind::Busy => ("server_error", "upstream_busy"),
        ProviderErrorKind::Timeout => ("server_error", "upstream_timeout"),
        ProviderErrorKind::Connect => ("server_error", "upstream_unreachable"),
        ProviderErrorKind::Cut => ("server_error", "upstream_cut"),
        ProviderErrorKind::Resting => ("server_error", "upstream_resting"),
        ProviderErrorKind::Failed | ProviderErrorKind::Malformed | ProviderErrorKind::Empty => {
            ("server_error", "upstream_error")
        }
    }
}

/// Why a model that is not to be blamed on the request gave no answer. Its own words are the operator's business, its status is not.
fn reason(error: &ProviderError) -> String {
    let status = error.told.as_ref().and_then(|told| told.status);
    let reason = match error.kind {
        ProviderErrorKind::RateLimited => "The model has too many requests",
        ProviderErrorKind::Busy => "The model has no room for another request now",
        ProviderErrorKind::Timeout => "The model did not answer in time",
        ProviderErrorKind::Connect => "The model's server cannot be reached",
        ProviderErrorKind::Cut => "The model's answer was cut off",
        ProviderErrorKind::Resting => "The model is not asked for a moment, after failures",
        ProviderErrorKind::Malformed => "The model's answer is malformed",
        ProviderErrorKind::Empty => "The model gave no answer",
        ProviderErrorKind::Misconfigured | ProviderErrorKind::Rejected => {
            "The settings of this model are wrong; the operator of this server has to look at them"
        }
        ProviderErrorKind::Failed => "The model failed",
    };
    match status {
        Some(status) => format!("{reason} (status {status})"),
        None => reason.to_owned(),
    }
}

/// What ends a stream that has begun.
pub(super) fn body(error: &ProviderError) -> ErrorBody {
    let (kind, code) = kind_and_code(error);
    if !error.is_of_request() {
        let kind = if error.kind == ProviderErrorKind::Rejected {
            "server_error"
        } else {
            kind
        };
        return ErrorBody {
            kind: kind.to_owned(),
            code: code.to_owned(),
            message: reason(error),
            param: None,
            request_id: None,
        };
    }
    let told = error.told.as_deref().cloned().unwrap_or_default();
    ErrorBody {
        kind: told.kind.unwrap_or_else(|| kind.to_owned()),
        code: told.code.unwrap_or_else(|| code.to_owned()),
        message: told
            .message
            .unwrap_or_else(|| "The model refused the request".to_owned()),
        param: told.param,
        request_id: None,
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
        ProviderErrorKind::Busy | ProviderErrorKind::Resting => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// Returns the wait for `Retry-After`, which a client always gets where there are too many requests.
fn retry_after(error: &ProviderError) -> Option<Duration> {
    use ProviderErrorKind as Kind;
    let is_full = matches!(error.kind, Kind::RateLimited | Kind::Busy);
    error
        .retry_after
        .or(is_full.then_some(Duration::from_secs(1)))
}

#[cfg(test)]
mod tests {
    use axum::{
        http::header::RETRY_AFTER,
        response::{IntoResponse as _, Response},
    };
    use colloquy_http::{ErrorContext, ErrorShape};
    use colloquy_providers::UpstreamFailure;
    use serde_json::json;

    use super::*;

    fn answer(error: ProviderError) -> Response {
        ApiError::from(AnswerError::from(error)).into_response()
    }

    #[test]
    fn a_failure_tells_its_reason_and_its_request() {
        let context = ErrorContext {
            request_id: "r-1".to_owned(),
            endpoint: "/v3/responses".to_owned(),
        };
        let shaped = |error: ProviderError| {
            ErrorShape::Text.body(&ApiError::from(AnswerError::from(error)), &context)
        };
        let away = shaped(ProviderError::new(
            "m",
            ProviderErrorKind::Connect,
            "refused",
        ));
        let message = "The model's server cannot be reached";
        let expected = json!({
            "detail": {
                "code": "upstream_unreachable", "message": message,
                "context": {"request_id": "r-1", "endpoint": "/v3/responses"},
            },
            "error": {
                "type": "server_error", "code": "upstream_unreachable", "message": message, "param": null,
                "request_id": "r-1",
            },
        });
        assert_eq!(away, expected);
        let told = shaped(refused(400));
        assert_eq!(told["error"]["code"], "context_length_exceeded");
        assert_eq!(told["error"]["request_id"], "r-1");
        assert_eq!(told["detail"]["code"], "upstream_rejected");
        assert_eq!(told["detail"]["message"], "too long");
        assert_eq!(told["detail"]["context"]["field"], "messages");
    }

    fn refused(status: u16) -> ProviderError {
        let mut error = ProviderError::new("m", ProviderErrorKind::Rejected, "status");
        error.told = Some(Box::new(UpstreamFailure {
            status: Some(status),
            kind: Some("invalid_request_error".to_owned()),
            code: Some("context_length_exceeded".to_owned()),
            message: Some("too long".to_owned()),
            param: Some("messages".to_owned()),
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
            let message = body(&error).message;
            assert!(
                message.starts_with("The settings of this model"),
                "{message}"
            );
            assert_eq!(body(&error).kind, "server_error");
        }
    }

    #[test]
    fn waits_are_told() {
        for (kind, status) in [
            (
                ProviderErrorKind::RateLimited,
                StatusCode::TOO_MANY_REQUESTS,
            ),
            (ProviderErrorKind::Busy, StatusCode::SERVICE_UNAVAILABLE),
        ] {
            let told = answer(ProviderError::new("m", kind, "full"));
            assert_eq!(told.status(), status);
            assert_eq!(told.headers()[RETRY_AFTER], "1");
        }
        let busy = ProviderError::new("m", ProviderErrorKind::Busy, "full");
        assert_eq!(body(&busy).code, "upstream_busy");
        let resting = ProviderError::resting("m", Duration::from_secs(7));
        let told = answer(resting);
        assert_eq!(told.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(told.headers()[RETRY_AFTER], "7");
        let cut = ProviderError::new("m", ProviderErrorKind::Cut, "cut");
        assert_eq!(status(&cut), StatusCode::BAD_GATEWAY);
    }
}
