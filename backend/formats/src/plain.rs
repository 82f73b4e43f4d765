//! What a model cannot do that answers with plain text alone.

use colloquy_base::json::integer;
use serde_json::{Value, json};

use super::{
    FormatError, ModelApi, Object, Request,
    fields::{entries, str_of},
    items::{Places, is_message},
};

/// Parts that are text.
const TEXTS: [&str; 4] = ["text", "input_text", "output_text", "refusal"];

/// Refuses what asks for more than plain text, with the client's name of it. Tools that may be called are none of it: they
/// need not be.
pub(super) fn check(request: &Request) -> Result<(), FormatError> {
    if request.choices > 1 {
        return Err(FormatError::unsupported("n"));
    }
    let body = &request.body;
    for field in ["tool_choice", "function_call"] {
        if body.get(field).is_some_and(|choice| !is_free(choice)) {
            return Err(FormatError::unsupported(field));
        }
    }
    if body.get("logprobs") == Some(&json!(true)) {
        return Err(FormatError::unsupported("logprobs"));
    }
    if body.get("top_logprobs").and_then(integer) > Some(0) {
        return Err(FormatError::unsupported("top_logprobs"));
    }
    match request.api {
        ModelApi::Chat => check_chat(body),
        ModelApi::Responses => check_responses(body, &request.places),
    }
}

fn check_chat(body: &Object) -> Result<(), FormatError> {
    match body.get("modalities") {
        None | Some(Value::Null) => {}
        Some(modalities) if *modalities == json!(["text"]) => {}
        Some(_) => return Err(FormatError::unsupported("modalities")),
    }
    check_format("response_format", body.get("response_format"))?;
    let messages = entries(body, "messages");
    check_messages(messages, |index| format!("messages[{index}]"))
}

fn check_responses(body: &Object, places: &Places) -> Result<(), FormatError> {
    let wanted = entries(body, "include").iter();
    for (index, wanted) in wanted.enumerate() {
        if wanted == "message.output_text.logprobs" {
            return Err(FormatError::unsupported(format!("include[{index}]")));
        }
    }
    let format = body.get("text").and_then(|text| text.get("format"));
    check_format("text.format", format)?;
    check_messages(entries(body, "input"), |index| places.path(index))
}

fn check_format(field: &str, format: Option<&Value>) -> Result<(), FormatError> {
    match format {
        None | Some(Value::Null) => Ok(()),
        Some(format) if format.get("type") == Some(&json!("text")) => Ok(()),
        Some(_) => Err(FormatError::unsupported(field)),
    }
}

fn check_messages(messages: &[Value], path: impl Fn(usize) -> String) -> Result<(), FormatError> {
    let messages = messages.iter().map(Value::as_object).enumerate();
    for (index, message) in messages {
        let Some(message) = message.filter(|message| is_message(message)) else {
            continue;
        };
        let parts = entries(message, "content").iter().map(Value::as_object);
        for (part, known) in parts.enumerate() {
            if known.is_none_or(|known| {
                !str_of(known, "type").is_some_and(|kind| TEXTS.contains(&kind))
            }) {
                let error = FormatError::unsupported(format!("content[{part}].type"));
                return Err(error.within(path(index)));
            }
        }
    }
    Ok(())
}

/// Whether the model may do without tools.
fn is_free(choice: &Value) -> bool {
    match choice {
        Value::Null => true,
        Value::String(word) => matches!(word.as_str(), "auto" | "none"),
        _ => {
            let allowed = choice.get("allowed_tools").unwrap_or(choice);
            choice.get("type") == Some(&json!("allowed_tools"))
                && allowed.get("mode") != Some(&json!("required"))
        }
    }
}
