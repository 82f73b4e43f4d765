//! `MiniLM`, where its files are in the models folder.

use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use colloquy_inference::{
    InferenceError,
    minilm::{self, MAX_TOKENS},
    runtime::Rten,
};
use colloquy_models::{
    folder::{ModelsFolder, Presence},
    manifest::{self, Model, Purpose},
};

use super::{
    super::{Embedder, EmbeddingRequest, Embeddings, ProviderError, ProviderErrorKind},
    Pool,
};

/// The most texts of a request.
const MAX_TEXTS: usize = 64;
/// The tokens that a thread computes before whoever is more urgent gets it: about a tenth of a second.
const UNIT_TOKENS: usize = 2 * MAX_TOKENS;

/// Texts as vectors, on this machine.
#[derive(Debug, Clone)]
pub struct MiniLm {
    name: &'static str,
    model: Arc<minilm::MiniLm>,
    pool: Pool,
}

impl MiniLm {
    /// The model that is in the folder. A server without it still searches by words, and says so.
    pub(super) fn present(folder: &ModelsFolder, pool: &Pool) -> Option<Self> {
        let mut models = manifest::MODELS.iter();
        let model = models.find(|model| {
            model.purpose == Purpose::Embedding && folder.presence(model) == Presence::Present
        })?;
        Self::load(folder, model, pool)
            .inspect_err(|error| {
                tracing::error!(model = model.name, "the model cannot be used: {error:#}");
            })
            .ok()
    }

    /// The model of this name, which has to be there.
    ///
    /// # Errors
    /// When it is not, or cannot be loaded.
    pub(super) fn named(folder: &ModelsFolder, name: &str, pool: &Pool) -> anyhow::Result<Self> {
        let model = manifest::model(name)
            .filter(|model| model.purpose == Purpose::Embedding)
            .with_context(|| format!("it is no model for {}", Purpose::Embedding))?;
        Self::load(folder, model, pool)
    }

    fn load(folder: &ModelsFolder, model: &'static Model, pool: &Pool) -> anyhow::Result<Self> {
        let file = |name: &str| {
            let file = model.files.iter().find(|file| file.name == name);
            let file = file.with_context(|| format!("it has no {name}"))?;
            Ok::<_, anyhow::Error>(folder.read(model, file)?)
        };
        let (network, tokenizer) = (file("model.onnx")?, file("tokenizer.json")?);
        let loaded = minilm::MiniLm::load(&Rten::new(), network, &tokenizer)?;
        pool.keeps(model.name, loaded.bytes());
        Ok(Self {
            name: model.name,
            model: Arc::new(loaded),
            pool: pool.clone(),
        })
    }

    /// The places of texts that are computed together, the longest first.
    fn units(tokens: &[usize]) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..tokens.len()).collect();
        order.sort_by_key(|place| std::cmp::Reverse(tokens[*place]));
        let mut units: Vec<Vec<usize>> = Vec::new();
        let mut held = 0;
        for place in order {
            let tokens = tokens[place].clamp(1, MAX_TOKENS);
            match units.last_mut() {
                Some(unit) if held + tokens <= UNIT_TOKENS => {
                    held += tokens;
                    unit.push(place);
                }
                _ => {
                    held = tokens;
                    units.push(vec![place]);
                }
            }
        }
        units
    }
}

#[async_trait]
impl Embedder for MiniLm {
    fn name(&self) -> &str {
        self.name
    }

    fn max_tokens(&self) -> usize {
        MAX_TOKENS
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.model.count_tokens(text)
    }

    fn counts_exactly(&self) -> bool {
        true
    }

    fn max_texts(&self) -> usize {
        MAX_TEXTS
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Embeddings, ProviderError> {
        let EmbeddingRequest { texts, claim } = request;
        let failed = |error: InferenceError| {
            ProviderError::new(self.name, ProviderErrorKind::Failed, error.to_string())
        };
        let (model, counted) = (Arc::clone(&self.model), texts.clone());
        let count = move |_: &_| {
            let texts = counted.iter();
            texts.map(|text| model.count_tokens(text)).collect()
        };
        let tokens: Vec<usize> = self.pool.run(self.name, &claim, count).await?;
        let mut vectors = vec![Vec::new(); texts.len()];
        let mut texts: Vec<Option<String>> = texts.into_iter().map(Some).collect();
        for unit in Self::units(&tokens) {
            let model = Arc::clone(&self.model);
            let these: Vec<String> = unit
                .iter()
                .filter_map(|place| texts[*place].take())
                .collect();
            let compute = move |wanted: &super::Wanted| {
                let these: Vec<&str> = these.iter().map(String::as_str).collect();
                model.embed(&these, &|| wanted.is_wanted())
            };
            let made = self.pool.run(self.name, &claim, compute).await?;
            for (place, vector) in unit.into_iter().zip(made.map_err(failed)?) {
                vectors[place] = vector.to_vec();
            }
        }
        let read = tokens.iter().map(|tokens| tokens.min(&MAX_TOKENS));
        Ok(Embeddings {
            vectors,
            tokens: Some(read.sum::<usize>() as u64),
        })
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_computed_in_units_that_let_others_in() {
        assert_eq!(MiniLm::units(&[]), [[0; 0]; 0]);
        let long = [MAX_TOKENS, 10, MAX_TOKENS + 50, MAX_TOKENS, 20];
        assert_eq!(
            MiniLm::units(&long),
            [vec![2, 0], vec![3, 4, 1]],
            "what is too long counts as far as it is read"
        );
        let short = vec![0; 10_000];
        let units = MiniLm::units(&short);
        assert!(units.iter().all(|unit| unit.len() <= UNIT_TOKENS));
    }
}
