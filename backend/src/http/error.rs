//! The one error of the HTTP edge.
//!
//! A handler returns [`ApiError`]; the router wraps each interface in the [`ErrorShape`] that its document promises.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    Json,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

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

/// What few errors have.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// Every wrong field, where an interface reports all of them at once.
    pub fields: Vec<FieldError>,
    /// How much of the quota is left, for a client that has used it up.
    pub limits: HeaderMap,
}

/// A wrong field among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl FieldError {
    /// What is wrong with a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
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
    pub fn invalid_fields(fields: Vec<FieldError>) -> Self {
        Self {
            field: fields.first().map(|wrong| wrong.field.clone()),
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
    pub fn fields(&self) -> &[FieldError] {
        self.details.as_ref().map_or(&[], |details| &details.fields)
    }

    /// Tells how much of the quota is left.
    #[must_use]
    pub fn with_limits(self, limits: HeaderMap) -> Self {
        let details = Details {
            limits,
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

    /// 400: the character is unknown, of another partner, or malformed; the code that the call document prescribes.
    pub fn invalid_character(message: impl Into<String>) -> Self {
        Self {
            field: Some("character".to_owned()),
            ..Self::new(StatusCode::BAD_REQUEST, "invalid_character", message)
        }
    }

    /// 409: the thing's state does not allow it.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// 429: too many requests.
    #[must_use]
    pub fn rate_limited(wait: Duration) -> Self {
        let seconds = wait.as_secs_f64().ceil().max(1.0);
        Self {
            retry_after: Some(wait),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limited",
                format!("Rate limit exceeded, try again in {seconds} s"),
            )
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

impl From<sea_orm::DbErr> for ApiError {
    fn from(error: sea_orm::DbErr) -> Self {
        Self::internal(error)
    }
}

/// Whether a path belongs to the call backend: the routes that the SDK reaches from a page.
pub(crate) fn is_call_path(path: &str) -> bool {
    path.strip_prefix("/v2/calls")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path belongs to the speech interface.
fn is_speech_path(path: &str) -> bool {
    path.strip_prefix("/v2/audio")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The body that an interface document promises for its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorShape {
    /// `{detail, code, field}`: everything under `/api`, and legacy messaging.
    Detail,
    /// `{error: {code, message, field}}`: the call backend; codes in upper case.
    Call,
    /// `{message, errors: {field: [text]}}` for wrong fields, `{error, code: QUOTA_EXHAUSTED}` for an exhausted quota,
    /// `{error}` for everything else: the speech interface.
    Speech,
    /// `{detail: {code, message, context: {request_id, endpoint, field}}}`: text generation.
    Text,
}

/// The request that an error belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorContext {
    /// The request's id.
    pub request_id: String,
    /// The path.
    pub endpoint: String,
}

impl ErrorShape {
    /// The shape of the interface that a path belongs to.
    #[must_use]
    pub fn of_path(path: &str) -> Self {
        if is_call_path(path) {
            Self::Call
        } else if path.starts_with("/v3/") {
            Self::Text
        } else if is_speech_path(path) {
            Self::Speech
        } else {
            Self::Detail
        }
    }

    /// The body of this error.
    #[must_use]
    pub fn body(self, error: &ApiError, context: &ErrorContext) -> Value {
        match self {
            Self::Detail => {
                let mut body = json!({"detail": error.message, "code": error.code});
                if let Some(field) = &error.field {
                    body["field"] = json!(field);
                }
                body
            }
            Self::Call => {
                let code = error.code.to_ascii_uppercase();
                let mut body = json!({"error": {"code": code, "message": error.message}});
                if let Some(field) = &error.field {
                    body["error"]["field"] = json!(field);
                }
                body
            }
            Self::Text => {
                let mut context =
                    json!({"request_id": context.request_id, "endpoint": context.endpoint});
                if let Some(field) = &error.field {
                    context["field"] = json!(field);
                }
                json!({"detail": {"code": error.code, "message": error.message, "context": context}})
            }
            Self::Speech => speech_body(error),
        }
    }

    /// Gives an error response the body of this shape; other responses pass.
    pub fn apply(self, mut response: Response, context: &ErrorContext) -> Response {
        let Some(error) = response.extensions_mut().remove::<ApiError>() else {
            return response;
        };
        let mut shaped = Json(self.body(&error, context)).into_response();
        *shaped.status_mut() = error.status;
        for (name, value) in response.headers() {
            if *name != CONTENT_TYPE && *name != CONTENT_LENGTH {
                shaped.headers_mut().append(name, value.clone());
            }
        }
        shaped.extensions_mut().insert(error);
        shaped
    }
}

fn speech_body(error: &ApiError) -> Value {
    if let Some(field) = error.field.as_ref().filter(|_| error.fields().is_empty()) {
        let errors = BTreeMap::from([(field, [&error.message])]);
        return json!({"message": "The request is not valid", "errors": errors});
    }
    if !error.fields().is_empty() {
        let mut errors = BTreeMap::<&str, Vec<&str>>::new();
        for wrong in error.fields() {
            errors.entry(&wrong.field).or_default().push(&wrong.message);
        }
        return json!({"message": error.message, "errors": errors});
    }
    match error.code {
        "quota_exhausted" => json!({"error": error.message, "code": "QUOTA_EXHAUSTED"}),
        _ => json!({"error": error.message}),
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
        if let Some(details) = &self.details {
            response.headers_mut().extend(details.limits.clone());
        }
        response.extensions_mut().insert(self);
        response
    }
}
