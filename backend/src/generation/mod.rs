//! Replies: what a model is asked, as which character and with which knowledge, what it answers, and what that cost.
//!
//! The text interfaces ask for a client, in the words of the public APIs; a call and a message ask through [`reply()`] and
//! [`variants`], in plain text. All get the character, its knowledge and the model in the same way. It stops at text:
//! sentences, speech and the transcript of a call are the engine's.
//!
//! - [`wire`]: the formats of the two public APIs, and how one is spoken to a client while the model speaks the other
//! - [`prepare`]: from a body to a request that may be sent: key, quota, character, reservation, knowledge
//! - [`dispatch`]: which model is asked, for how long, and which one comes next
//! - [`answer`]: what the client gets, streamed and whole
//! - [`bill`]: what is reserved and settled
//! - [`stored`]: responses that later ones go on from
//! - [`mod@reply`]: plain text, for calls and messages

mod answer;
mod bill;
mod dispatch;
mod failure;
mod prepare;
mod prompt;
mod reply;
mod retrieval;
pub mod routes;
mod store;
pub mod stored;
mod wire;

use std::{fmt, sync::Arc};

pub use self::{
    prompt::Manner,
    reply::{Ask, Reply, reply, turns, variants},
    retrieval::{Retrieval, RetrievedDocument},
};
use crate::{
    characters::{Character, RenderedCharacter},
    knowledge::{CharacterDocuments, KnowledgeSource},
    providers::{Grounding, Passage},
    speech::language_tag,
};

/// A character that is ready to reply: its prompt, its language, and what it can look up. Made once a call or request.
#[derive(Clone, Default)]
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
}
