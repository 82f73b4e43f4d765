//! The events of a model's response for a client of the same API: they pass, with numbers, indexes and a response object of
//! our own.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    super::{
        Ending, Object,
        event::{ResponseEvent, ResponseEventKind as Kind},
        fields::{entries, str_of},
    },
    response_out::ResponseOut,
    unfold,
};

/// What was read so far.
#[derive(Default)]
pub(super) struct Reader {
    /// Announcements of items and parts, which wait for what they announce: until then another model may answer. An empty
    /// delta is not that yet.
    held: Vec<(Kind, Object)>,
    /// The names of functions that are called, by the items' indexes here.
    names: HashMap<u64, Value>,
}

impl Reader {
    /// Passes an event on; how the response ended, when this was the event that ends it. A whole response becomes the events
    /// that tell it. `usage` is what the client is told of it.
    pub(super) fn event(
        &mut self,
        out: &mut ResponseOut,
        event: ResponseEvent,
        usage: Option<Value>,
        now: i64,
    ) -> Option<Ending> {
        let index = event.output_index();
        let ResponseEvent {
            kind, mut fields, ..
        } = event;
        let status = match kind {
            Kind::Whole => {
                for (kind, event) in unfold::events(&fields) {
                    self.pass(out, kind, event);
                }
                return Some(end(out, fields, usage, now));
            }
            // What begins was told already, and silence is bridged by comments.
            Kind::Created | Kind::InProgress | Kind::Queued | Kind::Keepalive => return None,
            Kind::Completed => "completed",
            Kind::Incomplete => "incomplete",
            Kind::Failed => "failed",
            Kind::ItemAdded | Kind::PartAdded => {
                self.held.push((kind, fields));
                return None;
            }
            kind if !self.held.is_empty() && is_empty_delta(&fields) => {
                self.held.push((kind, fields));
                return None;
            }
            kind => {
                if kind.is_writable() {
                    if matches!(kind, Kind::ReasoningTextDelta | Kind::ReasoningTextDone) {
                        self.open_thought(index);
                    }
                    self.release(out);
                    self.pass(out, kind, fields);
                }
                return None;
            }
        };
        self.release(out);
        let mut response = match fields.remove("response") {
            Some(Value::Object(response)) => response,
            _ => Object::new(),
        };
        response.insert("status".to_owned(), json!(status));
        Some(end(out, response, usage, now))
    }

    /// A model may begin to think without an announcement of the part that it thinks into. A client that puts the deltas
    /// together needs the part, so it stands in the item then.
    fn open_thought(&mut self, index: Option<u64>) {
        let of_item = |event: &Object| event.get("output_index").and_then(Value::as_u64) == index;
        let mut held = self.held.iter_mut().filter(|(_, event)| of_item(event));
        let Some((_, item)) = held.next() else { return };
        // Behind it may stand deltas without content.
        let is_announced = held.any(|(kind, _)| *kind == Kind::PartAdded);
        let item = item.get_mut("item").and_then(Value::as_object_mut);
        if let (Some(item), false) = (item, is_announced)
            && str_of(item, "type") == Some("reasoning")
            && entries(item, "content").is_empty()
        {
            let part = json!({"type": "reasoning_text", "text": ""});
            item.insert("content".to_owned(), json!([part]));
        }
    }

    fn release(&mut self, out: &mut ResponseOut) {
        for (kind, event) in std::mem::take(&mut self.held) {
            self.pass(out, kind, event);
        }
    }

    fn pass(&mut self, out: &mut ResponseOut, kind: Kind, mut event: Object) {
        let index = out.name_item(&mut event, kind == Kind::ItemAdded);
        self.write(out, kind, event, index);
    }

    /// Writes an event about the item of this index, which is named.
    fn write(&mut self, out: &mut ResponseOut, kind: Kind, mut event: Object, index: Option<u64>) {
        if let Some(part) = event.get_mut("part") {
            complete_part(part);
        }
        if let Some(item) = event.get_mut("item") {
            complete_item(item);
        }
        match (&kind, index) {
            (Kind::ItemAdded, Some(index)) => {
                if let Some(name) = event.get("item").and_then(|item| item.get("name")) {
                    self.names.insert(index, name.clone());
                }
            }
            (Kind::ItemDone, Some(index)) => {
                if let Some(item) = event.get("item") {
                    out.keep(index, item.clone());
                }
            }
            (Kind::TextDelta | Kind::TextDone, _) => {
                event.entry("logprobs").or_insert_with(|| json!([]));
            }
            (Kind::ArgumentsDone, Some(index)) => {
                if let Some(name) = self.names.get(&index) {
                    event.entry("name").or_insert_with(|| name.clone());
                }
            }
            _ => {}
        }
        out.stamp_object(kind.into_name(), event);
    }
}

/// Ends the response with what the model says of it.
pub(super) fn end(
    out: &mut ResponseOut,
    mut said: Object,
    usage: Option<Value>,
    now: i64,
) -> Ending {
    let ending = match str_of(&said, "status") {
        Some("incomplete") => Ending::Incomplete,
        Some("failed" | "cancelled") => Ending::Failed,
        _ => Ending::Completed,
    };
    // Clients read an output from the events, so that this is what is stored. A server need not tell it again, and may tell it otherwise. What it told
    // in no event is told now.
    if let Some(Value::Array(mut items)) = said.remove("output")
        && !items.is_empty()
    {
        items.iter_mut().for_each(complete_item);
        let mut reader = Reader::default();
        for (index, item) in out.complete_output(items) {
            for (kind, event) in unfold::item(index, &item) {
                reader.write(out, kind, event, Some(index));
            }
        }
    }
    if ending == Ending::Failed && said.get("error").is_none_or(Value::is_null) {
        let error = json!({"code": "server_error", "message": "The model failed"});
        said.insert("error".to_owned(), error);
    }
    out.overlay(said);
    out.terminate(ending, usage, now);
    ending
}

fn is_empty_delta(event: &Object) -> bool {
    str_of(event, "delta") == Some("")
}

/// Gives texts the lists that clients count on.
fn complete_item(item: &mut Value) {
    if item.get("type").is_some_and(|kind| kind == "message")
        && let Some(Value::Array(parts)) = item.get_mut("content")
    {
        parts.iter_mut().for_each(complete_part);
    }
}

fn complete_part(part: &mut Value) {
    if let Value::Object(part) = part
        && str_of(part, "type") == Some("output_text")
    {
        for field in ["annotations", "logprobs"] {
            part.entry(field).or_insert_with(|| json!([]));
        }
    }
}
