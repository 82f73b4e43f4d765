//! What a model sends, read once: an event of its stream, or its whole answer.
//!
//! Everybody who wants to know something of it asks here: whether it is a failure, whether the client gets to see something
//! of it, what was used, how it ended, which text it has. What is not known stays in it, and goes to a client of the same API
//! as it came.

mod bytes;
mod chat;
mod response;

use serde_json::Value;

pub(crate) use self::{
    chat::{ChatChoice, ChatChunk, is_said},
    response::{ResponseEvent, ResponseEventKind},
};
use super::{ModelApi, Object, TokenUsage, UpstreamFailure};

/// An event of a model, or its whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelEvent(pub(crate) ApiEvent);

/// The events of each API.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ApiEvent {
    /// A chunk of a chat completion, or a whole one.
    Chat(ChatChunk),
    /// An event of a response, or a whole one.
    Response(ResponseEvent),
}

/// What is read is not of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an event of the API")]
pub struct NotAnEvent;

impl ModelEvent {
    /// Reads an event of a model's stream, its whole answer, or what is told in place of them.
    ///
    /// # Errors
    /// When it is none of them in this API.
    pub fn read(api: ModelApi, value: Value) -> Result<Self, NotAnEvent> {
        let Value::Object(object) = value else {
            return Err(NotAnEvent);
        };
        Ok(Self(match api {
            ModelApi::Chat => ApiEvent::Chat(ChatChunk::read(object)?),
            ModelApi::Responses => ApiEvent::Response(ResponseEvent::read(object)?),
        }))
    }

    /// Whose words it is in.
    #[must_use]
    pub fn api(&self) -> ModelApi {
        match &self.0 {
            ApiEvent::Chat(_) => ModelApi::Chat,
            ApiEvent::Response(_) => ModelApi::Responses,
        }
    }

    /// The failure, when it tells of one: an error frame, `response.failed`, a choice that ends in an error.
    #[must_use]
    pub fn failure(&self) -> Option<&UpstreamFailure> {
        match &self.0 {
            ApiEvent::Chat(chunk) => chunk.failure.as_deref(),
            ApiEvent::Response(event) => event.failure.as_deref(),
        }
    }

    /// The same, taken out.
    ///
    /// # Errors
    /// The event itself, when it tells of no failure.
    pub fn into_failure(mut self) -> Result<Box<UpstreamFailure>, Self> {
        let failure = match &mut self.0 {
            ApiEvent::Chat(chunk) => chunk.failure.take(),
            ApiEvent::Response(event) => event.failure.take(),
        };
        failure.ok_or(self)
    }

    /// Whether it can be all of an answer; a part of a chat completion looks like a whole one.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        match &self.0 {
            ApiEvent::Chat(chunk) => !chunk.choices.is_empty(),
            ApiEvent::Response(event) => event.kind == ResponseEventKind::Whole,
        }
    }

    /// Whether it holds something that the client gets to see, or is the answer's own end: after it no other model may
    /// answer.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.content_bytes() > 0
            || self.failure().is_none()
                && match &self.0 {
                    ApiEvent::Chat(chunk) => chunk.choices.iter().any(ChatChoice::is_said),
                    ApiEvent::Response(event) => event.is_said(),
                }
    }

    /// The UTF-8 bytes of content in it: text, refusals, thinking, arguments of tools.
    pub(crate) fn content_bytes(&self) -> u64 {
        match &self.0 {
            ApiEvent::Chat(chunk) => chunk.choices.iter().map(ChatChoice::content_bytes).sum(),
            ApiEvent::Response(event) => event.content_bytes(),
        }
    }

    /// The tokens that were used, when it tells them.
    #[must_use]
    pub fn usage(&self) -> Option<TokenUsage> {
        TokenUsage::read(self.api(), self.said_usage()?)
    }

    /// The usage in the model's own words.
    pub(crate) fn said_usage(&self) -> Option<&Object> {
        match &self.0 {
            ApiEvent::Chat(chunk) => chunk.usage.as_ref(),
            ApiEvent::Response(event) => event.response().get("usage")?.as_object(),
        }
    }

    /// Of how many choices the model says with this that they are done. A response has one.
    #[must_use]
    pub fn finished(&self) -> u64 {
        match &self.0 {
            ApiEvent::Chat(chunk) => {
                let choices = chunk.choices.iter();
                let done = choices.filter(|choice| choice.finish_reason.is_some());
                done.count() as u64
            }
            ApiEvent::Response(event) => matches!(
                event.kind,
                ResponseEventKind::Completed
                    | ResponseEventKind::Incomplete
                    | ResponseEventKind::Whole
            )
            .into(),
        }
    }

    /// Why the answer ended, once for every choice that did, in the words of chat completions where a response has others.
    pub fn finish_reasons(&self) -> impl Iterator<Item = &str> {
        let (choices, response) = match &self.0 {
            ApiEvent::Chat(chunk) => (chunk.choices.as_slice(), None),
            ApiEvent::Response(event) => (&[][..], event.finish_reason()),
        };
        let reasons = choices.iter().map(|choice| choice.finish_reason.as_deref());
        reasons.chain([response]).flatten()
    }

    /// The model that answers and the id that it gives its answer, where it tells them.
    #[must_use]
    pub fn answerer(&self) -> Option<(&str, Option<&str>)> {
        let object = match &self.0 {
            ApiEvent::Chat(chunk) => &chunk.rest,
            ApiEvent::Response(event) => event.response(),
        };
        let text = |field: &str| object.get(field)?.as_str();
        Some((text("model")?, text("id")))
    }

    /// The text in it: a piece of the answer's first choice, or all of it in a whole answer, which may be empty. `None` when
    /// there is none.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match &self.0 {
            ApiEvent::Chat(chunk) => {
                let said = chunk.choices.first()?.said.get("content")?;
                said.as_str().map(str::to_owned)
            }
            ApiEvent::Response(event) => event.text(),
        }
    }
}

#[cfg(test)]
mod tests;
