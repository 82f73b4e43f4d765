//! What a client is told when there is no answer: the edge of every request for text.
//!
//! A model's own words about a request that it refused go to the client in the shape of the public APIs; everything else
//! is the operator's business and is told as a failure of the service.

use std::time::Duration;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use colloquy_formats::ErrorBody;
use colloquy_http::{ApiError, public_error};
use colloquy_providers::{ProviderError, ProviderErrorKind};
use serde_json::{Value, json};

use super::error::AnswerError;

/// What a client is told instead of an answer.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The service's own error.
    Service(ApiError),
    /// A model's.
    Model {
        status: StatusCode,
        error: ErrorBody,
        /// When to ask again.
        retry_after: Option<Duration>,
    },
}

impl Refusal {
    /// The error as the public APIs write it.
    pub(super) fn public_error(&self) -> Value {
        match self {
            Self::Service(error) => public_error(error),
            Self::Model { error, .. } => error.to_value(),
        }
    }
}

impl From<AnswerError> for Refusal {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Model(error) => Self::Model {
                status: status(&error),
                error: body(&error),
                retry_after: retry_after(&error),
            },
            AnswerError::NoAnswer(failure) => Self::Model {
                status: StatusCode::BAD_GATEWAY,
                error: (&*failure).into(),
                retry_after: None,
            },
            AnswerError::Invalid(invalid) => Self::Service(invalid.into()),
            AnswerError::Unpaid(error) => Self::Service(error.into()),
            AnswerError::Store(error) => Self::Service(error.into()),
            AnswerError::Stopping => Self::Service(stopping()),
        }
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Service(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let public_error = self.public_error();
        let (status, retry_after) = match self {
            Self::Service(error) => return error.into_response(),
            Self::Model {
                status,
                retry_after,
                ..
            } => (status, retry_after),
        };
        let mut response = (status, Json(json!({"error": public_error}))).into_response();
        if let Some(wait) = retry_after {
            let seconds = wait.as_secs_f64().ceil().clamp(1.0, 86_400.0);
            if let Ok(value) = HeaderValue::from_str(&format!("{seconds:.0}")) {
                response.headers_mut().insert(RETRY_AFTER, value);
            }
        }
        response
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

/// What ends a stream that has begun.
pub(super) fn body(error: &ProviderError) -> ErrorBody {
    let (kind, code) = match error.kind {
        ProviderErrorKind::Rejected => ("invalid_request_error", "upstream_rejected"),
        ProviderErrorKind::Misconfigured => ("server_error", "upstream_misconfigured"),
        ProviderErrorKind::RateLimited | ProviderErrorKind::Busy => {
            ("rate_limit_error", "upstream_rate_limited")
        }
        ProviderErrorKind::Timeout => ("server_error", "upstream_timeout"),
        ProviderErrorKind::Connect => ("server_error", "upstream_unreachable"),
        ProviderErrorKind::Cut => ("server_error", "upstream_cut"),
        ProviderErrorKind::Resting => ("server_error", "upstream_resting"),
        ProviderErrorKind::Failed | ProviderErrorKind::Malformed => {
            ("server_error", "upstream_error")
        }
    };
    if !error.is_of_request() {
        let message = match error.kind {
            ProviderErrorKind::RateLimited => "The model has too many requests",
            ProviderErrorKind::Timeout => "The model did not answer in time",
            ProviderErrorKind::Cut => "The model's answer was cut off",
            ProviderErrorKind::Resting => "The model is not asked for a moment, after failures",
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
    let told = error.told.as_deref().cloned().unwrap_or_default();
    ErrorBody {
        kind: told.kind.unwrap_or_else(|| kind.to_owned()),
        code: told.code.unwrap_or_else(|| code.to_owned()),
        message: told
            .message
            .unwrap_or_else(|| "The model refused the request".to_owned()),
        param: told.param,
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
        ProviderErrorKind::Resting => StatusCode::SERVICE_UNAVAILABLE,
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
    use colloquy_providers::UpstreamFailure;

    use super::*;

    fn answer(error: ProviderError) -> Response {
        Refusal::from(AnswerError::from(error)).into_response()
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
            assert_eq!(body(&error).message, "The model failed");
            assert_eq!(body(&error).kind, "server_error");
        }
    }

    #[test]
    fn waits_are_told() {
        let limited = ProviderError::new("m", ProviderErrorKind::RateLimited, "status");
        let told = answer(limited);
        assert_eq!(told.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(told.headers()[RETRY_AFTER], "1");
        let resting = ProviderError::resting("m", Duration::from_secs(7));
        let told = answer(resting);
        assert_eq!(told.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(told.headers()[RETRY_AFTER], "7");
        let cut = ProviderError::new("m", ProviderErrorKind::Cut, "cut");
        assert_eq!(status(&cut), StatusCode::BAD_GATEWAY);
    }
}
