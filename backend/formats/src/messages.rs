//! The messages of a chat completion, checked. What is not known here passes: servers have parts of their own.

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
