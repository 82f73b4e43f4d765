//! Replies: what a model is asked, as which character and with which knowledge, what it answers, and what that cost.
//!
//! The text interfaces ask for a client, in the words of the public APIs; a call asks through [`reply`], in plain text. Both
//! get the character, its knowledge and the model in the same way. It stops at text: sentences, speech and the transcript
//! of a call are the engine's.
//!
//! - [`wire`]: the formats of the two public APIs, and how one is spoken to a client while the model speaks the other
//! - [`prepare`]: from a body to a request that may be sent: key, quota, character, reservation, knowledge
//! - [`dispatch`]: which model is asked, for how long, and which one comes next
//! - [`answer`]: what the client gets, streamed and whole
//! - [`bill`]: what is reserved and settled
//! - [`stored`]: responses that later ones go on from

mod answer;
mod bill;
mod dispatch;
mod failure;
mod limits;
mod prepare;
mod prompt;
mod retrieval;
pub mod routes;
mod store;
pub mod stored;
mod wire;

use std::{fmt, sync::Arc};

use colloquy_voice::{Line, Originator};

pub use self::retrieval::{Retrieval, RetrievedDocument};
use crate::{
    app::App,
    characters::{Character, RenderedCharacter},
    knowledge::{CharacterDocuments, KnowledgeSource},
    providers::{
        ChatMessage, ChatRequest, ChatRole, Grounding, Passage, ProviderError, TextStream,
    },
    speech::language_tag,
};

/// A character that is ready to reply: its prompt, its language, and what it can look up. Made once a call or request.
#[derive(Clone)]
pub struct Speaker {
    name: Option<String>,
    personality: String,
    greetings: Vec<String>,
    language: Option<String>,
    knowledge: Option<Arc<dyn KnowledgeSource>>,
}

impl fmt::Debug for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Speaker")
            .field("language", &self.language)
            .field("knowledge", &self.knowledge.is_some())
            .finish_non_exhaustive()
    }
}

impl Speaker {
    /// The character after its templates were filled in. Reads its documents once, when it answers from knowledge.
    #[must_use]
    pub fn new(character: &Character, rendered: &RenderedCharacter) -> Self {
        let parameters = &character.parameters;
        let knows = parameters.rag_enabled && !parameters.documents.is_empty();
        let knowledge = knows.then(|| {
            Arc::new(CharacterDocuments::new(&parameters.documents)) as Arc<dyn KnowledgeSource>
        });
        Self {
            name: character.display_name().map(str::to_owned),
            personality: rendered.system.clone(),
            greetings: rendered.greetings.clone(),
            language: parameters.language.as_deref().and_then(language_tag),
            knowledge,
        }
    }

    /// What a model that reads no prompts is told.
    fn grounding(&self, passages: Vec<Passage>) -> Grounding {
        let knowledge = self.knowledge.as_ref();
        Grounding {
            name: self.name.clone(),
            personality: self.personality.clone(),
            topics: knowledge
                .map(|knowledge| knowledge.titles())
                .unwrap_or_default(),
            passages,
            language: self.language.clone(),
        }
    }

    /// The same character with other knowledge.
    #[must_use]
    pub fn with_knowledge(mut self, knowledge: Arc<dyn KnowledgeSource>) -> Self {
        self.knowledge = Some(knowledge);
        self
    }
}

/// What a call asks for.
#[derive(Debug, Clone, Copy)]
pub struct CallReply<'a> {
    /// Who replies.
    pub speaker: &'a Speaker,
    /// The transcript so far, oldest first; the last line is the one to reply to.
    pub lines: &'a [Line],
}

/// A reply that has begun.
pub struct Reply {
    /// What was looked up; `None` for a character without knowledge.
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

/// Asks the model for a reply in a call. It returns when the first piece of text is there. A failing or slow knowledge
/// source costs the reply its knowledge, nothing else.
///
/// # Errors
/// When the model gives no first piece, after its retry.
pub async fn reply(app: &App, ask: &CallReply<'_>) -> Result<Reply, ProviderError> {
    let speaker = ask.speaker;
    let messages = messages(ask.lines);
    let (passages, retrieval) = match &speaker.knowledge {
        Some(knowledge) => {
            let found = retrieval::search(knowledge.as_ref(), &messages, retrieval::PATIENCE).await;
            let retrieval = Retrieval::of(&found.passages);
            (found.passages, Some(retrieval))
        }
        None => (Vec::new(), None),
    };
    let request = ChatRequest {
        system: prompt::system(speaker, prompt::Manner::Spoken, &passages),
        messages,
        grounding: Arc::new(speaker.grounding(passages)),
    };
    let text = app.providers.chat.text(&request).await?;
    Ok(Reply { retrieval, text })
}

/// The transcript as turns. Lines of one speaker that follow each other are one turn, as the templates of many models
/// require.
fn messages(lines: &[Line]) -> Vec<ChatMessage> {
    let mut messages: Vec<ChatMessage> = Vec::with_capacity(lines.len());
    for line in lines {
        let content = line.text.trim();
        if content.is_empty() {
            continue;
        }
        let role = match line.originator {
            Originator::User => ChatRole::User,
            Originator::Bot => ChatRole::Assistant,
        };
        match messages.last_mut() {
            Some(last) if last.role == role => {
                last.content.push('\n');
                last.content.push_str(content);
            }
            _ => messages.push(ChatMessage {
                role,
                content: content.to_owned(),
            }),
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use colloquy_voice::LineId;

    use super::*;

    #[test]
    fn lines_of_one_speaker_are_one_turn() {
        let line = |id, originator, text: &str| Line {
            id: LineId(id),
            originator,
            text: text.to_owned(),
            at: Duration::ZERO,
            interrupted: false,
        };
        let messages = messages(&[
            line(1, Originator::Bot, "Hello."),
            line(2, Originator::User, "I wonder"),
            line(3, Originator::User, "when you open."),
            line(4, Originator::Bot, " "),
        ]);
        let turn = |role, content: &str| ChatMessage {
            role,
            content: content.to_owned(),
        };
        assert_eq!(
            messages,
            [
                turn(ChatRole::Assistant, "Hello."),
                turn(ChatRole::User, "I wonder\nwhen you open."),
            ]
        );
    }
}
