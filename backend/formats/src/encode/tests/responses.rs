//! Clients of responses.

use serde_json::{Value, json};

use super::{
    ModelApi, NOW, chunk, finish, has_content, head, reading::Response, request, rich_chunks,
    rich_events, rich_items, stream, tell, upstream_response, usage,
};
use crate::{Encoder, Ending};

fn plain() -> super::Request {
    request(ModelApi::Responses, &json!({}))
}

fn read(upstream: ModelApi, events: &[Value]) -> Response {
    Response::read(&stream(&plain(), upstream, events))
}

fn chunks(events: &[Value]) -> Response {
    read(ModelApi::Chat, events)
}

#[test]
fn a_chat_completion_becomes_items() {
    let response = chunks(&rich_chunks());
    assert_eq!(
        response.kinds(),
        [
            "output_item.added",
            "reasoning_text.delta",
            "reasoning_text.delta",
            "reasoning_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.delta",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "function_call_arguments.done",
            "output_item.done",
            "completed",
        ]
    );
    let items = json!([
        {"id": "rs_7f_0", "type": "reasoning", "status": "completed", "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm,\n  well. "}]},
        {"id": "msg_7f_1", "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "It is.", "annotations": [], "logprobs": []}]},
        {"id": "fc_7f_2", "type": "function_call", "status": "completed", "call_id": "c1", "name": "look",
            "arguments": "{\"a\":1}"},
        {"id": "fc_7f_3", "type": "function_call", "status": "completed", "call_id": "c2", "name": "run",
            "arguments": "{}"},
    ]);
    assert_eq!(Value::Array(response.items.clone()), items);
    let end = &response.last()["response"];
    assert_eq!(end["status"], "completed");
    assert_eq!(end["completed_at"], NOW);
    let usage = json!({
        "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 2},
    });
    assert_eq!(end["usage"], usage);
    assert_eq!(
        response.of_kind("response.function_call_arguments.done")[0]["name"],
        "look"
    );
}

#[test]
fn the_object_shows_what_the_client_asked_for() {
    let mut asked = request(
        ModelApi::Responses,
        &json!({
            "instructions": "Be kind.", "temperature": 0.25, "max_output_tokens": 9, "previous_response_id": "resp_1",
            "tools": [{"type": "function", "name": "f"}], "tool_choice": "required", "text": {"verbosity": "low"},
            "metadata": {"run": "7", "svc": {"character_params": {"a": 1}}}, "reasoning": {"effort": "low"},
            "store": false, "service_tier": "auto", "user": "u",
        }),
    );
    asked.prepend_system("You are a secret character.");
    for upstream in [ModelApi::Chat, ModelApi::Responses] {
        let events = match upstream {
            ModelApi::Chat => rich_chunks(),
            ModelApi::Responses => rich_events(),
        };
        let response = Response::read(&stream(&asked, upstream, &events));
        for event in [&response.events[0].1, response.last()] {
            let object = &event["response"];
            let expected = json!({
                "model": "public", "instructions": "Be kind.", "max_output_tokens": 9, "previous_response_id": "resp_1",
                "metadata": {"run": "7"}, "store": false, "created_at": 1_800_000_000, "background": false,
                "reasoning": {"effort": "low", "summary": null}, "user": "u", "service_tier": "default",
                "text": {"verbosity": "low", "format": {"type": "text"}}, "top_p": 1.0, "truncation": "disabled",
            });
            for (field, value) in expected.as_object().unwrap() {
                assert_eq!(object[field], *value, "{field} of {upstream:?}");
            }
        }
        let begun = &response.events[0].1["response"];
        assert_eq!(begun["temperature"], 0.25);
        let tool = json!({"type": "function", "name": "f", "description": null, "parameters": null, "strict": null});
        assert_eq!(begun["tools"], json!([tool]));
        assert_eq!(
            (&begun["status"], &begun["output"]),
            (&json!("in_progress"), &json!([]))
        );
        assert!(!response.last().to_string().contains("secret"));
    }
}

#[test]
fn a_model_s_own_events_pass() {
    let response = read(ModelApi::Responses, &rich_events());
    assert_eq!(
        Value::Array(response.items.clone())
            .to_string()
            .matches("It is.")
            .count(),
        1
    );
    let told = response.kinds();
    let sent = rich_events();
    let sent = sent.iter().skip(2).map(|event| {
        let kind = event["type"].as_str().unwrap();
        kind.strip_prefix("response.").unwrap()
    });
    assert_eq!(told, sent.collect::<Vec<_>>());
    let end = &response.last()["response"];
    assert_eq!(
        (&end["model"], &end["temperature"]),
        (&json!("public"), &json!(0.5))
    );
    assert_eq!(end["completed_at"], NOW);
    // What the server left out is filled in.
    assert_eq!(
        response.of_kind("response.function_call_arguments.done")[1]["name"],
        "run"
    );
    assert_eq!(
        response.of_kind("response.output_text.done")[0]["logprobs"],
        json!([])
    );
    assert_eq!(end["output"][1]["content"][0]["logprobs"], json!([]));
}

