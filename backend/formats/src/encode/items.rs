//! The items that a response is built of, with the events of their lives.

use serde_json::{Value, json};

use super::{
    super::{Object, fields::text_of},
    calls::{Kind, input_text, tool},
    response_out::ResponseOut,
};

/// What the model thinks.
pub(super) struct ReasoningItem {
    index: u64,
    id: String,
    text: String,
}

impl ReasoningItem {
    pub(super) fn begin(out: &mut ResponseOut) -> Self {
        let id = out.item_id("rs");
        // The empty part is there from the start: the stream has no event that adds it, and a client that puts the deltas
        // together needs it.
        let index = out.open(thought(&id, "in_progress", ""));
        Self {
            index,
            id,
            text: String::new(),
        }
    }

    pub(super) fn delta(&mut self, out: &mut ResponseOut, delta: &str) {
        self.text.push_str(delta);
        let delta = json!({"delta": delta});
        self.tell(out, "response.reasoning_text.delta", delta);
    }

    pub(super) fn end(self, out: &mut ResponseOut, status: &str) {
        let text = json!({"text": self.text});
        self.tell(out, "response.reasoning_text.done", text);
        let part = json!({"part": {"type": "reasoning_text", "text": self.text}});
        self.tell(out, "response.content_part.done", part);
        out.close(self.index, thought(&self.id, status, &self.text));
    }

    fn tell(&self, out: &mut ResponseOut, kind: &'static str, mut event: Value) {
        event["content_index"] = json!(0);
        event["item_id"] = json!(self.id);
        event["output_index"] = json!(self.index);
        out.stamp(kind, event);
    }
}

fn thought(id: &str, status: &str, text: &str) -> Value {
    json!({
        "id": id,
        "type": "reasoning",
        "status": status,
        "summary": [],
        "content": [{"type": "reasoning_text", "text": text}],
    })
}

/// What the model says.
pub(super) struct Message {
    index: u64,
    id: String,
    /// The parts that are done.
    parts: Vec<Value>,
    /// The part that the model is speaking into.
    part: Option<Part>,
}

#[derive(Default)]
struct Part {
    is_refusal: bool,
    text: String,
    logprobs: Vec<Value>,
    annotations: Vec<Value>,
}

impl Part {
    fn to_value(&self) -> Value {
        if self.is_refusal {
            return json!({"type": "refusal", "refusal": self.text});
        }
        json!({
            "type": "output_text",
            "text": self.text,
            "annotations": self.annotations,
            "logprobs": self.logprobs,
        })
    }
}

impl Message {
    pub(super) fn begin(out: &mut ResponseOut) -> Self {
        let id = out.item_id("msg");
        let index = out.open(message(&id, "in_progress", &[]));
        Self {
            index,
            id,
            parts: Vec::new(),
            part: None,
        }
    }

    /// More text, or more of a refusal.
    pub(super) fn delta(
        &mut self,
        out: &mut ResponseOut,
        is_refusal: bool,
        delta: &str,
        logprobs: &[Value],
    ) {
        self.turn_to(out, is_refusal);
        if let Some(part) = &mut self.part {
            part.text.push_str(delta);
            part.logprobs.extend_from_slice(logprobs);
        }
        if is_refusal {
            self.tell(out, "response.refusal.delta", json!({"delta": delta}));
        } else {
            let event = json!({"delta": delta, "logprobs": logprobs});
            self.tell(out, "response.output_text.delta", event);
        }
    }

    /// A source of the text.
    pub(super) fn annotate(&mut self, out: &mut ResponseOut, annotation: Value) {
        self.turn_to(out, false);
        let known = self.part.as_ref().map_or(0, |part| part.annotations.len());
        let event = json!({"annotation_index": known, "annotation": annotation});
        self.tell(out, "response.output_text.annotation.added", event);
        if let Some(part) = &mut self.part {
            part.annotations.push(annotation);
        }
    }

    pub(super) fn end(mut self, out: &mut ResponseOut, status: &str) {
        self.end_part(out);
        out.close(self.index, message(&self.id, status, &self.parts));
    }

