//! The events of a response as chunks of a chat completion.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    super::{
        Ending, Object,
        event::{ResponseEvent, ResponseEventKind as Kind},
        fields::{entries, str_of},
        shapes::annotation_to_chat,
        stop::{StopCutter, Stops, logprobs_of},
    },
    calls::Kind as ToolKind,
    chat_out::{ChatOut, Choice},
    finish::Finish,
    message::{MessageText, announced, finish_of},
};

/// What was read so far.
#[derive(Default)]
pub(super) struct Reader {
    /// The text, which ends at the client's `stop`.
    text: StopCutter,
    /// The log probabilities of what is held back of it.
    logprobs: Vec<Value>,
    items: HashMap<u64, Item>,
    /// The tool calls that were told.
    calls: u64,
    /// The sources, which are told once and together: a client that adds deltas up cannot add to this list.
    annotations: Vec<Value>,
    finish: Option<Finish>,
}

/// An item of the response.
#[derive(Default)]
struct Item {
    /// Something of it was told, so it is not told as a whole.
    told: bool,
    /// A tool call as it was announced: it is told with its first arguments, since until then another model may answer.
    announced: Option<(ToolKind, Value)>,
    /// The index of the tool call, once it was told.
    call: Option<u64>,
    /// The part of the summary that is being told; `None` when the thinking itself is.
    summary: Option<u64>,
}

impl Reader {
    pub(super) fn new(stops: Stops) -> Self {
        Self {
            text: StopCutter::new(stops),
            ..Self::default()
        }
    }

    /// Whether the text has come to the client's `stop`, so that nothing that follows is told.
    pub(super) fn stopped(&self) -> bool {
        self.text.stopped()
    }

    /// Reads an event, or a whole response.
    pub(super) fn event(&mut self, out: &mut ChatOut, event: &ResponseEvent) {
        if self.stopped() {
            return;
        }
        self.read(out, event);
        if self.stopped() {
            out.finish(0, Finish::Stop);
            self.finish = Some(Finish::Stop);
        }
    }

    fn read(&mut self, out: &mut ChatOut, event: &ResponseEvent) {
        let index = event.output_index().unwrap_or(0);
        let fields = &event.fields;
        let delta = event.delta();
        match event.kind {
            Kind::ItemAdded => self.added(index, fields),
            Kind::TextDelta => self.text(out, index, delta, fields),
            Kind::AnnotationAdded => {
                let annotation = fields.get("annotation").and_then(annotation_to_chat);
                self.annotations.extend(annotation);
            }
            Kind::RefusalDelta => self.plain(out, index, "refusal", delta),
            Kind::ReasoningTextDelta | Kind::ReasoningDelta => {
                let item = self.items.entry(index).or_default();
                // A server that sends both has told the summary of this already, or will be told so here.
                if item.summary.is_none() {
                    self.plain(out, index, "reasoning_content", delta);
                }
            }
            Kind::SummaryTextDelta => self.summary(out, index, delta, fields),
            Kind::ArgumentsDelta | Kind::CustomInputDelta => self.arguments(out, index, delta),
            Kind::ItemDone => {
                if let Some(Value::Object(item)) = fields.get("item") {
                    self.done(out, index, item);
                }
            }
            Kind::Completed | Kind::Incomplete => {
                if event.tells_response() {
                    self.ended(out, event.response());
                }
            }
            Kind::Whole => self.ended(out, fields),
            _ => {}
        }
    }

    fn added(&mut self, index: u64, event: &Object) {
        let known = self.items.entry(index).or_default();
        if let Some(Value::Object(item)) = event.get("item")
            && let Some(kind) = str_of(item, "type").and_then(ToolKind::of_item)
        {
            known.announced = Some((kind, announced(kind, item)));
        }
    }

    fn text(&mut self, out: &mut ChatOut, index: u64, delta: &str, event: &Object) {
        if !delta.is_empty() {
            self.items.entry(index).or_default().told = true;
        }
        self.logprobs.extend_from_slice(entries(event, "logprobs"));
        let text = self.text.push(delta);
        self.tell(out, &text);
    }