#[test]
fn thinking_that_nobody_announced_has_its_part_from_the_start() {
    let delta = json!({"type": "response.reasoning_text.delta", "output_index": 0, "item_id": "rs_1", "content_index": 0, "delta": "Hm"});
    let part = json!({"type": "reasoning_text", "text": ""});
    let announced = json!({"type": "response.content_part.added", "output_index": 0, "item_id": "rs_1", "content_index": 0, "part": part});
    let mut empty = delta.clone();
    empty["delta"] = json!("");
    for (parts, expected) in [
        (vec![], json!([part])),
        (vec![empty.clone()], json!([part])),
        (vec![announced.clone()], json!([])),
        (vec![announced, empty], json!([])),
    ] {
        let item = json!({"id": "rs_1", "type": "reasoning", "summary": [], "content": []});
        let added = json!({"type": "response.output_item.added", "output_index": 0, "item": item});
        let part = json!({"type": "reasoning_text", "text": "Hm"});
        let item = json!({"id": "rs_1", "type": "reasoning", "summary": [], "content": [part]});
        let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
        let end = json!({"type": "response.completed", "response": upstream_response("completed", json!([item]))});
        let events = [vec![added], parts, vec![delta.clone(), done, end]].concat();
        let response = read(ModelApi::Responses, &events);
        let added = &response.of_kind("response.output_item.added")[0];
        assert_eq!(added["item"]["content"], expected);
    }
}

#[test]
fn events_that_are_not_known_pass_too() {
    let item = json!({"id": "ws_1", "type": "web_search_call", "status": "completed"});
    let event = |kind: &str, mut more: Value| {
        more["type"] = json!(kind);
        more
    };
    let events = [
        event("keepalive", json!({"sequence_number": 3})),
        event(
            "response.output_item.added",
            json!({"output_index": 0, "item": item}),
        ),
        event(
            "response.web_search_call.searching",
            json!({"output_index": 0, "item_id": "ws_1"}),
        ),
        event(
            "response.made_up.delta",
            json!({"output_index": 0, "item_id": "ws_1", "delta": {"x": 1}}),
        ),
        event(
            "response.made_up\nid: 7",
            json!({"output_index": 0, "item_id": "ws_1"}),
        ),
        event(
            "response.output_item.done",
            json!({"output_index": 0, "item": item}),
        ),
        event(
            "response.completed",
            json!({"response": upstream_response("completed", json!([item]))}),
        ),
        event(
            "response.completed",
            json!({"response": upstream_response("completed", json!([item]))}),
        ),
    ];
    let response = read(ModelApi::Responses, &events);
    assert_eq!(
        response.kinds(),
        [
            "output_item.added",
            "web_search_call.searching",
            "made_up.delta",
            "output_item.done",
            "completed"
        ]
    );
    assert_eq!(
        response.of_kind("response.made_up.delta")[0]["delta"]["x"],
        1
    );
}

#[test]
fn what_only_the_last_event_has_is_stored_beside_what_was_told() {
    let [thought, search] = [("rs_1", "reasoning"), ("ws_1", "web_search_call")]
        .map(|(id, kind)| json!({"id": id, "type": kind, "summary": []}));
    let event = |kind: &str, mut more: Value| {
        more["type"] = json!(kind);
        more
    };
    for output in [json!([search]), json!([thought, search])] {
        let response = read(
            ModelApi::Responses,
            &[
                event(
                    "response.output_item.added",
                    json!({"output_index": 0, "item": thought}),
                ),
                event(
                    "response.output_item.done",
                    json!({"output_index": 0, "item": thought}),
                ),
                event(
                    "response.completed",
                    json!({"response": upstream_response("completed", output)}),
                ),
            ],
        );
        let stored = response.last()["response"]["output"].as_array().unwrap();
        let ids = stored.iter().map(|item| item["id"].as_str().unwrap());
        assert_eq!(ids.collect::<Vec<_>>(), ["rs_1_clq_7f_0", "ws_1_clq_7f_1"]);
    }
}

#[test]
fn a_server_that_does_not_stream() {
    let items = json!([
        rich_items()[0], rich_items()[1], rich_items()[2],
        {"id": "rs_2", "type": "reasoning", "summary": [{"type": "summary_text", "text": "S"}]},
        {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c9", "name": "run", "input": "ls"},
        {"id": "ws_1", "type": "web_search_call", "status": "completed"},
        {"id": "msg_2", "type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    ]);
    let mut items = items;
    items[1]["content"][0]["logprobs"] = json!([]);
    let response = read(
        ModelApi::Responses,
        &[upstream_response("completed", items.clone())],
    );
    for (index, item) in items.as_array_mut().unwrap().iter_mut().enumerate() {
        let theirs = item["id"].as_str().unwrap();
        item["id"] = json!(format!("{theirs}_clq_7f_{index}"));
    }
    assert_eq!(Value::Array(response.items.clone()), items);
    assert_eq!(response.ended_as(), "response.completed");
    let whole = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "reasoning": "Hm", "content": "Hello", "tool_calls": [
            {"id": "c", "type": "custom", "custom": {"name": "run", "input": "ls"}},
        ],
    }}]});
    let response = chunks(&[whole]);
    let kinds = response
        .items
        .iter()
        .map(|item| item["type"].as_str().unwrap());
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        ["reasoning", "message", "custom_tool_call"]
    );
    assert_eq!(response.items[2]["input"], "ls");
}

