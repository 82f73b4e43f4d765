//! Embeddings: `POST {base}/embeddings`.

use async_trait::async_trait;
use colloquy_config::EmbedderConfig;
use serde::{Deserialize, Serialize};

use super::{
    super::{
        Embedder, EmbeddingRequest, Embeddings as Vectors, ProviderError, ProviderErrorKind,
        approximate_tokens,
    },
    CONNECT_TIMEOUT, Server,
};

/// The largest answer: 2,048 vectors of 4,096 numbers, as text.
const MAX_ANSWER_BYTES: usize = 128 * 1024 * 1024;
/// The most numbers of a vector.
const MAX_DIMENSIONS: usize = 4_096;

/// An embedder behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct Embeddings {
    server: Server,
    dimensions: Option<u32>,
    max_tokens: usize,
    max_texts: usize,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Entry>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Entry {
    index: usize,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    total_tokens: Option<u64>,
}

impl Embeddings {
    /// The embedder of these settings; `None` without a base URL.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn from_config(config: &EmbedderConfig) -> anyhow::Result<Option<Self>> {
        let server = Server::new(
            config.base_url.as_ref(),
            config.api_key.as_ref(),
            config.model.as_ref(),
            CONNECT_TIMEOUT,
        )?;
        Ok(server.map(|server| Self {
            server,
            dimensions: config.dimensions,
            max_tokens: config.max_tokens as usize,
            max_texts: config.max_texts as usize,
        }))
    }

    fn malformed(&self, message: &str) -> ProviderError {
        self.server.error(ProviderErrorKind::Malformed, message)
    }
}

#[async_trait]
impl Embedder for Embeddings {
    fn name(&self) -> &str {
        &self.server.model
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn count_tokens(&self, text: &str) -> usize {
        // Scripts without spaces have a token a character or so, which is three bytes.
        let by_bytes = text.len().div_ceil(3);
        by_bytes.max(usize::try_from(approximate_tokens(text)).unwrap_or(usize::MAX))
    }

    fn max_texts(&self) -> usize {
        self.max_texts
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Vectors, ProviderError> {
        let body = Body {
            model: &self.server.model,
            input: &request.texts,
            encoding_format: "float",
            dimensions: self.dimensions,
        };
        let sent = self.server.post("embeddings")?.json(&body);
        let response = self.server.send(sent).await?;
        let body = self.server.read(response, MAX_ANSWER_BYTES).await?;
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|_| self.malformed("an answer that has no embeddings"))?;
        let mut vectors = vec![Vec::new(); request.texts.len()];
        for entry in answer.data {
            let is_sound = (1..=MAX_DIMENSIONS).contains(&entry.embedding.len())
                && entry.embedding.iter().all(|number| number.is_finite())
                && entry.embedding.iter().any(|number| *number != 0.0);
            let place = vectors.get_mut(entry.index).filter(|_| is_sound);
            *place.ok_or_else(|| self.malformed("an embedding that is none"))? = entry.embedding;
        }
        let dimensions = vectors.first().map_or(0, Vec::len);
        if vectors
            .iter()
            .any(|vector| vector.is_empty() || vector.len() != dimensions)
        {
            return Err(self.malformed("fewer embeddings than texts, or of several lengths"));
        }
        let usage = answer.usage;
        Ok(Vectors {
            vectors,
            tokens: usage.and_then(|usage| usage.prompt_tokens.or(usage.total_tokens)),
        })
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.server.check().await
    }
}
