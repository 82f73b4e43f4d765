//! Streams and answers, read as strict clients read them.

mod chat;
mod failures;
mod fuzz;
mod oracle;
mod properties;
mod reading;
mod responses;
mod retrieval;
mod whole;

use serde_json::{Value, json};

use super::{
    super::{
        Capabilities, Frame, Head, LimitField, ModelApi, ModelEvent, NotAnEvent, ReasoningStyle,
        Request, Tally, UpstreamFailure, VisibleRetrieval,
    },
    Encoder,
};

/// The time of every test, in seconds.
const NOW: i64 = 1_800_000_009;

fn head(api: ModelApi) -> Head {
    Head {
        id: match api {
            ModelApi::Chat => "chatcmpl-7f",
            ModelApi::Responses => "resp_7f",
        }
        .to_owned(),
        created_at: 1_800_000_000,
        model: "public".to_owned(),
    }
}

/// A streamed request with these fields besides.
fn request(api: ModelApi, more: &Value) -> Request {
    let mut body = match api {
        ModelApi::Chat => {
            json!({"model": "public", "stream": true, "messages": [{"role": "user", "content": "Hi"}]})
        }
        ModelApi::Responses => json!({"model": "public", "stream": true, "input": "Hi"}),
    };
    for (field, value) in more.as_object().unwrap() {
        body[field] = value.clone();
    }
    Request::read(api, body).unwrap()
}

fn usage_wanted() -> Request {
    request(
        ModelApi::Chat,
        &json!({"stream_options": {"include_usage": true}}),
    )
}

/// What the client is told of an event of this model. One that is none of its API is refused where it is read.
fn tell(encoder: &mut Encoder, upstream: ModelApi, event: Value) -> Vec<Frame> {
    match ModelEvent::read(upstream, event) {
        Ok(event) => encoder.event(NOW, event),
        Err(NotAnEvent) => Vec::new(),
    }
}

/// What the client is told of a whole answer of this model.
fn tell_whole(
    request: &Request,
    upstream: ModelApi,
    retrieval: Option<&VisibleRetrieval>,
    answer: Value,
) -> Result<(Value, Tally), Box<UpstreamFailure>> {
    let answer = ModelEvent::read(upstream, answer).unwrap();
    super::whole(request, &head(request.api), retrieval, answer, NOW)
}

fn has_content(api: ModelApi, event: &Value) -> bool {
    ModelEvent::read(api, event.clone()).is_ok_and(|event| event.has_content())
}

/// The whole stream of a model that says this and ends well.
fn stream(request: &Request, upstream: ModelApi, events: &[Value]) -> Vec<Frame> {
    let mut encoder = Encoder::new(request, upstream, &head(request.api));
    let mut frames = encoder.begin();
    for event in events {
        frames.extend(tell(&mut encoder, upstream, event.clone()));
    }
    frames.extend(encoder.end(NOW));
    assert!(encoder.finished());
    assert_eq!(encoder.end(NOW), []);
    frames
}

/// A chunk with this delta.
fn chunk(delta: Value) -> Value {
    json!({
        "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "up",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}],
    })
}

/// The chunk that ends the only choice.
fn finish(reason: &str) -> Value {
    json!({"id": "x", "model": "up", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// The chunk of usage.
fn usage() -> Value {
    json!({"id": "x", "model": "up", "choices": [], "usage": {
        "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2},
    }})
}

/// Thinking, text and two tools whose arguments come by turns.
fn rich_chunks() -> Vec<Value> {
    vec![
        chunk(json!({"role": "assistant", "content": ""})),
        chunk(json!({"reasoning_content": "Hm,\n"})),
        chunk(json!({"reasoning_content": "  well. "})),
        chunk(json!({"content": "It "})),
        chunk(json!({"content": "is."})),
        chunk(
            json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}]}),
        ),
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\":"}}]})),
        chunk(
            json!({"tool_calls": [{"index": 1, "id": "c2", "type": "function", "function": {"name": "run", "arguments": "{"}}]}),
        ),
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]})),
        chunk(json!({"tool_calls": [{"index": 1, "function": {"arguments": "}"}}]})),
        finish("tool_calls"),
        usage(),
    ]
}

