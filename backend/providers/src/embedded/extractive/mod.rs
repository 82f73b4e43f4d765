//! `builtin/extractive`: a chat model without a model. It holds a small conversation from what it is given: the
//! character's name and personality, the turns so far, and the passages that were looked up.
//!
//! It quotes; it never makes anything up. A question is answered with the sentences that share the most telling words
//! with it, or with words that mean much the same; where there are none, it says so, and what it can talk about. The same request gets the same
//! answer.
//!
//! It reads the beginning of the system prompt, the last turns and the best passages, 64 KiB of each, so that an answer takes at most a few
//! megabytes, which count in the room for bodies ([`ChatModel::working_bytes`]).

mod answer;
mod conversation;
mod facts;
mod intent;
mod kinds;
mod labels;
mod names;
mod phrases;
mod prices;
mod reading;
mod steps;
mod titles;
mod wire;

use async_trait::async_trait;
use colloquy_config::EMBEDDED_MODEL;
use colloquy_formats::{ModelEvent, NotAnEvent};
use futures_util::{StreamExt as _, stream};
use tokio::task::spawn_blocking;

use super::super::{
    ChatModel, ChatRequest, ModelAnswer, ModelApi, ModelRequest, ProviderError, ProviderErrorKind,
    TextStream,
};

/// From here on a conversation is long, in bytes.
const LONG_BYTES: usize = 16 * 1024;

/// The embedded chat model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extractive;

impl Extractive {
    /// The model's public name.
    pub const NAME: &str = EMBEDDED_MODEL;

    /// The reply to a conversation. A long one is read away from the threads that serve everybody.
    async fn reply(request: ChatRequest) -> Result<String, ProviderError> {
        let bytes = request.system.len()
            + request
                .messages
                .iter()
                .map(|it| it.content.len())
                .sum::<usize>();
        if bytes < LONG_BYTES {
            return Ok(conversation::reply(&request).text);
        }
        let reply = spawn_blocking(move || conversation::reply(&request).text).await;
        reply.map_err(|_| {
            let message = "the conversation could not be read";
            ProviderError::new(Self::NAME, ProviderErrorKind::Failed, message)
        })
    }
}

#[async_trait]
impl ChatModel for Extractive {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn api(&self) -> ModelApi {
        ModelApi::Chat
    }

    fn is_plain_text(&self) -> bool {
        true
    }

    fn working_bytes(&self, request_bytes: u64) -> u64 {
        reading::working_bytes(request_bytes)
    }

    fn tells_passages(&self) -> bool {
        true
    }

    /// Answers once more: the same request gets the same answer.
    fn passages_of(&self, request: &ChatRequest) -> Option<Vec<usize>> {
        Some(conversation::reply(request).passage.into_iter().collect())
    }

    async fn ask(&self, request: &ModelRequest) -> Result<ModelAnswer, ProviderError> {
        let said = Self::reply(wire::conversation(request)).await?;
        let reply = wire::Reply::new(&request.body, &said);
        let read = |said| {
            ModelEvent::read(ModelApi::Chat, said).map_err(|NotAnEvent| {
                let kind = ProviderErrorKind::Malformed;
                ProviderError::new(Self::NAME, kind, "an event that is not of the API")
            })
        };
        Ok(if request.streams() {
            ModelAnswer::Events(stream::iter(reply.events().map(read)).boxed())
        } else {
            ModelAnswer::Whole(read(reply.whole())?)
        })
    }

    /// As the conversation is: the turns that the APIs' bodies leave out keep it from saying a thing twice.
    async fn text(&self, request: &ChatRequest) -> Result<TextStream, ProviderError> {
        let reply = Self::reply(reading::read(request)).await?;
        let words = wire::words(&reply).map(|word| Ok(word.to_owned()));
        Ok(stream::iter(words.collect::<Vec<_>>()).boxed())
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
