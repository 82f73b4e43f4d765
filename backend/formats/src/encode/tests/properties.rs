//! What holds for every stream.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    ModelApi, NOW, chunk, finish, has_content, head,
    reading::{Chat, Response},
    request, rich_chunks, rich_events, stream, tell, usage, usage_wanted,
};
use crate::{Encoder, ErrorBody, Frame, ModelEvent, failure, request::tests::any_json, whole};

const TERMINAL: [&str; 4] = [
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
];

/// A chunk as some server may send it.
fn any_chunk() -> impl Strategy<Value = Value> {
    let call = |index: u64, name: &str, arguments: &str| json!({"index": index, "id": format!("c{index}"), "function": {"name": name, "arguments": arguments}});
    prop_oneof![
        Just(chunk(json!({"role": "assistant", "content": ""}))),
        Just(chunk(json!({}))),
        Just(json!({"choices": []})),
        Just(usage()),
        ".{0,5}".prop_map(|text| chunk(json!({"content": text}))),
        ".{0,5}".prop_map(|text| chunk(json!({"reasoning_content": text}))),
        ".{0,5}".prop_map(|text| chunk(json!({"reasoning": text, "content": null}))),
        ".{1,5}".prop_map(|text| chunk(json!({"refusal": text}))),
        (0_u64..4, "[a-z]{1,3}", ".{0,5}").prop_map(move |(index, name, arguments)| chunk(
            json!({"tool_calls": [call(index, &name, &arguments)]})
        )),
        (0_u64..4, ".{0,5}").prop_map(|(index, arguments)| chunk(
            json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
        )),
    ]
}

fn any_answer() -> impl Strategy<Value = Vec<Value>> {
    let end = prop_oneof![
        Just("stop"),
        Just("length"),
        Just("tool_calls"),
        Just("content_filter")
    ];
    (proptest::collection::vec(any_chunk(), 1..30), end).prop_map(|(mut chunks, reason)| {
        chunks.push(chunk(json!({"content": ""})));
        chunks.push(finish(reason));
        chunks
    })
}

/// Anything at all, near to what servers send and far from it.
fn any_event() -> impl Strategy<Value = Value> {
    let known = rich_chunks().into_iter().chain(rich_events());
    let known = proptest::sample::select(known.collect::<Vec<_>>());
    let item = (any_json(), 0_u64..3).prop_map(|(item, index)| {
        json!({"type": "response.output_item.done", "output_index": index, "item": item})
    });
    prop_oneof![
        3 => known,
        2 => any_chunk(),
        1 => any_json(),
        1 => any_json().prop_map(|delta| chunk(json!({"content": "x", "tool_calls": [delta]}))),
        1 => any_json().prop_map(|response| json!({"type": "response.completed", "response": response})),
        1 => any_json().prop_map(|output| json!({"object": "response", "output": [output]})),
        1 => item,
    ]
}

/// The text, the refusal and the thinking of a message, and each tool's id, name and arguments. A call without a name is
/// none, and ids that we made are not compared.
fn essence(message: &Value) -> (Value, Vec<String>) {
    let text = |field: &str| json!(message[field].as_str().unwrap_or_default());
    let texts = json!([text("content"), text("refusal"), text("reasoning_content")]);
    let calls = message["tool_calls"].as_array().cloned();
    let calls = calls.unwrap_or_default().into_iter().filter_map(|call| {
        let id = call["id"].as_str().unwrap();
        let id = if id.starts_with("call_7f") {
            "made"
        } else {
            id
        };
        let function = &call["function"];
        (function["name"] != "")
            .then(|| format!("{id} {} {}", function["name"], function["arguments"]))
    });
    let mut calls = calls.collect::<Vec<_>>();
    calls.sort();
    (texts, calls)
}

/// What was said in chunks, added up by hand.
fn thought(chunks: &[Value]) -> String {
    let deltas = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]);
    deltas
        .filter_map(|delta| {
            delta["reasoning_content"]
                .as_str()
                .or(delta["reasoning"].as_str())
        })
        .collect()
}

/// Numbers without a gap, one terminal event, and it is the last before the end of the stream.
pub(super) fn check_numbers(frames: &[Frame]) {
    let (done, frames) = frames.split_last().unwrap();
    assert_eq!(
        (done.event.as_deref(), done.data.as_str()),
        (None, "[DONE]")
    );
    let ends = frames.iter().filter(|frame| {
        let name = frame.event.as_deref().unwrap();
        TERMINAL.contains(&name)
    });
    assert_eq!(ends.count(), 1);
    assert!(TERMINAL.contains(&frames.last().unwrap().event.as_deref().unwrap()));
    for (number, frame) in frames.iter().enumerate() {
        let event = serde_json::from_str::<Value>(&frame.data).unwrap();
        assert_eq!(event["sequence_number"], json!(number));
        assert_eq!(event["type"].as_str(), frame.event.as_deref());
    }
}

