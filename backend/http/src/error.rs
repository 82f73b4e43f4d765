//! The one error of the HTTP edge.
//!
//! A handler returns [`ApiError`]; the routes of each [`Interface`](super::Interface) are wrapped in the [`ErrorShape`] that
//! its document promises.

use std::{borrow::Cow, sync::Arc, time::Duration};

use axum::{
    Json,
    http::{HeaderMap, HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use colloquy_base::invalid::InvalidField;
use colloquy_store::{StoreError, StoreErrorKind};
use serde_json::Value;

use super::{ErrorContext, ErrorShape};

/// How long a client waits that found the database away.
const DATABASE_WAIT: Duration = Duration::from_secs(2);
/// How long a client waits that found no room on the disk of the database.
const DISK_WAIT: Duration = Duration::from_secs(10);
/// What is told where the disk of the database has no room, even for what a deletion stores.
const DISK_FULL: &str = "The storage is full: the disk of the database has no free space, so that nothing can be changed or deleted; have the \
     operator make room on the disk, then send this again";
/// What is told where a rate is exceeded.
const RATE_LIMITED: &str = "Rate limit exceeded";

/// What went wrong, for the client (`status`, `code`, `message`, `field`, `retry_after`) and for the log (`source`).
#[derive(Debug, Clone, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// A stable code: lower-case words joined by `_`, unless an interface document prescribes another.
    pub code: &'static str,
    /// What happened and what to do, for a developer.
    pub message: String,
    /// The field of the request that is wrong.
    pub field: Option<String>,
    /// When to try again.
    pub retry_after: Option<Duration>,
    /// What few errors have.
    pub details: Option<Box<Details>>,
    /// The cause, for the log only.
    #[source]
    pub source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// A cause that anybody can bring about at will and that the log was warned of a moment ago: it is logged at the level of debugging.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WarnedBefore(pub String);

/// What few errors have.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// Every wrong field, where an interface reports all of them at once.
    pub fields: Vec<InvalidField>,
    /// How much of the quota is left, for a client that has used it up.
    pub limits: Option<HeaderMap>,
    /// The error of another service as the public APIs write it: `{type, code, message, param}`.
    pub public: Option<Value>,
}

impl ApiError {
    /// An error with this status, code and message.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            field: None,
            retry_after: None,
            details: None,
            source: None,
        }
    }

    /// 400: this field is wrong.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: Some(field.into()),
            ..Self::new(StatusCode::BAD_REQUEST, "invalid_parameters", message)
        }
    }

    /// 400: these fields are wrong.
    #[must_use]
    pub fn invalid_fields(fields: Vec<InvalidField>) -> Self {
        Self {
            field: fields.first().map(|wrong| wrong.field.to_string()),
            details: Some(Box::new(Details {
                fields,
                ..Details::default()
            })),
            ..Self::new(
                StatusCode::BAD_REQUEST,
                "invalid_parameters",
                "The request is not valid",
            )
        }
    }

    /// Every wrong field, where an interface reports all of them at once.
    #[must_use]
    pub fn fields(&self) -> &[InvalidField] {
        self.details.as_ref().map_or(&[], |details| &details.fields)
    }

    /// How much of the quota is left, for a client that has used it up.
    #[must_use]
    pub fn limits(&self) -> Option<&HeaderMap> {
        self.details.as_ref()?.limits.as_ref()
    }

    /// Tells how much of the quota is left.
    #[must_use]
    pub fn with_limits(self, limits: HeaderMap) -> Self {
        let details = Details {
            limits: Some(limits),
            ..Details::default()
        };
        Self {
            details: Some(Box::new(details)),
            ..self
        }
    }

    /// Tells the error of another service in its own words, where the public APIs have a place for them.
    #[must_use]
    pub fn with_public(self, public: Value) -> Self {
        let details = Details {
            public: Some(public),
            ..Details::default()
        };
        Self {
            details: Some(Box::new(details)),
            ..self
        }
    }

    /// 401: no key, or one that is not valid.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "invalid_api_key",
            "Invalid API key",
        )
    }

    /// 403: the key may not do this.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "access_denied", message)
    }

    /// 404: no such thing.
    pub fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("{what} not found"),
        )
    }

    /// 409: the thing's state does not allow it.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// 429: too many requests.
    #[must_use]
    pub fn rate_limited(wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", RATE_LIMITED)
        }
    }

    /// What is told, with the wait where a rate is exceeded. The documents of some interfaces name it there, beside `Retry-After`.
    #[must_use]
    pub fn message_with_wait(&self) -> Cow<'_, str> {
        match self.retry_after {
            Some(wait) if self.message == RATE_LIMITED => {
                let seconds = wait.as_secs_f64().ceil().max(1.0);
                format!("{RATE_LIMITED}, try again in {seconds} s").into()
            }
            _ => self.message.as_str().into(),
        }
    }

    /// 503: no room now.
    pub fn unavailable(message: impl Into<String>, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
        }
    }

    /// 500: our fault. The client sees no detail; the log has the source.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self {
            source: Some(Arc::from(source.into())),
            ..Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "Internal error",
            )
        }
    }

    /// Replaces the code by one that an interface document prescribes.
    #[must_use]
    pub fn with_code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }
}

impl From<InvalidField> for ApiError {
    fn from(invalid: InvalidField) -> Self {
        Self::invalid(invalid.field, invalid.message)
    }
}

impl From<Vec<InvalidField>> for ApiError {
    fn from(wrong: Vec<InvalidField>) -> Self {
        Self::invalid_fields(wrong)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let told = match error.kind() {
            StoreErrorKind::Unavailable => {
                Self::unavailable("The database is not available now", DATABASE_WAIT)
            }
            StoreErrorKind::Full => Self {
                code: "insufficient_storage",
                ..Self::unavailable(DISK_FULL, DISK_WAIT)
            },
            StoreErrorKind::Expired => {
                Self::unavailable("It was not stored in time; send it again", DATABASE_WAIT)
            }
            StoreErrorKind::ForeignKeyMissing => {
                Self::conflict("What this belongs to was deleted meanwhile")
            }
            StoreErrorKind::Text => {
                let message = "A text of the request has a NUL character";
                Self::new(StatusCode::BAD_REQUEST, "invalid_parameters", message)
            }
            StoreErrorKind::UniqueViolated | StoreErrorKind::Malformed | StoreErrorKind::Other => {
                return Self::internal(error);
            }
        };
        Self {
            source: Some(Arc::new(error)),
            ..told
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (
            self.status,
            Json(ErrorShape::Detail.body(&self, &ErrorContext::default())),
        )
            .into_response();
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs_f64().ceil().clamp(1.0, 86_400.0);
            if let Ok(value) = HeaderValue::from_str(&format!("{seconds:.0}")) {
                response.headers_mut().insert(RETRY_AFTER, value);
            }
        }
        if let Some(limits) = self.limits() {
            response.headers_mut().extend(limits.clone());
        }
        response.extensions_mut().insert(self);
        response
    }
}
