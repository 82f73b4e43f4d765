//! Replies: what a model is asked, as which character and with which knowledge, what it answers, and what that cost.
//!
//! The text interfaces ask for a client, in the words of the public APIs; a call and a message ask through [`reply()`] and
//! [`variants`], in plain text. All get the character, its knowledge and the model in the same way. It stops at text:
//! sentences, speech and the transcript of a call are the engine's. The formats of the two public APIs are those of the
//! package `colloquy-formats`.
//!
//! - [`request`]: what a client asks: the request for the model, and what it says to the service alone ([`svc`])
//! - [`prepare`]: from a body to a request that may be sent: key, quota, character, reservation, knowledge
//! - [`generate`]: what every request does, however its answer reaches the client
//! - [`dispatch`]: which model is asked, for how long, and which one comes next
//! - [`answer`]: what the client gets in one piece
//! - [`streamed`]: what it gets event by event
//! - [`socket`]: the same over a WebSocket
//! - [`embeddings`]: texts as vectors
//! - [`bill`]: what is reserved and settled
//! - [`seal`]: what keeps the summaries of compacted conversations closed
//! - [`stored`]: responses that later ones go on from
//! - [`input_items`]: pages of what they were asked with
//! - [`schema`]: the bodies, for the API's description
//! - [`draft_models`]: the models that such replies may name
//! - [`drafts`]: replies of characters that are not saved yet, for whoever writes them
//! - [`mod@reply`]: plain text, for calls and messages

mod answer;
mod bill;
mod dispatch;
pub mod draft_models;
pub mod drafts;
mod embeddings;
mod error;
mod failure;
mod generate;
mod input_items;
mod prepare;
mod prompt;
mod reply;
mod request;
mod retrieval;
pub mod routes;
pub mod schema;
mod seal;
mod socket;
mod store;
pub mod stored;
mod streamed;
mod svc;

use std::{fmt, sync::Arc};

use axum::extract::FromRef;
use colloquy_accounts::{Accounts, Tenant, server_secret, storage::PendingTexts};
use colloquy_base::{fair_queue::Priority, language::language_tag, permits::Permits};
use colloquy_characters::{Character, Characters, RenderedCharacter};
use colloquy_http::{Edge, Interface};
use colloquy_kernel::{Capability, Routes, State};
use colloquy_knowledge::{
    CharacterDocuments, CombinedSources, KnowledgeBases, KnowledgeSource, MissingBase, Passage,
    Reader,
};
use colloquy_providers::{Grounding, Providers};
use colloquy_store::StoreError;

pub use self::{
    prompt::PromptStyle,
    reply::{Reply, ReplyRequest, reply, role, turns, variants},
    retrieval::{Retrieval, RetrievedDocument},
    store::TEXTS,
};
use self::{seal::SealingSecret, socket::TextSockets};

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Generation(Arc<Parts>);

/// What [`Generation`] holds, besides the [`Characters`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    characters: Characters,
    /// The outside services.
    pub providers: Providers,
    /// What the routes share with the layers around them.
    pub edge: Edge,
    /// What characters look things up in.
    bases: Arc<dyn KnowledgeBases>,
    seals: SealingSecret,
    text_sockets: TextSockets,
    /// The inputs of responses that will be stored.
    pending_texts: PendingTexts,
    /// Replies of drafts that are in progress.
    drafts: Permits,
}

impl Generation {
    /// Makes the secret of compacted conversations, if there is none yet.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open(
        characters: Characters,
        providers: Providers,
        edge: Edge,
        bases: Arc<dyn KnowledgeBases>,
    ) -> Result<Self, StoreError> {
        let secret = server_secret(&characters.store, "compactions").await?;
        Ok(Self(Arc::new(Parts {
            seals: SealingSecret::new(secret),
            text_sockets: TextSockets::new(&characters.config.limits),
            pending_texts: PendingTexts::default(),
            drafts: Permits::new(drafts::MOST, drafts::MOST_OF_PARTNER),
            characters,
            providers,
            edge,
            bases,
        })))
    }
}

colloquy_kernel::state!(Generation: Parts.characters: Characters);

/// Text generation, as a part of a server.
#[derive(Debug)]
pub struct GenerationCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for GenerationCapability
where
    Accounts: FromRef<S>,
    Generation: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "generation"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![
            (Interface::TEXT, routes::routes()),
            (Interface::MANAGEMENT, drafts::routes()),
            (Interface::MANAGEMENT, draft_models::routes()),
        ]
    }

    async fn start(&self, state: &S) -> anyhow::Result<()> {
        stored::start(&Generation::from_ref(state)).await
    }

    async fn drained(&self, state: &S) {
        Generation::from_ref(state).text_sockets.closed().await;
    }
}

/// A character that is ready to reply: its prompt, its language, and what it can look up. Made once a call or request.
#[derive(Clone, Default)]
pub struct ReplyContext {
    name: Option<String>,
    personality: String,
    greetings: Vec<String>,
    language: Option<String>,
    knowledge: Option<CombinedSources>,
}

impl fmt::Debug for ReplyContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Speaker")
            .field("language", &self.language)
            .field("knowledge", &self.knowledge.is_some())
            .finish_non_exhaustive()
    }
}

impl ReplyContext {
    /// The character of a partner after its templates were filled in, with its documents ([`Characters::documents`]): they are read when it
    /// looks something up first. A knowledge base of another partner is not found.
    #[must_use]
    pub fn new(
        generation: &Generation,
        tenant: &Tenant,
        character: &Character,
        rendered: &RenderedCharacter,
        documents: Option<CharacterDocuments>,
        priority: Priority,
    ) -> Self {
        let parameters = &character.parameters;
        let mut sources: Vec<Arc<dyn KnowledgeSource>> = Vec::new();
        if let Some(documents) = documents {
            sources.push(Arc::new(documents));
        }
        let index = parameters.rag_index_required.as_deref();
        if let Some(index) = index.filter(|_| parameters.rag_enabled) {
            let own = tenant.partner();
            let name = index
                .split_once('/')
                .filter(|(partner, _)| *partner == own.as_str());
            sources.push(match name {
                Some((_, name)) => {
                    let reader = Reader {
                        partner: own,
                        priority,
                        character: character.display_name(),
                    };
                    generation.bases.open(name, reader)
                }
                None => Arc::new(MissingBase(index.to_owned())),
            });
        }
        let knowledge = (!sources.is_empty()).then_some(CombinedSources(sources));
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
            topics: knowledge.map(CombinedSources::titles).unwrap_or_default(),
            passages,
            language: self.language.clone(),
        }
    }
}
