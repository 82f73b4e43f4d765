//! The events of a model's stream, put together to the answer that the model would have given in one piece.
//!
//! It is for a client that wants one piece from a model that is asked for events, so that it shows early whether it answers.
//! Nothing that a whole answer has is lost: texts are joined, calls of tools are completed, what is not known is kept.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    super::{
        ModelApi, ModelEvent, Object,
        event::{
            ApiEvent, ChatChoice, ChatChunk, ResponseEvent, ResponseEventKind as Kind, is_said,
        },
        fields::{entries, str_of},
    },
    calls::{self, Calls},
    chat_to_chat::MAX_CHOICES,
};

/// The largest answer, about as it is counted in one piece.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// What a value takes besides its text.
const VALUE_BYTES: usize = 16;

/// The answer is larger than what is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is larger than 16 MiB")]
pub struct AnswerTooLarge;

/// An answer that is put together of its events.
#[derive(Debug)]
pub struct Assembler {
    parts: Parts,
    bytes: usize,
}

#[derive(Debug)]
enum Parts {
    Chat(CompletionParts),
    Response(ResponseParts),
}

impl Assembler {
    /// For the events of a model that has this API.
    #[must_use]
    pub fn new(api: ModelApi) -> Self {
        Self {
            parts: match api {
                ModelApi::Chat => Parts::Chat(CompletionParts::default()),
                ModelApi::Responses => Parts::Response(ResponseParts::default()),
            },
            bytes: 0,
        }
    }

    /// Takes in the next event, which tells of no failure.
    ///
    /// # Errors
    /// When there is more than what is taken of an answer in one piece.
    pub fn add(&mut self, event: ModelEvent) -> Result<(), AnswerTooLarge> {
        self.bytes += match (&mut self.parts, event.0) {
            (Parts::Chat(parts), ApiEvent::Chat(chunk)) => parts.add(chunk),
            (Parts::Response(parts), ApiEvent::Response(event)) => parts.add(event),
            // An event of another API than the model's is none of its answer.
            (Parts::Chat(_) | Parts::Response(_), _) => 0,
        };
        match self.bytes <= MAX_BYTES {
            true => Ok(()),
            false => Err(AnswerTooLarge),
        }
    }

    /// The whole answer, when the stream has ended; `None` when it has said nothing, or has not told its end.
    #[must_use]
    pub fn finish(self) -> Option<ModelEvent> {
        let answer = match self.parts {
            Parts::Chat(parts) => ApiEvent::Chat(parts.finish()?),
            Parts::Response(parts) => ApiEvent::Response(parts.finish()?),
        };
        Some(ModelEvent(answer))
    }
}

/// A chat completion.
#[derive(Debug, Default)]
struct CompletionParts {
    choices: BTreeMap<u64, ChoiceParts>,
    usage: Option<Object>,
    rest: Object,
}

/// A choice of a chat completion.
#[derive(Debug, Default)]
struct ChoiceParts {
    said: Object,
    calls: Calls,
    /// The calls of tools, at their places in `calls`.
    called: Vec<Object>,
    finish_reason: Option<String>,
    rest: Object,
}

impl CompletionParts {
    /// The bytes that are kept of it.
    fn add(&mut self, chunk: ChatChunk) -> usize {
        let mut bytes = 0;
        for choice in chunk.choices {
            let index = choice.index.unwrap_or(choice.position);
            if index < MAX_CHOICES {
                bytes += object_bytes(&choice.said) + object_bytes(&choice.rest);
                self.choices.entry(index).or_default().add(choice);
            }
        }
        if let Some(usage) = chunk.usage {
            bytes += object_bytes(&usage);
            self.usage = Some(usage);
        }
        let mut rest = chunk.rest;
        // It hides how long the pieces of a stream are, and says nothing.
        rest.remove("obfuscation");
        bytes += object_bytes(&rest);
        replace(&mut self.rest, rest);
        bytes
    }

    fn finish(self) -> Option<ChatChunk> {
        if self.choices.is_empty() {
            return None;
        }
        let choices = (0..).zip(self.choices);
        let choices = choices.map(|(position, (index, parts))| parts.finish(position, index));
        Some(ChatChunk {
            failure: None,
            choices: choices.collect(),
            usage: self.usage,
            rest: self.rest,
        })
    }
}

impl ChoiceParts {
    fn add(&mut self, choice: ChatChoice) {
        let (mut said, mut rest) = (choice.said, choice.rest);
        if let Some(Value::Array(calls)) = said.remove("tool_calls") {
            for call in calls {
                if let Value::Object(call) = call {
                    self.call(call);
                }
            }
        }
        join(&mut self.said, said);
        if let Some(Value::Object(logprobs)) = rest.remove("logprobs") {
            let known = self.rest.entry("logprobs").or_insert(Value::Null);
            join_value(known, Value::Object(logprobs));
        }
        replace(&mut self.rest, rest);
        self.finish_reason = self.finish_reason.take().or(choice.finish_reason);
    }

