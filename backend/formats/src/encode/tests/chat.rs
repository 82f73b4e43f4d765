//! Clients of chat completions.

use serde_json::{Value, json};

use super::{
    ModelApi, NOW, chunk, finish, head, reading::Chat, request, rich_chunks, rich_events, stream,
    tell, tell_whole, upstream_response, usage, usage_wanted,
};
use crate::{Encoder, Ending, TokenUsage};

fn read(upstream: ModelApi, events: &[Value]) -> Chat {
    Chat::read(&stream(&usage_wanted(), upstream, events), true)
}

fn said(upstream: ModelApi, events: &[Value]) -> (Value, String) {
    let chat = read(upstream, events);
    assert_eq!(chat.error, None);
    let (message, reason) = chat.only();
    (message.clone(), reason.to_owned())
}

fn event(kind: &str, more: Value) -> Value {
    let mut event = more;
    event["type"] = json!(kind);
    event
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": upstream_response("completed", output)})
}

#[test]
fn one_answer_of_two_apis() {
    let expected = json!({
        "role": "assistant", "content": "It is.", "reasoning_content": "Hm,\n  well. ",
        "tool_calls": [
            {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"a\":1}"}},
            {"index": 1, "id": "c2", "type": "function", "function": {"name": "run", "arguments": "{}"}},
        ],
    });
    let usage = json!({
        "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2},
    });
    for (upstream, events) in [
        (ModelApi::Chat, rich_chunks()),
        (ModelApi::Responses, rich_events()),
    ] {
        let chat = read(upstream, &events);
        assert_eq!(chat.only(), (&expected, "tool_calls"), "{upstream:?}");
        assert_eq!(chat.usage, Some(usage.clone()));
        for chunk in &chat.chunks {
            assert_eq!(chunk["model"], "public");
            assert_eq!(chunk["created"], 1_800_000_000);
        }
        // Without the wish for usage there is none, in no chunk.
        let plain = request(ModelApi::Chat, &json!({}));
        let chat = Chat::read(&stream(&plain, upstream, &events), false);
        assert_eq!(
            (chat.only(), chat.usage.as_ref()),
            ((&expected, "tool_calls"), None)
        );
    }
}

