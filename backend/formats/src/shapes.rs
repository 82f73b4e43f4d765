//! Tools, the choice of tools, forms of text and parts of messages: what both APIs have in different words.
//!
//! Where chat completions put the fields of a kind into an object of its name (`{type: "function", function: {..}}`),
//! responses put them beside the type (`{type: "function", ..}`).

use serde_json::{Value, json};

use super::{
    FormatError, Object,
    fields::{entries, required_str, str_of, text_of},
};

/// `{type: kind, ..}` as `{type: kind, kind: {..}}`; what is null is left out.
fn nest(mut flat: Object) -> Object {
    let Some(Value::String(kind)) = flat.remove("type") else {
        return flat;
    };
    flat.retain(|_, value| !value.is_null());
    let mut nested = Object::new();
    nested.insert("type".to_owned(), json!(kind));
    nested.insert(kind, Value::Object(flat));
    nested
}

/// `{type: kind, kind: {..}}` as `{type: kind, ..}`.
fn flatten(mut nested: Object) -> Object {
    let Some(Value::String(kind)) = nested.remove("type") else {
        return nested;
    };
    let mut flat = match nested.remove(&kind) {
        Some(Value::Object(inner)) => inner,
        _ => Object::new(),
    };
    flat.insert("type".to_owned(), json!(kind));
    flat
}

/// Which words are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Chat,
    Responses,
}

impl Target {
    fn reshape(self, object: Object) -> Object {
        match self {
            Self::Chat => nest(object),
            Self::Responses => flatten(object),
        }
    }
}

/// The tools of a request, which the field `tools` holds.
pub(super) fn tools(towards: Target, tools: Value) -> Result<Value, FormatError> {
    let Value::Array(tools) = tools else {
        return Err(FormatError::new("tools", "must be an array"));
    };
    let tools = tools.into_iter().enumerate().map(|(index, tool)| {
        self::tool(towards, tool).map_err(|error| error.within(format_args!("tools[{index}]")))
    });
    tools.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn tool(towards: Target, tool: Value) -> Result<Value, FormatError> {
    let Value::Object(tool) = tool else {
        return Err(FormatError::new("", "must be an object"));
    };
    let kind = required_str(&tool, "type")?.to_owned();
    let mut tool = match kind.as_str() {
        "function" | "custom" => towards.reshape(tool),
        _ => return Err(FormatError::unsupported("type")),
    };
    match (towards, kind.as_str()) {
        (Target::Responses, "function") => {
            // Responses are strict unless told otherwise, chat completions are not.
            tool.entry("strict").or_insert(Value::Bool(false));
        }
        (_, "custom") => {
            let inner = match towards {
                Target::Chat => tool.get_mut("custom").and_then(Value::as_object_mut),
                Target::Responses => Some(&mut tool),
            };
            if let Some(Value::Object(format)) = inner.and_then(|inner| inner.get_mut("format"))
                && str_of(format, "type") == Some("grammar")
            {
                *format = towards.reshape(std::mem::take(format));
            }
        }
        _ => {}
    }
    Ok(Value::Object(tool))
}

/// The field `tool_choice`.
pub(super) fn tool_choice(towards: Target, choice: Value) -> Result<Value, FormatError> {
    let choice = match choice {
        Value::String(word) => return Ok(Value::String(word)),
        Value::Object(choice) => choice,
        _ => {
            return Err(FormatError::new(
                "tool_choice",
                "must be a string or an object",
            ));
        }
    };
    match str_of(&choice, "type") {
        Some("function" | "custom") => Ok(Value::Object(towards.reshape(choice))),
        Some("allowed_tools") => {
            let mut choice = towards.reshape(choice);
            let inner = match towards {
                Target::Chat => choice
                    .get_mut("allowed_tools")
                    .and_then(Value::as_object_mut),
                Target::Responses => Some(&mut choice),
            };
            if let Some(Value::Array(tools)) = inner.and_then(|inner| inner.get_mut("tools")) {
                for tool in tools {
                    if let Value::Object(tool) = tool {
                        *tool = towards.reshape(std::mem::take(tool));
                    }
                }
            }
            Ok(Value::Object(choice))
        }
        _ => Err(FormatError::unsupported("tool_choice.type")),
    }
}

/// `text.format` as `response_format`, or the other way round; `None` for plain text, which is what both do anyway.
pub(super) fn text_format(
    towards: Target,
    field: &str,
    format: Value,
) -> Result<Option<Value>, FormatError> {
    let Value::Object(format) = format else {
        return Err(FormatError::new(field, "must be an object"));
    };
    match str_of(&format, "type") {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(Value::Object(format))),
        Some("json_schema") => Ok(Some(Value::Object(towards.reshape(format)))),
        _ => Err(FormatError::unsupported(format!("{field}.type"))),
    }
}

