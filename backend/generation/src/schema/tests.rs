use std::fmt;

use axum::extract::FromRef;
use colloquy_accounts::Accounts;
use colloquy_formats::{
    Encoder, Head, ModelApi, ModelEvent, Request, VisibleResult, VisibleRetrieval, whole,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{
    items::{InputItem, InputPart, OutputItem, OutputPart},
    messages::ChatPart,
    *,
};
use crate::{Generation, routes::routes};

/// Reads a value as a described body, and checks that the description has all of its fields.
fn described<T: DeserializeOwned + Serialize>(value: &Value) {
    let read = serde_json::from_value::<T>(value.clone());
    let read = read.unwrap_or_else(|error| panic!("{error}: {value}"));
    let written = serde_json::to_value(read).unwrap();
    for (field, said) in value.as_object().unwrap() {
        assert!(written.get(field).is_some(), "{field} of {value}");
        assert_eq!(
            said.is_null(),
            written[field].is_null(),
            "{field} of {value}"
        );
    }
}

/// Whether a value is one of the kinds that are described.
fn is_known<T: DeserializeOwned + fmt::Debug>(value: &Value) -> bool {
    let read = serde_json::from_value::<T>(value.clone());
    read.is_ok_and(|read| !format!("{read:?}").starts_with("Other("))
}

/// Checks that the items of a response, and their parts, are described.
fn items_are_known(items: &Value) {
    for item in items.as_array().unwrap() {
        assert!(is_known::<OutputItem>(item), "{item}");
        for part in ["content", "summary"]
            .iter()
            .flat_map(|field| item[*field].as_array())
            .flatten()
        {
            assert!(is_known::<OutputPart>(part), "{part}");
        }
    }
}

fn head(api: ModelApi) -> Head {
    Head {
        id: format!("{api:?}_7f"),
        created_at: 1_800_000_000,
        model: "public".to_owned(),
    }
}

fn request(api: ModelApi) -> Request {
    let mut body = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}});
    match api {
        ModelApi::Chat => body["messages"] = json!([{"role": "user", "content": "Hi"}]),
        ModelApi::Responses => body["input"] = json!("Hi"),
    }
    Request::read(api, body).unwrap()
}

impl FromRef<Generation> for Accounts {
    fn from_ref(generation: &Generation) -> Self {
        Self::clone(generation)
    }
}

#[test]
fn the_examples_are_what_they_describe() {
    let document = serde_json::to_value(routes::<Generation>().describe()).unwrap();
    let example = |name: &str| {
        let example = document.pointer(&format!("/components/schemas/{name}/example"));
        example.unwrap_or_else(|| panic!("{name}")).clone()
    };
    described::<ChatCompletionRequest>(&example("ChatCompletionRequest"));
    described::<ChatCompletion>(&example("ChatCompletion"));
    described::<ResponseRequest>(&example("ResponseRequest"));
    described::<TextError>(&example("TextError"));
    serde_json::from_value::<ResponseEvent>(example("ResponseEvent")).unwrap();
    for (name, api) in [
        ("ChatCompletionRequest", ModelApi::Chat),
        ("ResponseRequest", ModelApi::Responses),
    ] {
        Request::read(api, example(name)).unwrap();
    }
    // Nothing of the interface is left without a description.
    for (path, operations) in document["paths"].as_object().unwrap() {
        if path.starts_with("/v3/") {
            let bodies = operations.to_string();
            assert!(!bodies.contains("\"schema\":{}"), "{path}: {bodies}");
        }
    }
}

