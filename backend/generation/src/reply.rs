//! Replies in plain text: to a call piece by piece, to a message whole and in variants.

use std::{fmt, sync::Arc};

use colloquy_providers::{
    ChatMessage, ChatRequest, ChatRole, ProviderError, ProviderErrorKind, TextStream,
};
use colloquy_voice::Originator;
use futures_util::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};

use super::{
    ReplyContext,
    prompt::{self, PromptStyle},
    retrieval::{self, Retrieval},
};
use crate::Generation;

/// How many variants are asked for at once.
const VARIANTS_AT_ONCE: usize = 4;
/// A whole reply that is longer than this has no end in sight.
const MAX_REPLY_BYTES: usize = 32 * 1024;

/// What a reply is asked for with.
#[derive(Debug, Clone)]
pub struct ReplyRequest<'a> {
    /// Who replies.
    pub speaker: &'a ReplyContext,
    /// What was said so far, as [`turns`] gives it; the last turn is the one to reply to.
    pub turns: Vec<ChatMessage>,
    /// Where the reply goes.
    pub manner: PromptStyle,
}

/// A reply that has begun.
pub struct Reply {
    /// What was looked up; `None` for a character without knowledge. Of a model that can tell, what the reply rests on: nothing of a
    /// refusal.
    pub retrieval: Option<Retrieval>,
    /// The text. Dropping it cancels the model.
    pub text: TextStream,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("retrieval", &self.retrieval)
            .finish_non_exhaustive()
    }
}

/// Asks the model for a reply. It returns when the first piece of text is there. A failing or slow knowledge source costs
/// the reply its knowledge, nothing else.
///
/// # Errors
/// When the model gives no first piece, after its retry.
pub async fn reply(generation: &Generation, ask: ReplyRequest<'_>) -> Result<Reply, ProviderError> {
    let (request, mut retrieval) = request(generation, ask).await;
    let chat = &generation.providers.chat;
    let text = chat.text(&request).await?;
    if let Some(retrieval) = &mut retrieval
        && chat.tells_passages()
        && let Some(used) = retrieval::passages_of(chat, request).await
    {
        retrieval.keep(&used);
    }
    Ok(Reply { retrieval, text })
}

/// Asks the model for this many whole replies to the same turn, each by itself, a few at once. What they rest on is looked
/// up once.
///
/// # Errors
/// When one of them fails; the others are cancelled.
pub async fn variants(
    generation: &Generation,
    ask: ReplyRequest<'_>,
    count: usize,
) -> Result<Vec<String>, ProviderError> {
    let (request, _) = request(generation, ask).await;
    let request = Arc::new(request);
    let replies = (0..count).map(|_| whole(generation.clone(), Arc::clone(&request)));
    let replies: BoxStream<'_, _> = stream::iter(replies).buffered(VARIANTS_AT_ONCE).boxed();
    replies.try_collect().await
}

async fn whole(generation: Generation, request: Arc<ChatRequest>) -> Result<String, ProviderError> {
    let chat = &generation.providers.batch.chat;
    let mut pieces = chat.text(&request).await?;
    let mut text = String::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        if piece.is_empty() {
            text.clear();
        }
        text.push_str(&piece);
        if text.len() > MAX_REPLY_BYTES {
            let kind = ProviderErrorKind::Malformed;
            return Err(ProviderError::new(chat.name(), kind, "an endless reply"));
        }
    }
    Ok(text)
}

/// What the model is asked, and what was looked up for it.
async fn request(
    generation: &Generation,
    ask: ReplyRequest<'_>,
) -> (ChatRequest, Option<Retrieval>) {
    let ReplyRequest {
        speaker,
        turns,
        manner,
    } = ask;
    let (passages, retrieval) = match &speaker.knowledge {
        Some(knowledge) => {
            let patience = retrieval::patience(generation);
            let found = retrieval::search(knowledge, &turns, patience).await;
            if let Some(unknown) = &found.unknown_base {
                retrieval::warn_of(unknown);
            }
            let retrieval = Retrieval::of(&found.passages);
            (found.passages, Some(retrieval))
        }
        None => (Vec::new(), None),
    };
    let request = ChatRequest {
        system: prompt::system(speaker, manner, &passages),
        messages: turns,
        grounding: Arc::new(speaker.grounding(passages)),
    };
    (request, retrieval)
}

/// Who said a line of a call, as models know it.
#[must_use]
pub fn role(originator: Originator) -> ChatRole {
    match originator {
        Originator::User => ChatRole::User,
        Originator::Bot => ChatRole::Assistant,
    }
}

/// What was said, oldest first, as turns. What one speaker says in a row is one turn, as the templates of many models
/// require; what holds no words is none.
pub fn turns<'a>(said: impl IntoIterator<Item = (ChatRole, &'a str)>) -> Vec<ChatMessage> {
    let mut turns: Vec<ChatMessage> = Vec::new();
    for (role, text) in said {
        let content = text.trim();
        if content.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some(last) if last.role == role => {
                last.content.push('\n');
                last.content.push_str(content);
            }
            _ => turns.push(ChatMessage {
                role,
                content: content.to_owned(),
            }),
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_speaker_says_in_a_row_is_one_turn() {
        let turns = turns([
            (ChatRole::Assistant, "Hello."),
            (ChatRole::User, "I wonder"),
            (ChatRole::User, "when you open."),
            (ChatRole::Assistant, " "),
        ]);
        let turn = |role, content: &str| ChatMessage {
            role,
            content: content.to_owned(),
        };
        assert_eq!(
            turns,
            [
                turn(ChatRole::Assistant, "Hello."),
                turn(ChatRole::User, "I wonder\nwhen you open."),
            ]
        );
    }
}
