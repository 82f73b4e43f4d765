//! What a character can look up: sources of passages, and how the words of a question find them.
//!
//! For now a character knows the documents that it carries with it. It stops before the reply: `generation` asks, within
//! a bounded time, and puts what it gets into the prompt.

mod bm25;
mod documents;
mod text;

use async_trait::async_trait;

pub use self::{
    bm25::Bm25,
    documents::CharacterDocuments,
    text::{sentences, terms},
};
use crate::providers::Passage;

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

    /// The best passages, best first; empty when nothing fits.
    ///
    /// # Errors
    /// When the source cannot be asked.
    async fn search(&self, query: Query) -> anyhow::Result<Vec<Passage>>;
}