#[test]
fn what_is_written_is_described() {
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
    let chunks = [
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "reasoning_content": "Hm."}}]}),
        json!({"choices": [{"index": 0, "delta": {"content": "Yes."}}]}),
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [
            {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ]}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}], "usage": usage}),
    ];
    let message = json!({"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."});
    let answer = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage});
    let found = VisibleRetrieval {
        queries: vec!["lions".to_owned()],
        results: vec![VisibleResult::default()],
    };
    let read = |said: &Value| ModelEvent::read(ModelApi::Chat, said.clone()).unwrap();
    for api in [ModelApi::Chat, ModelApi::Responses] {
        let request = request(api);
        let mut encoder = Encoder::new(&request, ModelApi::Chat, &head(api));
        let mut frames = encoder.begin();
        frames.extend(encoder.retrieval(&found));
        for chunk in &chunks {
            frames.extend(encoder.event(1, read(chunk)));
        }
        frames.extend(encoder.end(1));
        let events = frames.iter().filter(|frame| frame.data != "[DONE]");
        for event in events.map(|frame| serde_json::from_str::<Value>(&frame.data).unwrap()) {
            match api {
                ModelApi::Chat => described::<ChatCompletionChunk>(&event),
                ModelApi::Responses => {
                    serde_json::from_value::<ResponseEvent>(event.clone())
                        .unwrap_or_else(|error| panic!("{error}: {event}"));
                    if let Some(response) = event.get("response") {
                        described::<ResponseObject>(response);
                        items_are_known(&response["output"]);
                    }
                    if let Some(item) = event.get("item") {
                        items_are_known(&json!([item]));
                    }
                    let part = event.get("part");
                    assert!(part.is_none_or(is_known::<OutputPart>), "{event}");
                }
            }
        }
        let (answer, _) = whole(&request, &head(api), Some(&found), read(&answer), 1).unwrap();
        match api {
            ModelApi::Chat => described::<ChatCompletion>(&answer),
            ModelApi::Responses => {
                described::<ResponseObject>(&answer);
                items_are_known(&answer["output"]);
            }
        }
    }
}

#[test]
fn what_is_required_is_what_the_parser_wants() {
    let message = |part: &Value| json!([{"role": "user", "content": [part]}]);
    let takes = |api, field: &str, value: Value| {
        let mut body = json!({"model": "m"});
        body[field] = value;
        Request::read(api, body).is_ok()
    };
    let sound = json!({"data": "", "format": "wav"});
    let chat_parts = [
        json!({"type": "text", "text": "Hi"}),
        json!({"type": "refusal", "refusal": "No"}),
        json!({"type": "image_url", "image_url": {"url": "data:", "detail": "low"}}),
        json!({"type": "input_audio", "input_audio": sound}),
        json!({"type": "file", "file": {"file_id": "f"}}),
    ];
    let input_parts = [
        json!({"type": "input_text", "text": "Hi"}),
        json!({"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}),
        json!({"type": "refusal", "refusal": "No"}),
        json!({"type": "input_image", "image_url": "data:", "detail": "low"}),
        json!({"type": "input_file", "file_id": "f", "filename": "a.txt"}),
        json!({"type": "input_audio", "input_audio": sound}),
    ];
    let items = [
        json!({"type": "message", "role": "user", "content": "Hi"}),
        json!({"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}),
        json!({"type": "function_call_output", "id": "i", "call_id": "c", "output": "x", "status": "completed"}),
        json!({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}),
        json!({"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]}),
        json!({"type": "reasoning", "id": "i", "summary": [], "content": [], "encrypted_content": "x"}),
        json!({"type": "item_reference", "id": "i"}),
        json!({"type": null, "id": "i"}),
        json!({"id": "i"}),
    ];
    let check = |example: &Value, known: fn(&Value) -> bool, taken: &dyn Fn(&Value) -> bool| {
        assert!(known(example) && taken(example), "{example}");
        for field in example
            .as_object()
            .unwrap()
            .keys()
            .filter(|field| *field != "type")
        {
            let mut without = example.clone();
            without.as_object_mut().unwrap().remove(field);
            assert_eq!(known(&without), taken(&without), "{field} of {example}");
        }
    };
    for part in &chat_parts {
        check(part, is_known::<ChatPart>, &|part| {
            takes(ModelApi::Chat, "messages", message(part))
        });
    }
    for part in &input_parts {
        check(part, is_known::<InputPart>, &|part| {
            takes(ModelApi::Responses, "input", message(part))
        });
    }
    for item in &items {
        check(item, is_known::<InputItem>, &|item| {
            takes(ModelApi::Responses, "input", json!([item]))
        });
    }
    // What is of another type, or says more, goes on to the model.
    let other = json!({"type": "video_url", "video_url": {"url": "data:"}});
    assert!(
        !is_known::<ChatPart>(&other) && serde_json::from_value::<ChatPart>(other.clone()).is_ok()
    );
    assert!(takes(ModelApi::Chat, "messages", message(&other)));
    let more = json!({"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}});
    assert!(is_known::<ChatPart>(&more) && takes(ModelApi::Chat, "messages", message(&more)));
}
