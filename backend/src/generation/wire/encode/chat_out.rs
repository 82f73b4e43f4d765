//! The chunks of a streamed chat completion.

use std::collections::BTreeSet;

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
            let delta = json!({"role": "assistant", "content": ""});
            self.push(Object::new(), choice(index, delta));
        }
    }

    /// A delta of the only choice.
    pub(super) fn delta(&mut self, delta: Value) {
        self.chunk(Object::new(), choice(0, delta));
    }

    /// A chunk with one choice that has an index. `more` is what else the model's server says in it.
    pub(super) fn chunk(&mut self, more: Object, choice: Object) {
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        self.begin_choice(index);
        self.push(more, choice);
    }

    /// Ends a choice.
    pub(super) fn finish(&mut self, index: u64, finish: Finish) {
        let mut choice = choice(index, json!({}));
        choice.insert("finish_reason".to_owned(), json!(finish.as_str()));
        self.chunk(Object::new(), choice);
    }

    fn push(&mut self, mut chunk: Object, choice: Object) {
        chunk.insert("choices".to_owned(), json!([choice]));
        if self.include_usage {
            chunk.insert("usage".to_owned(), Value::Null);
        }
        self.send(chunk);
    }

    /// The chunk of usage, when it was asked for and is known, and `[DONE]`.
    pub(super) fn end(&mut self, usage: Option<Value>) {
        if let Some(usage) = usage.filter(|_| self.include_usage) {
            let mut chunk = Object::new();
            chunk.insert("choices".to_owned(), json!([]));
            chunk.insert("usage".to_owned(), usage);
            self.send(chunk);
        }
        self.frames.push(Frame::done());
    }

    /// The error; no `[DONE]` follows it.
    pub(super) fn fail(&mut self, error: &ErrorBody) {
        let body = json!({"error": error.to_value()});
        self.frames.push(Frame::new(None, &body));
    }

    fn send(&mut self, mut chunk: Object) {
        chunk.insert("id".to_owned(), json!(self.id));
        chunk.insert("object".to_owned(), json!("chat.completion.chunk"));
        chunk.insert("created".to_owned(), json!(self.created));
        chunk.insert("model".to_owned(), json!(self.model));
        self.frames.push(Frame::new(None, &chunk));
    }

    /// What was written since the last time.
    pub(super) fn take(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.frames)
    }
}

fn choice(index: u64, delta: Value) -> Object {
    let mut choice = Object::new();
    choice.insert("index".to_owned(), json!(index));
    choice.insert("delta".to_owned(), delta);
    choice.insert("logprobs".to_owned(), Value::Null);
    choice.insert("finish_reason".to_owned(), Value::Null);
    choice
}
