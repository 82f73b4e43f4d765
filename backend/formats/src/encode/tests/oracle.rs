//! What we send, read by the types of `async-openai`, which somebody else wrote from the public description.

use async_openai::types::{
    chat::{CreateChatCompletionResponse, CreateChatCompletionStreamResponse},
    responses::{Response, ResponseStreamEvent},
};
use serde_json::{Value, json};

use super::{
    ModelApi, NOW, abilities, chunk, finish, head, request, retrieval::found, rich_chunks,
    rich_events, rich_items, tell, tell_whole, upstream_response, usage,
};
use crate::{Encoder, ErrorBody, Frame, upstream_body};

fn demanding(api: ModelApi) -> super::Request {
    let schema = json!({"type": "object", "properties": {}});
    let more = match api {
        ModelApi::Chat => json!({"stream_options": {"include_usage": true}}),
        ModelApi::Responses => json!({
            "instructions": "Be kind.", "max_output_tokens": 9, "temperature": 0.5, "metadata": {"run": "7"},
            "tools": [
                {"type": "function", "name": "look", "parameters": schema},
                {"type": "custom", "name": "run", "format": {"type": "text"}},
            ],
            "tool_choice": {"type": "function", "name": "look"}, "reasoning": {"effort": "low"},
            "text": {"format": {"type": "json_schema", "name": "s", "schema": schema}},
        }),
    };
    request(api, &more)
}

/// Everything that a model can say, in both APIs.
fn streams() -> Vec<(ModelApi, Vec<Value>)> {
    let citation = json!({"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 2}});
    let mut with_logprobs = chunk(json!({"content": "Hi"}));
    with_logprobs["choices"][0]["logprobs"] = json!({"content": [
        {"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105]}]},
    ], "refusal": null});
    let mut incomplete = upstream_response("incomplete", rich_items());
    incomplete["incomplete_details"] = json!({"reason": "max_output_tokens"});
    let mut failed = upstream_response("failed", json!([]));
    failed["error"] = json!({"code": "server_error", "message": "m"});
    let ending = |event: Value| {
        let mut events = rich_events();
        *events.last_mut().unwrap() = event;
        events
    };
    vec![
        (ModelApi::Chat, rich_chunks()),
        (
            ModelApi::Chat,
            vec![
                with_logprobs,
                chunk(json!({"annotations": [citation]})),
                chunk(json!({"refusal": "No."})),
                finish("length"),
                usage(),
            ],
        ),
        (
            ModelApi::Chat,
            vec![
                chunk(json!({"content": "Hi"})),
                json!({"error": {"message": "m"}}),
            ],
        ),
        (ModelApi::Responses, rich_events()),
        (
            ModelApi::Responses,
            ending(json!({"type": "response.incomplete", "response": incomplete})),
        ),
        (
            ModelApi::Responses,
            ending(json!({"type": "response.failed", "response": failed})),
        ),
        (
            ModelApi::Responses,
            ending(json!({"type": "error", "code": "c", "message": "m", "param": null})),
        ),
        (
            ModelApi::Responses,
            vec![upstream_response("completed", rich_items())],
        ),
    ]
}

fn told(client: ModelApi, upstream: ModelApi, events: Vec<Value>) -> Vec<Frame> {
    let mut encoder = Encoder::new(&demanding(client), upstream, &head(client));
    let mut frames = encoder.begin();
    frames.extend(encoder.retrieval(&found()));
    for event in events {
        frames.extend(tell(&mut encoder, upstream, event));
    }
    frames.extend(encoder.end(NOW));
    frames
}

#[test]
fn every_event_of_a_response_is_understood() {
    for (upstream, events) in streams() {
        for frame in told(ModelApi::Responses, upstream, events) {
            // The client ends with it, as it does with a chat completion.
            if frame.data == "[DONE]" {
                continue;
            }
            serde_json::from_str::<ResponseStreamEvent>(&frame.data)
                .unwrap_or_else(|error| panic!("{error}: {}", frame.data));
        }
    }
}

#[test]
fn every_chunk_of_a_chat_completion_is_understood() {
    for (upstream, events) in streams() {
        for frame in told(ModelApi::Chat, upstream, events) {
            if frame.data == "[DONE]" || frame.data.starts_with("{\"error\"") {
                continue;
            }
            serde_json::from_str::<CreateChatCompletionStreamResponse>(&frame.data)
                .unwrap_or_else(|error| panic!("{error}: {}", frame.data));
        }
    }
}

#[test]
fn whole_answers_are_understood() {
    let chat = json!({
        "usage": usage()["usage"],
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "content": "It is.", "reasoning_content": "Hm", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ],
        }}],
    });
    for (upstream, answer) in [
        (ModelApi::Chat, chat),
        (
            ModelApi::Responses,
            upstream_response("completed", rich_items()),
        ),
    ] {
        let client = ModelApi::Chat;
        let (told, _) = tell_whole(&demanding(client), upstream, None, answer.clone()).unwrap();
        serde_json::from_value::<CreateChatCompletionResponse>(told).unwrap();
        let client = ModelApi::Responses;
        let (told, _) = tell_whole(&demanding(client), upstream, Some(&found()), answer).unwrap();
        serde_json::from_value::<Response>(told).unwrap();
    }
}

#[test]
fn a_response_that_failed_can_be_read_again() {
    let client = ModelApi::Responses;
    let mut encoder = Encoder::new(&demanding(client), ModelApi::Chat, &head(client));
    encoder.begin();
    for event in &rich_chunks()[..5] {
        tell(&mut encoder, ModelApi::Chat, event.clone());
    }
    encoder.fail(&ErrorBody::server("server_error", "m"));
    serde_json::from_value::<Response>(encoder.response().unwrap()).unwrap();
}

#[test]
fn what_a_model_gets_is_understood() {
    use async_openai::types::{chat::CreateChatCompletionRequest, responses::CreateResponse};
    let request = demanding(ModelApi::Responses);
    let chat = upstream_body(&request, &abilities(ModelApi::Chat), "up").unwrap();
    serde_json::from_value::<CreateChatCompletionRequest>(Value::Object(chat)).unwrap();
    let request = demanding(ModelApi::Chat);
    let response = upstream_body(&request, &abilities(ModelApi::Responses), "up").unwrap();
    serde_json::from_value::<CreateResponse>(Value::Object(response)).unwrap();
}
