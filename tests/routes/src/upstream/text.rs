//! Chat completions and responses: events, and whole answers.

use axum::body::Bytes;
use serde_json::{Value, json};

use super::{
    Fault, Script,
    answers::{Answer, finished},
};

/// The tokens of every request.
pub const INPUT_TOKENS: u64 = 12;
/// Those of them that are said to be cached.
pub const CACHED_TOKENS: u64 = 4;

/// The tokens of an answer: its words, thinking included, and one for a tool call.
#[must_use]
pub fn output_tokens(script: &Script) -> u64 {
    let tools = u64::from(script.tool.is_some());
    words(&script.thinking).count() as u64 + words(&script.text).count() as u64 + tools
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// An event of a chat completion.
fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    chunk_of(0, delta, finish)
}

/// An event of one of its choices.
fn chunk_of(choice: u64, delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted-chat",
        "choices": [{"index": choice, "delta": delta, "finish_reason": finish, "logprobs": null}],
    })
}

fn chat_usage(script: &Script) -> Value {
    let output = output_tokens(script);
    json!({
        "prompt_tokens": INPUT_TOKENS, "completion_tokens": output, "total_tokens": INPUT_TOKENS + output,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "completion_tokens_details": {"reasoning_tokens": words(&script.thinking).count()},
    })
}

fn responses_usage(script: &Script) -> Value {
    let output = output_tokens(script);
    json!({
        "input_tokens": INPUT_TOKENS, "output_tokens": output, "total_tokens": INPUT_TOKENS + output,
        "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens_details": {"reasoning_tokens": words(&script.thinking).count()},
    })
}

/// A chat completion as the request wants it.
pub(super) fn chat(script: &Script, request: &Value) -> Answer {
    if request["stream"] != true {
        return whole(script, &whole_chat(script), &json!({"error": failure()}));
    }
    let sse = |chunk: &Value| format!("data: {chunk}\n\n");
    let role = sse(&chunk(&json!({"role": "assistant", "content": ""}), None));
    let mut pieces = Vec::new();
    for word in words(&script.thinking) {
        pieces.push(sse(&chunk(&json!({"reasoning_content": word}), None)));
    }
    for word in words(&script.text) {
        pieces.push(sse(&chunk(&json!({"content": word}), None)));
    }
    if let Some((name, arguments)) = &script.tool {
        let call = json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}});
        pieces.push(sse(&chunk(&json!({"tool_calls": [call]}), None)));
        for part in halves(arguments) {
            let call = json!({"index": 0, "function": {"arguments": part}});
            pieces.push(sse(&chunk(&json!({"tool_calls": [call]}), None)));
        }
    }
    let reason = if script.tool.is_some() {
        "tool_calls"
    } else {
        "stop"
    };
    let last = request["n"].as_u64().unwrap_or(1) - 1;
    for choice in 0..last {
        pieces.push(sse(&chunk_of(choice, &json!({}), Some(reason))));
        let other = json!({"role": "assistant", "content": "Other."});
        pieces.push(sse(&chunk_of(choice + 1, &other, None)));
    }
    let mut end = vec![sse(&chunk_of(last, &json!({}), Some(reason)))];
    if request["stream_options"]["include_usage"] == true {
        let mut usage = chunk(&Value::Null, None);
        usage["choices"] = json!([]);
        usage["usage"] = chat_usage(script);
        end.push(sse(&usage));
    }
    end.push("data: [DONE]\n\n".to_owned());
    let huge = |bytes: usize| sse(&chunk(&json!({"content": "x".repeat(bytes)}), None));
    let failed = format!("data: {}\n\n", json!({"error": failure()}));
    streamed(script, role, pieces, end, failed, huge)
}

/// What a model says that fails.
fn failure() -> Value {
    json!({"message": "scripted failure", "code": "overloaded"})
}

