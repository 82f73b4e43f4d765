//! How a model says, inside of an answer that began well, that it failed.

use serde_json::Value;

use super::{
    ModelApi, Object,
    fields::{entries, str_of, text_of},
};

/// The longest message of a model that is passed on, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// A model failed after its server had answered 200.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UpstreamFailure {
    /// The kind of error, as the server calls it.
    pub(crate) kind: Option<String>,
    /// The code, as the server calls it.
    pub(crate) code: Option<String>,
    /// What the server says; it may repeat the request, so it is for the client alone and not for logs.
    pub(crate) message: Option<String>,
    /// The HTTP status that the server would have answered with, when it says so.
    pub(crate) status: Option<u16>,
}

impl UpstreamFailure {
    /// A failure that the server did not put into words.
    pub(super) fn coded(code: &str) -> Self {
        Self {
            code: Some(code.to_owned()),
            ..Self::default()
        }
    }

    fn of_error(error: &Value) -> Self {
        let object = match error {
            Value::Object(error) => error,
            Value::String(message) => {
                return Self {
                    message: Some(shortened(message)),
                    ..Self::default()
                };
            }
            _ => return Self::default(),
        };
        let code = object.get("code");
        let status = [code, object.get("status")]
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .filter_map(|status| u16::try_from(status).ok())
            .find(|status| (400..600).contains(status));
        let word = |value: Option<&Value>| match value {
            Some(Value::String(word)) if !word.is_empty() => Some(shortened(word)),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        Self {
            kind: text_of(object, "type")
                .filter(|kind| *kind != "error")
                .map(shortened),
            code: word(code),
            message: text_of(object, "message").map(shortened),
            status,
        }
    }
}

/// A failure, when this event or whole answer is one: an error frame, `response.failed`, a choice that ends in an error.
pub(crate) fn failure(api: ModelApi, event: &Value) -> Option<UpstreamFailure> {
    of_object(api, event.as_object()?)
}

pub(super) fn of_object(api: ModelApi, event: &Object) -> Option<UpstreamFailure> {
    let is_error =
        str_of(event, "type") == Some("error") || str_of(event, "object") == Some("error");
    let error = event.get("error").filter(|error| is_told(error));
    match (is_error, error) {
        // A response that failed has its error inside, and says so by its status.
        (false, Some(_)) if str_of(event, "object") == Some("response") => {}
        (_, Some(error)) => return Some(UpstreamFailure::of_error(error)),
        (true, None) => return Some(UpstreamFailure::of_error(&Value::Object(event.clone()))),
        (false, None) => {}
    }
    match api {
        ModelApi::Chat => entries(event, "choices")
            .iter()
            .filter_map(Value::as_object)
            .find_map(of_choice),
        ModelApi::Responses => of_response(event),
    }
}

fn of_choice(choice: &Object) -> Option<UpstreamFailure> {
    if let Some(error) = choice.get("error").filter(|error| is_told(error)) {
        return Some(UpstreamFailure::of_error(error));
    }
    match str_of(choice, "finish_reason")? {
        reason @ ("error" | "abort" | "insufficient_system_resource") => {
            Some(UpstreamFailure::coded(reason))
        }
        _ => None,
    }
}

fn of_response(event: &Object) -> Option<UpstreamFailure> {
    let response = match event.get("response") {
        Some(Value::Object(response)) => response,
        _ => event,
    };
    let failed = str_of(event, "type") == Some("response.failed")
        || matches!(str_of(response, "status"), Some("failed" | "cancelled"));
    failed.then(|| match response.get("error") {
        Some(error) if is_told(error) => UpstreamFailure::of_error(error),
        _ => UpstreamFailure::coded("server_error"),
    })
}

/// Some servers write that there is no error.
fn is_told(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(message) => !message.is_empty(),
        _ => true,
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_MESSAGE_CHARS).collect()
}
