//! The formats of text generation: what clients and models send to each other, and how one of the two public APIs is spoken
//! to a client while the model behind it speaks the other.
//!
//! A client's body becomes a [`Request`]; [`upstream_body`] makes of it what a model understands. What the model answers
//! is read once, as a [`ModelEvent`], and goes through an [`Encoder`], event by event, or through [`whole`] in one piece. Everything here is pure: JSON in, JSON
//! out. Connections, time-outs, fallback, accounting and storage belong to the callers; so do the clock and the source of
//! identifiers, whose values come in a [`Head`] and as `now`. What a model's server sends is cut into events by
//! [`sse::Parser`].

mod api;
mod client_calls;
mod compact;
mod conversation;
mod encode;
mod error;
mod event;
mod failure;
mod fields;
mod frame;
mod item_ids;
mod items;
mod messages;
mod plain;
mod reasoning;
mod references;
mod request;
#[cfg(test)]
mod request_fuzz;
mod retrieval;
mod shapes;
pub mod sse;
mod stop;
mod tally;
mod thought;
mod to_chat;
mod to_responses;
mod types;
mod upstream;
mod usage;

use serde_json::{Map, Value};

pub use self::{
    api::{LimitField, ModelApi, ReasoningStyle},
    compact::{compaction, put_compaction_usage},
    conversation::{ChatMessage, ChatRole},
    encode::{AnswerTooLarge, Assembler, Encoder, replay, whole},
    error::{ErrorBody, FormatError, FormatErrorKind},
    event::{ModelEvent, NotAnEvent},
    failure::{UpstreamFailure, failure},
    frame::Frame,
    item_ids::{ItemPlace, input_item_id},
    reasoning::Reasoning,
    references::{Referred, UnknownItem},
    request::Request,
    retrieval::{VisibleResult, VisibleRetrieval, output_items},
    tally::{Ending, Tally},
    thought::{ThoughtFilter, without_thought},
    upstream::{Capabilities, check_upstream, upstream_body},
    usage::TokenUsage,
};

/// A JSON object.
pub type Object = Map<String, Value>;

/// What an answer is called, and when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The answer's id, such as `resp_..` or `chatcmpl-..`. The ids of its items are made of what follows the prefix.
    pub id: String,
    /// When the request came, in seconds since 1970.
    pub created_at: i64,
    /// The public name of the model that answers.
    pub model: String,
}

impl Head {
    /// What distinguishes this answer from all others, without the prefix of its id.
    fn seed(&self) -> &str {
        self.id
            .split_once(['_', '-'])
            .map_or(self.id.as_str(), |(_, seed)| seed)
    }
}
