//! Bodies near to those of clients, and what a model would get of them.

use colloquy_fuzz::fuzz;
use serde_json::{Value, json};

use super::{Capabilities, LimitField, ModelApi, ReasoningStyle, Request, upstream_body};

/// Bodies with most of what the two APIs have.
fn seeds() -> Vec<Vec<u8>> {
    let tool = json!({"name": "look", "parameters": {"type": "object"}, "strict": true});
    let mut chat_tool = json!({"type": "function"});
    chat_tool["function"] = tool.clone();
    let mut responses_tool = tool;
    responses_tool["type"] = json!("function");
    let bodies = [
        json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}),
        json!({"model": "m", "input": "Hi"}),
        json!({
            "model": "m", "fallback_model": "n", "stream": true, "stream_options": {"include_usage": true}, "n": 1,
            "max_tokens": 9, "max_completion_tokens": 8, "temperature": 0.5, "stop": ["x"], "reasoning_effort": "low",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "name": "Bo", "content": [
                    {"type": "text", "text": "Grüße 👋🏽"},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
                ]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{\"a\":1}"}},
                ]},
                {"role": "tool", "tool_call_id": "c", "content": "found"},
            ],
            "tools": [chat_tool], "tool_choice": {"type": "function", "function": {"name": "look"}},
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
            "metadata": {"trace": "t", "svc": {"character": "repo:acme/ada", "character_params": {"a": 1, "b": null}}},
        }),
        json!({
            "model": "m", "stream": false, "max_output_tokens": 9, "reasoning": {"effort": "high"},
            "instructions": "Be brief.", "store": false, "previous_response_id": "resp_1", "truncation": "auto",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Hi"}, {"type": "input_image", "image_url": "data:,"}]},
                {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello", "annotations": []}]},
                {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "found"},
            ],
            "tools": [responses_tool], "tool_choice": {"type": "function", "name": "look"},
            "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": true}},
            "metadata": {"svc": {"character": {"personality": "You are {{ name }}.", "parameters": {"name": "Max"}}}},
        }),
    ];
    bodies.map(|body| body.to_string().into_bytes()).to_vec()
}

/// A field's path without the places in its lists.
fn kind_of(field: &str) -> String {
    field
        .chars()
        .filter(|c| !c.is_ascii_digit())
        .take(60)
        .collect()
}

/// What holds for every body. What became of it, in few words.
fn check(api: ModelApi, bytes: &[u8]) -> String {
    let Ok(body) = serde_json::from_slice(bytes) else {
        return "no JSON".to_owned();
    };
    let request = match Request::read(api, body) {
        Ok(request) => request,
        Err(error) => {
            assert_ne!(error.field, "", "{error}");
            return kind_of(&error.field);
        }
    };
    assert!(request.bound_bytes() > 0 && request.choices >= 1);
    let turns = request.turns(|_| true).len().min(4);
    let mut outcome = format!("{turns} {}", request.svc.is_some());
    for to in [ModelApi::Chat, ModelApi::Responses] {
        let abilities = Capabilities {
            api: to,
            reasoning: ReasoningStyle::Effort,
            limit_field: LimitField::MaxCompletionTokens,
            stream_usage: true,
            max_output_tokens: Some(4_096),
            ..Capabilities::default()
        };
        match upstream_body(&request, &abilities, "up") {
            Ok(body) => {
                assert_eq!(body["model"], "up");
                // What is for the service alone never reaches a model.
                assert!(!body.contains_key("fallback_model"));
                let svc = body
                    .get("metadata")
                    .and_then(|metadata| metadata.get("svc"));
                assert_eq!(svc, None);
                assert_eq!(
                    body.get("stream") == Some(&Value::Bool(true)),
                    request.stream
                );
                outcome.push_str(&format!(" {}", body.len()));
            }
            Err(error) => {
                outcome.push_str(&kind_of(&error.field));
            }
        }
    }
    outcome
}

#[test]
fn the_seeds_are_taken() {
    for seed in seeds() {
        let outcomes = [ModelApi::Chat, ModelApi::Responses].map(|api| check(api, &seed));
        // The number of turns stands before the rest of what was taken, a field before the rest of a refusal.
        let taken = |outcome: &String| outcome.starts_with(|c: char| c.is_ascii_digit());
        assert!(outcomes.iter().any(taken), "{outcomes:?}");
    }
}

#[test]
fn changed_bodies_are_taken_or_refused_with_a_field() {
    fuzz(&seeds(), |bytes| {
        [ModelApi::Chat, ModelApi::Responses]
            .map(|api| check(api, bytes))
            .join(" | ")
    });
}
