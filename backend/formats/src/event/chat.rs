//! Chunks of chat completions, and whole ones.

use serde_json::Value;

use super::{NotAnEvent, bytes};
use crate::{ModelApi, Object, UpstreamFailure, failure::failure_in};

/// A chunk of a chat completion, or a whole one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChatChunk {
    /// The failure that it tells of.
    pub(crate) failure: Option<Box<UpstreamFailure>>,
    /// What is said; a last chunk may have only the usage.
    pub(crate) choices: Vec<ChatChoice>,
    /// The usage object.
    pub(crate) usage: Option<Object>,
    /// Everything else.
    pub(crate) rest: Object,
}

/// What is said of one choice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChatChoice {
    /// The choice's index, when the server gives it one.
    pub(crate) index: Option<u64>,
    /// The place among the choices of this chunk.
    pub(crate) position: u64,
    /// The delta or the message; empty when there is neither.
    pub(crate) said: Object,
    /// Why it ended, in the server's word.
    pub(crate) finish_reason: Option<String>,
    /// Everything else.
    pub(crate) rest: Object,
}

impl ChatChunk {
    pub(super) fn read(mut object: Object) -> Result<Self, NotAnEvent> {
        let failure = failure_in(ModelApi::Chat, &object).map(Box::new);
        let choices = match object.remove("choices") {
            Some(Value::Array(choices)) => choices,
            None | Some(Value::Null) => Vec::new(),
            Some(_) if failure.is_some() => Vec::new(),
            Some(_) => return Err(NotAnEvent),
        };
        let usage = match object.remove("usage") {
            Some(Value::Object(usage)) => Some(usage),
            _ => None,
        };
        object.remove("error");
        let choices = (0..)
            .zip(choices)
            .filter_map(|(position, choice)| match choice {
                Value::Object(choice) => Some(ChatChoice::read(position, choice)),
                _ => None,
            });
        Ok(Self {
            failure,
            choices: choices.collect(),
            usage,
            rest: object,
        })
    }
}

impl ChatChoice {
    fn read(position: u64, mut rest: Object) -> Self {
        let index = rest.remove("index").as_ref().and_then(Value::as_u64);
        let finish_reason = match rest.remove("finish_reason") {
            Some(Value::String(reason)) if !reason.is_empty() => Some(reason),
            _ => None,
        };
        let delta = rest.remove("delta").filter(Value::is_object);
        let message = match &delta {
            None => rest.remove("message").filter(Value::is_object),
            Some(_) => None,
        };
        let said = match delta.or(message) {
            Some(Value::Object(said)) => said,
            _ => Object::new(),
        };
        Self {
            index,
            position,
            said,
            finish_reason,
            rest,
        }
    }

    /// Whether there is something that a client gets to see.
    pub(super) fn is_said(&self) -> bool {
        let mut said = self.said.iter();
        self.finish_reason.is_some() || said.any(|(field, value)| field != "role" && is_said(value))
    }

    pub(super) fn content_bytes(&self) -> u64 {
        bytes::of_message(&self.said)
    }
}

/// Whether a field of a delta says anything.
pub(crate) fn is_said(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        _ => true,
    }
}
