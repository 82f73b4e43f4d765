//! Whole answers.

use serde_json::{Value, json};

use super::{
    ModelApi, NOW, head, reading::check_object, request, retrieval::found, rich_items, tell,
    tell_whole, upstream_response, usage,
};
use crate::{Ending, ModelEvent, NotAnEvent, Tally, TokenUsage, UpstreamFailure};

fn completion() -> Value {
    json!({
        "id": "up", "object": "chat.completion", "created": 1, "model": "up-2026", "system_fingerprint": "fp",
        "usage": usage()["usage"],
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "It is.", "reasoning_content": "Hm,\n  well. ", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"a\":1}"}},
                {"id": "c2", "type": "function", "function": {"name": "run", "arguments": "{}"}},
            ],
        }}],
    })
}

fn answer(
    client: ModelApi,
    upstream: ModelApi,
    answer: Value,
) -> Result<(Value, Tally), Box<UpstreamFailure>> {
    let request = request(client, &json!({}));
    tell_whole(&request, upstream, None, answer)
}

#[test]
fn one_answer_in_four_ways() {
    for (upstream, said) in [
        (ModelApi::Chat, completion()),
        (
            ModelApi::Responses,
            upstream_response("completed", rich_items()),
        ),
    ] {
        let (chat, tally) = answer(ModelApi::Chat, upstream, said.clone()).unwrap();
        let usage = TokenUsage {
            input: 10,
            cached: 4,
            output: 5,
            reasoning: 2,
        };
        assert_eq!(
            (tally.usage, tally.ending),
            (Some(usage), Some(Ending::Completed))
        );
        assert_eq!(tally.text_bytes, 34);
        let choice = &chat["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls");
        let message = json!({
            "role": "assistant", "content": "It is.", "reasoning_content": "Hm,\n  well. ", "refusal": null,
            "tool_calls": completion()["choices"][0]["message"]["tool_calls"],
        });
        assert_eq!(choice["message"], message);
        let head = json!(["chatcmpl-7f", "chat.completion", 1_800_000_000, "public"]);
        assert_eq!(
            json!([chat["id"], chat["object"], chat["created"], chat["model"]]),
            head
        );
        assert_eq!(chat["usage"], completion()["usage"]);

        let (response, tally) = answer(ModelApi::Responses, upstream, said).unwrap();
        assert_eq!(
            (tally.usage, tally.ending),
            (Some(usage), Some(Ending::Completed))
        );
        check_object(&response);
        assert_eq!(
            (&response["status"], &response["completed_at"]),
            (&json!("completed"), &json!(NOW))
        );
        let mut usage = upstream_response("", json!([]))["usage"].clone();
        usage["input_tokens_details"]["cache_write_tokens"] = json!(0);
        assert_eq!(response["usage"], usage);
        let output = response["output"].as_array().unwrap();
        let kinds = output.iter().map(|item| item["type"].as_str().unwrap());
        assert_eq!(
            kinds.collect::<Vec<_>>(),
            ["reasoning", "message", "function_call", "function_call"]
        );
        assert_eq!(output[1]["content"][0]["text"], "It is.");
        assert_eq!(output[1]["content"][0]["logprobs"], json!([]));
        assert_eq!(output[2]["arguments"], "{\"a\":1}");
        assert!(!response.to_string().contains("secret"));
    }
}

#[test]
fn a_stream_and_an_answer_in_one_piece_say_the_same() {
    for (upstream, said, events) in [
        (ModelApi::Chat, completion(), super::rich_chunks()),
        (
            ModelApi::Responses,
            upstream_response("completed", rich_items()),
            super::rich_events(),
        ),
    ] {
        let request = request(ModelApi::Responses, &json!({}));
        let head = head(ModelApi::Responses);
        let (whole, _) = tell_whole(&request, upstream, Some(&found()), said).unwrap();
        let mut encoder = super::Encoder::new(&request, upstream, &head);
        encoder.begin();
        encoder.retrieval(&found());
        for event in events {
            tell(&mut encoder, upstream, event);
        }
        encoder.end(NOW);
        assert_eq!(encoder.response().unwrap(), whole, "{upstream:?}");
    }
}

