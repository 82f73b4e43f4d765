//! The events of a streamed response, and the response object that they build up.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Value, json};

use super::{
    super::{
        Ending, ErrorBody, Frame, Head, Object, Request, VisibleRetrieval, item_ids::ItemIds,
        retrieval::VisibilityItems,
    },
    object,
};

/// Writes events. It alone stamps sequence numbers and gives output indexes.
pub(super) struct ResponseOut {
    /// What the ids of items are made of.
    seed: String,
    /// The ids of the model's items; `None` where they have theirs already.
    ids: Option<ItemIds>,
    /// The response object as it stands, without `output`.
    response: Object,
    /// The items that are done, by their index.
    output: BTreeMap<u64, Value>,
    /// The index of the next item.
    next_index: u64,
    /// The items of retrieval, which stand before all others.
    base: u64,
    next_sequence: u64,
    /// Nothing is written, only the object is built.
    quiet: bool,
    frames: Vec<Frame>,
}

impl ResponseOut {
    pub(super) fn new(request: &Request, head: &Head) -> Self {
        Self {
            seed: head.seed().to_owned(),
            ids: Some(ItemIds::new(head.seed())),
            response: object::begun(request, head),
            output: BTreeMap::new(),
            next_index: 0,
            base: 0,
            next_sequence: 0,
            quiet: false,
            frames: Vec::new(),
        }
    }

    /// Tells a stored response once more.
    pub(super) fn again(stored: &Object) -> Self {
        let mut response = stored.clone();
        response.remove("output");
        response.insert("status".to_owned(), json!("in_progress"));
        for field in ["completed_at", "error", "incomplete_details", "usage"] {
            response.insert(field.to_owned(), Value::Null);
        }
        Self {
            seed: String::new(),
            ids: None,
            response,
            output: BTreeMap::new(),
            next_index: 0,
            base: 0,
            next_sequence: 0,
            quiet: false,
            frames: Vec::new(),
        }
    }

    /// The same, for an answer in one piece.
    pub(super) fn quiet(request: &Request, head: &Head) -> Self {
        Self {
            quiet: true,
            ..Self::new(request, head)
        }
    }

    pub(super) fn set_model(&mut self, model: &str) {
        self.set("model", json!(model));
    }

    /// Sets a field of the response object.
    pub(super) fn set(&mut self, field: &str, value: Value) {
        self.response.insert(field.to_owned(), value);
    }

