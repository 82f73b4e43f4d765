//! How much content there is in what a model says.

use serde_json::Value;

use crate::{Object, fields::entries};

/// A delta or a message of a chat completion.
pub(super) fn of_message(message: &Object) -> u64 {
    let texts = ["content", "refusal", "reasoning_content"]
        .iter()
        .filter_map(|field| message.get(*field))
        .map(of_text)
        .sum::<u64>();
    // Some servers send thinking under both names.
    let reasoning = match message.get("reasoning_content") {
        Some(Value::String(_)) => 0,
        _ => message.get("reasoning").map_or(0, of_text),
    };
    let calls = entries(message, "tool_calls")
        .iter()
        .flat_map(|call| ["function", "custom"].into_iter().map(|kind| &call[kind]))
        .map(of_text)
        .sum::<u64>();
    texts + reasoning + calls
}

/// The output of a whole response.
pub(super) fn of_output(response: &Object) -> u64 {
    entries(response, "output")
        .iter()
        .filter_map(Value::as_object)
        .flat_map(|item| {
            ["content", "summary", "arguments", "input", "name"]
                .into_iter()
                .filter_map(|field| item.get(field))
        })
        .map(of_text)
        .sum()
}

/// A string, or the strings in parts and calls; what they are called (`type`, `id`) does not count.
pub(super) fn of_text(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(parts) => parts.iter().map(of_text).sum(),
        Value::Object(part) => ["text", "refusal", "name", "arguments", "input"]
            .iter()
            .filter_map(|field| part.get(*field))
            .map(of_text)
            .sum(),
        _ => 0,
    }
}
