//! Knowledge bases for tests that are not about them.

use std::sync::Arc;

use async_trait::async_trait;
use colloquy_accounts::PartnerId;
use colloquy_knowledge::{KnowledgeBases, KnowledgeSource, MissingBase, Reader};

/// No partner has a knowledge base.
#[derive(Debug)]
pub struct NoBases;

#[async_trait]
impl KnowledgeBases for NoBases {
    fn open(&self, name: &str, _: Reader<'_>) -> Arc<dyn KnowledgeSource> {
        Arc::new(MissingBase(name.to_owned()))
    }

    async fn exists(&self, _: &PartnerId, _: &str) -> anyhow::Result<bool> {
        Ok(false)
    }
}
