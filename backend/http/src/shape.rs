//! The body that each interface promises for its errors.

use std::{borrow::Cow, collections::BTreeMap};

use axum::{
    Json,
    http::{
        StatusCode,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::ApiError;

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
    /// The same for transcripts, where wrong fields are 422.
    Transcript,
    /// `{message, errors: {path: [text]}}` and 422 for wrong fields, `{message}` for everything else: dialog analysis.
    Analysis,
    /// `{detail: {code, message, context: {request_id, endpoint, field}}}`, and beside it `{error: {type, code, message,
    /// param}}`, which is where the clients of the public APIs look for what they tell: text generation.
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
                let mut body =
                    json!({"error": {"code": code, "message": error.message_with_wait()}});
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
                json!({
                    "detail": {"code": error.code, "message": named(error), "context": context},
                    "error": public_error(error),
                })
            }
            Self::Speech | Self::Transcript => fields_body(error).unwrap_or_else(|| {
                let mut body = json!({"error": error.message_with_wait()});
                if error.limits().is_some() {
                    body["code"] = json!(error.code.to_ascii_uppercase());
                }
                body
            }),
            Self::Analysis => {
                fields_body(error).unwrap_or_else(|| json!({"message": error.message_with_wait()}))
            }
        }
    }

    /// The status of this error.
    #[must_use]
    pub fn status(self, error: &ApiError) -> StatusCode {
        let is_of_fields = error.field.is_some() || !error.fields().is_empty();
        match self {
            Self::Transcript | Self::Analysis
                if error.status == StatusCode::BAD_REQUEST && is_of_fields =>
            {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            _ => error.status,
        }
    }

    /// Gives an error response the body of this shape; other responses pass.
    pub fn apply(self, mut response: Response, context: &ErrorContext) -> Response {
        let Some(error) = response.extensions_mut().remove::<ApiError>() else {
            return response;
        };
        let mut shaped = Json(self.body(&error, context)).into_response();
        *shaped.status_mut() = self.status(&error);
        for (name, value) in response.headers() {
            if *name != CONTENT_TYPE && *name != CONTENT_LENGTH {
                shaped.headers_mut().append(name, value.clone());
            }
        }
        shaped.extensions_mut().insert(error);
        shaped
    }
}

/// An error as the public APIs write it.
pub fn public_error(error: &ApiError) -> Value {
    let told = error.details.as_ref();
    if let Some(public) = told.and_then(|details| details.public.clone()) {
        return public;
    }
    let kind = match error.status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    json!({"type": kind, "code": error.code, "message": named(error), "param": error.field})
}

/// The message, with the field in front where it is no sentence without it, such as `must be an integer`: the official clients show nothing
/// else. A model's own words stay as they are.
fn named(error: &ApiError) -> Cow<'_, str> {
    let message = error.message_with_wait();
    let is_models = || {
        error
            .details
            .as_ref()
            .is_some_and(|told| told.public.is_some())
    };
    match &error.field {
        Some(field)
            if !message.starts_with(char::is_uppercase)
                && !message.contains(&**field)
                && !is_models() =>
        {
            format!("{field}: {message}").into()
        }
        _ => message,
    }
}

/// `{message, errors}` with every wrong field; `None` where no field is wrong.
fn fields_body(error: &ApiError) -> Option<Value> {
    if !error.fields().is_empty() {
        let mut errors = BTreeMap::<&str, Vec<&str>>::new();
        for wrong in error.fields() {
            errors.entry(&wrong.field).or_default().push(&wrong.message);
        }
        return Some(json!({"message": error.message, "errors": errors}));
    }
    let field = error.field.as_ref()?;
    let errors = BTreeMap::from([(field, [&error.message])]);
    Some(json!({"message": "The request is not valid", "errors": errors}))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn wrong_fields_are_unprocessable_where_the_document_says_so() {
        let context = ErrorContext::default();
        let wrong = ApiError::invalid("audio_url", "no address");
        let expected =
            json!({"message": "The request is not valid", "errors": {"audio_url": ["no address"]}});
        let limited = ApiError::rate_limited(Duration::from_secs(3));
        let text = "Rate limit exceeded, try again in 3 s";
        for (shape, status, other) in [
            (ErrorShape::Speech, 400, json!({"error": text})),
            (ErrorShape::Transcript, 422, json!({"error": text})),
            (ErrorShape::Analysis, 422, json!({"message": text})),
        ] {
            assert_eq!(shape.body(&wrong, &context), expected);
            assert_eq!(shape.status(&wrong).as_u16(), status);
            assert_eq!(shape.body(&limited, &context), other);
            assert_eq!(shape.status(&limited).as_u16(), 429);
        }
        let detail = ErrorShape::Detail.body(&limited, &context);
        let expected = json!({"detail": "Rate limit exceeded", "code": "rate_limited"});
        assert_eq!(detail, expected);
    }

    #[test]
    fn errors_of_text_are_readable_to_the_clients_of_the_public_apis() {
        let context = ErrorContext {
            request_id: "r-1".to_owned(),
            endpoint: "/v3/responses".to_owned(),
        };
        let wrong = ApiError::invalid("input[0].type", "input[0].type is wrong");
        let expected = json!({
            "detail": {
                "code": "invalid_parameters", "message": "input[0].type is wrong",
                "context": {"request_id": "r-1", "endpoint": "/v3/responses", "field": "input[0].type"},
            },
            "error": {
                "type": "invalid_request_error", "code": "invalid_parameters",
                "message": "input[0].type is wrong", "param": "input[0].type",
            },
        });
        assert_eq!(ErrorShape::Text.body(&wrong, &context), expected);
        for (told, expected) in [
            ("must be an integer", "limit: must be an integer"),
            ("1 to 100", "limit: 1 to 100"),
            ("Item 'x' not found.", "Item 'x' not found."),
        ] {
            let body = ErrorShape::Text.body(&ApiError::invalid("limit", told), &context);
            for message in [&body["detail"]["message"], &body["error"]["message"]] {
                assert_eq!(message, expected);
            }
        }
        for (error, kind) in [
            (ApiError::unauthorized(), "authentication_error"),
            (ApiError::forbidden("no"), "permission_error"),
            (ApiError::not_found("Response"), "invalid_request_error"),
            (ApiError::rate_limited(Duration::ZERO), "rate_limit_error"),
            (ApiError::internal("x"), "server_error"),
        ] {
            let body = ErrorShape::Text.body(&error, &context);
            assert_eq!(body["error"]["type"], kind);
            assert_eq!(body["error"]["param"], Value::Null);
        }
    }
}
