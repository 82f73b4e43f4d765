//! How final contents come to be found: they are cut into chunks, these become vectors, and both go into a *manifest*, a file that
//! belongs to the document. The indexes of nodes are made of the manifests ([`crate::index`]), and can be made of them again.
//!
//! What makes vectors is a *profile*. Vectors of two profiles cannot be compared, so a base is searched by one of them: when the settings name
//! another model, all documents are embedded beside what is there, and the base changes over when the last one is done.

mod change;
mod contents;
mod info;
mod job;
mod making;
mod manifest;
mod profile;
mod stored;

use std::sync::Arc;

use colloquy_providers::Embedder;

pub use self::{
    change::Reembed,
    job::{Embed, EmbedLong},
};
pub(crate) use self::{
    change::{change_over_if_ready, change_profiles, embed_lacking},
    contents::TableOfContents,
    info::{EmbeddingInfo, UpdateStatus, failed, info},
    manifest::Manifest,
    profile::Profile,
    stored::StoredChunks,
};

/// The tokens of a chunk where no model sets a bound.
const CHUNK_TOKENS: usize = 254;

/// Cuts texts for an embedder, or for search by words alone.
#[derive(Clone)]
pub(crate) struct Cutter(pub(crate) Option<Arc<dyn Embedder>>);

impl Cutter {
    /// The most tokens of a chunk.
    pub(crate) fn max_tokens(&self) -> usize {
        self.0
            .as_ref()
            .map_or(CHUNK_TOKENS, |embedder| embedder.max_tokens())
    }

    /// How many tokens a text has.
    pub(crate) fn count(&self, text: &str) -> usize {
        match &self.0 {
            Some(embedder) => embedder.count_tokens(text),
            // About; a script without spaces has a token a character.
            None => text.len().div_ceil(3),
        }
    }
}
