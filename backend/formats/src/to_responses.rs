//! A request for a chat completion, as the body of a response.
//!
//! What a response cannot say is refused, with the field's name.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    FormatError, Object, Request,
    fields::{entries, required_str, str_of, take},
    shapes::{self, Target, joined_text, part_to_responses},
    stop::Stops,
    upstream::{instructions, refuse},
};

/// Fields that mean something and have no counterpart.
const REFUSED: [&str; 4] = ["audio", "function_call", "functions", "web_search_options"];
/// Those that only steer the answer, or how fast it comes. A model may be set to go without them.
const STEERING: [&str; 3] = ["logit_bias", "prediction", "seed"];
/// Fields that are not of chat completions, and would do more here than be ignored.
const FOREIGN: [&str; 5] = [
    "background",
    "conversation",
    "input",
    "previous_response_id",
    "prompt",
];

/// The body, without model, limit, reasoning and stream.
pub(super) fn translate(request: &Request, drop_unsupported: bool) -> Result<Object, FormatError> {
    let mut body = request.body.clone();
    // Without it there is one choice, which is less than was asked for, but no other answer.
    if request.choices > 1 && !drop_unsupported {
        return Err(FormatError::unsupported("n"));
    }
    // The answer is cut here.
    Stops::of(&body)?;
    body.remove("stop");
    if drop_unsupported {
        body.retain(|field, _| !STEERING.contains(&field.as_str()));
    }
    refuse(&mut body, &STEERING)?;
    refuse(&mut body, &REFUSED)?;
    refuse(&mut body, &FOREIGN)?;
    match take(&mut body, "modalities") {
        None => {}
        Some(modalities) if modalities == json!(["text"]) => {}
        Some(_) => return Err(FormatError::unsupported("modalities")),
    }
    if take(&mut body, "logprobs") == Some(Value::Bool(true)) {
        body.insert(
            "include".to_owned(),
            json!(["message.output_text.logprobs"]),
        );
    } else {
        body.remove("top_logprobs");
    }
    if let Some(tools) = take(&mut body, "tools") {
        let tools = shapes::tools(Target::Responses, tools)?;
        body.insert("tools".to_owned(), tools);
    }
    if let Some(choice) = take(&mut body, "tool_choice") {
        let choice = shapes::tool_choice(Target::Responses, choice)?;
        body.insert("tool_choice".to_owned(), choice);
    }
    put_text(&mut body)?;
    body.remove("stream_options");
    body.remove("reasoning");
    body.remove("messages");
    if let Some(instructions) = instructions(request) {
        body.insert("instructions".to_owned(), json!(instructions));
    }
    let items = items(request, drop_unsupported)?;
    body.insert("input".to_owned(), Value::Array(items));
    Ok(body)
}

/// `response_format` and `verbosity` as `text`.
fn put_text(body: &mut Object) -> Result<(), FormatError> {
    let mut text = Object::new();
    if let Some(format) = take(body, "response_format")
        && let Some(format) = shapes::text_format(Target::Responses, "response_format", format)?
    {
        text.insert("format".to_owned(), format);
    }
    if let Some(verbosity) = take(body, "verbosity") {
        text.insert("verbosity".to_owned(), verbosity);
    }
    if !text.is_empty() {
        body.insert("text".to_owned(), Value::Object(text));
    }
    Ok(())
}

fn items(request: &Request, drop_unsupported: bool) -> Result<Vec<Value>, FormatError> {
    let mut items = Items {
        drop_unsupported,
        ..Items::default()
    };
    for (index, message) in entries(&request.body, "messages")
        .iter()
        .filter_map(Value::as_object)
        .enumerate()
    {
        items
            .push(message)
            .map_err(|error| error.within(format_args!("messages[{index}]")))?;
    }
    Ok(items.done)
}