#[test]
fn parts_of_a_message_follow_each_other() {
    let citation = json!({"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 2}});
    let mut with_logprobs = chunk(json!({"content": "Hi"}));
    with_logprobs["choices"][0]["logprobs"] =
        json!({"content": [{"token": "Hi", "logprob": -0.1, "bytes": null, "top_logprobs": []}]});
    let response = chunks(&[
        with_logprobs,
        chunk(json!({"annotations": [citation]})),
        chunk(json!({"refusal": "No."})),
        chunk(json!({"content": [{"type": "text", "text": "Yes."}]})),
        finish("stop"),
    ]);
    let logprobs = json!([{"token": "Hi", "logprob": -0.1, "bytes": null, "top_logprobs": []}]);
    let annotation =
        json!({"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 2});
    let parts = json!([
        {"type": "output_text", "text": "Hi", "annotations": [annotation], "logprobs": logprobs},
        {"type": "refusal", "refusal": "No."},
        {"type": "output_text", "text": "Yes.", "annotations": [], "logprobs": []},
    ]);
    assert_eq!(response.items.len(), 1);
    assert_eq!(response.items[0]["content"], parts);
    assert_eq!(
        response.of_kind("response.output_text.delta")[0]["logprobs"],
        logprobs
    );
}

#[test]
fn thinking_between_texts_is_an_item_of_its_own() {
    let response = chunks(&[
        chunk(json!({"reasoning": "One"})),
        chunk(json!({"content": "A"})),
        chunk(json!({"reasoning": " two ", "reasoning_content": " two "})),
        chunk(json!({"content": "B"})),
        finish("stop"),
    ]);
    let told = response
        .items
        .iter()
        .map(|item| item["content"][0]["text"].as_str().unwrap());
    assert_eq!(told.collect::<Vec<_>>(), ["One", "A", " two ", "B"]);
}

#[test]
fn limits_and_filters_make_a_response_incomplete() {
    for (reason, expected) in [
        ("length", "max_output_tokens"),
        ("content_filter", "content_filter"),
    ] {
        let response = chunks(&[chunk(json!({"content": "Hi"})), finish(reason), usage()]);
        assert_eq!(response.ended_as(), "response.incomplete");
        let end = &response.last()["response"];
        assert_eq!(end["status"], "incomplete");
        assert_eq!(end["incomplete_details"]["reason"], expected);
        assert_eq!(end["completed_at"], Value::Null);
        assert_eq!(end["usage"]["total_tokens"], 15);
        assert_eq!(response.items[0]["status"], "incomplete");
    }
    let mut cut = upstream_response("incomplete", rich_items());
    cut["incomplete_details"] = json!({"reason": "max_output_tokens"});
    let mut events = rich_events();
    *events.last_mut().unwrap() = json!({"type": "response.incomplete", "response": cut});
    let mut encoder = Encoder::new(&plain(), ModelApi::Responses, &head(ModelApi::Responses));
    let mut frames = encoder.begin();
    for event in events {
        frames.extend(tell(&mut encoder, ModelApi::Responses, event));
    }
    assert!(encoder.finished());
    assert_eq!(encoder.tally().ending, Some(Ending::Incomplete));
    let last = frames.iter().rfind(|frame| frame.data != "[DONE]");
    assert_eq!(last.unwrap().event.as_deref(), Some("response.incomplete"));
}

#[test]
fn an_empty_answer_is_an_answer() {
    let response = chunks(&[
        chunk(json!({"role": "assistant", "content": ""})),
        finish("stop"),
    ]);
    assert_eq!(response.kinds(), ["completed"]);
    assert_eq!(response.last()["response"]["output"], json!([]));
}

#[test]
fn another_model_may_answer_before_content() {
    let mut encoder = Encoder::new(&plain(), ModelApi::Responses, &head(ModelApi::Responses));
    let mut frames = encoder.begin();
    for event in &rich_events()[..4] {
        // The beginning, an item and a part that are announced: the client hears of none of them.
        assert_eq!(tell(&mut encoder, ModelApi::Responses, event.clone()), []);
    }
    let mut empty = rich_events()[4].clone();
    empty["delta"] = json!("");
    assert!(!has_content(ModelApi::Responses, &empty));
    assert_eq!(tell(&mut encoder, ModelApi::Responses, empty), []);
    encoder.set_answering(ModelApi::Chat, "fallback");
    for event in rich_chunks() {
        frames.extend(tell(&mut encoder, ModelApi::Chat, event));
    }
    frames.extend(encoder.end(NOW));
    let response = Response::read(&frames);
    assert_eq!(response.last()["response"]["model"], "fallback");
    assert_eq!(response.items.len(), 4);
    let stored = encoder.response().unwrap();
    assert_eq!(stored, response.last()["response"]);
}