/// The response object of a model that has said this.
fn upstream_response(status: &str, output: Value) -> Value {
    json!({
        "id": "resp_up", "object": "response", "created_at": 1, "status": status, "model": "up-2026", "output": output,
        "instructions": "secret", "store": true, "temperature": 0.5, "error": null, "incomplete_details": null,
        "tools": [], "tool_choice": "auto", "parallel_tool_calls": true, "top_p": null, "metadata": {},
        "usage": {
            "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 2},
        },
    })
}

/// The items of the same answer as a response.
fn rich_items() -> Value {
    json!([
        {"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm,\n  well. "}]},
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "It is.", "annotations": []},
        ]},
        {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "c1", "name": "look", "arguments": "{\"a\":1}"},
        {"id": "fc_2", "type": "function_call", "status": "completed", "call_id": "c2", "name": "run", "arguments": "{}"},
    ])
}

/// The same answer as a model behind the responses API streams it.
fn rich_events() -> Vec<Value> {
    let items = rich_items();
    let mut events = vec![
        json!({"type": "response.created", "sequence_number": 0, "response": upstream_response("in_progress", json!([]))}),
        json!({"type": "response.in_progress", "sequence_number": 1, "response": upstream_response("in_progress", json!([]))}),
        json!({"type": "response.output_item.added", "sequence_number": 7, "output_index": 0,
            "item": {"id": "rs_1", "type": "reasoning", "summary": []}}),
        json!({"type": "response.content_part.added", "output_index": 0, "item_id": "rs_1", "content_index": 0,
            "part": {"type": "reasoning_text", "text": ""}}),
        json!({"type": "response.reasoning_text.delta", "output_index": 0, "item_id": "rs_1", "content_index": 0, "delta": "Hm,\n"}),
        json!({"type": "response.reasoning_text.delta", "output_index": 0, "item_id": "rs_1", "content_index": 0, "delta": "  well. "}),
        json!({"type": "response.reasoning_text.done", "output_index": 0, "item_id": "rs_1", "content_index": 0, "text": "Hm,\n  well. "}),
        json!({"type": "response.content_part.done", "output_index": 0, "item_id": "rs_1", "content_index": 0,
            "part": {"type": "reasoning_text", "text": "Hm,\n  well. "}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": items[0]}),
        json!({"type": "response.output_item.added", "output_index": 1,
            "item": {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}}),
        json!({"type": "response.content_part.added", "output_index": 1, "item_id": "msg_1", "content_index": 0,
            "part": {"type": "output_text", "text": "", "annotations": []}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1", "content_index": 0, "delta": "It "}),
        json!({"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1", "content_index": 0, "delta": "is."}),
        json!({"type": "response.output_text.done", "output_index": 1, "item_id": "msg_1", "content_index": 0, "text": "It is."}),
        json!({"type": "response.content_part.done", "output_index": 1, "item_id": "msg_1", "content_index": 0,
            "part": {"type": "output_text", "text": "It is.", "annotations": []}}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": items[1]}),
    ];
    for index in [2, 3] {
        let item = &items[index];
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        begun["arguments"] = json!("");
        events.extend([
            json!({"type": "response.output_item.added", "output_index": index, "item": begun}),
            json!({"type": "response.function_call_arguments.delta", "output_index": index, "item_id": item["id"], "delta": item["arguments"]}),
            json!({"type": "response.function_call_arguments.done", "output_index": index, "item_id": item["id"], "arguments": item["arguments"]}),
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        ]);
    }
    events.push(
        json!({"type": "response.completed", "response": upstream_response("completed", items)}),
    );
    events
}

fn abilities(api: ModelApi) -> Capabilities {
    Capabilities {
        api,
        reasoning: ReasoningStyle::Effort,
        limit_field: LimitField::MaxCompletionTokens,
        stream_usage: true,
        ..Capabilities::default()
    }
}
