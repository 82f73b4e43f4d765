//! A whole response as the events that would have told it: for a stream whose server does not stream, and for a stored
//! response that is streamed once more.

use serde_json::{Value, json};

use super::{
    super::{
        Object,
        event::ResponseEventKind,
        fields::{entries, str_of},
    },
    calls::Kind,
};

/// The events of the output, in order, without types and numbers.
pub(super) fn events(response: &Object) -> Vec<(ResponseEventKind, Object)> {
    let mut unfolded = Unfolded::default();
    for (index, item) in (0..).zip(entries(response, "output")) {
        if let Value::Object(item) = item {
            unfolded.item(index, item);
        }
    }
    unfolded.events
}

/// The events of an item, in order.
pub(super) fn item(index: u64, item: &Value) -> Vec<(ResponseEventKind, Object)> {
    let mut unfolded = Unfolded::default();
    if let Value::Object(item) = item {
        unfolded.item(index, item);
    }
    unfolded.events
}

#[derive(Default)]
struct Unfolded {
    events: Vec<(ResponseEventKind, Object)>,
}

impl Unfolded {
    fn push(&mut self, kind: &str, event: Value) {
        if let Value::Object(event) = event {
            self.events.push((ResponseEventKind::read(kind), event));
        }
    }

    fn item(&mut self, index: u64, item: &Object) {
        let mut begun = item.clone();
        begun.insert("status".to_owned(), json!("in_progress"));
        let kind = str_of(item, "type").unwrap_or_default();
        let call = Kind::of_item(kind);
        match kind {
            "message" | "reasoning" => {
                for field in ["content", "summary"] {
                    if begun.contains_key(field) {
                        begun.insert(field.to_owned(), json!([]));
                    }
                }
            }
            _ => {
                if let Some(call) = call {
                    begun.insert(call.input().to_owned(), json!(""));
                } else if kind == "file_search_call" {
                    begun.insert("results".to_owned(), Value::Null);
                }
            }
        }
        self.push(
            "response.output_item.added",
            json!({"output_index": index, "item": begun}),
        );
        let id = item.get("id").cloned().unwrap_or_default();
        if kind == "file_search_call" {
            self.search(index, &id, item);
        }
        if let Some(call) = call {
            self.call(index, &id, call, item);
        }
        for (number, part) in entries(item, "summary").iter().enumerate() {
            self.summary(index, &id, number, part);
        }
        if matches!(kind, "message" | "reasoning") {
            for (number, part) in entries(item, "content").iter().enumerate() {
                self.part(index, &id, number, part);
            }
        }
        self.push(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
    }

    fn search(&mut self, index: u64, id: &Value, item: &Object) {
        let event = json!({"item_id": id, "output_index": index});
        for kind in [
            "response.file_search_call.in_progress",
            "response.file_search_call.searching",
        ] {
            self.push(kind, event.clone());
        }
        let mut event = event;
        event["item"] = json!(item);
        self.push("response.file_search_call.completed", event);
    }

    fn call(&mut self, index: u64, id: &Value, call: Kind, item: &Object) {
        let (delta, done) = match call {
            Kind::Function => (
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
            ),
            Kind::Custom => (
                "response.custom_tool_call_input.delta",
                "response.custom_tool_call_input.done",
            ),
        };
        let input = str_of(item, call.input()).unwrap_or_default();
        self.push(
            delta,
            json!({"item_id": id, "output_index": index, "delta": input}),
        );
        self.push(
            done,
            json!({"item_id": id, "output_index": index, call.input(): input}),
        );
    }

    fn summary(&mut self, index: u64, id: &Value, number: usize, part: &Value) {
        let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
        let event = |more: Value| {
            let mut event = json!({"item_id": id, "output_index": index, "summary_index": number});
            extend(&mut event, more);
            event
        };
        let empty = json!({"part": {"type": "summary_text", "text": ""}});
        self.push("response.reasoning_summary_part.added", event(empty));
        let delta = json!({"delta": text});
        self.push("response.reasoning_summary_text.delta", event(delta));
        let done = json!({"text": text});
        self.push("response.reasoning_summary_text.done", event(done));
        let done = json!({"part": part});
        self.push("response.reasoning_summary_part.done", event(done));
    }

    fn part(&mut self, index: u64, id: &Value, number: usize, part: &Value) {
        let (field, delta, done) = match part.get("type").and_then(Value::as_str) {
            Some("refusal") => ("refusal", "response.refusal.delta", "response.refusal.done"),
            Some("reasoning_text") => (
                "text",
                "response.reasoning_text.delta",
                "response.reasoning_text.done",
            ),
            _ => (
                "text",
                "response.output_text.delta",
                "response.output_text.done",
            ),
        };
        let text = part.get(field).and_then(Value::as_str).unwrap_or_default();
        let event = |more: Value| {
            let mut event = json!({"item_id": id, "output_index": index, "content_index": number});
            extend(&mut event, more);
            event
        };
        let mut empty = part.clone();
        empty[field] = json!("");
        self.push("response.content_part.added", event(json!({"part": empty})));
        self.push(delta, event(json!({"delta": text})));
        self.push(done, event(json!({field: text})));
        self.push("response.content_part.done", event(json!({"part": part})));
    }
}

fn extend(event: &mut Value, more: Value) {
    if let (Value::Object(event), Value::Object(more)) = (event, more) {
        event.extend(more);
    }
}