/// One end, a good or a bad one, and it is the last.
pub(super) fn check_end(frames: &[Frame]) {
    let ends = |frame: &Frame| frame.data == "[DONE]" || frame.data.starts_with("{\"error\"");
    assert_eq!(frames.iter().filter(|frame| ends(frame)).count(), 1);
    assert!(ends(frames.last().unwrap()));
}

proptest! {
    #[test]
    fn a_chat_completion_survives_the_way_over_responses(chunks in any_answer()) {
        let plain = request(ModelApi::Responses, &json!({}));
        let response = Response::read(&stream(&plain, ModelApi::Chat, &chunks));
        let events = response.events.into_iter().map(|(_, event)| event).collect::<Vec<_>>();
        let there_and_back = Chat::read(&stream(&usage_wanted(), ModelApi::Responses, &events), true);
        let direct = Chat::read(&stream(&usage_wanted(), ModelApi::Chat, &chunks), true);
        let (texts, calls) = essence(direct.only().0);
        let (texts_back, calls_back) = essence(there_and_back.only().0);
        prop_assert_eq!(&texts_back[0], &texts[0]);
        prop_assert_eq!(&texts_back[1], &texts[1]);
        // Chat completions pass thinking under the name that the server gives it.
        prop_assert_eq!(texts_back[2].as_str().unwrap(), thought(&chunks));
        prop_assert_eq!(calls_back, calls);
        prop_assert_eq!(there_and_back.usage, direct.usage);
    }

    #[test]
    fn numbers_and_ends_hold_for_any_events(
        events in proptest::collection::vec(any_event(), 0..25),
        upstream in prop_oneof![Just(ModelApi::Chat), Just(ModelApi::Responses)],
        switch in proptest::option::of(0_usize..5),
        cut in any::<bool>(),
    ) {
        for client in [ModelApi::Chat, ModelApi::Responses] {
            let request = request(client, &json!({}));
            let mut upstream = upstream;
            let mut encoder = Encoder::new(&request, upstream, &head(client));
            let mut frames = encoder.begin();
            for (number, event) in events.iter().enumerate() {
                if Some(number) == switch && !events[..number].iter().any(|event| has_content(upstream, event)) {
                    upstream = ModelApi::Chat;
                    encoder.set_answering(upstream, "fallback");
                }
                frames.extend(tell(&mut encoder, upstream, event.clone()));
            }
            let error = ErrorBody::server("upstream_cut", "cut");
            frames.extend(if cut { encoder.fail(&error) } else { encoder.end(NOW) });
            prop_assert!(encoder.finished());
            match client {
                ModelApi::Responses => check_numbers(&frames),
                ModelApi::Chat => check_end(&frames),
            }
            prop_assert_eq!(encoder.response().is_some(), client == ModelApi::Responses);
        }
    }

    #[test]
    fn a_client_of_responses_hears_nothing_before_content(
        events in proptest::collection::vec(any_event(), 1..12),
        upstream in prop_oneof![Just(ModelApi::Chat), Just(ModelApi::Responses)],
    ) {
        let request = request(ModelApi::Responses, &json!({}));
        let mut encoder = Encoder::new(&request, upstream, &head(ModelApi::Responses));
        encoder.begin();
        for event in events {
            if has_content(upstream, &event) || failure(upstream, &event).is_some() {
                break;
            }
            prop_assert_eq!(tell(&mut encoder, upstream, event), []);
        }
    }

    #[test]
    fn no_answer_breaks_anything(answer in any_json(), choice in any_json()) {
        for upstream in [ModelApi::Chat, ModelApi::Responses] {
            for client in [ModelApi::Chat, ModelApi::Responses] {
                let request = request(client, &json!({}));
                let answers = [
                    answer.clone(),
                    json!({"choices": [{"index": answer, "message": choice}], "usage": answer}),
                    json!({"object": "response", "output": [choice, answer], "usage": choice}),
                ];
                for answer in answers {
                    if let Ok(answer) = ModelEvent::read(upstream, answer) {
                        let _ = whole(&request, &head(client), None, answer, NOW);
                    }
                }
            }
        }
    }
}
