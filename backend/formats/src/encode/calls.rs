//! Which tool call a delta of a chat completion belongs to.

use serde_json::Value;

use super::super::{Object, fields::text_of};

/// The tool calls of a choice so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    seen: Vec<ToolCallState>,
}

#[derive(Debug)]
struct ToolCallState {
    /// The index that the server gives the call, or would have given it.
    index: u64,
    id: Option<String>,
    /// The name was told.
    named: bool,
}

/// Where a delta belongs.
pub(super) struct ToolCallDelta {
    /// The call's place among the calls, in the order of their first deltas.
    pub(super) position: usize,
    /// The call's index, as the server counts.
    pub(super) index: u64,
    /// This is the call's first delta.
    pub(super) new: bool,
    /// The name was told in an earlier delta.
    pub(super) named: bool,
}

impl Calls {
    /// Finds the call of a delta. Servers that leave the index out name a call by its id, and one that goes on by nothing.
    pub(super) fn place(&mut self, call: &Object) -> ToolCallDelta {
        let id = text_of(call, "id");
        let has_name = tool(call).is_some_and(|(_, tool)| text_of(tool, "name").is_some());
        let index = call.get("index").and_then(Value::as_u64);
        let found = match (index, id) {
            (Some(index), _) => self.seen.iter().position(|seen| seen.index == index),
            (None, Some(id)) => self
                .seen
                .iter()
                .position(|seen| seen.id.as_deref() == Some(id)),
            (None, None) if has_name => None,
            (None, None) => self.seen.len().checked_sub(1),
        };
        if let Some(position) = found {
            let seen = &mut self.seen[position];
            let named = seen.named;
            seen.named |= has_name;
            return ToolCallDelta {
                position,
                index: seen.index,
                new: false,
                named,
            };
        }
        let next = self.seen.iter().map(|seen| seen.index.saturating_add(1));
        let index = index.unwrap_or_else(|| next.max().unwrap_or(0));
        self.seen.push(ToolCallState {
            index,
            id: id.map(str::to_owned),
            named: has_name,
        });
        ToolCallDelta {
            position: self.seen.len() - 1,
            index,
            new: true,
            named: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

/// What is called: the kind of tool, and the object of that name with the call's name and input.
pub(super) fn tool(call: &Object) -> Option<(Kind, &Object)> {
    [Kind::Function, Kind::Custom]
        .into_iter()
        .find_map(|kind| Some((kind, call.get(kind.as_str())?.as_object()?)))
}

/// The kinds of tool that a client runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Custom,
}

impl Kind {
    /// The kind of an item of a response.
    pub(super) fn of_item(kind: &str) -> Option<Self> {
        match kind {
            "function_call" => Some(Self::Function),
            "custom_tool_call" => Some(Self::Custom),
            _ => None,
        }
    }

    /// What chat completions call it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Custom => "custom",
        }
    }

    /// What an item of a response is called.
    pub(super) fn item_type(self) -> &'static str {
        match self {
            Self::Function => "function_call",
            Self::Custom => "custom_tool_call",
        }
    }

    /// What both APIs call the text that the model gives the tool.
    pub(super) fn input(self) -> &'static str {
        match self {
            Self::Function => "arguments",
            Self::Custom => "input",
        }
    }
}

/// The text that the model gives a tool; some servers write the object instead of its JSON.
pub(super) fn input_text(input: Option<&Value>) -> String {
    match input {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
