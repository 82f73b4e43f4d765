//! The events of a response as chunks of a chat completion.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    super::{
        Ending, Object,
        fields::{entries, str_of, text_of},
        formats::annotation_to_chat,
    },
    calls::Kind,
    chat_out::ChatOut,
    finish::Finish,
    message::{Said, announced, finish_of},
};

/// What was read so far.
#[derive(Default)]
pub(super) struct Reader {
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
    announced: Option<(Kind, Value)>,
    /// The index of the tool call, once it was told.
    call: Option<u64>,
    /// The part of the summary that is being told; `None` when the thinking itself is.
    summary: Option<u64>,
}

impl Reader {
    /// Reads an event, or a whole response.
    pub(super) fn event(&mut self, out: &mut ChatOut, event: &Object) {
        let index = event.get("output_index").and_then(Value::as_u64);
        let index = index.unwrap_or(0);
        let delta = text_of(event, "delta").unwrap_or_default();
        match str_of(event, "type") {
            Some("response.output_item.added") => self.added(index, event),
            Some("response.output_text.delta") => self.text(out, index, delta, event),
            Some("response.output_text.annotation.added") => {
                let annotation = event.get("annotation").and_then(annotation_to_chat);
                self.annotations.extend(annotation);
            }
            Some("response.refusal.delta") => {
                self.plain(out, index, "refusal", delta);
            }
            Some("response.reasoning_text.delta" | "response.reasoning.delta") => {
                let item = self.items.entry(index).or_default();
                // A server that sends both has told the summary of this already, or will be told so here.
                if item.summary.is_none() {
                    self.plain(out, index, "reasoning_content", delta);
                }
            }
            Some("response.reasoning_summary_text.delta") => {
                self.summary(out, index, delta, event);
            }
            Some(
                "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta",
            ) => self.arguments(out, index, delta),
            Some("response.output_item.done") => {
                if let Some(Value::Object(item)) = event.get("item") {
                    self.done(out, index, item);
                }
            }
            Some("response.completed" | "response.incomplete") => {
                if let Some(Value::Object(response)) = event.get("response") {
                    self.ended(out, response);
                }
            }
            None if str_of(event, "object") == Some("response") => self.ended(out, event),
            _ => {}
        }
    }

    fn added(&mut self, index: u64, event: &Object) {
        let known = self.items.entry(index).or_default();
        if let Some(Value::Object(item)) = event.get("item")
            && let Some(kind) = str_of(item, "type").and_then(Kind::of_item)
        {
            known.announced = Some((kind, announced(kind, item)));
        }
    }

    fn text(&mut self, out: &mut ChatOut, index: u64, delta: &str, event: &Object) {
        let logprobs = entries(event, "logprobs");
        if logprobs.is_empty() {
            return self.plain(out, index, "content", delta);
        }
        self.items.entry(index).or_default().told = true;
        let mut choice = Object::new();
        choice.insert("index".to_owned(), json!(0));
        choice.insert("delta".to_owned(), json!({"content": delta}));
        choice.insert(
            "logprobs".to_owned(),
            json!({"content": logprobs, "refusal": null}),
        );
        choice.insert("finish_reason".to_owned(), Value::Null);
        out.chunk(Object::new(), choice);
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
        let mut said = Said::default();
        said.add(item);
        for (field, text) in [
            ("reasoning_content", said.thinking),
            ("content", said.content),
            ("refusal", said.refusal),
        ] {
            if !text.is_empty() {
                out.delta(json!({field: text}));
            }
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
        }
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