/// The items so far.
#[derive(Default)]
struct Items {
    done: Vec<Value>,
    /// The ids of calls to custom tools, whose outputs are items of their own kind.
    custom: HashSet<String>,
    /// The names of those who speak are left out; otherwise they are refused.
    drop_unsupported: bool,
}

impl Items {
    fn push(&mut self, message: &Object) -> Result<(), FormatError> {
        let named = message.get("name").is_some_and(|name| !name.is_null());
        if named && !self.drop_unsupported {
            return Err(FormatError::unsupported("name"));
        }
        match required_str(message, "role")? {
            "assistant" => self.push_assistant(message),
            "tool" => self.push_output(message),
            role @ ("user" | "system" | "developer") => {
                let content = content(message.get("content"), "input_text")?;
                self.done
                    .push(json!({"type": "message", "role": role, "content": content}));
                Ok(())
            }
            _ => Err(FormatError::unsupported("role")),
        }
    }

    fn push_assistant(&mut self, message: &Object) -> Result<(), FormatError> {
        for field in ["audio", "function_call"] {
            if message.get(field).is_some_and(|value| !value.is_null()) {
                return Err(FormatError::unsupported(field));
            }
        }
        let mut content = content(message.get("content"), "output_text")?;
        if let Some(refusal) = str_of(message, "refusal") {
            content = json!([{"type": "refusal", "refusal": refusal}]);
        }
        let empty = match &content {
            Value::String(text) => text.is_empty(),
            Value::Array(parts) => parts.is_empty(),
            _ => true,
        };
        if !empty {
            self.done
                .push(json!({"type": "message", "role": "assistant", "content": content}));
        }
        for (index, call) in entries(message, "tool_calls").iter().enumerate() {
            self.push_call(call)
                .map_err(|error| error.within(format_args!("tool_calls[{index}]")))?;
        }
        Ok(())
    }

    fn push_call(&mut self, call: &Value) -> Result<(), FormatError> {
        let Value::Object(call) = call else {
            return Err(FormatError::new("", "must be an object"));
        };
        let id = required_str(call, "id")?;
        let (kind, item, input) = match str_of(call, "type") {
            None | Some("function") => ("function", "function_call", "arguments"),
            Some("custom") => ("custom", "custom_tool_call", "input"),
            Some(_) => return Err(FormatError::unsupported("type")),
        };
        let Some(Value::Object(tool)) = call.get(kind) else {
            return Err(FormatError::new(kind, "is required"));
        };
        let name = required_str(tool, "name").map_err(|error| error.within(kind))?;
        let text = required_str(tool, input).map_err(|error| error.within(kind))?;
        if kind == "custom" {
            self.custom.insert(id.to_owned());
        }
        self.done
            .push(json!({"type": item, "call_id": id, "name": name, input: text}));
        Ok(())
    }

    fn push_output(&mut self, message: &Object) -> Result<(), FormatError> {
        let id = required_str(message, "tool_call_id")?;
        let kind = match self.custom.contains(id) {
            true => "custom_tool_call_output",
            false => "function_call_output",
        };
        let output = content(message.get("content"), "input_text")?;
        self.done
            .push(json!({"type": kind, "call_id": id, "output": output}));
        Ok(())
    }
}

/// The content of a message; texts alone are written as one text.
fn content(content: Option<&Value>, text_type: &str) -> Result<Value, FormatError> {
    let parts = match content {
        Some(Value::String(text)) => return Ok(Value::String(text.clone())),
        Some(Value::Array(parts)) => parts,
        _ => return Ok(Value::String(String::new())),
    };
    if parts.len() == 1
        && let Some(text) = joined_text(parts, "")
    {
        return Ok(Value::String(text));
    }
    let parts = parts.iter().enumerate().map(|(index, part)| {
        part_to_responses(part, text_type)
            .map_err(|error| error.within(format_args!("content[{index}]")))
    });
    parts.collect::<Result<Vec<_>, _>>().map(Value::Array)
}