#[test]
fn servers_that_send_it_differently() {
    let tool = |call: Value| chunk(json!({"tool_calls": [call]}));
    let cases = vec![
        // No role, no usage of its own, the end beside the last text.
        vec![
            chunk(json!({"content": "Hel"})),
            json!({"choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}]}),
            usage(),
        ],
        // A role in every chunk, an empty reason, usage in the chunk of the end and in those before, two ends.
        vec![
            json!({"choices": [{"delta": {"role": "assistant", "content": "Hel"}, "finish_reason": ""}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}}),
            chunk(json!({"role": "assistant", "content": "lo"})),
            json!({"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": "eos"}],
                "usage": usage()["usage"]}),
            finish("stop"),
        ],
        // Nothing but `[DONE]` at the end.
        vec![
            chunk(json!({"role": "assistant"})),
            chunk(json!({"content": "Hello"})),
            usage(),
        ],
        // Chunks without choices in front, and an error that is none.
        vec![
            json!({"choices": [], "prompt_filter_results": []}),
            json!({"error": null, "choices": [{"index": 0, "delta": {"content": "Hello"}}]}),
            finish("stop"),
            usage(),
        ],
        // No stream at all.
        vec![json!({
            "object": "chat.completion", "usage": usage()["usage"],
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
        })],
    ];
    for events in cases {
        let chat = read(ModelApi::Chat, &events);
        let (message, reason) = chat.only();
        assert_eq!(
            *message,
            json!({"role": "assistant", "content": "Hello"}),
            "{events:?}"
        );
        assert_eq!(reason, "stop");
        assert_eq!(chat.usage.unwrap()["total_tokens"], 15);
    }
    let called = vec![
        // No index, no type, ids and names again and again.
        vec![
            tool(json!({"id": "c1", "function": {"name": "f", "arguments": ""}})),
            tool(json!({"id": "c1", "function": {"name": "f", "arguments": "{\"a\""}})),
            tool(json!({"function": {"arguments": ":1}"}})),
            tool(json!({"id": "c2", "function": {"name": "g", "arguments": "{}"}})),
            finish("tool_calls"),
        ],
        // The name after the id, the arguments as an object, the end not told.
        vec![
            tool(json!({"index": 0, "id": "c1", "type": "function"})),
            tool(json!({"index": 0, "function": {"name": "f"}})),
            tool(json!({"index": 0, "function": {"arguments": {"a": 1}}})),
            tool(json!({"index": 1, "id": "c2", "function": {"name": "g", "arguments": {}}})),
        ],
        // No stream at all.
        vec![
            json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
            {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ]}, "finish_reason": "tool_calls"}]}),
        ],
    ];
    for events in called {
        let (message, reason) = said(ModelApi::Chat, &events);
        let calls = json!([
            {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
            {"index": 1, "id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ]);
        assert_eq!(message["tool_calls"], calls, "{events:?}");
        assert_eq!(reason, "tool_calls");
    }
    // A server without ids.
    let (message, _) = said(
        ModelApi::Chat,
        &[
            tool(json!({"index": 0, "function": {"name": "f", "arguments": "{}"}})),
            finish("stop"),
        ],
    );
    assert_eq!(message["tool_calls"][0]["id"], "call_7f_0");
}

#[test]
fn choices_have_their_own_beginnings_and_ends() {
    let delta = |index: u64, text: &str, reason: Value| json!({"index": index, "delta": {"content": text}, "finish_reason": reason});
    let events = [
        json!({"choices": [delta(0, "a", Value::Null), delta(1, "x", Value::Null)]}),
        json!({"choices": [delta(1, "y", json!("length"))]}),
        json!({"choices": [delta(0, "b", json!("stop"))]}),
        json!({"choices": [delta(900, "z", Value::Null)]}),
    ];
    let request = request(ModelApi::Chat, &json!({"n": 2}));
    let chat = Chat::read(&stream(&request, ModelApi::Chat, &events), false);
    let choices = chat
        .choices
        .values()
        .map(|(message, reason)| (message["content"].as_str().unwrap(), reason.as_str()));
    assert_eq!(
        choices.collect::<Vec<_>>(),
        [("ab", "stop"), ("xy", "length")]
    );
}

#[test]
fn what_servers_say_besides_passes() {
    let mut first = chunk(json!({"content": "Hi", "reasoning": "Hm", "vendor": {"a": 1}}));
    first["system_fingerprint"] = json!("fp");
    first["choices"][0]["logprobs"] = json!({"content": [{"token": "Hi", "logprob": -0.1}]});
    let chat = read(ModelApi::Chat, &[first.clone(), finish("content_filter")]);
    let passed = &chat.chunks[1];
    assert_eq!(passed["system_fingerprint"], "fp");
    assert_eq!(
        passed["choices"][0]["logprobs"],
        first["choices"][0]["logprobs"]
    );
    assert_eq!(passed["choices"][0]["delta"], first["choices"][0]["delta"]);
    assert_eq!(chat.only().1, "content_filter");
}

#[test]
fn responses_of_all_kinds() {
    // Nothing is told piece by piece: the items come when they are done, or with the end.
    let output = super::rich_items();
    let done = event(
        "response.output_item.done",
        json!({"output_index": 0, "item": output[0]}),
    );
    for events in [
        vec![done, completed(output.clone())],
        vec![upstream_response("completed", output.clone())],
    ] {
        let (message, reason) = said(ModelApi::Responses, &events);
        assert_eq!(message["content"], "It is.");
        assert_eq!(message["reasoning_content"], "Hm,\n  well. ");
        assert_eq!(message["tool_calls"][1]["function"]["name"], "run");
        assert_eq!(reason, "tool_calls");
    }
    // Summaries are thinking, in paragraphs.
    let summary = |index: u64, delta: &str| {
        event(
            "response.reasoning_summary_text.delta",
            json!({"output_index": 0, "item_id": "r", "summary_index": index, "delta": delta}),
        )
    };
    let events = [
        summary(0, "One"),
        summary(0, "."),
        summary(1, "Two."),
        completed(json!([])),
    ];
    assert_eq!(
        said(ModelApi::Responses, &events).0["reasoning_content"],
        "One.\n\nTwo."
    );
    // Refusals, sources, log probabilities, tools of the client's own kind.
    let citation =
        json!({"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 2});
    let events = [
        event(
            "response.output_text.delta",
            json!({"output_index": 0, "delta": "Hi", "logprobs": [{"token": "Hi"}]}),
        ),
        event(
            "response.output_text.annotation.added",
            json!({"output_index": 0, "annotation": citation}),
        ),
        event(
            "response.output_text.annotation.added",
            json!({"output_index": 0, "annotation": citation}),
        ),
        event(
            "response.refusal.delta",
            json!({"output_index": 0, "delta": "No."}),
        ),
        event(
            "response.output_item.added",
            json!({"output_index": 1, "item": {
            "id": "x", "type": "custom_tool_call", "call_id": "c", "name": "run", "input": ""}}),
        ),
        event(
            "response.custom_tool_call_input.delta",
            json!({"output_index": 1, "delta": "l"}),
        ),
        event(
            "response.custom_tool_call_input.delta",
            json!({"output_index": 1, "delta": "s"}),
        ),
        event(
            "response.web_search_call.searching",
            json!({"output_index": 2, "item_id": "w"}),
        ),
        completed(json!([])),
    ];
    let chat = read(ModelApi::Responses, &events);
    let (message, reason) = chat.only();
    let expected = json!({
        "role": "assistant", "content": "Hi", "refusal": "No.",
        "annotations": [
            {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 2}},
            {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 2}},
        ],
        "tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "run", "input": "ls"}}],
    });
    assert_eq!((message, reason), (&expected, "tool_calls"));
    let logprobs = json!({"content": [{"token": "Hi"}], "refusal": null});
    assert_eq!(chat.chunks[1]["choices"][0]["logprobs"], logprobs);
}

#[test]
fn reasons_of_incomplete_responses() {
    for (details, reason) in [
        (json!({"reason": "max_output_tokens"}), "length"),
        (json!({"reason": "content_filter"}), "content_filter"),
        (json!(null), "length"),
    ] {
        let mut response = upstream_response("incomplete", json!([]));
        response["incomplete_details"] = details;
        let events = [
            event(
                "response.output_text.delta",
                json!({"output_index": 0, "delta": "Hi"}),
            ),
            json!({"type": "response.incomplete", "response": response}),
        ];
        assert_eq!(said(ModelApi::Responses, &events).1, reason);
    }
}

#[test]
fn another_model_may_answer_before_content() {
    let mut encoder = Encoder::new(&usage_wanted(), ModelApi::Chat, &head(ModelApi::Chat));
    let mut frames = tell(
        &mut encoder,
        ModelApi::Chat,
        chunk(json!({"role": "assistant"})),
    );
    encoder.set_answering(ModelApi::Responses, "fallback");
    for event in rich_events() {
        frames.extend(tell(&mut encoder, ModelApi::Responses, event));
    }
    assert!(!encoder.finished());
    frames.extend(encoder.end(NOW));
    let chat = Chat::read(&frames, true);
    assert_eq!(chat.only().0["content"], "It is.");
    assert_eq!(chat.chunks[1]["model"], "fallback");
    assert_eq!(encoder.tally().ending, Some(Ending::Completed));
}

#[test]
fn usage_that_was_not_told_can_be_estimated() {
    let events = [chunk(json!({"content": "Hello"})), finish("length")];
    let mut encoder = Encoder::new(&usage_wanted(), ModelApi::Chat, &head(ModelApi::Chat));
    let mut frames = Vec::new();
    for event in events {
        frames.extend(tell(&mut encoder, ModelApi::Chat, event));
    }
    assert_eq!(
        (encoder.tally().usage, encoder.tally().text_bytes),
        (None, 5)
    );
    encoder.set_usage(TokenUsage {
        input: 7,
        output: 5,
        ..TokenUsage::default()
    });
    frames.extend(encoder.end(NOW));
    let chat = Chat::read(&frames, true);
    assert_eq!(chat.usage.unwrap()["total_tokens"], 12);
    assert_eq!(encoder.tally().ending, Some(Ending::Incomplete));
}

/// The client asks for an end at `stop`, which the model's API does not have.
#[test]
fn an_answer_of_a_response_ends_at_stop() {
    let delta = |text: &str| {
        event(
            "response.output_text.delta",
            json!({"output_index": 0, "delta": text}),
        )
    };
    let text = "One. Two. Three.";
    let message = json!([{"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": text, "annotations": []},
    ]}]);
    let spoken = [
        delta("One. T"),
        delta("wo."),
        delta(" Thr"),
        delta("ee."),
        completed(message.clone()),
    ];
    for (stop, expected) in [
        (json!(". Th"), "One. Two"),
        (json!(["Three", "Two"]), "One. "),
        (json!("One"), ""),
        (json!("ee.!"), text),
        (json!(null), text),
    ] {
        let request = request(
            ModelApi::Chat,
            &json!({"stop": stop, "stream_options": {"include_usage": true}}),
        );
        for events in [&spoken[..], &spoken[4..]] {
            let frames = stream(&request, ModelApi::Responses, events);
            let chat = Chat::read(&frames, true);
            let (message, reason) = chat.only();
            assert_eq!(message["content"], *expected, "{stop}");
            assert_eq!(reason, "stop");
        }
        let mut encoder = Encoder::new(&request, ModelApi::Responses, &head(ModelApi::Chat));
        let ended = spoken.iter().position(|event| {
            tell(&mut encoder, ModelApi::Responses, event.clone());
            encoder.stopped()
        });
        assert_eq!(ended.is_some(), expected != text, "{stop}");
        let whole = tell_whole(
            &request,
            ModelApi::Responses,
            None,
            upstream_response("completed", message.clone()),
        );
        let (whole, tally) = whole.unwrap();
        assert_eq!(whole["choices"][0]["message"]["content"], *expected);
        assert_eq!(whole["choices"][0]["finish_reason"], "stop");
        assert_eq!(tally.ending, Some(Ending::Completed));
    }
}
