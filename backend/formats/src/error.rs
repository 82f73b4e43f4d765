//! What is wrong with a request, and the error that a stream ends with, in the shape of the public APIs.

use std::{borrow::Cow, fmt::Display};

use serde_json::{Value, json};

use super::UpstreamFailure;

/// A field of a request is wrong. As a text it is its path and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {message}")]
pub struct FormatError {
    /// The field's path, such as `messages[0].content`.
    pub field: String,
    /// What is wrong with it, to be read behind the path.
    pub message: Cow<'static, str>,
    /// What kind of error it is.
    pub kind: FormatErrorKind,
}

/// The kinds of [`FormatError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatErrorKind {
    /// The field is not as the API has it, whichever model is asked.
    Invalid,
    /// The API of this model has no counterpart to the field; another model may serve the request.
    Unsupported,
}

impl FormatError {
    /// The field is not as the API has it.
    pub(super) fn new(field: impl Into<String>, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
            kind: FormatErrorKind::Invalid,
        }
    }

    /// A field without counterpart in the API that the model speaks.
    pub(super) fn unsupported(field: impl Into<String>) -> Self {
        Self {
            kind: FormatErrorKind::Unsupported,
            ..Self::new(field, "is not supported by this model")
        }
    }

    /// The same error, of a field inside another one.
    pub(super) fn within(self, outer: impl Display) -> Self {
        let separator = if self.field.is_empty() || self.field.starts_with('[') {
            ""
        } else {
            "."
        };
        Self {
            field: format!("{outer}{separator}{}", self.field),
            ..self
        }
    }
}

/// An error in the shape of the public APIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorBody {
    /// The kind: `server_error`, `invalid_request_error`, ..
    pub kind: String,
    /// A stable code.
    pub code: String,
    /// What happened, for a developer.
    pub message: String,
    /// The field of the request that is wrong.
    pub param: Option<String>,
    /// The request that failed, for whoever looks for it in a log; told where it is known.
    pub request_id: Option<String>,
}

impl ErrorBody {
    /// A failure that is not the client's.
    pub fn server(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: "server_error".to_owned(),
            code: code.into(),
            message: message.into(),
            param: None,
            request_id: None,
        }
    }

    /// `{type, code, message, param}`, as it stands in `{"error": ..}`, with `request_id` where it is known.
    pub fn to_value(&self) -> Value {
        let mut value = json!({
            "type": self.kind,
            "code": self.code,
            "message": self.message,
            "param": self.param,
        });
        if let Some(id) = &self.request_id {
            value["request_id"] = json!(id);
        }
        value
    }
}

impl From<&UpstreamFailure> for ErrorBody {
    fn from(failure: &UpstreamFailure) -> Self {
        let word = |word: &Option<String>, default: &str| {
            word.clone().unwrap_or_else(|| default.to_owned())
        };
        Self {
            kind: word(&failure.kind, "server_error"),
            code: word(&failure.code, "upstream_error"),
            message: word(&failure.message, "The model failed while it answered"),
            param: failure.param.clone(),
            request_id: None,
        }
    }
}
