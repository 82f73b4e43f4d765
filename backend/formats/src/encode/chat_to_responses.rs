//! Chunks of a chat completion as the events of a response.
//!
//! Thinking and text are open one at a time: what begins ends what was before it, so that the output stands in the order
//! in which the model spoke. Tool calls stay open to the end, since a server may go back and forth between them.

use serde_json::{Value, json};

use super::{
    super::{
        Ending, Object,
        event::ChatChunk,
        fields::{entries, text_of},
        shapes::{annotation_to_responses, chat_logprobs},
    },
    calls::Calls,
    finish::Finish,
    items::{Call, Message, ReasoningItem},
    response_out::ResponseOut,
};

/// What was read so far.
#[derive(Default)]
pub(super) struct Reader {
    thought: Option<ReasoningItem>,
    message: Option<Message>,
    placed: Calls,
    calls: Vec<Call>,
    /// There was a choice, even if it said nothing.
    begun: bool,
    finish: Option<Finish>,
}

impl Reader {
    /// Reads a chunk, or a whole completion.
    pub(super) fn event(&mut self, out: &mut ResponseOut, chunk: &ChatChunk) {
        if let Some(tier) = text_of(&chunk.rest, "service_tier") {
            out.set("service_tier", json!(tier));
        }
        // A response has one answer, and its request has asked for one.
        let mut choices = chunk.choices.iter();
        let choice = choices.find(|choice| choice.index.unwrap_or(0) == 0);
        let Some(choice) = choice else { return };
        self.begun = true;
        self.said(out, &choice.said, chat_logprobs(&choice.rest));
        if let Some(reason) = &choice.finish_reason {
            self.finish.get_or_insert(Finish::read(reason));
        }
    }

    fn said(&mut self, out: &mut ResponseOut, said: &Object, logprobs: &[Value]) {
        // Some servers send thinking under both names.
        let thinking = text_of(said, "reasoning_content").or_else(|| text_of(said, "reasoning"));
        if let Some(delta) = thinking {
            self.end_message(out, "completed");
            self.thought
                .get_or_insert_with(|| ReasoningItem::begin(out))
                .delta(out, delta);
        }
        match said.get("content") {
            Some(Value::String(delta)) if !delta.is_empty() => {
                self.message(out).delta(out, false, delta, logprobs);
            }
            Some(Value::Array(parts)) => {
                let texts = parts.iter().filter_map(Value::as_object);
                for delta in texts.filter_map(|part| text_of(part, "text")) {
                    self.message(out).delta(out, false, delta, &[]);
                }
            }
            _ => {}
        }
        if let Some(delta) = text_of(said, "refusal") {
            self.message(out).delta(out, true, delta, &[]);
        }
        for annotation in entries(said, "annotations") {
            if let Some(annotation) = annotation_to_responses(annotation) {
                self.message(out).annotate(out, annotation);
            }
        }
        let calls = entries(said, "tool_calls").iter();
        for call in calls.filter_map(Value::as_object) {
            self.end_thought(out, "completed");
            self.end_message(out, "completed");
            let placed = self.placed.place(call);
            if placed.new {
                self.calls.push(Call::new(call));
            }
            if let Some(known) = self.calls.get_mut(placed.position) {
                known.delta(out, call);
            }
        }
    }

    fn message(&mut self, out: &mut ResponseOut) -> &mut Message {
        self.end_thought(out, "completed");
        self.message.get_or_insert_with(|| Message::begin(out))
    }

    fn end_thought(&mut self, out: &mut ResponseOut, status: &str) {
        if let Some(thought) = self.thought.take() {
            thought.end(out, status);
        }
    }

    fn end_message(&mut self, out: &mut ResponseOut, status: &str) {
        if let Some(message) = self.message.take() {
            message.end(out, status);
        }
    }

    /// Ends everything that is open.
    pub(super) fn close(&mut self, out: &mut ResponseOut, status: &str) {
        self.end_thought(out, status);
        self.end_message(out, status);
        for call in self.calls.drain(..) {
            call.end(out, status);
        }
    }
    /// Ends the response; `None` when the model said nothing at all.
    pub(super) fn end(
        &mut self,
        out: &mut ResponseOut,
        usage: Option<Value>,
        now: i64,
    ) -> Option<Ending> {
        if !self.begun {
            return None;
        }
        let finish = self.finish.unwrap_or(Finish::Stop);
        match finish.incomplete() {
            None => self.close(out, "completed"),
            Some(reason) => {
                self.close(out, "incomplete");
                out.set("incomplete_details", json!({"reason": reason}));
            }
        }
        out.terminate(finish.ending(), usage, now);
        Some(finish.ending())
    }
}