    /// The ids of this response's items are all different: their kind, the response, their index.
    pub(super) fn item_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.seed, self.next_index)
    }

    /// `response.created` and `response.in_progress`.
    pub(super) fn begin(&mut self) {
        for kind in ["response.created", "response.in_progress"] {
            self.stamp_response(kind);
        }
    }

    /// The items of a search, with their events.
    pub(super) fn retrieval(&mut self, visible: &VisibleRetrieval) {
        let items = VisibilityItems::new(visible, &self.seed);
        self.whole_item(items.loading);
        let mut begun = items.search.clone();
        begun["status"] = json!("in_progress");
        begun["results"] = Value::Null;
        let id = items.search["id"].clone();
        let index = self.open(begun);
        for kind in [
            "response.file_search_call.in_progress",
            "response.file_search_call.searching",
        ] {
            self.stamp(kind, json!({"item_id": id, "output_index": index}));
        }
        self.stamp(
            "response.file_search_call.completed",
            json!({"item_id": id, "output_index": index, "item": items.search}),
        );
        self.close(index, items.search);
        self.whole_item(items.found);
        self.base = self.next_index;
    }

    fn whole_item(&mut self, item: Value) {
        let index = self.open(item.clone());
        self.close(index, item);
    }

    /// Adds an item and gives its index.
    pub(super) fn open(&mut self, item: Value) -> u64 {
        let index = self.next_index;
        self.next_index += 1;
        self.stamp(
            "response.output_item.added",
            json!({"output_index": index, "item": item}),
        );
        index
    }

    /// An item is done.
    pub(super) fn close(&mut self, index: u64, item: Value) {
        self.stamp(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
        self.output.insert(index, item);
    }

    /// Puts the index here and the id of a model's item into an event about it, and returns the index. `is_new` says that the event is the first.
    pub(super) fn name_item(&mut self, event: &mut Object, is_new: bool) -> Option<u64> {
        let told = event.get("output_index").and_then(Value::as_u64);
        let told = told.map(|index| self.base.saturating_add(index));
        let is_of_item =
            told.is_some() || event.contains_key("item") || event.contains_key("item_id");
        let Some(ids) = self.ids.as_mut().filter(|_| is_of_item) else {
            return told;
        };
        let index = told.unwrap_or_else(|| ids.place(event, is_new, self.base));
        event.insert("output_index".to_owned(), json!(index));
        ids.name_event(index, event);
        Some(index)
    }

    /// An item that the model's server has closed; its event was told as it came.
    pub(super) fn keep(&mut self, index: u64, item: Value) {
        self.output.insert(index, item);
    }

    /// Adds the items that only the model's last event has; what the client was told of the others stays. Returns, with their indexes, those of
    /// which it was told nothing.
    pub(super) fn complete_output(&mut self, items: Vec<Value>) -> Vec<(u64, Value)> {
        let Some(ids) = &self.ids else {
            self.output.retain(|index, _| *index < self.base);
            self.output.extend((self.base..).zip(items));
            return Vec::new();
        };
        let named = ids.name_output(self.base, items);
        let (begun, mut untold): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|(index, _)| ids.has(*index));
        for (index, item) in begun {
            if !self.output.contains_key(&index) {
                self.close(index, item);
            }
        }
        untold.sort_by_key(|(index, _)| *index);
        untold
    }

    /// Writes an event. What is given is an object without type and number.
    pub(super) fn stamp(&mut self, kind: impl Into<Cow<'static, str>>, event: Value) {
        if let Value::Object(event) = event {
            self.stamp_object(kind.into(), event);
        }
    }

    /// The one place where events get their numbers.
    pub(super) fn stamp_object(&mut self, kind: Cow<'static, str>, mut event: Object) {
        if self.quiet {
            return;
        }
        event.insert("type".to_owned(), json!(kind));
        event.insert("sequence_number".to_owned(), json!(self.next_sequence));
        self.next_sequence += 1;
        self.frames.push(Frame::new(Some(kind), &event));
    }

    fn stamp_response(&mut self, kind: &'static str) {
        if !self.quiet {
            let response = self.object();
            self.stamp(kind, json!({"response": response}));
        }
    }

    /// The terminal event. What else the object says must be set before.
    pub(super) fn terminate(&mut self, ending: Ending, usage: Option<Value>, now: i64) {
        let (kind, status) = match ending {
            Ending::Completed => ("response.completed", "completed"),
            Ending::Incomplete => ("response.incomplete", "incomplete"),
            Ending::Failed => ("response.failed", "failed"),
        };
        if ending == Ending::Completed {
            self.set("completed_at", json!(now));
        }
        self.set("status", json!(status));
        self.set("usage", json!(usage));
        self.stamp_response(kind);
        self.done();
    }

    /// The terminal `error`: one client reads what is at the top, another specification what is inside of `error`.
    pub(super) fn fail(&mut self, error: &ErrorBody) {
        self.set("status", json!("failed"));
        self.set(
            "error",
            json!({"code": error.code, "message": error.message}),
        );
        self.stamp(
            "error",
            json!({
                "code": error.code,
                "message": error.message,
                "param": error.param,
                "error": error.to_value(),
            }),
        );
        self.done();
    }

    /// What Open Responses ends every stream with, however it ended.
    fn done(&mut self) {
        if !self.quiet {
            self.frames.push(Frame::done());
        }
    }

    /// Runs something that builds the object and tells nothing.
    pub(super) fn quietly(&mut self, run: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.quiet, true);
        run(self);
        self.quiet = before;
    }

    fn object(&self) -> Object {
        let mut response = self.response.clone();
        let output = self.output.values().cloned().collect();
        response.insert("output".to_owned(), Value::Array(output));
        response
    }

    /// Takes over what the model's own response object says.
    pub(super) fn overlay(&mut self, said: Object) {
        object::overlay(&mut self.response, said);
    }

    pub(super) fn into_response(mut self) -> Value {
        let output = self.output.into_values().collect();
        self.response
            .insert("output".to_owned(), Value::Array(output));
        Value::Object(self.response)
    }

    /// The same, of one that may go on.
    pub(super) fn response(&self) -> Value {
        Value::Object(self.object())
    }

    /// The event that was written last does not go out: the next one gets its number.
    pub(super) fn take_back(&mut self) {
        self.next_sequence = self.next_sequence.saturating_sub(1);
    }

    /// What was written since the last time.
    pub(super) fn take(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.frames)
    }
}
