//! The chunks of a streamed chat completion.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value, json};

use super::{
    super::{ErrorBody, Frame, Head, Object, Request},
    finish::Finish,
};

/// Writes chunks: all with one id, one model, and `usage: null` where usage was asked for.
pub(super) struct ChatOut {
    id: String,
    seed: String,
    created: i64,
    model: String,
    include_usage: bool,
    /// The choices whose role was told.
    begun: BTreeSet<u64>,
    frames: Vec<Frame>,
}

impl ChatOut {
    pub(super) fn new(request: &Request, head: &Head) -> Self {
        Self {
            id: head.id.clone(),
            seed: head.seed().to_owned(),
            created: head.created_at,
            model: head.model.clone(),
            include_usage: request.include_usage,
            begun: BTreeSet::new(),
            frames: Vec::new(),
        }
    }

    pub(super) fn set_model(&mut self, model: &str) {
        model.clone_into(&mut self.model);
    }

    /// The id of a tool call whose server gives it none.
    pub(super) fn call_id(&self, index: u64) -> String {
        format!("call_{}_{index}", self.seed)
    }

    /// Begins a choice with its role, once.
    pub(super) fn begin_choice(&mut self, index: u64) {
        if self.begun.insert(index) {
            let delta = object(json!({"role": "assistant", "content": ""}));
            self.push(
                &Object::new(),
                Some(&Choice::new(index, delta)),
                Value::Null,
            );
        }
    }

    /// A delta of the only choice.
    pub(super) fn delta(&mut self, delta: Value) {
        self.chunk(&Object::new(), &Choice::new(0, object(delta)));
    }

    /// A chunk with one choice. `more` is what else the model's server says in it.
    pub(super) fn chunk(&mut self, more: &Object, choice: &Choice) {
        self.begin_choice(choice.index);
        self.push(more, Some(choice), Value::Null);
    }

    /// Ends a choice.
    pub(super) fn finish(&mut self, index: u64, finish: Finish) {
        let choice = Choice {
            finish: Some(finish),
            ..Choice::new(index, Object::new())
        };
        self.chunk(&Object::new(), &choice);
    }

    /// The chunk of usage, when it was asked for and is known, and `[DONE]`.
    pub(super) fn end(&mut self, usage: Option<Value>) {
        if let Some(usage) = usage.filter(|_| self.include_usage) {
            self.push(&Object::new(), None, usage);
        }
        self.frames.push(Frame::done());
    }

    /// The error; no `[DONE]` follows it.
    pub(super) fn fail(&mut self, error: &ErrorBody) {
        let body = json!({"error": error.to_value()});
        self.frames.push(Frame::new(None, &body));
    }

    fn push(&mut self, more: &Object, choice: Option<&Choice>, usage: Value) {
        let chunk = Chunk {
            out: self,
            more,
            choice,
            usage,
        };
        let frame = Frame::new(None, &chunk);
        self.frames.push(frame);
    }

    /// What was written since the last time.
    pub(super) fn take(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.frames)
    }
}

/// What is told of a choice.
pub(super) struct Choice {
    pub(super) index: u64,
    pub(super) delta: Object,
    pub(super) logprobs: Value,
    pub(super) finish: Option<Finish>,
    /// What else the model's server says of it.
    pub(super) more: Object,
}

impl Choice {
    pub(super) fn new(index: u64, delta: Object) -> Self {
        Self {
            index,
            delta,
            logprobs: Value::Null,
            finish: None,
            more: Object::new(),
        }
    }
}

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("index", &self.index)?;
        map.serialize_entry("delta", &self.delta)?;
        map.serialize_entry("logprobs", &self.logprobs)?;
        map.serialize_entry("finish_reason", &self.finish.map(Finish::as_str))?;
        for (field, value) in &self.more {
            map.serialize_entry(field, value)?;
        }
        map.end()
    }
}

/// A chunk as it is written.
struct Chunk<'a> {
    out: &'a ChatOut,
    more: &'a Object,
    choice: Option<&'a Choice>,
    usage: Value,
}

impl Serialize for Chunk<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.out.id)?;
        map.serialize_entry("object", "chat.completion.chunk")?;
        map.serialize_entry("created", &self.out.created)?;
        map.serialize_entry("model", &self.out.model)?;
        map.serialize_entry("choices", self.choice.as_slice())?;
        if self.out.include_usage {
            map.serialize_entry("usage", &self.usage)?;
        }
        let theirs = |field: &str| !matches!(field, "id" | "object" | "created" | "model");
        for (field, value) in self.more.iter().filter(|(field, _)| theirs(field)) {
            map.serialize_entry(field, value)?;
        }
        map.end()
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
