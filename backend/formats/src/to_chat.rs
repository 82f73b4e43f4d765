//! A request for a response, as the body of a chat completion.
//!
//! What a chat completion cannot say is refused, with the field's name. Left out is only what changes nothing for the
//! answer: how the response is kept and shown, and thinking of earlier turns.

use colloquy_base::json::integer;
use serde_json::{Value, json};

use super::{
    FormatError, Object, Request,
    compact::is_compaction,
    fields::{entries, required_str, str_of, take},
    items::{self, is_message},
    messages,
    shapes::{self, Target, joined_text, part_to_chat},
    upstream::{instructions, refuse},
};

/// Fields that are about the response and not about the answer, or that say what a chat completion does anyway.
const LEFT_OUT: [&str; 7] = [
    "include",
    "input",
    "instructions",
    "max_tool_calls",
    "reasoning",
    "stream_options",
    "text",
];

/// The body, without model, limit, reasoning and stream.
pub(super) fn translate(request: &Request) -> Result<Object, FormatError> {
    let mut body = request.body.clone();
    // What a client of responses may have sent besides must not change what this chat completion costs.
    refuse(&mut body, &["n", "max_tokens", "max_completion_tokens"])?;
    refuse(&mut body, &["prompt", "context_management"])?;
    match take(&mut body, "truncation") {
        None => {}
        Some(truncation) if truncation == "disabled" => {}
        Some(_) => return Err(FormatError::unsupported("truncation")),
    }
    let include_logprobs = entries(&body, "include")
        .iter()
        .any(|include| include == "message.output_text.logprobs");
    if include_logprobs || body.get("top_logprobs").and_then(integer) > Some(0) {
        body.insert("logprobs".to_owned(), json!(true));
    } else {
        body.remove("top_logprobs");
    }
    if let Some(tools) = take(&mut body, "tools") {
        let tools = shapes::tools(Target::Chat, tools)?;
        // An empty list means none in one API and is refused in the other.
        if tools.as_array().is_some_and(|tools| !tools.is_empty()) {
            body.insert("tools".to_owned(), tools);
        } else {
            body.remove("tool_choice");
            body.remove("parallel_tool_calls");
        }
    }
    if let Some(choice) = take(&mut body, "tool_choice") {
        let choice = shapes::tool_choice(Target::Chat, choice)?;
        body.insert("tool_choice".to_owned(), choice);
    }
    put_text(&mut body)?;
    let messages = conversation(request)?;
    for field in LEFT_OUT {
        body.remove(field);
    }
    body.insert("messages".to_owned(), Value::Array(messages));
    Ok(body)
}

/// `text` as `response_format` and `verbosity`.
fn put_text(body: &mut Object) -> Result<(), FormatError> {
    let mut text = match take(body, "text") {
        None => return Ok(()),
        Some(Value::Object(text)) => text,
        Some(_) => return Err(FormatError::new("text", "must be an object")),
    };
    if let Some(format) = take(&mut text, "format")
        && let Some(format) = shapes::text_format(Target::Chat, "text.format", format)?
    {
        body.insert("response_format".to_owned(), format);
    }
    if let Some(verbosity) = take(&mut text, "verbosity") {
        body.insert("verbosity".to_owned(), verbosity);
    }
    Ok(())
}

fn conversation(request: &Request) -> Result<Vec<Value>, FormatError> {
    let mut messages = Messages::default();
    if let Some(instructions) = instructions(request) {
        messages
            .done
            .push(json!({"role": "system", "content": instructions}));
    }
    for item in request.history.iter().filter_map(Value::as_object) {
        if is_said(item) {
            messages
                .push(item)
                .map_err(|error| error.within("previous_response_id"))?;
        } else if is_compaction(item) {
            // It stands for a part of the conversation that nobody but its maker can read.
            return Err(FormatError::unsupported("previous_response_id"));
        }
    }
    for (index, item) in items::of_input(request.body.get("input"))
        .iter()
        .filter_map(Value::as_object)
        .enumerate()
    {
        if request.resolved.contains(&index) && !is_said(item) && !is_compaction(item) {
            continue;
        }
        messages
            .push(item)
            .map_err(|error| error.within(request.places.path(index)))?;
    }
    Ok(messages.done)
}