/// A part of an input item as a part of a message.
pub(super) fn part_to_chat(part: &Value) -> Result<Value, FormatError> {
    let Value::Object(part) = part else {
        return Err(FormatError::new("", "must be an object"));
    };
    match required_str(part, "type")? {
        "input_text" | "output_text" | "text" => {
            Ok(json!({"type": "text", "text": required_str(part, "text")?}))
        }
        "refusal" => Ok(json!({"type": "refusal", "refusal": required_str(part, "refusal")?})),
        "input_image" => {
            let Some(url) = text_of(part, "image_url") else {
                // Files are kept by the API that they were sent to.
                return Err(match part.contains_key("file_id") {
                    true => FormatError::unsupported("file_id"),
                    false => FormatError::new("image_url", "is required"),
                });
            };
            let mut image = Object::new();
            image.insert("url".to_owned(), json!(url));
            if let Some(detail) = text_of(part, "detail") {
                image.insert("detail".to_owned(), json!(detail));
            }
            Ok(json!({"type": "image_url", "image_url": image}))
        }
        "input_file" => {
            if text_of(part, "file_url").is_some() {
                return Err(FormatError::unsupported("file_url"));
            }
            Ok(json!({"type": "file", "file": file_of(part)}))
        }
        "input_audio" => Ok(Value::Object(part.clone())),
        _ => Err(FormatError::unsupported("type")),
    }
}

/// A part of a message as a part of an input item; `text_type` is what a text is called there.
pub(super) fn part_to_responses(part: &Value, text_type: &str) -> Result<Value, FormatError> {
    let Value::Object(part) = part else {
        return Err(FormatError::new("", "must be an object"));
    };
    match required_str(part, "type")? {
        "text" => Ok(json!({"type": text_type, "text": required_str(part, "text")?})),
        "refusal" => Ok(json!({"type": "refusal", "refusal": required_str(part, "refusal")?})),
        "image_url" => {
            let image = part.get("image_url").and_then(Value::as_object);
            let detail = image.and_then(|image| text_of(image, "detail"));
            let url = image.and_then(|image| str_of(image, "url"));
            Ok(json!({
                "type": "input_image",
                "image_url": url,
                "detail": detail.unwrap_or("auto"),
            }))
        }
        "file" => {
            let mut file = match part.get("file") {
                Some(Value::Object(file)) => file_of(file),
                _ => Object::new(),
            };
            file.insert("type".to_owned(), json!("input_file"));
            Ok(Value::Object(file))
        }
        "input_audio" => Ok(Value::Object(part.clone())),
        _ => Err(FormatError::unsupported("type")),
    }
}

fn file_of(part: &Object) -> Object {
    ["file_data", "file_id", "filename"]
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), json!(text_of(part, field)?))))
        .collect()
}

/// The parts of a content that has only text as one text; `None` when there is something else in it.
pub(super) fn joined_text(parts: &[Value], separator: &str) -> Option<String> {
    let texts = parts
        .iter()
        .map(|part| {
            let part = part.as_object()?;
            matches!(
                str_of(part, "type"),
                Some("text" | "input_text" | "output_text")
            )
            .then(|| str_of(part, "text"))?
        })
        .collect::<Option<Vec<_>>>()?;
    Some(texts.join(separator))
}

/// A log probability list, which both APIs write alike: of `choices[].logprobs.content` and of `logprobs`.
pub(super) fn chat_logprobs(choice: &Object) -> &[Value] {
    choice
        .get("logprobs")
        .and_then(Value::as_object)
        .map_or(&[], |logprobs| entries(logprobs, "content"))
}

/// A citation of a chat completion as an annotation of a response.
pub(super) fn annotation_to_responses(annotation: &Value) -> Option<Value> {
    let annotation = annotation.as_object()?;
    (str_of(annotation, "type") == Some("url_citation"))
        .then(|| Value::Object(flatten(annotation.clone())))
}

/// An annotation of a response as a citation of a chat completion, which knows those of addresses only.
pub(super) fn annotation_to_chat(annotation: &Value) -> Option<Value> {
    let annotation = annotation.as_object()?;
    (str_of(annotation, "type") == Some("url_citation"))
        .then(|| Value::Object(nest(annotation.clone())))
}
