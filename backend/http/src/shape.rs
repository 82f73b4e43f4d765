//! The body that each interface promises for its errors.

use std::{borrow::Cow, collections::BTreeMap, iter};

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
    /// param, request_id}}`, which is where the clients of the public APIs look for what they tell: text generation.
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
                let message = named(error, error.message.as_str().into());
                let mut body = json!({"detail": message, "code": error.code});
                if let Some(field) = &error.field {
                    body["field"] = json!(field);
                }
                body
            }
            Self::Call => {
                let code = error.code.to_ascii_uppercase();
                let message = named(error, error.message_with_wait());
                let mut body = json!({"error": {"code": code, "message": message}});
                if let Some(field) = &error.field {
                    body["error"]["field"] = json!(field);
                }
                body
            }
            Self::Text => {
                let public = public_error(error, Some(context.request_id.as_str()));
                let mut context =
                    json!({"request_id": context.request_id, "endpoint": context.endpoint});
                if let Some(field) = &error.field {
                    context["field"] = json!(field);
                }
                let message = named(error, error.message_with_wait());
                json!({
                    "detail": {"code": error.code, "message": message, "context": context},
                    "error": public,
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

/// An error as the public APIs write it, with the id of its request where that is known, as the errors of streams have it.
pub fn public_error(error: &ApiError, request_id: Option<&str>) -> Value {
    let told = error.details.as_ref();
    let public = told.and_then(|details| details.public.clone());
    let mut public = public.unwrap_or_else(|| own_error(error));
    if let (Some(id), Some(public)) = (request_id, public.as_object_mut()) {
        public.insert("request_id".to_owned(), json!(id));
    }
    public
}

/// An error of this service in the words of the public APIs.
fn own_error(error: &ApiError) -> Value {
    let kind = match error.status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    let message = named(error, error.message_with_wait());
    json!({"type": kind, "code": error.code, "message": message, "param": error.field})
}

/// Returns the message with the field in front, unless it names the field or is a sentence, which begins with a capital letter: many clients
/// show nothing else. A model's own words stay as they are.
fn named<'e>(error: &'e ApiError, message: Cow<'e, str>) -> Cow<'e, str> {
    let told = error.details.as_ref();
    let is_models = told.is_some_and(|told| told.public.is_some());
    match error.field.as_deref() {
        Some(field) if !is_models && !is_sentence(&message) && !names(&message, field) => {
            with_field(field, &message).into()
        }
        _ => message,
    }
}

fn is_sentence(message: &str) -> bool {
    message.starts_with(char::is_uppercase)
}

/// Returns true if the field stands in the message as a word of its own.
fn names(message: &str, field: &str) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = message.match_indices(field);
    found.any(|(at, found)| {
        let before = message.get(..at).unwrap_or_default().chars().next_back();
        let after = message.get(at + found.len()..).unwrap_or_default();
        !before.is_some_and(is_of_word) && !after.chars().next().is_some_and(is_of_word)
    })
}

/// Puts a field in front of a message, which may begin with the last parts of its path.
fn with_field(field: &str, message: &str) -> String {
    /// Shorter ones are words of messages as well.
    const SHORTEST_NAME: usize = 4;
    let parts = iter::successors(field.split_once('.'), |(_, rest)| rest.split_once('.'));
    let mut rests = parts
        .filter(|(_, part)| part.len() >= SHORTEST_NAME)
        .filter_map(|(_, part)| message.strip_prefix(part));
    match rests.find(|rest| rest.starts_with([' ', ':'])) {
        Some(rest) => format!("{field}{rest}"),
        None => format!("{field}: {message}"),
    }
}

/// `{message, errors}` with every wrong field, whose key names it; `None` where no field is wrong.
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
    fn a_message_names_its_field_once() {
        let context = ErrorContext::default();
        for (field, told, expected) in [
            ("limit", "must be an integer", "limit: must be an integer"),
            ("limit", "1 to 100", "limit: 1 to 100"),
            (
                "limit",
                "limit must be an integer",
                "limit must be an integer",
            ),
            (
                "name",
                "a name is 1 to 64 letters",
                "a name is 1 to 64 letters",
            ),
            (
                "folder",
                "There is no such folder",
                "There is no such folder",
            ),
            ("kb", "Access denied", "Access denied"),
            ("id", "is invalid", "id: is invalid"),
            (
                "input.character.voice",
                "character.voice must be a string",
                "input.character.voice must be a string",
            ),
            (
                "character_params.a",
                "a text is too long",
                "character_params.a: a text is too long",
            ),
        ] {
            let error = ApiError::invalid(field, told);
            let text = ErrorShape::Text.body(&error, &context);
            let detail = ErrorShape::Detail.body(&error, &context);
            let call = ErrorShape::Call.body(&error, &context);
            for message in [
                &text["detail"]["message"],
                &text["error"]["message"],
                &detail["detail"],
                &call["error"]["message"],
            ] {
                assert_eq!(message, expected);
            }
        }
        // The key of a text names its field.
        let wrong = ApiError::invalid("limit", "must be an integer");
        for shape in [
            ErrorShape::Speech,
            ErrorShape::Transcript,
            ErrorShape::Analysis,
        ] {
            let errors = &shape.body(&wrong, &context)["errors"];
            assert_eq!(*errors, json!({"limit": ["must be an integer"]}));
        }
        let of_model = ApiError {
            field: Some("messages".to_owned()),
            ..ApiError::forbidden("too long").with_public(json!({"message": "too long"}))
        };
        let body = ErrorShape::Detail.body(&of_model, &context);
        assert_eq!(body["detail"], "too long", "a model's own words");
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
                "message": "input[0].type is wrong", "param": "input[0].type", "request_id": "r-1",
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