    /// Tells a piece of the text, with the log probabilities that came with it.
    fn tell(&mut self, out: &mut ChatOut, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut logprobs = std::mem::take(&mut self.logprobs);
        if self.stopped() {
            logprobs_of(text, &mut logprobs);
        }
        if logprobs.is_empty() {
            return out.delta(json!({"content": text}));
        }
        let delta = Object::from_iter([("content".to_owned(), json!(text))]);
        let choice = Choice {
            logprobs: json!({"content": logprobs, "refusal": null}),
            ..Choice::new(0, delta)
        };
        out.chunk(&Object::new(), &choice);
    }

    fn plain(&mut self, out: &mut ChatOut, index: u64, field: &str, delta: &str) {
        if !delta.is_empty() {
            self.items.entry(index).or_default().told = true;
            out.delta(json!({field: delta}));
        }
    }

    /// A summary is told as thinking where the thinking itself is not; its parts are paragraphs.
    fn summary(&mut self, out: &mut ChatOut, index: u64, delta: &str, event: &Object) {
        let part = event.get("summary_index").and_then(Value::as_u64);
        let part = part.unwrap_or(0);
        let item = self.items.entry(index).or_default();
        match item.summary {
            None if item.told => {}
            Some(before) if before != part => {
                item.summary = Some(part);
                self.plain(out, index, "reasoning_content", &format!("\n\n{delta}"));
            }
            _ => {
                item.summary = Some(part);
                self.plain(out, index, "reasoning_content", delta);
            }
        }
    }

    fn arguments(&mut self, out: &mut ChatOut, index: u64, delta: &str) {
        let item = self.items.entry(index).or_default();
        if delta.is_empty() {
            return;
        }
        // Arguments of a call that was not announced wait for its end, which names it.
        let Some((kind, announced)) = &mut item.announced else {
            return;
        };
        item.told = true;
        let call = match item.call {
            Some(call) => json!({"index": call, kind.as_str(): {kind.input(): delta}}),
            None => {
                item.call = Some(self.calls);
                announced["index"] = json!(self.calls);
                announced[kind.as_str()][kind.input()] = json!(delta);
                self.calls += 1;
                announced.take()
            }
        };
        out.delta(json!({"tool_calls": [call]}));
    }

    /// Tells an item of which nothing was told yet.
    fn done(&mut self, out: &mut ChatOut, index: u64, item: &Object) {
        let known = self.items.entry(index).or_default();
        if std::mem::replace(&mut known.told, true) {
            return;
        }
        let mut said = MessageText::default();
        said.add(item);
        let content = self.text.push(&said.content);
        for (field, text) in [
            ("reasoning_content", said.thinking),
            ("content", content),
            ("refusal", said.refusal),
        ] {
            if !text.is_empty() {
                out.delta(json!({field: text}));
            }
        }
        if self.stopped() {
            return;
        }
        self.annotations.extend(said.annotations);
        for mut call in said.calls {
            call["index"] = json!(self.calls);
            self.calls += 1;
            out.delta(json!({"tool_calls": [call]}));
        }
    }

    fn ended(&mut self, out: &mut ChatOut, response: &Object) {
        let output = entries(response, "output").iter();
        for (index, item) in (0..).zip(output.filter_map(Value::as_object)) {
            self.done(out, index, item);
            if self.stopped() {
                return;
            }
        }
        let rest = self.text.rest();
        self.tell(out, &rest);
        if !self.annotations.is_empty() {
            let annotations = std::mem::take(&mut self.annotations);
            out.delta(json!({"annotations": annotations}));
        }
        let finish = finish_of(response, self.calls > 0);
        out.finish(0, finish);
        self.finish = Some(finish);
    }

    /// How the answer ended; `None` when it was cut.
    pub(super) fn end(&self) -> Option<Ending> {
        self.finish.map(Finish::ending)
    }
}
