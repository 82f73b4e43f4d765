//! The wire formats of text generation: what clients and models send to each other, and how one of the two public APIs
//! is spoken to a client while the model behind it speaks the other.
//!
//! A client's body becomes a [`Request`]; [`upstream_body`] makes of it what a model understands. What the model answers
//! goes through an [`Encoder`], event by event, or through [`whole`] in one piece. Everything here is pure: JSON in, JSON
//! out. Connections, time-outs, fallback, accounting and storage belong to the callers; so do the clock and the source of
//! identifiers, whose values come in a [`Head`] and as `now`.

mod conversation;
mod encode;
mod error;
mod failure;
mod fields;
mod formats;
mod frame;
mod items;
mod messages;
mod reasoning;
mod request;
#[cfg(test)]
mod request_fuzz;
mod retrieval;
mod svc;
mod tally;
mod to_chat;
mod to_responses;
mod upstream;

use serde_json::{Map, Value};

pub(crate) use self::{
    encode::{Encoder, whole},
    error::ErrorBody,
    failure::{UpstreamFailure, failure},
    frame::Frame,
    reasoning::Reasoning,
    request::Request,
    retrieval::{VisibleResult, VisibleRetrieval, output_items},
    svc::Svc,
    tally::{Ending, Tally, has_content},
    upstream::{Abilities, upstream_body},
};
pub(crate) use crate::{
    config::{LimitField, ReasoningStyle},
    providers::{ModelApi, TokenUsage},
};

/// A JSON object.
type Object = Map<String, Value>;

/// What an answer is called, and when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The answer's id, such as `resp_..` or `chatcmpl-..`. The ids of its items are made of what follows the prefix.
    pub(crate) id: String,
    /// When the request came, in seconds since 1970.
    pub(crate) created_at: i64,
    /// The public name of the model that answers.
    pub(crate) model: String,
}

impl Head {
    /// What distinguishes this answer from all others, without the prefix of its id.
    fn seed(&self) -> &str {
        self.id
            .split_once(['_', '-'])
            .map_or(self.id.as_str(), |(_, seed)| seed)
    }
}
