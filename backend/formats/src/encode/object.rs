//! The response object: every field of the public schema, with what the client asked for in it.

use serde_json::{Value, json};

use super::super::{Head, Object, Reasoning, Request, fields::str_of};

/// What the model's own response object does not change: what is the service's or the client's.
const OURS: [&str; 13] = [
    "background",
    "completed_at",
    "created_at",
    "id",
    "instructions",
    "max_output_tokens",
    "metadata",
    "model",
    "object",
    "output",
    "previous_response_id",
    "store",
    "usage",
];

/// The object of a response that has just begun, without `output`.
pub(super) fn begun(request: &Request, head: &Head) -> Object {
    let said = |field: &str, default: Value| match request.body.get(field) {
        None | Some(Value::Null) => default,
        Some(value) => value.clone(),
    };
    let tier = str_of(&request.body, "service_tier").filter(|tier| *tier != "auto");
    let object = json!({
        "id": head.id,
        "object": "response",
        "created_at": head.created_at,
        "completed_at": null,
        "status": "in_progress",
        "error": null,
        "incomplete_details": null,
        "instructions": said("instructions", Value::Null),
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": said("max_tool_calls", Value::Null),
        "model": head.model,
        "parallel_tool_calls": said("parallel_tool_calls", json!(true)),
        "previous_response_id": request.previous_response_id,
        "prompt_cache_key": said("prompt_cache_key", Value::Null),
        "reasoning": reasoning(request),
        "safety_identifier": said("safety_identifier", Value::Null),
        "service_tier": tier.unwrap_or("default"),
        "store": request.store,
        "background": false,
        "temperature": said("temperature", json!(1.0)),
        "text": text(said("text", json!({}))),
        "tool_choice": said("tool_choice", json!("auto")),
        "tools": tools(said("tools", json!([]))),
        "top_p": said("top_p", json!(1.0)),
        "top_logprobs": said("top_logprobs", json!(0)),
        "presence_penalty": said("presence_penalty", json!(0.0)),
        "frequency_penalty": said("frequency_penalty", json!(0.0)),
        "truncation": said("truncation", json!("disabled")),
        "usage": null,
        "user": said("user", Value::Null),
        "metadata": said("metadata", json!({})),
    });
    match object {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn reasoning(request: &Request) -> Value {
    let mut reasoning = match request.body.get("reasoning") {
        Some(Value::Object(more)) => more.clone(),
        _ if request.reasoning.is_none() => return Value::Null,
        _ => Object::new(),
    };
    reasoning.insert("effort".to_owned(), Value::Null);
    reasoning.entry("summary").or_insert(Value::Null);
    match &request.reasoning {
        Some(Reasoning::Effort(effort)) => {
            reasoning.insert("effort".to_owned(), json!(effort));
        }
        Some(Reasoning::MaxTokens(tokens)) => {
            reasoning.insert("max_tokens".to_owned(), json!(tokens));
        }
        None => {}
    }
    Value::Object(reasoning)
}

fn text(mut text: Value) -> Value {
    if let Value::Object(text) = &mut text {
        text.entry("format")
            .or_insert_with(|| json!({"type": "text"}));
    }
    text
}

/// Tools have all of their fields where they are shown, and may leave some out where they are asked for.
fn tools(mut tools: Value) -> Value {
    for tool in tools.as_array_mut().into_iter().flatten() {
        let Value::Object(tool) = tool else { continue };
        match str_of(tool, "type") {
            Some("function") => {
                for field in ["description", "parameters", "strict"] {
                    tool.entry(field).or_insert(Value::Null);
                }
            }
            Some("custom") => {
                tool.entry("format")
                    .or_insert_with(|| json!({"type": "text"}));
            }
            _ => {}
        }
    }
    tools
}

/// Takes over what the model's own response object says.
pub(super) fn overlay(response: &mut Object, said: Object) {
    for (field, value) in said {
        if !OURS.contains(&field.as_str()) && !value.is_null() {
            response.insert(field, value);
        }
    }
}
