//! `builtin/extractive`: a chat model without a model. It holds a small conversation from what it is given: the
//! character's name and personality, the turns so far, and the passages that were looked up.
//!
//! It quotes; it never makes anything up. A question is answered with the sentences that share the most telling words
//! with it; where there are none, it says what it heard and what it can talk about. The same request gets the same
//! answer.

mod answer;
mod conversation;
mod facts;
mod intent;
mod phrases;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};

use super::super::{ChatModel, ChatRequest, ProviderError, TextStream};

/// The embedded chat model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extractive;

#[async_trait]
impl ChatModel for Extractive {
    fn name(&self) -> &str {
        "builtin/extractive"
    }

    async fn stream(&self, request: ChatRequest) -> Result<TextStream, ProviderError> {
        let reply = conversation::reply(&request);
        let words = reply
            .split_inclusive([' ', '。', '，', '、'])
            .map(|word| Ok(word.to_owned()))
            .collect::<Vec<_>>();
        Ok(stream::iter(words).boxed())
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}