fn whole_chat(script: &Script) -> Value {
    let mut message = json!({"role": "assistant", "content": script.text, "refusal": null});
    if !script.thinking.is_empty() {
        message["reasoning_content"] = json!(script.thinking);
    }
    if let Some((name, arguments)) = &script.tool {
        message["tool_calls"] = json!([{"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}]);
    }
    let reason = match &script.fault {
        Some(Fault::Finish(reason)) => reason,
        _ if script.tool.is_some() => "tool_calls",
        _ => "stop",
    };
    let mut answer = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted-chat",
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": null}],
    });
    if script.fault != Some(Fault::Untold) {
        answer["usage"] = chat_usage(script);
    }
    answer
}

/// A response as the request wants it.
pub(super) fn responses(script: &Script, request: &Value) -> Answer {
    let response = whole_response(script);
    if request["stream"] != true {
        return whole(script, &response, &failed_response(script));
    }
    let mut number = 0;
    let mut sse = |mut event: Value| {
        event["sequence_number"] = json!(number);
        number += 1;
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap_or_default()
        )
    };
    let mut begun = response.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let first = sse(json!({"type": "response.created", "response": begun}));
    let mut pieces = Vec::new();
    let items = response["output"].as_array().cloned().unwrap_or_default();
    for (at, item) in items.iter().enumerate() {
        let mut opened = item.clone();
        opened["status"] = json!("in_progress");
        let place = json!({"output_index": at, "item_id": item["id"], "content_index": 0});
        let event = |kind: &str, more: Value| {
            let mut event = place.clone();
            event["type"] = json!(kind);
            for (name, value) in more.as_object().into_iter().flatten() {
                event[name] = value.clone();
            }
            event
        };
        match item["type"].as_str() {
            Some("reasoning") => {
                opened["content"] = json!([]);
                pieces.push(sse(json!({"type": "response.output_item.added", "output_index": at, "item": opened})));
                for word in words(&script.thinking) {
                    pieces.push(sse(event(
                        "response.reasoning_text.delta",
                        json!({"delta": word}),
                    )));
                }
                pieces.push(sse(event(
                    "response.reasoning_text.done",
                    json!({"text": script.thinking}),
                )));
                pieces.push(sse(event(
                    "response.content_part.done",
                    json!({"part": item["content"][0]}),
                )));
            }
            Some("function_call") => {
                opened["arguments"] = json!("");
                pieces.push(sse(json!({"type": "response.output_item.added", "output_index": at, "item": opened})));
                for part in halves(item["arguments"].as_str().unwrap_or_default()) {
                    pieces.push(sse(event(
                        "response.function_call_arguments.delta",
                        json!({"delta": part}),
                    )));
                }
                let done = json!({"arguments": item["arguments"], "name": item["name"]});
                pieces.push(sse(event("response.function_call_arguments.done", done)));
            }
            _ => {
                opened["content"] = json!([]);
                pieces.push(sse(json!({"type": "response.output_item.added", "output_index": at, "item": opened})));
                let empty =
                    json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
                pieces.push(sse(event(
                    "response.content_part.added",
                    json!({"part": empty}),
                )));
                for word in words(&script.text) {
                    pieces.push(sse(event(
                        "response.output_text.delta",
                        json!({"delta": word, "logprobs": []}),
                    )));
                }
                pieces.push(sse(event(
                    "response.output_text.done",
                    json!({"text": script.text, "logprobs": []}),
                )));
                pieces.push(sse(event(
                    "response.content_part.done",
                    json!({"part": item["content"][0]}),
                )));
            }
        }
        pieces.push(sse(
            json!({"type": "response.output_item.done", "output_index": at, "item": item}),
        ));
    }
    let end = vec![sse(
        json!({"type": "response.completed", "response": response}),
    )];
    let failed = sse(json!({"type": "response.failed", "response": failed_response(script)}));
    let huge = |bytes: usize| {
        let event = json!({
            "type": "response.output_text.delta", "sequence_number": 1, "output_index": 0, "item_id": "msg_1",
            "content_index": 0, "delta": "x".repeat(bytes), "logprobs": [],
        });
        format!("event: response.output_text.delta\ndata: {event}\n\n")
    };
    streamed(script, first, pieces, end, failed, huge)
}

