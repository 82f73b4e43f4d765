//! What a character can look up: sources of passages, and how the words of a question find them.
//!
//! For now a character knows the documents that it carries with it. It stops before the reply: `generation` asks, within
//! a bounded time, and puts what it gets into the prompt.

mod bm25;
mod cache;
mod concept;
mod documents;
mod text;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::{
    bm25::Bm25,
    cache::DocumentCache,
    concept::Concept,
    documents::CharacterDocuments,
    text::{sentences, terms},
};

/// A document that a character carries with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CharacterDocument {
    /// The title.
    pub title: String,
    /// The text.
    pub text: String,
}

/// A passage of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Passage {
    /// The document's title.
    pub title: String,
    /// The words.
    pub text: String,
    /// The relevance, larger is better.
    pub score: f64,
    /// The place of the document among those of its source, from 0.
    pub document: usize,
    /// The place of the passage in its document, from 0.
    pub chunk_index: usize,
    /// What found it.
    pub retrievers: Vec<&'static str>,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The question.
    pub text: String,
    /// What was said before it, which a question like "and on Sundays?" needs; counts less.
    pub context: String,
    /// The most passages to return.
    pub limit: usize,
}

/// Something that can be searched.
#[async_trait]
pub trait KnowledgeSource: Send + Sync + 'static {
    /// The titles of what it holds.
    fn titles(&self) -> Vec<String>;

    /// Does what is done once, before the first search; later ones return at once.
    ///
    /// # Errors
    /// When it cannot be done.
    async fn prepare(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// The best passages, best first; empty when nothing fits.
    ///
    /// # Errors
    /// When the source cannot be asked.
    async fn search(&self, query: Query) -> anyhow::Result<Vec<Passage>>;
}