    /// Makes a part of this kind the open one.
    fn turn_to(&mut self, out: &mut ResponseOut, is_refusal: bool) {
        if self
            .part
            .as_ref()
            .is_some_and(|part| part.is_refusal == is_refusal)
        {
            return;
        }
        self.end_part(out);
        let part = Part {
            is_refusal,
            ..Part::default()
        };
        let event = json!({"part": part.to_value()});
        self.tell(out, "response.content_part.added", event);
        self.part = Some(part);
    }

    fn end_part(&mut self, out: &mut ResponseOut) {
        let Some(part) = self.part.take() else { return };
        if part.is_refusal {
            let event = json!({"refusal": part.text});
            self.tell(out, "response.refusal.done", event);
        } else {
            let event = json!({"text": part.text, "logprobs": part.logprobs});
            self.tell(out, "response.output_text.done", event);
        }
        let value = part.to_value();
        self.tell(out, "response.content_part.done", json!({"part": value}));
        self.parts.push(value);
    }

    fn tell(&self, out: &mut ResponseOut, kind: &'static str, mut event: Value) {
        event["content_index"] = json!(self.parts.len());
        event["item_id"] = json!(self.id);
        event["output_index"] = json!(self.index);
        out.stamp(kind, event);
    }
}

fn message(id: &str, status: &str, parts: &[Value]) -> Value {
    json!({
        "id": id,
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": parts,
    })
}

/// A tool that the model calls.
pub(super) struct Call {
    kind: Kind,
    call_id: Option<String>,
    name: String,
    input: String,
    /// Its item's index and id, as soon as the name is known.
    item: Option<(u64, String)>,
}

impl Call {
    pub(super) fn new(call: &Object) -> Self {
        Self {
            kind: tool(call).map_or(Kind::Function, |(kind, _)| kind),
            call_id: text_of(call, "id").map(str::to_owned),
            name: String::new(),
            input: String::new(),
            item: None,
        }
    }

    /// More of the call: its name once, its input in pieces.
    pub(super) fn delta(&mut self, out: &mut ResponseOut, call: &Object) {
        let Some((_, tool)) = tool(call) else { return };
        if self.name.is_empty()
            && let Some(name) = text_of(tool, "name")
        {
            name.clone_into(&mut self.name);
        }
        let delta = input_text(tool.get(self.kind.input()));
        self.input.push_str(&delta);
        if self.item.is_some() {
            self.tell_delta(out, &delta);
        } else if !self.name.is_empty() {
            self.begin(out);
        }
    }

    fn begin(&mut self, out: &mut ResponseOut) {
        let id = out.item_id(match self.kind {
            Kind::Function => "fc",
            Kind::Custom => "ctc",
        });
        self.call_id.get_or_insert_with(|| out.item_id("call"));
        let index = out.open(self.to_value(&id, "in_progress", ""));
        self.item = Some((index, id));
        let known = self.input.clone();
        self.tell_delta(out, &known);
    }

    pub(super) fn end(mut self, out: &mut ResponseOut, status: &str) {
        if self.item.is_none() {
            self.begin(out);
        }
        let Some((index, id)) = self.item.take() else {
            return;
        };
        let (kind, mut event) = match self.kind {
            Kind::Function => (
                "response.function_call_arguments.done",
                json!({"arguments": self.input, "name": self.name}),
            ),
            Kind::Custom => (
                "response.custom_tool_call_input.done",
                json!({"input": self.input}),
            ),
        };
        event["item_id"] = json!(id);
        event["output_index"] = json!(index);
        out.stamp(kind, event);
        out.close(index, self.to_value(&id, status, &self.input));
    }

    fn tell_delta(&self, out: &mut ResponseOut, delta: &str) {
        let Some((index, id)) = self.item.as_ref().filter(|_| !delta.is_empty()) else {
            return;
        };
        let kind = match self.kind {
            Kind::Function => "response.function_call_arguments.delta",
            Kind::Custom => "response.custom_tool_call_input.delta",
        };
        out.stamp(
            kind,
            json!({"item_id": id, "output_index": index, "delta": delta}),
        );
    }

    fn to_value(&self, id: &str, status: &str, input: &str) -> Value {
        json!({
            "id": id,
            "type": self.kind.item_type(),
            "status": status,
            "call_id": self.call_id,
            "name": self.name,
            self.kind.input(): input,
        })
    }
}
