//! What a character can look up: sources of passages, and how the words of a question find them.
//!
//! A character knows the documents that it carries with it, and a knowledge base that it names. It stops before the reply: `generation` asks, within
//! a bounded time, and puts what it gets into the prompt, as [`quoting`] writes it.

mod bm25;
mod cache;
mod concept;
mod documents;
mod learned;
mod numbers;
pub mod prose;
pub mod quoting;
mod text;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use async_trait::async_trait;
use colloquy_base::{fair_queue::Priority, identifiers::PartnerId};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

pub use self::{
    bm25::Bm25,
    cache::DocumentCache,
    concept::Concept,
    documents::CharacterDocuments,
    learned::Learned,
    text::{sentences, terms},
};

/// The most bytes of a question and its context that are read.
pub const MAX_QUESTION_BYTES: usize = 256 * 1024;

/// A document that a character carries with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CharacterDocument {
    /// The title.
    pub title: String,
    /// The text.
    pub text: String,
}

/// Which document a passage is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// One that the character carries: its place among these, from 0.
    Carried(usize),
    /// One of a knowledge base: its id, which no other document ever has.
    Kept(String),
}

impl Default for Origin {
    fn default() -> Self {
        Self::Carried(0)
    }
}

/// A passage of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Passage {
    /// The document's title.
    pub title: String,
    /// The headings above the text, the highest first; none of them stands in it. An empty one stands for higher ones that are left out.
    pub headings: Vec<String>,
    /// The words.
    pub text: String,
    /// The relevance, larger is better.
    pub score: f64,
    /// The document.
    pub document: Origin,
    /// The place of the passage in its document, from 0.
    pub chunk_index: usize,
    /// What found it.
    pub retrievers: Vec<&'static str>,
}

impl Passage {
    /// What stands between a title and the headings below it.
    pub const SEPARATOR: &str = " > ";

    /// The title and the headings above the text: `guide.md > Updates > By hand`.
    #[must_use]
    pub fn path(&self) -> String {
        let parts = std::iter::once(&self.title).chain(&self.headings);
        let parts = parts.map(String::as_str).filter(|part| !part.is_empty());
        let mut parts: Vec<&str> = parts.collect();
        parts.dedup();
        parts.join(Self::SEPARATOR)
    }
}

/// What is looked for, in [`MAX_QUESTION_BYTES`] at most.
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
    /// The titles of what it holds, where they are known without a search.
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

/// Who looks something up in a knowledge base.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    /// Whose bases are there to be read.
    pub partner: &'a PartnerId,
    /// How urgently, for services that have to share.
    pub priority: Priority,
    /// What the character is called, of whom its base may tell by name.
    pub character: Option<&'a str>,
}

/// A character names a knowledge base that its partner does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the knowledge base {0} of rag_index_required is not found")]
pub struct UnknownBase(pub String);

/// A source in place of a base that is not there: searching it fails with [`UnknownBase`].
#[derive(Debug)]
pub struct MissingBase(pub String);

#[async_trait]
impl KnowledgeSource for MissingBase {
    fn titles(&self) -> Vec<String> {
        Vec::new()
    }

    async fn search(&self, _: Query) -> anyhow::Result<Vec<Passage>> {
        Err(UnknownBase(self.0.clone()).into())
    }
}

/// The knowledge bases of partners.
#[async_trait]
pub trait KnowledgeBases: std::fmt::Debug + Send + Sync + 'static {
    /// A base by its name. It is looked for when it is searched: where it is not found, that fails with [`UnknownBase`].
    fn open(&self, name: &str, reader: Reader<'_>) -> Arc<dyn KnowledgeSource>;

    /// Returns true if the partner has a base of this name.
    ///
    /// # Errors
    /// When the database fails.
    async fn exists(&self, partner: &PartnerId, name: &str) -> anyhow::Result<bool>;
}

/// Several sources as one: the best passages of each, in turn.
#[derive(Clone)]
pub struct CombinedSources(pub Vec<Arc<dyn KnowledgeSource>>);

impl CombinedSources {
    /// The titles of what they hold, where they are known without a search.
    #[must_use]
    pub fn titles(&self) -> Vec<String> {
        self.0.iter().flat_map(|source| source.titles()).collect()
    }

    /// The best passages, and why sources gave none. Each of them has this time to be searched, what it does once not counted; one that
    /// fails or takes longer is no reason to go without the others.
    pub async fn search(
        &self,
        query: &Query,
        patience: Duration,
    ) -> (Vec<Passage>, Vec<anyhow::Error>) {
        let searches = self.0.iter().map(|source| async move {
            source.prepare().await?;
            let searched = timeout(patience, source.search(query.clone())).await;
            searched.context("it is too slow")?
        });
        let mut failures = Vec::new();
        let mut found = Vec::new();
        for result in futures_util::future::join_all(searches).await {
            match result {
                Ok(passages) => found.push(passages.into_iter()),
                Err(error) => failures.push(error),
            }
        }
        let mut mixed = Vec::new();
        while mixed.len() < query.limit {
            let before = mixed.len();
            for passages in &mut found {
                mixed.extend(passages.next());
            }
            if mixed.len() == before {
                break;
            }
        }
        mixed.truncate(query.limit);
        (mixed, failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passages of a source, after so long.
    struct Source(&'static str, Duration);

    #[async_trait]
    impl KnowledgeSource for Source {
        fn titles(&self) -> Vec<String> {
            vec![self.0.to_owned()]
        }

        async fn prepare(&self) -> anyhow::Result<()> {
            anyhow::ensure!(self.0 != "broken", "broken");
            Ok(())
        }

        async fn search(&self, query: Query) -> anyhow::Result<Vec<Passage>> {
            tokio::time::sleep(self.1).await;
            let passage = Passage {
                title: self.0.to_owned(),
                ..Passage::default()
            };
            Ok(vec![passage; query.limit])
        }
    }

    #[tokio::test]
    async fn a_source_that_is_slow_or_broken_costs_the_others_nothing() {
        let at_once = Duration::ZERO;
        let never = Duration::from_secs(3_600);
        let source = |name, after| Arc::new(Source(name, after)) as Arc<dyn KnowledgeSource>;
        let query = Query {
            text: "When?".to_owned(),
            context: String::new(),
            limit: 3,
        };
        let patience = Duration::from_millis(200);
        let searched = async |sources: Vec<Arc<dyn KnowledgeSource>>| {
            let (passages, failures) = CombinedSources(sources).search(&query, patience).await;
            let titles: Vec<String> = passages.into_iter().map(|it| it.title).collect();
            (titles, failures.len())
        };
        let (carried, slow) = (source("carried", at_once), source("slow", never));
        let (quick, broken) = (source("quick", at_once), source("broken", at_once));
        let told = |titles: [&str; 3]| titles.map(str::to_owned).to_vec();
        assert_eq!(
            searched(vec![carried.clone(), slow.clone(), broken]).await,
            (told(["carried"; 3]), 2)
        );
        assert_eq!(
            searched(vec![carried, quick]).await,
            (told(["carried", "quick", "carried"]), 0)
        );
        assert_eq!(searched(vec![slow]).await, (Vec::new(), 1));
    }
}
