//! Two clients that take nothing for granted: they check what the contract promises, and put the answer together as the
//! official clients do.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Frame;

/// Every field of a response object.
const FIELDS: [&str; 31] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "error",
    "incomplete_details",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "model",
    "output",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "background",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "top_logprobs",
    "presence_penalty",
    "frequency_penalty",
    "truncation",
    "usage",
    "metadata",
];
const TERMINAL: [&str; 4] = [
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
];

/// A streamed response, read to its end.
pub(super) struct Response {
    /// The events, with their types in front.
    pub(super) events: Vec<(String, Value)>,
    /// The items as their events have built them up.
    pub(super) items: Vec<Value>,
}

impl Response {
    pub(super) fn read(frames: &[Frame]) -> Self {
        let mut events = Vec::new();
        let (done, frames) = frames.split_last().unwrap();
        assert_eq!(
            (done.event.as_deref(), done.data.as_str()),
            (None, "[DONE]")
        );
        for (number, frame) in frames.iter().enumerate() {
            assert!(!frame.data.contains('\n'));
            let event = serde_json::from_str::<Value>(&frame.data).unwrap();
            let kind = event["type"].as_str().unwrap().to_owned();
            assert_eq!(frame.event.as_deref(), Some(kind.as_str()));
            assert_eq!(event["sequence_number"], json!(number), "{kind}");
            if let Some(response) = event.get("response") {
                check_object(response);
            }
            events.push((kind, event));
        }
        let kinds = events.iter().map(|(kind, _)| kind.as_str());
        let kinds = kinds.collect::<Vec<_>>();
        assert_eq!(kinds[..2], ["response.created", "response.in_progress"]);
        let terminal = kinds.iter().filter(|kind| TERMINAL.contains(kind)).count();
        assert_eq!(terminal, 1, "{kinds:?}");
        assert!(TERMINAL.contains(kinds.last().unwrap()), "{kinds:?}");
        let mut items = Items::default();
        for (kind, event) in &events {
            items.take(kind, event);
        }
        let response = Self {
            events,
            items: items.items,
        };
        if response.ended_as() != "error" {
            assert_eq!(items.open, BTreeSet::new(), "items that are never done");
            let output = response.last()["response"]["output"].clone();
            assert_eq!(Value::Array(response.items.clone()), output);
        }
        response
    }

    pub(super) fn last(&self) -> &Value {
        &self.events.last().unwrap().1
    }

    pub(super) fn ended_as(&self) -> &str {
        &self.events.last().unwrap().0
    }

    /// The types of the events, without the two of the beginning.
    pub(super) fn kinds(&self) -> Vec<&str> {
        let kinds = self.events.iter().skip(2);
        kinds
            .map(|(kind, _)| kind.strip_prefix("response.").unwrap_or(kind))
            .collect()
    }

    /// The events of a type.
    pub(super) fn of_kind(&self, wanted: &str) -> Vec<&Value> {
        let events = self.events.iter().filter(|(kind, _)| kind == wanted);
        events.map(|(_, event)| event).collect()
    }
}

pub(super) fn check_object(response: &Value) {
    let fields = response.as_object().unwrap();
    for field in FIELDS.iter().chain(&["user"]) {
        assert!(fields.contains_key(*field), "{field} is missing");
    }
    assert_eq!(response["object"], "response");
    assert_eq!(response["id"], "resp_7f");
}

/// The items that the events build up, in the way of the official client for Node.js, the strictest one.
#[derive(Default)]
struct Items {
    items: Vec<Value>,
    open: BTreeSet<u64>,
}

impl Items {
    fn take(&mut self, kind: &str, event: &Value) {
        if kind == "response.output_item.added" {
            assert_eq!(event["output_index"], json!(self.items.len()));
            let item = event["item"].clone();
            let id = item["id"].as_str().unwrap();
            assert!(!id.is_empty());
            assert!(self.items.iter().all(|other| other["id"] != item["id"]));
            self.open.insert(self.items.len() as u64);
            self.items.push(item);
            return;
        }
        let Some(index) = event["output_index"].as_u64() else {
            return;
        };
        assert!(
            self.open.contains(&index),
            "{kind} of an item that is not open"
        );
        let item = &mut self.items[usize::try_from(index).unwrap()];
        if kind == "response.output_item.done" {
            assert_eq!(item["id"], event["item"]["id"]);
            assert_eq!(item["type"], event["item"]["type"]);
            check_built(item, &event["item"]);
            *item = event["item"].clone();
            self.open.remove(&index);
            return;
        }
        assert_eq!(item["id"], event["item_id"], "{kind}");
        let content = event["content_index"].as_u64().unwrap_or(0);
        let content = usize::try_from(content).unwrap();
        match kind {
            "response.content_part.added" => {
                if item["content"].is_null() {
                    item["content"] = json!([]);
                }
                let parts = item["content"].as_array_mut().unwrap();
                assert_eq!(parts.len(), content);
                parts.push(event["part"].clone());
            }
            "response.output_text.delta" => {
                assert!(event["logprobs"].is_array());
                add(&mut item["content"][content]["text"], &event["delta"]);
            }
            "response.reasoning_text.delta" => {
                add(&mut item["content"][content]["text"], &event["delta"]);
            }
            "response.refusal.delta" => {
                add(&mut item["content"][content]["refusal"], &event["delta"]);
            }
            "response.output_text.annotation.added" => {
                let annotations = item["content"][content]["annotations"]
                    .as_array_mut()
                    .unwrap();
                assert_eq!(event["annotation_index"], json!(annotations.len()));
                annotations.push(event["annotation"].clone());
            }
            "response.output_text.done" | "response.reasoning_text.done" => {
                assert_eq!(item["content"][content]["text"], event["text"]);
            }
            "response.refusal.done" => {
                assert_eq!(item["content"][content]["refusal"], event["refusal"]);
            }
            "response.content_part.done" => {
                let text = |part: &Value| (part["type"].clone(), part["text"].clone());
                assert_eq!(text(&item["content"][content]), text(&event["part"]));
                item["content"][content] = event["part"].clone();
            }
            "response.function_call_arguments.delta" => {
                add(&mut item["arguments"], &event["delta"]);
            }
            "response.function_call_arguments.done" => {
                assert_eq!(item["arguments"], event["arguments"]);
                assert_eq!(item["name"], event["name"]);
            }
            "response.custom_tool_call_input.delta" => add(&mut item["input"], &event["delta"]),
            "response.custom_tool_call_input.done" => assert_eq!(item["input"], event["input"]),
            _ => {}
        }
    }
}

