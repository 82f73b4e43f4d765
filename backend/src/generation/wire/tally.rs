//! What an answer has told so far, for accounting and for the decision whether another model may still answer.

use serde_json::Value;

use super::{
    ModelApi, Object, TokenUsage, failure,
    fields::{entries, str_of},
};

/// What a stream or an answer has told so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The usage, as soon as the model has told it.
    pub(crate) usage: Option<TokenUsage>,
    /// The UTF-8 bytes that the model has produced: text, refusals, thinking, arguments of tools. An upper bound of the
    /// output's tokens where the usage is missing.
    pub(crate) text_bytes: u64,
    /// How the answer ended; `None` while it has not.
    pub(crate) ending: Option<Ending>,
    /// The usage object itself, and whose it is: it may say more than tokens.
    said: Option<(ModelApi, Object)>,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The model was done.
    Completed,
    /// The model stopped at a limit or a filter.
    Incomplete,
    /// There was an error, and the client was told.
    Failed,
}

impl Tally {
    /// Of an answer of which nothing is there but what it used.
    pub(crate) fn of(used: TokenUsage) -> Self {
        Self {
            usage: Some(used),
            ..Self::default()
        }
    }

    /// Takes in an event or a whole answer of a model.
    pub(super) fn observe(&mut self, api: ModelApi, event: &Object) {
        let whole = match event.get("response") {
            Some(Value::Object(response)) if api == ModelApi::Responses => response,
            _ => event,
        };
        if let Some(Value::Object(usage)) = whole.get("usage")
            && let Some(tokens) = TokenUsage::read(api, usage)
        {
            self.usage = Some(tokens);
            self.said = Some((api, usage.clone()));
        }
        let bytes = content_bytes(api, event);
        // A terminal event repeats what its stream has told.
        if !std::ptr::eq(whole, event) && self.text_bytes > 0 {
            return;
        }
        self.text_bytes = self.text_bytes.saturating_add(bytes);
    }

    /// The usage that a client of this API is told.
    pub(super) fn usage_for(&self, api: ModelApi) -> Option<Value> {
        let said = self
            .said
            .as_ref()
            .filter(|(of, _)| *of == api)
            .map(|(_, usage)| usage);
        self.usage.map(|usage| usage.write(api, said))
    }
}

/// Whether an event holds something that the client gets to see, or is the answer's own end: after it no other model may
/// answer.
pub(crate) fn has_content(api: ModelApi, event: &Value) -> bool {
    let Value::Object(event) = event else {
        return false;
    };
    if content_bytes(api, event) > 0 {
        return true;
    }
    if failure::of_object(api, event).is_some() {
        return false;
    }
    match api {
        ModelApi::Chat => entries(event, "choices")
            .iter()
            .filter_map(Value::as_object)
            .any(|choice| {
                choice.get("finish_reason").is_some_and(is_said)
                    || ["delta", "message"]
                        .iter()
                        .filter_map(|field| choice.get(*field)?.as_object())
                        .flatten()
                        .any(|(field, value)| field != "role" && is_said(value))
            }),
        ModelApi::Responses => match str_of(event, "type") {
            None => str_of(event, "object") == Some("response"),
            // Announcements of items are held back until something comes after them.
            Some(
                "response.created"
                | "response.queued"
                | "response.in_progress"
                | "response.output_item.added"
                | "response.content_part.added"
                | "response.failed"
                | "keepalive"
                | "error",
            ) => false,
            // A delta that is no text is of some tool; an empty text is nothing yet.
            Some(kind) => {
                !kind.ends_with(".delta") || !event.get("delta").is_some_and(Value::is_string)
            }
        },
    }
}

/// Whether a field of a delta says anything.
pub(super) fn is_said(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        _ => true,
    }
}

/// The bytes of content in an event or a whole answer.
fn content_bytes(api: ModelApi, event: &Object) -> u64 {
    match api {
        ModelApi::Chat => {
            let choices = entries(event, "choices")
                .iter()
                .filter_map(Value::as_object);
            let said = choices.filter_map(|choice| {
                choice
                    .get("delta")
                    .or_else(|| choice.get("message"))?
                    .as_object()
            });
            said.map(message_bytes).sum()
        }
        ModelApi::Responses => match event.get("response") {
            Some(Value::Object(response)) => output_bytes(response),
            _ => event
                .get("delta")
                .map_or_else(|| output_bytes(event), string_bytes),
        },
    }
}

fn message_bytes(message: &Object) -> u64 {
    let texts = ["content", "refusal", "reasoning_content"]
        .iter()
        .filter_map(|field| message.get(*field))
        .map(string_bytes)
        .sum::<u64>();
    // Some servers send thinking under both names.
    let reasoning = match message.get("reasoning_content") {
        Some(Value::String(_)) => 0,
        _ => message.get("reasoning").map_or(0, string_bytes),
    };
    let calls = entries(message, "tool_calls")
        .iter()
        .flat_map(|call| ["function", "custom"].into_iter().map(|kind| &call[kind]))
        .map(string_bytes)
        .sum::<u64>();
    texts + reasoning + calls
}

/// The output of a whole response.
fn output_bytes(response: &Object) -> u64 {
    entries(response, "output")
        .iter()
        .filter_map(Value::as_object)
        .flat_map(|item| {
            ["content", "summary", "arguments", "input", "name"]
                .into_iter()
                .filter_map(|field| item.get(field))
        })
        .map(string_bytes)
        .sum()
}

/// The bytes of a string, or of the strings in parts and calls; what they are called (`type`, `id`) does not count.
fn string_bytes(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(parts) => parts.iter().map(string_bytes).sum(),
        Value::Object(part) => ["text", "refusal", "name", "arguments", "input"]
            .iter()
            .filter_map(|field| part.get(*field))
            .map(string_bytes)
            .sum(),
        _ => 0,
    }
}