#[test]
fn what_servers_leave_out_is_filled_in() {
    let said = json!({"choices": [{"message": {"content": "Hi"}}], "error": null});
    let (chat, tally) = answer(ModelApi::Chat, ModelApi::Chat, said.clone()).unwrap();
    let choices = json!([{
        "index": 0, "finish_reason": "stop", "logprobs": null,
        "message": {"role": "assistant", "content": "Hi", "refusal": null},
    }]);
    assert_eq!(chat["choices"], choices);
    assert_eq!((tally.usage, tally.text_bytes), (None, 2));
    assert_eq!(chat.get("usage"), None);
    let (response, _) = answer(ModelApi::Responses, ModelApi::Chat, said).unwrap();
    assert_eq!(response["usage"], Value::Null);
    let silent = upstream_response("completed", json!([]));
    let (chat, _) = answer(ModelApi::Chat, ModelApi::Responses, silent).unwrap();
    assert_eq!(chat["choices"][0]["message"]["content"], "");
    let mut cut = upstream_response("incomplete", rich_items());
    cut["incomplete_details"] = json!({"reason": "content_filter"});
    let (chat, tally) = answer(ModelApi::Chat, ModelApi::Responses, cut).unwrap();
    assert_eq!(chat["choices"][0]["finish_reason"], "content_filter");
    assert_eq!(tally.ending, Some(Ending::Incomplete));
}

#[test]
fn what_is_no_answer_is_a_failure() {
    let failed = |upstream, said: Value| {
        answer(ModelApi::Responses, upstream, said.clone()).unwrap_err();
        answer(ModelApi::Chat, upstream, said).unwrap_err().code
    };
    for said in [json!(null), json!([]), json!({"choices": {}})] {
        let read = ModelEvent::read(ModelApi::Chat, said.clone());
        assert_eq!(read, Err(NotAnEvent), "{said}");
    }
    for (upstream, said) in [
        (ModelApi::Chat, json!({})),
        (ModelApi::Chat, json!({"choices": []})),
        (ModelApi::Responses, json!({"type": "response.created"})),
    ] {
        let code = failed(upstream, said);
        assert_eq!(code.as_deref(), Some("malformed_answer"));
    }
    let error = json!({"error": {"code": "overloaded"}});
    assert_eq!(
        failed(ModelApi::Chat, error.clone()).as_deref(),
        Some("overloaded")
    );
    assert_eq!(
        failed(ModelApi::Responses, error).as_deref(),
        Some("overloaded")
    );
    let response = upstream_response("failed", json!([]));
    assert_eq!(
        failed(ModelApi::Responses, response).as_deref(),
        Some("server_error")
    );
}

#[test]
fn usage_of_servers_that_count_differently() {
    let usage = |usage: Value| {
        let said = json!({"choices": [{"message": {"content": "Hi"}}], "usage": usage});
        let (chat, tally) = answer(ModelApi::Chat, ModelApi::Chat, said).unwrap();
        (tally.usage, chat["usage"].clone())
    };
    let tokens = |input, cached, output, reasoning| {
        Some(TokenUsage {
            input,
            cached,
            output,
            reasoning,
        })
    };
    // Thinking beside the output, and in the total alone.
    let beside = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 22,
        "completion_tokens_details": {"reasoning_tokens": 7, "audio_tokens": 0}});
    let (read, told) = usage(beside);
    assert_eq!(read, tokens(10, 0, 12, 7));
    assert_eq!(
        told["completion_tokens_details"],
        json!({"reasoning_tokens": 7, "audio_tokens": 0})
    );
    assert_eq!(told["prompt_tokens_details"], json!({"cached_tokens": 0}));
    let hits = json!({"prompt_tokens": 10, "completion_tokens": 5.0, "prompt_cache_hit_tokens": 8, "cost": 0.1});
    let (read, told) = usage(hits);
    assert_eq!(read, tokens(10, 8, 5, 0));
    assert_eq!(
        (&told["total_tokens"], &told["cost"]),
        (&json!(15), &json!(0.1))
    );
    // Nonsense stays within its bounds.
    let nonsense = json!({"prompt_tokens": 1, "completion_tokens": 1e300, "prompt_tokens_details": {"cached_tokens": 9}});
    assert_eq!(usage(nonsense).0, tokens(1, 1, 1 << 40, 0));
    assert_eq!(usage(json!({"completion_tokens": 1})).0, None);
    assert_eq!(usage(json!({"prompt_tokens": -1})).0, None);
}
