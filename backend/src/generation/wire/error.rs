//! The error that a stream ends with, and the compatible shape of a model's errors.

use serde_json::{Value, json};

use super::UpstreamFailure;
use crate::http::ApiError;

/// An error in the shape of the public APIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    /// The kind: `server_error`, `invalid_request_error`, ..
    pub(crate) kind: String,
    /// A stable code.
    pub(crate) code: String,
    /// What happened, for a developer.
    pub(crate) message: String,
    /// The field of the request that is wrong.
    pub(crate) param: Option<String>,
}

impl ErrorBody {
    /// A failure that is not the client's.
    pub(crate) fn server(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: "server_error".to_owned(),
            code: code.into(),
            message: message.into(),
            param: None,
        }
    }

    /// `{type, code, message, param}`, as it stands in `{"error": ..}`.
    pub(crate) fn to_value(&self) -> Value {
        json!({
            "type": self.kind,
            "code": self.code,
            "message": self.message,
            "param": self.param,
        })
    }
}

impl From<&ApiError> for ErrorBody {
    fn from(error: &ApiError) -> Self {
        let kind = match error.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        };
        Self {
            kind: kind.to_owned(),
            code: error.code.to_owned(),
            message: error.message.clone(),
            param: error.field.clone(),
        }
    }
}

impl From<UpstreamFailure> for ErrorBody {
    fn from(failure: UpstreamFailure) -> Self {
        Self {
            kind: failure.kind.unwrap_or_else(|| "server_error".to_owned()),
            code: failure.code.unwrap_or_else(|| "upstream_error".to_owned()),
            message: failure
                .message
                .unwrap_or_else(|| "The model failed while it answered".to_owned()),
            param: None,
        }
    }
}
