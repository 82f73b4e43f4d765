//! Calls among the items of responses that the client answers, and its answers.

use std::collections::HashMap;

use serde_json::Value;

use super::{FormatError, Object, fields::str_of, items::Places, messages};

/// A type of calls, and that of their outputs. Where there are several fields with an id, a call has all of its ids, and an output names
/// the call by the first that it has.
struct Pair {
    call: &'static str,
    call_ids: &'static [&'static str],
    output: &'static str,
    output_ids: &'static [&'static str],
}

static PAIRS: [Pair; 7] = [
    by_call_id("function_call", "function_call_output"),
    by_call_id("custom_tool_call", "custom_tool_call_output"),
    by_call_id("computer_call", "computer_call_output"),
    by_call_id("shell_call", "shell_call_output"),
    by_call_id("apply_patch_call", "apply_patch_call_output"),
    // The public API's guide has `call_id` in outputs, its reference `id`.
    Pair {
        call: "local_shell_call",
        call_ids: &["call_id", "id"],
        output: "local_shell_call_output",
        output_ids: &["call_id", "id"],
    },
    Pair {
        call: "mcp_approval_request",
        call_ids: &["id"],
        output: "mcp_approval_response",
        output_ids: &["approval_request_id"],
    },
];

const fn by_call_id(call: &'static str, output: &'static str) -> Pair {
    Pair {
        call,
        call_ids: &["call_id"],
        output,
        output_ids: &["call_id"],
    }
}

/// Returns true if the items have a call that the client answers, or an answer.
pub(super) fn any<'a>(items: impl IntoIterator<Item = &'a Value>) -> bool {
    let mut kinds = items
        .into_iter()
        .filter_map(|item| str_of(item.as_object()?, "type"));
    kinds.any(|kind| {
        PAIRS
            .iter()
            .any(|pair| pair.call == kind || pair.output == kind)
    })
}

/// Refuses outputs in the input whose calls do not stand before them, and second outputs of a call in the input.
pub(super) fn check(
    history: &[Value],
    input: &[Value],
    places: &Places,
) -> Result<(), FormatError> {
    let mut calls = Calls::default();
    // A client that continues a stored conversation may repeat an output that is part of it.
    history.iter().for_each(|item| calls.add(item));
    for (index, item) in input.iter().enumerate() {
        calls.add(item);
        let Some((pair, id)) = output(item) else {
            continue;
        };
        let within = |error: FormatError| error.within(places.path(index));
        let Some((field, id)) = id else {
            let field = pair.output_ids.first().copied().unwrap_or_default();
            return Err(within(FormatError::new(field, "is required")));
        };
        match calls.answer(pair, id) {
            Answered::Now => {}
            Answered::Before => {
                let message = "is that of a call which has an output already";
                return Err(within(FormatError::new(field, message)));
            }
            Answered::OfOther(other) => {
                let message = format!(
                    "is that of a {}, which takes a {}",
                    other.call, other.output
                );
                return Err(within(FormatError::new(field, message)));
            }
            Answered::Unknown => {
                let mut later = input[index..].iter().filter_map(call);
                let is_later = later
                    .any(|(it, item)| it.call == pair.call && ids(it, item).any(|it| it == id));
                return Err(within(messages::without_call(field, is_later)));
            }
        }
    }
    Ok(())
}

/// The calls of a conversation, up to an item.
#[derive(Default)]
struct Calls<'a> {
    /// The calls of a type and an id, as indices in `answered`; those that were answered by this id are taken out.
    open: HashMap<(&'static str, &'a str), Vec<usize>>,
    /// True for each call that has an output.
    answered: Vec<bool>,
}

/// What an output answers.
enum Answered {
    /// A call without an output.
    Now,
    /// A call that has one.
    Before,
    /// A call of another type.
    OfOther(&'static Pair),
    /// No call that stands before it.
    Unknown,
}

impl<'a> Calls<'a> {
    /// Adds an item, if it is a call.
    fn add(&mut self, item: &'a Value) {
        let Some((pair, item)) = call(item) else {
            return;
        };
        for id in ids(pair, item) {
            let open = self.open.entry((pair.call, id)).or_default();
            open.push(self.answered.len());
        }
        self.answered.push(false);
    }

    /// Answers a call. Servers may give an id in each response again.
    fn answer(&mut self, pair: &Pair, id: &'a str) -> Answered {
        let Some(open) = self.open.get_mut(&(pair.call, id)) else {
            let mut others = PAIRS.iter();
            let other = others.find(|other| self.open.contains_key(&(other.call, id)));
            return other.map_or(Answered::Unknown, Answered::OfOther);
        };
        while let Some(call) = open.pop() {
            // A call may have been answered by its other id.
            if let Some(answered) = self.answered.get_mut(call)
                && !std::mem::replace(answered, true)
            {
                return Answered::Now;
            }
        }
        Answered::Before
    }
}

/// The item as a call.
fn call(item: &Value) -> Option<(&'static Pair, &Object)> {
    let item = item.as_object()?;
    let kind = str_of(item, "type")?;
    let pair = PAIRS.iter().find(|pair| pair.call == kind)?;
    Some((pair, item))
}

/// The ids of a call.
fn ids<'a>(pair: &Pair, item: &'a Object) -> impl Iterator<Item = &'a str> {
    let fields = pair.call_ids.iter();
    fields.filter_map(move |field| str_of(item, field))
}

/// The item as an output, with the id of its call and the field that has it.
fn output(item: &Value) -> Option<(&'static Pair, Option<(&'static str, &str)>)> {
    let item = item.as_object()?;
    let kind = str_of(item, "type")?;
    let pair = PAIRS.iter().find(|pair| pair.output == kind)?;
    let mut fields = pair.output_ids.iter();
    let id = fields.find_map(|field| Some((*field, str_of(item, field)?)));
    Some((pair, id))
}