/// A compaction: the user's messages, and an item with the script's text.
pub(super) fn compaction(script: &Script, request: &Value) -> Answer {
    let input = request["input"].as_array().into_iter().flatten();
    let mut output: Vec<_> = input
        .filter(|item| item["role"] == "user")
        .cloned()
        .collect();
    output.push(json!({"id": "cmp_1", "type": "compaction", "encrypted_content": script.text}));
    let whole_answer = json!({
        "id": "resp_1", "object": "response.compaction", "created_at": 1, "output": output,
        "usage": responses_usage(script),
    });
    whole(script, &whole_answer, &failed_response(script))
}

/// A response that failed has used something all the same.
fn failed_response(script: &Script) -> Value {
    let mut response = whole_response(script);
    response["status"] = json!("failed");
    response["error"] = failure();
    response["output"] = json!([]);
    response
}

fn whole_response(script: &Script) -> Value {
    let mut output = Vec::new();
    if !script.thinking.is_empty() {
        let content = json!([{"type": "reasoning_text", "text": script.thinking}]);
        output.push(json!({"id": "rs_1", "type": "reasoning", "status": "completed", "summary": [], "content": content}));
    }
    if !script.text.is_empty() {
        let content = json!([{"type": "output_text", "text": script.text, "annotations": [], "logprobs": []}]);
        output.push(json!({"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": content}));
    }
    if let Some((name, arguments)) = &script.tool {
        output.push(json!({
            "id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": name,
            "arguments": arguments,
        }));
    }
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "scripted-responses",
        "output": output, "error": null, "incomplete_details": null, "instructions": null, "metadata": {},
        "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "usage": responses_usage(script),
    })
}

/// A whole answer, in two pieces.
fn whole(script: &Script, answer: &Value, failed: &Value) -> Answer {
    let body = match &script.fault {
        Some(Fault::Empty) => "{}".to_owned(),
        Some(Fault::ErrorFrame { .. }) => failed.to_string(),
        Some(Fault::Malformed { .. }) => "{\"choices\": [".to_owned(),
        _ => answer.to_string(),
    };
    let middle = body.len() / 2;
    let body = Bytes::from(body);
    finished(
        script,
        vec![body.slice(..middle), body.slice(middle..)],
        Vec::new(),
        0,
    )
}

/// A stream with the faults that change its events. The first event is not one of those that faults count.
fn streamed(
    script: &Script,
    first: String,
    mut pieces: Vec<String>,
    mut end: Vec<String>,
    failed: String,
    huge: impl Fn(usize) -> String,
) -> Answer {
    match &script.fault {
        Some(Fault::Empty) => pieces.clear(),
        Some(Fault::KeepAlives) => {
            for piece in &mut pieces {
                *piece = format!(": ping\n\n{piece}: ping\n");
            }
        }
        Some(Fault::Huge { bytes }) => pieces = vec![huge(*bytes)],
        Some(Fault::ErrorFrame { after }) => {
            pieces.truncate(*after);
            end = vec![failed];
        }
        Some(Fault::Malformed { after }) => {
            pieces.truncate(*after);
            end = vec!["data: {\"choices\": [\n\n".to_owned()];
        }
        _ => {}
    }
    let bytes = std::iter::once(first).chain(pieces).map(Bytes::from);
    finished(
        script,
        bytes.collect(),
        end.into_iter().map(Bytes::from).collect(),
        1,
    )
}

fn halves(text: &str) -> [&str; 2] {
    let middle = text.floor_char_boundary(text.len() / 2);
    let (first, second) = text.split_at(middle);
    [first, second]
}
