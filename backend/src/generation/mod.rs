//! Replies of a character: what the model is asked, with which knowledge, and what it answers.
//!
//! A call asks through [`reply`]; the text interfaces will ask on the same path. It stops at text: sentences, speech and
//! the transcript are the engine's.

mod prompt;
mod retrieval;
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        unused_imports,
        reason = "the routes of text generation will speak it"
    )
)]
pub(crate) mod wire;

use std::{fmt, sync::Arc};

use colloquy_voice::{Line, Originator};

pub use self::retrieval::{Retrieval, RetrievedDocument, approximate_tokens};
use crate::{
    app::App,
    characters::{Character, RenderedCharacter},
    knowledge::{CharacterDocuments, KnowledgeSource},
    providers::{ChatMessage, ChatRequest, ChatRole, ProviderError, TextStream},
    speech::language_tag,
};

/// A character that is ready to reply: its prompt, its language, and what it can look up. Made once a call.
#[derive(Clone)]
pub struct Speaker {
    name: Option<String>,
    personality: String,
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
            language: parameters.language.as_deref().and_then(language_tag),
            knowledge,
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
            let passages =
                retrieval::search(knowledge.as_ref(), &messages, retrieval::PATIENCE).await;
            let retrieval = Retrieval::of(&passages);
            (passages, Some(retrieval))
        }
        None => (Vec::new(), None),
    };
    let request = ChatRequest {
        system: prompt::system(speaker, &passages),
        name: speaker.name.clone(),
        personality: speaker.personality.clone(),
        topics: speaker
            .knowledge
            .as_ref()
            .map(|knowledge| knowledge.titles())
            .unwrap_or_default(),
        messages,
        passages,
        language: speaker.language.clone(),
    };
    let text = app.providers.chat.stream(request).await?;
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
