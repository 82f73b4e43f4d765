//! Events of responses, and whole ones.

use std::borrow::Cow;

use serde_json::Value;

use super::{NotAnEvent, bytes};
use crate::{
    ModelApi, Object, UpstreamFailure,
    failure::failure_in,
    fields::{entries, str_of, text_of},
};

/// An event of a response, or a whole one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResponseEvent {
    /// The failure that it tells of.
    pub(crate) failure: Option<Box<UpstreamFailure>>,
    /// What happens.
    pub(crate) kind: ResponseEventKind,
    /// Its fields, without the type; those of the response itself in a whole one.
    pub(crate) fields: Object,
}

/// The kinds of events, each with its name; `Whole` has none, and `Other` is any that is not known.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// What happens in an event of a response.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) enum ResponseEventKind {
            $($(#[$doc])* $kind,)*
            /// All of a response, in the place of its events.
            Whole,
            /// An event of this name, which passes as it is.
            Other(String),
        }

        impl ResponseEventKind {
            /// The kind of this name.
            pub(crate) fn read(name: &str) -> Self {
                match name {
                    $($name => Self::$kind,)*
                    _ => Self::Other(name.to_owned()),
                }
            }

            /// The event's name.
            pub(crate) fn into_name(self) -> Cow<'static, str> {
                match self {
                    $(Self::$kind => Cow::Borrowed($name),)*
                    Self::Whole => Cow::Borrowed("response"),
                    Self::Other(name) => Cow::Owned(name),
                }
            }

            fn name(&self) -> &str {
                match self {
                    $(Self::$kind => $name,)*
                    Self::Whole => "response",
                    Self::Other(name) => name,
                }
            }
        }
    };
}

kinds! {
    /// The response is there.
    Created = "response.created",
    /// It waits.
    Queued = "response.queued",
    /// It is worked on.
    InProgress = "response.in_progress",
    /// Nothing happens.
    Keepalive = "keepalive",
    /// An item begins.
    ItemAdded = "response.output_item.added",
    /// An item is done.
    ItemDone = "response.output_item.done",
    /// A part of an item begins.
    PartAdded = "response.content_part.added",
    /// More text.
    TextDelta = "response.output_text.delta",
    /// All of a text.
    TextDone = "response.output_text.done",
    /// A source of a text.
    AnnotationAdded = "response.output_text.annotation.added",
    /// More of a refusal.
    RefusalDelta = "response.refusal.delta",
    /// More thinking.
    ReasoningTextDelta = "response.reasoning_text.delta",
    /// All of a part of the thinking.
    ReasoningTextDone = "response.reasoning_text.done",
    /// More thinking, as some servers call it.
    ReasoningDelta = "response.reasoning.delta",
    /// More of a summary of the thinking.
    SummaryTextDelta = "response.reasoning_summary_text.delta",
    /// More arguments of a function.
    ArgumentsDelta = "response.function_call_arguments.delta",
    /// All arguments of a function.
    ArgumentsDone = "response.function_call_arguments.done",
    /// More input of a custom tool.
    CustomInputDelta = "response.custom_tool_call_input.delta",
    /// The end.
    Completed = "response.completed",
    /// The end, at a limit or a filter.
    Incomplete = "response.incomplete",
    /// The end, in a failure.
    Failed = "response.failed",
    /// The end, with an error and without a response.
    Error = "error",
}

impl ResponseEventKind {
    /// Whether the name can be written into a line of its own.
    pub(crate) fn is_writable(&self) -> bool {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        self.name().bytes().all(is_name)
    }
}

impl ResponseEvent {
    pub(super) fn read(mut fields: Object) -> Result<Self, NotAnEvent> {
        let failure = failure_in(ModelApi::Responses, &fields).map(Box::new);
        let kind = match fields.remove("type") {
            Some(Value::String(name)) => ResponseEventKind::read(&name),
            _ if is_response(&fields) => ResponseEventKind::Whole,
            _ if failure.is_some() => ResponseEventKind::Error,
            _ => return Err(NotAnEvent),
        };
        Ok(Self {
            failure,
            kind,
            fields,
        })
    }

    /// A whole response, which was checked before.
    pub(crate) fn whole(response: Object) -> Self {
        Self {
            failure: None,
            kind: ResponseEventKind::Whole,
            fields: response,
        }
    }

    /// The response, where it is told; else the event itself.
    pub(crate) fn response(&self) -> &Object {
        match self.fields.get("response") {
            Some(Value::Object(response)) => response,
            _ => &self.fields,
        }
    }

    /// Whether this is the response itself, or repeats all that was told of it.
    pub(crate) fn tells_response(&self) -> bool {
        self.fields.get("response").is_some_and(Value::is_object)
    }

    /// The index of the item that it is about.
    pub(crate) fn output_index(&self) -> Option<u64> {
        self.fields.get("output_index").and_then(Value::as_u64)
    }

    /// The text that is added.
    pub(crate) fn delta(&self) -> &str {
        text_of(&self.fields, "delta").unwrap_or_default()
    }

    /// Whether a client gets to see something, or it is the end. Announcements of items are held back until something comes
    /// after them.
    pub(super) fn is_said(&self) -> bool {
        use ResponseEventKind as Kind;
        match &self.kind {
            Kind::Created
            | Kind::Queued
            | Kind::InProgress
            | Kind::Keepalive
            | Kind::ItemAdded
            | Kind::PartAdded
            | Kind::Failed
            | Kind::Error => false,
            // A delta that is no text is of some tool; an empty text is nothing yet.
            kind => {
                !kind.name().ends_with(".delta")
                    || !self.fields.get("delta").is_some_and(Value::is_string)
            }
        }
    }

    pub(super) fn content_bytes(&self) -> u64 {
        match self.fields.get("response") {
            Some(Value::Object(response)) => bytes::of_output(response),
            _ => self
                .fields
                .get("delta")
                .map_or_else(|| bytes::of_output(&self.fields), bytes::of_text),
        }
    }

    /// Why the response ended. Events on the way have a status, too, but no output.
    pub(super) fn finish_reason(&self) -> Option<&str> {
        let response = self.response();
        response.get("output")?;
        match str_of(response, "status")? {
            "completed" => Some("stop"),
            "incomplete" => str_of(response.get("incomplete_details")?.as_object()?, "reason"),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<String> {
        match self.kind {
            ResponseEventKind::TextDelta => Some(self.delta().to_owned()),
            ResponseEventKind::Whole => {
                let items = entries(&self.fields, "output").iter();
                let items = items.filter_map(Value::as_object);
                let parts = items.flat_map(|item| entries(item, "content"));
                let parts = parts.filter_map(Value::as_object);
                let texts = parts.filter(|part| str_of(part, "type") == Some("output_text"));
                Some(texts.filter_map(|part| str_of(part, "text")).collect())
            }
            _ => None,
        }
    }
}

/// Whether these are the fields of a response.
fn is_response(fields: &Object) -> bool {
    str_of(fields, "object") == Some("response")
        || fields.get("output").is_some_and(Value::is_array)
}
