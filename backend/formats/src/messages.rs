//! The messages of a chat completion, checked. What is not known here passes: servers have parts of their own.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    FormatError, Object,
    fields::{entries, required_str, str_of},
    types,
};

/// The roles of the public API.
const ROLES: [&str; 6] = [
    "developer",
    "system",
    "user",
    "assistant",
    "tool",
    "function",
];

/// Checks the field `messages`.
pub(super) fn check(messages: Option<&Value>) -> Result<(), FormatError> {
    let messages = match messages {
        None | Some(Value::Null) => return Err(FormatError::new("messages", "is required")),
        Some(Value::Array(messages)) if !messages.is_empty() => messages,
        Some(_) => {
            return Err(FormatError::new(
                "messages",
                "must be an array that is not empty",
            ));
        }
    };
    for (index, message) in messages.iter().enumerate() {
        check_message(message).map_err(|error| error.within(format_args!("messages[{index}]")))?;
    }
    Ok(())
}

fn check_message(message: &Value) -> Result<(), FormatError> {
    let Value::Object(message) = message else {
        return Err(FormatError::new("", "must be an object"));
    };
    let role = required_str(message, "role")?;
    if !ROLES.contains(&role) {
        return Err(FormatError::new(
            "role",
            "must be developer, system, user, assistant, tool or function",
        ));
    }
    types::check(message, types::MESSAGE)?;
    match message.get("content") {
        None | Some(Value::Null) if role == "function" || answers_without_text(role, message) => {
            Ok(())
        }
        None | Some(Value::Null) => Err(FormatError::new("content", "is required")),
        Some(content) => {
            let checked = types::CONTENT.check(content);
            checked.map_err(|error| error.within("content"))
        }
    }
}

/// Checks that each output of a tool stands behind its call, and that no message of the user comes before the output of a call.
pub(super) fn check_calls(messages: &[Value]) -> Result<(), FormatError> {
    let mut calls = HashSet::new();
    // Calls without an output so far: the indices of their messages, and theirs in these.
    let mut open = HashMap::new();
    let messages = messages.iter().map(Value::as_object).enumerate();
    for (index, message) in messages.clone() {
        let Some(message) = message else { continue };
        match str_of(message, "role") {
            Some("assistant") => {
                for (place, id) in call_ids(message) {
                    calls.insert(id);
                    open.insert(id, (index, place));
                }
            }
            Some("tool") => {
                let within = |error: FormatError| error.within(format_args!("messages[{index}]"));
                let id = required_str(message, "tool_call_id").map_err(within)?;
                if !calls.contains(id) {
                    let later = messages.clone().skip(index).filter_map(|(_, it)| it);
                    let mut later = later.flat_map(call_ids);
                    let is_later = later.any(|(_, called)| called == id);
                    return Err(within(without_call("tool_call_id", is_later)));
                }
                open.remove(id);
            }
            Some("user") => {
                if let Some((calling, place)) = open.values().min() {
                    let field = format!("messages[{calling}].tool_calls[{place}].id");
                    let message = format!("has no tool message before messages[{index}]");
                    return Err(FormatError::new(field, message));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The error about an output of a tool whose call does not stand before it, but may stand behind it.
pub(super) fn without_call(field: impl Into<String>, is_later: bool) -> FormatError {
    let message = match is_later {
        true => "must stand behind its call",
        false => "has no call in the conversation",
    };
    FormatError::new(field, message)
}

/// The ids of the calls in a message, each with its index there.
fn call_ids(message: &Object) -> impl Iterator<Item = (usize, &str)> {
    let calls = entries(message, "tool_calls").iter().enumerate();
    calls.filter_map(|(place, call)| Some((place, str_of(call.as_object()?, "id")?)))
}

/// Whether this is an answer of the model that is something else than text.
fn answers_without_text(role: &str, message: &Object) -> bool {
    role == "assistant"
        && (!entries(message, "tool_calls").is_empty()
            || ["function_call", "refusal", "audio"]
                .iter()
                .any(|field| message.get(*field).is_some_and(|value| !value.is_null())))
}

/// The texts of a message's content, in either API's parts; pictures, files and refusals have none.
pub(super) fn texts(content: Option<&Value>) -> Vec<&str> {
    match content {
        Some(Value::String(text)) => vec![text.as_str()],
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(Value::as_object)
            .filter(|part| {
                matches!(
                    str_of(part, "type"),
                    Some("text" | "input_text" | "output_text")
                )
            })
            .filter_map(|part| str_of(part, "text"))
            .collect(),
        _ => Vec::new(),
    }
}
