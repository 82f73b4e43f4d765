//! What services say about their failures, in place of an answer or in the middle of one: the one reader of it.

use serde_json::Value;

use super::{ModelApi, Object, TokenUsage};

/// The longest message that is passed on, in characters.
const MAX_MESSAGE_CHARS: usize = 2_000;
/// The longest word that is passed on, in characters.
const MAX_WORD_CHARS: usize = 500;

/// What a provider said about its failure. It may repeat the request, so it is never logged.
#[derive(Clone, Default, PartialEq)]
pub struct UpstreamFailure {
    /// The HTTP status, of the answer or as the error names it.
    pub status: Option<u16>,
    /// The kind of error, in the provider's word.
    pub kind: Option<String>,
    /// Its code.
    pub code: Option<String>,
    /// What happened.
    pub message: Option<String>,
    /// The field of the request that is wrong.
    pub param: Option<String>,
    /// What was used all the same.
    pub used: Option<TokenUsage>,
}

impl std::fmt::Debug for UpstreamFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamFailure")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// A failure, when this event, answer or body of an error is one: an error frame, `response.failed`, a choice that ends in
/// an error.
#[must_use]
pub fn failure(api: ModelApi, event: &Value) -> Option<UpstreamFailure> {
    failure_in(api, event.as_object()?)
}

/// The same, of an object.
pub(super) fn failure_in(api: ModelApi, event: &Object) -> Option<UpstreamFailure> {
    let mut failure = read(api, event)?;
    let answer = object(event, "response").unwrap_or(event);
    failure.used = object(answer, "usage").and_then(|usage| TokenUsage::read(api, usage));
    Some(failure)
}

fn read(api: ModelApi, event: &Object) -> Option<UpstreamFailure> {
    let is_error = ["type", "object"].map(|field| text(event, field) == Some("error"));
    let is_error = is_error.contains(&true);
    let error = event.get("error").filter(|error| is_told(error));
    match (is_error, error) {
        // A response that failed has its error inside, and says so by its status.
        (false, Some(_)) if text(event, "object") == Some("response") => {}
        (_, Some(error)) => return Some(UpstreamFailure::of_error(error)),
        (true, None) => return Some(UpstreamFailure::of_object(event)),
        (false, None) => {}
    }
    match api {
        ModelApi::Chat => {
            let choices = event.get("choices").and_then(Value::as_array);
            let mut choices = choices.into_iter().flatten().filter_map(Value::as_object);
            choices.find_map(of_choice)
        }
        ModelApi::Responses => of_response(event),
    }
}

fn of_choice(choice: &Object) -> Option<UpstreamFailure> {
    if let Some(error) = choice.get("error").filter(|error| is_told(error)) {
        return Some(UpstreamFailure::of_error(error));
    }
    match text(choice, "finish_reason")? {
        reason @ ("error" | "abort" | "insufficient_system_resource") => {
            Some(UpstreamFailure::coded(reason))
        }
        _ => None,
    }
}

fn of_response(event: &Object) -> Option<UpstreamFailure> {
    let response = object(event, "response").unwrap_or(event);
    let failed = text(event, "type") == Some("response.failed")
        || matches!(text(response, "status"), Some("failed" | "cancelled"));
    failed.then(|| match response.get("error") {
        Some(error) if is_told(error) => UpstreamFailure::of_error(error),
        _ => UpstreamFailure::coded("server_error"),
    })
}

impl UpstreamFailure {
    /// A failure that the service did not put into words.
    pub fn coded(code: &str) -> Self {
        Self {
            code: Some(code.to_owned()),
            ..Self::default()
        }
    }

    fn of_error(error: &Value) -> Self {
        match error {
            Value::Object(error) => Self::of_object(error),
            Value::String(message) => Self {
                message: Some(shortened(message, MAX_MESSAGE_CHARS)),
                ..Self::default()
            },
            _ => Self::default(),
        }
    }

    fn of_object(error: &Object) -> Self {
        let status = [error.get("code"), error.get("status")]
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .filter_map(|status| u16::try_from(status).ok())
            .find(|status| (400..600).contains(status));
        let word = |field: &str| match error.get(field)? {
            Value::String(word) if !word.is_empty() => Some(shortened(word, MAX_WORD_CHARS)),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let message = text(error, "message").filter(|message| !message.is_empty());
        Self {
            kind: word("type").filter(|kind| kind != "error"),
            code: word("code"),
            message: message.map(|message| shortened(message, MAX_MESSAGE_CHARS)),
            param: word("param"),
            status,
            used: None,
        }
    }

    /// The short code, for logs. Codes are words; anything else is not shown.
    #[must_use]
    pub fn log_code(&self) -> Option<&str> {
        let code = self.code.as_deref().or(self.kind.as_deref())?;
        let of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        (code.len() <= 64 && code.chars().all(of_word)).then_some(code)
    }
}

/// Some servers write that there is no error.
fn is_told(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(message) => !message.is_empty(),
        _ => true,
    }
}

fn text<'a>(object: &'a Object, field: &str) -> Option<&'a str> {
    object.get(field)?.as_str()
}

fn object<'a>(object: &'a Object, field: &str) -> Option<&'a Object> {
    object.get(field)?.as_object()
}

fn shortened(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failures_of_both_apis() {
        let told = json!({"message": "about the visitor", "code": "overloaded", "param": "input"});
        let usage = json!({"input_tokens": 7, "output_tokens": 2});
        for body in [
            json!({"error": told}),
            json!({"type": "response.failed", "response": {"error": told, "usage": usage}}),
            json!({"type": "error", "error": told}),
        ] {
            let found = failure(ModelApi::Responses, &body).unwrap();
            assert_eq!(found.log_code(), Some("overloaded"), "{body}");
            assert_eq!(found.message.as_deref(), Some("about the visitor"));
            assert_eq!(found.param.as_deref(), Some("input"));
            let used = found.used.map(|used| (used.input, used.output));
            let tells = body["type"] == "response.failed";
            assert_eq!(used, tells.then_some((7, 2)), "{body}");
        }
        let flat = json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"});
        let flat = failure(ModelApi::Responses, &flat).unwrap();
        assert_eq!(flat.code.as_deref(), Some("rate_limit_exceeded"));
        let inside = json!({"error": {"code": 429, "message": "slow down"}});
        let inside = failure(ModelApi::Chat, &inside).unwrap();
        assert_eq!(inside.status, Some(429));
        for fine in [
            json!({"error": null, "choices": []}),
            json!({"error": false, "choices": []}),
            json!({"error": "", "choices": []}),
            json!({"type": "response.completed", "response": {"error": null}}),
        ] {
            for api in [ModelApi::Chat, ModelApi::Responses] {
                assert_eq!(failure(api, &fine), None, "{fine}");
            }
        }
    }

    #[test]
    fn a_code_is_a_word() {
        let code = |error: Value| {
            UpstreamFailure::of_error(&error)
                .log_code()
                .map(str::to_owned)
        };
        assert_eq!(code(json!({"code": "he said: hello"})), None);
        assert_eq!(
            code(json!({"type": "server_error"})).as_deref(),
            Some("server_error")
        );
    }
}
