//! Texts as vectors, for search by meaning.

use async_trait::async_trait;
use colloquy_base::fair_queue::Claim;

use super::{LastContact, ProviderError};

/// A service that makes vectors of texts: those that mean the same point in the same direction.
#[async_trait]
pub trait Embedder: Send + Sync + 'static {
    /// The model's public name. Vectors of another name are not compared with its own.
    fn name(&self) -> &str;

    /// The tokens of a text that count in its vector; what follows is not read.
    fn max_tokens(&self) -> usize;

    /// How many tokens a text has; about, where only the service knows. A text has no more than its parts together.
    fn count_tokens(&self, text: &str) -> usize;

    /// Whether [`Self::count_tokens`] is exact.
    fn counts_exactly(&self) -> bool {
        false
    }

    /// The most texts of a request.
    fn max_texts(&self) -> usize;

    /// Returns the last answer and the last failure; `None` if they are not noted.
    fn last_contact(&self) -> Option<LastContact> {
        None
    }

    /// The vectors of texts, in their order.
    async fn embed(&self, request: EmbeddingRequest) -> Result<Embeddings, ProviderError>;

    /// Whether the service answers; for the deep health check.
    async fn check(&self) -> Result<(), ProviderError>;
}

/// Texts to embed.
#[derive(Debug, Clone)]
pub struct EmbeddingRequest {
    /// The texts, [`Embedder::max_texts`] at most.
    pub texts: Vec<String>,
    /// Who asks, for services that have to share.
    pub claim: Claim,
}

/// The vectors of texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// A vector for each text, all of the same length.
    pub vectors: Vec<Vec<f32>>,
    /// The tokens that were read, where the service says so.
    pub tokens: Option<u64>,
}