    fn call(&mut self, mut call: Object) {
        let placed = self.calls.place(&call);
        call.remove("index");
        if placed.named {
            for kind in [calls::Kind::Function, calls::Kind::Custom] {
                if let Some(Value::Object(tool)) = call.get_mut(kind.as_str()) {
                    tool.remove("name");
                }
            }
        }
        match self.called.get_mut(placed.position) {
            Some(known) => join(known, call),
            None => self.called.push(call),
        }
    }

    fn finish(self, position: u64, index: u64) -> ChatChoice {
        let mut said = self.said;
        let called = !self.called.is_empty();
        if called {
            let calls = self.called.into_iter().map(Value::Object).collect();
            said.insert("tool_calls".to_owned(), calls);
        }
        // A stream begins with an empty content also where the message has none.
        let has_other = |field: &str| said.get(field).is_some_and(is_said);
        if str_of(&said, "content") == Some("")
            && ["tool_calls", "function_call", "refusal"]
                .into_iter()
                .any(has_other)
        {
            said.insert("content".to_owned(), Value::Null);
        }
        let unsaid = || called.then(|| "tool_calls".to_owned());
        ChatChoice {
            index: Some(index),
            position,
            said,
            finish_reason: self.finish_reason.or_else(unsaid),
            rest: self.rest,
        }
    }
}

/// A response.
#[derive(Debug, Default)]
struct ResponseParts {
    /// The items that are done, for a server whose end does not repeat them.
    items: BTreeMap<u64, Value>,
    /// The response, as its end has it.
    end: Option<Object>,
}

impl ResponseParts {
    /// The bytes that are kept of it.
    fn add(&mut self, event: ResponseEvent) -> usize {
        let index = event.output_index();
        let mut fields = event.fields;
        let status = match event.kind {
            Kind::Whole => None,
            Kind::Completed => Some("completed"),
            Kind::Incomplete => Some("incomplete"),
            Kind::ItemDone => {
                let Some(item) = fields.remove("item") else {
                    return 0;
                };
                let bytes = value_bytes(&item);
                let next = self
                    .items
                    .last_key_value()
                    .map_or(0, |(last, _)| last.saturating_add(1));
                self.items.insert(index.unwrap_or(next), item);
                return bytes;
            }
            _ => return 0,
        };
        let mut response = match (status, fields.remove("response")) {
            (Some(_), Some(Value::Object(response))) => response,
            (Some(_), _) => Object::new(),
            (None, _) => fields,
        };
        if let Some(status) = status {
            response.insert("status".to_owned(), status.into());
        }
        let bytes = object_bytes(&response);
        self.end = Some(response);
        bytes
    }

    fn finish(self) -> Option<ResponseEvent> {
        let mut response = self.end?;
        if entries(&response, "output").is_empty() {
            let items = self.items.into_values().collect();
            response.insert("output".to_owned(), Value::Array(items));
        }
        Some(ResponseEvent::whole(response))
    }
}

/// Puts the fields of a delta to those before it.
fn join(known: &mut Object, more: Object) {
    for (field, value) in more {
        match known.get_mut(&field) {
            // What something is, which some servers tell in every piece.
            Some(known) if matches!(field.as_str(), "id" | "name" | "role" | "type") => {
                if !is_said(known) {
                    *known = value;
                }
            }
            Some(known) => join_value(known, value),
            None => {
                known.insert(field, value);
            }
        }
    }
}

fn join_value(known: &mut Value, more: Value) {
    match (known, more) {
        (_, Value::Null) => {}
        (Value::String(known), Value::String(more)) => known.push_str(&more),
        (Value::Array(known), Value::Array(more)) => known.extend(more),
        (Value::Object(known), Value::Object(more)) => join(known, more),
        (known, more) => *known = more,
    }
}

/// Puts fields in the place of those before them; null is nothing.
fn replace(known: &mut Object, more: Object) {
    for (field, value) in more {
        if !value.is_null() {
            known.insert(field, value);
        }
    }
}

fn object_bytes(object: &Object) -> usize {
    let fields = object.iter();
    fields
        .map(|(name, value)| name.len() + value_bytes(value))
        .sum()
}

