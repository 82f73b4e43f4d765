//! The messages of a chat completion, checked. What is not known here passes: servers have parts of their own.

use serde_json::Value;

use super::{
    Object,
    fields::{Invalid, entries, required_object, required_str, str_of},
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
pub(super) fn check(messages: Option<&Value>) -> Result<(), Invalid> {
    let messages = match messages {
        None | Some(Value::Null) => return Err(Invalid::new("messages", "is required")),
        Some(Value::Array(messages)) if !messages.is_empty() => messages,
        Some(_) => {
            return Err(Invalid::new(
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

fn check_message(message: &Value) -> Result<(), Invalid> {
    let Value::Object(message) = message else {
        return Err(Invalid::new("", "must be an object"));
    };
    let role = required_str(message, "role")?;
    if !ROLES.contains(&role) {
        return Err(Invalid::new(
            "role",
            "must be developer, system, user, assistant, tool or function",
        ));
    }
    match message.get("tool_calls") {
        None | Some(Value::Null | Value::Array(_)) => {}
        Some(_) => return Err(Invalid::new("tool_calls", "must be an array")),
    }
    match message.get("content") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => check_parts(parts),
        None | Some(Value::Null) if role == "function" || answers_without_text(role, message) => {
            Ok(())
        }
        None | Some(Value::Null) => Err(Invalid::new("content", "is required")),
        Some(_) => Err(Invalid::new(
            "content",
            "must be a string or an array of parts",
        )),
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

fn check_parts(parts: &[Value]) -> Result<(), Invalid> {
    for (index, part) in parts.iter().enumerate() {
        check_part(part).map_err(|error| error.within(format_args!("content[{index}]")))?;
    }
    Ok(())
}

fn check_part(part: &Value) -> Result<(), Invalid> {
    let Value::Object(part) = part else {
        return Err(Invalid::new("", "must be an object"));
    };
    match required_str(part, "type")? {
        "text" => required_str(part, "text").map(drop),
        "refusal" => required_str(part, "refusal").map(drop),
        "image_url" => {
            let image = required_object(part, "image_url")?;
            required_str(image, "url")
                .map(drop)
                .map_err(|error| error.within("image_url"))
        }
        "input_audio" => {
            let audio = required_object(part, "input_audio")?;
            required_str(audio, "data")
                .and_then(|_| required_str(audio, "format"))
                .map(drop)
                .map_err(|error| error.within("input_audio"))
        }
        "file" => required_object(part, "file").map(drop),
        _ => Ok(()),
    }
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
