//! Chunks of a model for a client of the same API: they pass, in the order and the form that strict clients need.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    super::{
        Ending, Object,
        event::{ChatChoice, ChatChunk, is_said},
        fields::{str_of, text_of},
    },
    calls::{Calls, Kind, input_text, tool},
    chat_out::{self, ChatOut},
    finish::Finish,
};

/// The most choices; what a server gives beyond them is dropped.
pub(super) const MAX_CHOICES: u64 = 128;

/// What was read so far.
#[derive(Default)]
pub(super) struct Reader {
    choices: BTreeMap<u64, Choice>,
}

#[derive(Default)]
struct Choice {
    calls: Calls,
    finish: Option<Finish>,
}

impl Reader {
    /// Passes a chunk. Usage waits for the end; a chunk without choices has nothing else that clients know.
    pub(super) fn event(&mut self, out: &mut ChatOut, chunk: ChatChunk) {
        for choice in chunk.choices {
            self.choice(out, &chunk.rest, choice);
        }
    }

    /// Passes what a chunk says of one choice: a delta, an end, or one after the other.
    fn choice(&mut self, out: &mut ChatOut, chunk: &Object, choice: ChatChoice) {
        let index = choice.index.unwrap_or(choice.position);
        if index >= MAX_CHOICES {
            return;
        }
        let known = self.choices.entry(index).or_default();
        let finish = choice.finish_reason.as_deref().map(Finish::read);
        let finish = finish.filter(|_| known.finish.is_none());
        known.finish = known.finish.or(finish);
        let (mut delta, mut more) = (choice.said, choice.rest);
        out.begin_choice(index);
        delta.remove("role");
        if let Some(Value::Array(calls)) = delta.get_mut("tool_calls") {
            for call in calls.iter_mut().filter_map(Value::as_object_mut) {
                complete(&mut known.calls, call, out);
            }
        }
        let mut told = chat_out::Choice::new(index, Object::new());
        told.logprobs = more.remove("logprobs").unwrap_or_default();
        told.more = more;
        if delta.values().any(is_said) || is_said(&told.logprobs) {
            told.delta = delta;
            out.chunk(chunk, &told);
            told.delta = Object::new();
            told.logprobs = Value::Null;
        }
        if finish.is_some() {
            told.finish = finish;
            out.chunk(chunk, &told);
        }
    }

    /// Ends the choices that the model did not end; `None` when there was not a single one.
    pub(super) fn end(&mut self, out: &mut ChatOut) -> Option<Ending> {
        let mut ending = None;
        for (index, choice) in &mut self.choices {
            let finish = choice.finish.unwrap_or_else(|| {
                let finish = match choice.calls.is_empty() {
                    true => Finish::Stop,
                    false => Finish::ToolCalls,
                };
                out.finish(*index, finish);
                finish
            });
            choice.finish = Some(finish);
            if ending != Some(Ending::Incomplete) {
                ending = Some(finish.ending());
            }
        }
        ending
    }
}

/// Gives a delta of a tool call what clients need to put it together: an index always; id, type, name and a text of
/// arguments the first time. They add up texts, so what was told already is not told again.
fn complete(calls: &mut Calls, call: &mut Object, out: &ChatOut) {
    let placed = calls.place(call);
    call.insert("index".to_owned(), json!(placed.index));
    let kind = tool(call).map(|(kind, _)| kind);
    if placed.new {
        if text_of(call, "id").is_none() {
            call.insert("id".to_owned(), json!(out.call_id(placed.index)));
        }
        let kind = kind.unwrap_or(Kind::Function);
        call.insert("type".to_owned(), json!(kind.as_str()));
        call.entry(kind.as_str()).or_insert_with(|| json!({}));
    } else {
        call.remove("id");
    }
    let Some(kind) = kind.or(placed.new.then_some(Kind::Function)) else {
        return;
    };
    let Some(Value::Object(tool)) = call.get_mut(kind.as_str()) else {
        return;
    };
    if placed.new || tool.contains_key(kind.input()) {
        let input = input_text(tool.get(kind.input()));
        tool.insert(kind.input().to_owned(), Value::String(input));
    }
    if placed.named {
        tool.remove("name");
    } else if placed.new && str_of(tool, "name").is_none() {
        tool.insert("name".to_owned(), json!(""));
    }
}