/// An item that is done is what its events have told.
fn check_built(built: &Value, done: &Value) {
    for field in ["arguments", "input", "name", "call_id", "content"] {
        assert_eq!(built.get(field), done.get(field), "{field} of {done}");
    }
}

/// A streamed chat completion, read to its end.
#[derive(Debug)]
pub(super) struct Chat {
    /// The chunks.
    pub(super) chunks: Vec<Value>,
    /// The messages as their deltas have built them up, with the reason of the end, by choice.
    pub(super) choices: BTreeMap<u64, (Value, String)>,
    /// The last chunk's usage.
    pub(super) usage: Option<Value>,
    /// The error that the stream ended with.
    pub(super) error: Option<Value>,
}

impl Chat {
    pub(super) fn read(frames: &[Frame], include_usage: bool) -> Self {
        let (last, frames) = frames.split_last().unwrap();
        let mut chat = Self {
            chunks: Vec::new(),
            choices: BTreeMap::new(),
            usage: None,
            error: None,
        };
        if last.data != "[DONE]" {
            let error = serde_json::from_str::<Value>(&last.data).unwrap();
            assert!(error["error"]["message"].is_string(), "{error}");
            chat.error = Some(error["error"].clone());
        }
        let mut ends = BTreeMap::new();
        for frame in frames {
            assert_eq!(frame.event, None);
            let chunk = serde_json::from_str::<Value>(&frame.data).unwrap();
            assert_eq!(chunk.get("error"), None);
            assert_eq!(chunk["id"], "chatcmpl-7f");
            assert_eq!(chunk["object"], "chat.completion.chunk");
            assert_eq!(chat.usage, None, "a chunk after the usage");
            let choices = chunk["choices"].as_array().unwrap();
            match choices.as_slice() {
                [] => chat.usage = Some(chunk["usage"].clone()),
                [choice] => {
                    assert_eq!(chunk.get("usage").is_some(), include_usage);
                    assert!(chunk["usage"].is_null());
                    chat.choice(choice, &mut ends);
                }
                _ => panic!("more than one choice in a chunk"),
            }
            chat.chunks.push(chunk);
        }
        if chat.error.is_none() {
            assert_eq!(chat.choices.len(), ends.len(), "choices that never end");
        }
        for (index, reason) in ends {
            chat.choices.get_mut(&index).unwrap().1 = reason;
        }
        chat
    }

    fn choice(&mut self, choice: &Value, ends: &mut BTreeMap<u64, String>) {
        let index = choice["index"].as_u64().unwrap();
        assert!(!ends.contains_key(&index), "a chunk after the end");
        let delta = choice["delta"].as_object().unwrap();
        match self.choices.get_mut(&index) {
            None => {
                assert_eq!(delta["role"], "assistant");
                let begun = (Value::Object(delta.clone()), String::new());
                self.choices.insert(index, begun);
            }
            Some((message, _)) => {
                assert!(!delta.contains_key("role"));
                accumulate(message.as_object_mut().unwrap(), delta);
            }
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            ends.insert(index, reason.to_owned());
        }
    }

    /// The message of the only choice, and the reason of its end.
    pub(super) fn only(&self) -> (&Value, &str) {
        assert_eq!(self.choices.len(), 1);
        let (message, reason) = &self.choices[&0];
        (message, reason)
    }
}

/// As the official client for Python adds deltas up: texts grow, lists of objects are matched by their index.
fn accumulate(whole: &mut Map<String, Value>, delta: &Map<String, Value>) {
    for (field, value) in delta {
        match (whole.get_mut(field), value) {
            (None | Some(Value::Null), _) => {
                whole.insert(field.clone(), value.clone());
            }
            (Some(_), Value::Null) => {}
            (Some(known), _) if field == "index" || field == "type" => known.clone_from(value),
            (Some(Value::String(known)), Value::String(more)) => known.push_str(more),
            (Some(Value::Object(known)), Value::Object(more)) => accumulate(known, more),
            (Some(Value::Array(known)), Value::Array(more)) => {
                for entry in more {
                    let Some(index) = entry.get("index") else {
                        known.push(entry.clone());
                        continue;
                    };
                    match known.iter_mut().find(|other| other["index"] == *index) {
                        Some(Value::Object(other)) => {
                            accumulate(other, entry.as_object().unwrap());
                        }
                        _ => known.push(entry.clone()),
                    }
                }
            }
            (Some(known), _) => panic!("{field}: {value} after {known}"),
        }
    }
}

fn add(text: &mut Value, delta: &Value) {
    let Value::String(text) = text else {
        panic!("{delta} is added to {text}")
    };
    text.push_str(delta.as_str().unwrap());
}