/// Returns true if an item of an earlier response is part of the conversation in any API. An earlier model may have used tools of
/// its own besides; what came of them stands in its text.
fn is_said(item: &Object) -> bool {
    is_message(item) || call_kind(item).is_some() || output_kind(item).is_some()
}

/// The messages so far.
#[derive(Default)]
struct Messages {
    done: Vec<Value>,
}

impl Messages {
    fn push(&mut self, item: &Object) -> Result<(), FormatError> {
        if is_message(item) {
            return self.push_message(item);
        }
        if let Some(kind) = call_kind(item) {
            return self.push_call(kind, item);
        }
        match str_of(item, "type") {
            Some("function_call_output" | "custom_tool_call_output") => {
                let content = match item.get("output") {
                    Some(Value::String(text)) => Value::String(text.clone()),
                    Some(Value::Array(parts)) => content(parts, "output", true)?,
                    _ => return Err(FormatError::new("output", "must be a string or an array")),
                };
                self.done.push(json!({
                    "role": "tool",
                    "tool_call_id": required_str(item, "call_id")?,
                    "content": content,
                }));
                Ok(())
            }
            // No model needs what another one thought.
            Some("reasoning") => Ok(()),
            _ => Err(FormatError::unsupported("type")),
        }
    }

    fn push_message(&mut self, item: &Object) -> Result<(), FormatError> {
        let role = match required_str(item, "role")? {
            // Servers of open models know it under its old name.
            "developer" => "system",
            role => role,
        };
        let content = match item.get("content") {
            Some(Value::Array(parts)) => content(parts, "content", role != "user")?,
            content => Value::String(messages::texts(content).concat()),
        };
        self.done.push(json!({"role": role, "content": content}));
        Ok(())
    }

    /// A call belongs to the assistant's message before it: the outputs have to follow a message with all of their calls.
    fn push_call(&mut self, kind: &'static str, item: &Object) -> Result<(), FormatError> {
        let input = match kind {
            "function" => "arguments",
            _ => "input",
        };
        let call = json!({
            "id": required_str(item, "call_id")?,
            "type": kind,
            kind: {"name": required_str(item, "name")?, input: required_str(item, input)?},
        });
        let assistant = self
            .done
            .last_mut()
            .and_then(Value::as_object_mut)
            .filter(|message| str_of(message, "role") == Some("assistant"));
        match assistant {
            Some(message) => match message.get_mut("tool_calls") {
                Some(Value::Array(calls)) => calls.push(call),
                _ => {
                    message.insert("tool_calls".to_owned(), json!([call]));
                }
            },
            None => self
                .done
                .push(json!({"role": "assistant", "content": null, "tool_calls": [call]})),
        }
        Ok(())
    }
}

/// The kind of tool that an item calls.
fn call_kind(item: &Object) -> Option<&'static str> {
    match str_of(item, "type") {
        Some("function_call") => Some("function"),
        Some("custom_tool_call") => Some("custom"),
        _ => None,
    }
}

fn output_kind(item: &Object) -> Option<&str> {
    str_of(item, "type")
        .filter(|kind| matches!(*kind, "function_call_output" | "custom_tool_call_output"))
}

/// Parts as the content of a message. One text is written as such, since not every server reads parts; several are joined
/// where a part cannot be anything but text.
fn content(parts: &[Value], field: &str, text_only: bool) -> Result<Value, FormatError> {
    if (text_only || parts.len() == 1)
        && let Some(text) = joined_text(parts, "")
    {
        return Ok(Value::String(text));
    }
    let parts = parts.iter().enumerate().map(|(index, part)| {
        part_to_chat(part).map_err(|error| error.within(format_args!("{field}[{index}]")))
    });
    parts.collect::<Result<Vec<_>, _>>().map(Value::Array)
}