fn value_bytes(value: &Value) -> usize {
    VALUE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(value_bytes).sum(),
            Value::Object(object) => object_bytes(object),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn assembled(api: ModelApi, events: &[Value]) -> Option<ModelEvent> {
        let mut assembler = Assembler::new(api);
        for event in events {
            let event = ModelEvent::read(api, event.clone()).unwrap();
            assembler.add(event).unwrap();
        }
        assembler.finish()
    }

    fn read(api: ModelApi, answer: Value) -> Option<ModelEvent> {
        Some(ModelEvent::read(api, answer).unwrap())
    }

    fn chunk(choice: Value) -> Value {
        json!({"id": "c", "model": "m", "choices": [choice], "usage": null, "obfuscation": "xxxx"})
    }

    #[test]
    fn a_completion_is_what_it_would_have_been_in_one_piece() {
        let token = |text: &str| json!({"token": text, "logprob": -0.5, "top_logprobs": []});
        let logprobs = |text: &str| json!({"content": [token(text)], "refusal": null});
        let call = |delta: Value| json!({"index": 1, "delta": {"tool_calls": [delta]}});
        let events = [
            chunk(
                json!({"index": 0, "delta": {"role": "assistant", "content": "", "refusal": null}}),
            ),
            chunk(json!({"index": 0, "delta": {"content": "Hel"}, "logprobs": logprobs("Hel")})),
            chunk(
                json!({"index": 1, "delta": {"role": "assistant", "content": "", "reasoning_content": "Let me "}}),
            ),
            chunk(json!({"index": 1, "delta": {"reasoning_content": "see."}})),
            chunk(json!({"index": 0, "delta": {"content": "lo"}, "logprobs": logprobs("lo")})),
            chunk(json!({"index": 0, "delta": {"annotations": [{"type": "url_citation"}]}})),
            chunk(json!({"index": 0, "delta": {}, "finish_reason": "stop"})),
            chunk(call(
                json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}),
            )),
            chunk(call(
                json!({"index": 0, "function": {"arguments": "{\"x\""}}),
            )),
            chunk(call(
                json!({"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}),
            )),
            chunk(call(
                json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ":1}"}}),
            )),
            chunk(json!({"index": 1, "delta": {}, "finish_reason": "tool_calls"})),
            json!({"id": "c", "model": "m", "service_tier": "default", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
        ];
        let whole = json!({
            "id": "c", "model": "m", "service_tier": "default", "usage": {"prompt_tokens": 1, "completion_tokens": 2},
            "choices": [
                {
                    "index": 0, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": "Hello", "refusal": null, "annotations": [{"type": "url_citation"}]},
                    "logprobs": {"content": [token("Hel"), token("lo")], "refusal": null},
                },
                {
                    "index": 1, "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant", "content": null, "reasoning_content": "Let me see.",
                        "tool_calls": [
                            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}},
                            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
                        ],
                    },
                },
            ],
        });
        assert_eq!(
            assembled(ModelApi::Chat, &events),
            read(ModelApi::Chat, whole)
        );
    }

    #[test]
    fn a_response_is_what_its_end_says_with_the_items_of_its_events() {
        let item = json!({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]});
        let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
        let delta = json!({"type": "response.output_text.delta", "delta": "Hi"});
        for output in [json!([]), json!([item])] {
            let end = json!({"id": "r", "output": output, "usage": {"input_tokens": 1}, "metadata": {"a": "b"}});
            let events = [
                json!({"type": "response.created", "response": {"id": "r"}}),
                delta.clone(),
                done.clone(),
                json!({"type": "response.completed", "response": end}),
            ];
            let whole = json!({
                "id": "r", "status": "completed", "output": [item], "usage": {"input_tokens": 1}, "metadata": {"a": "b"},
            });
            let whole = read(ModelApi::Responses, whole);
            assert_eq!(assembled(ModelApi::Responses, &events), whole);
            assert!(whole.unwrap().is_answer());
        }
        let whole = json!({"object": "response", "output": [item]});
        let again = assembled(ModelApi::Responses, std::slice::from_ref(&whole));
        assert_eq!(again, read(ModelApi::Responses, whole));
    }

    #[test]
    fn what_has_said_nothing_or_has_no_end_is_no_answer() {
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 1}});
        assert_eq!(assembled(ModelApi::Chat, &[usage]), None);
        let begun = json!({"type": "response.created", "response": {"id": "r", "output": []}});
        assert_eq!(assembled(ModelApi::Responses, &[begun]), None);
    }

    #[test]
    fn an_answer_has_a_bound() {
        let piece = chunk(json!({"delta": {"content": "a".repeat(1024 * 1024)}}));
        let mut assembler = Assembler::new(ModelApi::Chat);
        let mut add = || assembler.add(ModelEvent::read(ModelApi::Chat, piece.clone()).unwrap());
        for _ in 0..15 {
            add().unwrap();
        }
        assert_eq!(add(), Err(AnswerTooLarge));
        let item = json!({"type": "response.output_item.done", "item": {"type": "message", "content": []}});
        let mut assembler = Assembler::new(ModelApi::Responses);
        let mut add =
            || assembler.add(ModelEvent::read(ModelApi::Responses, item.clone()).unwrap());
        assert!((0..500_000).any(|_| add().is_err()));
    }
}
