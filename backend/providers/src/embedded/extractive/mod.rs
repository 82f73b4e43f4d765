//! `builtin/extractive`: a chat model without a model. It holds a small conversation from what it is given: the
//! character's name and personality, the turns so far, and the passages that were looked up.
//!
//! It quotes; it never makes anything up. A question is answered with the sentences that share the most telling words
//! with it, or with words that mean much the same; where there are none, it says so, and what it can talk about. The same request gets the same
//! answer.

mod answer;
mod conversation;
mod facts;
mod intent;
mod phrases;

mod wire;

use async_trait::async_trait;
use colloquy_config::EMBEDDED_MODEL;
use colloquy_formats::{ModelEvent, NotAnEvent};
use futures_util::{StreamExt as _, stream};

use super::super::{
    ChatModel, ChatRequest, ModelAnswer, ModelApi, ModelRequest, ProviderError, ProviderErrorKind,
    TextStream,
};

/// The embedded chat model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extractive;

impl Extractive {
    /// The model's public name.
    pub const NAME: &str = EMBEDDED_MODEL;

    fn reply(request: &ChatRequest) -> String {
        conversation::reply(request)
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

    async fn ask(&self, request: &ModelRequest) -> Result<ModelAnswer, ProviderError> {
        let conversation = wire::conversation(request);
        let reply = wire::Reply::new(&request.body, &Self::reply(&conversation));
        let read = |said| {
            ModelEvent::read(ModelApi::Chat, said).map_err(|NotAnEvent| {
                let kind = ProviderErrorKind::Malformed;
                ProviderError::new(Self::NAME, kind, "an event that is not of the API")
            })
        };
        Ok(if request.streams() {
            let events = reply.events().into_iter().map(read);
            ModelAnswer::Events(stream::iter(events.collect::<Vec<_>>()).boxed())
        } else {
            ModelAnswer::Whole(read(reply.whole())?)
        })
    }

    /// As the conversation is: the turns that the APIs' bodies leave out keep it from saying a thing twice.
    async fn text(&self, request: &ChatRequest) -> Result<TextStream, ProviderError> {
        let reply = Self::reply(request);
        let words = wire::words(&reply).map(|word| Ok(word.to_owned()));
        Ok(stream::iter(words.collect::<Vec<_>>()).boxed())
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}
