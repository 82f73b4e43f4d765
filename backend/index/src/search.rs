//! What an index is told and asked, whatever keeps it.

use std::{collections::HashMap, ops::Range, time::Duration};

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    analysis::Language,
    chunking::{Chunk, ChunkId, Heading},
    fusion::{FusionParameters, Share},
};

/// The most bytes of a chunk: its text, path and headings.
pub const MAX_CHUNK_BYTES: usize = 64 * 1024;
/// The most chunks of a document.
pub const MAX_DOCUMENT_CHUNKS: usize = 100_000;
/// The most numbers of a vector.
pub const MAX_DIMENSIONS: usize = 4_096;
/// The most bytes of a question that are read.
pub const MAX_QUESTION_BYTES: usize = 256 * 1024;

/// Vectors of one base that one embedder made. Another embedder's make another generation: it is filled beside the old one, nobody
/// finds it until somebody asks for it, and then the old one is removed. Which generation is asked for is the caller's to remember, in
/// the transaction that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space {
    /// The knowledge base.
    pub base: Uuid,
    /// The generation of its vectors.
    pub generation: u32,
}

/// A document as it is indexed.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedDocument {
    /// Its name within the base.
    pub id: Uuid,
    /// The language; `None` to tell it by the text.
    pub language: Option<Language>,
    /// Its chunks with their vectors, whose lengths do not matter.
    pub chunks: Vec<(Chunk, PackedVector)>,
}

/// A vector as bytes: each number is a code times a scale. It takes a quarter of the memory of its numbers, and is exact to half a step, which
/// is a 254th of its largest number.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedVector {
    scale: f32,
    codes: Box<[i8]>,
}

impl PackedVector {
    /// Makes the vector of these codes.
    #[must_use]
    pub fn new(scale: f32, codes: Box<[i8]>) -> Self {
        Self { scale, codes }
    }

    /// What a code counts.
    #[must_use]
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// A code for each number.
    #[must_use]
    pub fn codes(&self) -> &[i8] {
        &self.codes
    }

    /// The numbers, as exact as they are kept.
    #[must_use]
    pub fn numbers(&self) -> Vec<f32> {
        let numbers = self.codes.iter().map(|code| f32::from(*code) * self.scale);
        numbers.collect()
    }
}

impl From<&[f32]> for PackedVector {
    /// Packs a vector. One with a number that is not finite has no direction afterwards either.
    fn from(vector: &[f32]) -> Self {
        let largest = vector
            .iter()
            .fold(0.0_f32, |most, number| most.max(number.abs()));
        let scale = match vector.iter().all(|number| number.is_finite()) {
            true => largest / 127.0,
            false => f32::NAN,
        };
        #[expect(clippy::cast_possible_truncation, reason = "127 at most")]
        let code = |number: &f32| match scale > 0.0 {
            true => (number / scale).round() as i8,
            false => 0,
        };
        Self {
            scale,
            codes: vector.iter().map(code).collect(),
        }
    }
}

/// A change of an index.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The document has these chunks, and no others that it had.
    Put(Space, IndexedDocument),
    /// The document goes, in all generations.
    RemoveDocument {
        /// The base that it is in.
        base: Uuid,
        /// Its name.
        document: Uuid,
    },
    /// All documents of a generation go.
    RemoveSpace(Space),
    /// All generations of a base go.
    RemoveBase(Uuid),
}

/// Words to be found.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The words.
    pub text: String,
    /// Their vector; without it, the words alone are compared.
    pub vector: Option<Vec<f32>>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest {
    /// Where.
    pub space: Space,
    /// The question as it was asked.
    pub original: Question,
    /// The question with the character's name in the place of another, where that makes a difference.
    pub replaced: Option<Question>,
    /// How the streams become one.
    pub fusion: FusionParameters,
}

/// What ranks passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// The cosine of vectors, in the order that they have where the question is moved towards its nearest passages (pseudo-relevance feedback).
    Dense,
    /// BM25 with the question's words and those that its nearest passages are about (pseudo-relevance feedback): words that the question
    /// does not have, which vectors know to be close, weighted.
    Sparse,
    /// BM25 with the question's words.
    Bm25,
}

impl Stream {
    /// Its name in the interface.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Sparse => "sparse",
            Self::Bm25 => "bm25",
        }
    }
}

/// Which form of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// As it was asked.
    Original,
    /// With the name replaced.
    Replaced,
}

/// Where a chunk stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The document.
    pub document: Uuid,
    /// The chunk's place in it, from 0.
    pub index: usize,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// Where it stands.
    pub place: Place,
    /// Other places of the same content that were found.
    pub duplicates: Vec<Place>,
    /// The name of its content.
    pub id: ChunkId,
    /// The document's title and the headings above it.
    pub path: Vec<String>,
    /// The headings in it.
    pub headings: Vec<Heading>,
    /// The text, as Markdown.
    pub text: String,
    /// What of the document it is, in bytes.
    pub range: Range<usize>,
    /// The sum of the shares.
    pub score: f64,
    /// What each stream gave it.
    pub shares: Vec<Share>,
}

/// What one stream found for one form of the question.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The stream.
    pub stream: Stream,
    /// The form of the question.
    pub form: Form,
    /// The best first: what, where, and with which score (a cosine, or that of BM25).
    pub hits: Vec<Hit>,
    /// How long it took.
    pub took: Duration,
}

/// One passage of a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The name of its content.
    pub id: ChunkId,
    /// Where it stands.
    pub place: Place,
    /// The stream's own score.
    pub score: f32,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResponse {
    /// The best passages, best first.
    pub passages: Vec<Passage>,
    /// What each stream found.
    pub rankings: Vec<Ranking>,
    /// The languages in which the question was stemmed.
    pub languages: Vec<Language>,
    /// How long all of it took.
    pub took: Duration,
}

/// The text of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkText {
    /// The document's title and the headings above the chunk.
    pub path: Vec<String>,
    /// The text, as Markdown.
    pub text: String,
}

/// What an index holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Chunks of all spaces.
    pub chunks: usize,
    /// Spaces with a chunk.
    pub spaces: usize,
    /// What it keeps in memory for them, in bytes.
    pub memory_bytes: u64,
    /// What it keeps on disk, in bytes.
    pub disk_bytes: u64,
}

/// Why an index does not do something.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// A chunk, a document or a vector is larger than an index takes.
    #[error("{0} is too large for the index")]
    TooLarge(&'static str),
    /// A vector that has another number of dimensions than those of its space, or no direction.
    #[error("a vector does not fit its space")]
    Vector,
    /// The index has as many chunks as it may.
    #[error("the index is full")]
    Full,
    /// It could not be read or written. Nothing of the change is kept.
    #[error("the index failed: {0}")]
    Failed(String),
    /// Its files are not those that were written. It has to be made again.
    #[error("the index is damaged: {0}")]
    Damaged(String),
}

/// An index of chunks. Its methods may be called from any task: what computes or waits for a disk does so on other threads.
///
/// A change is there for all searches that begin after it was acknowledged, whatever happens to the process; before, a search finds all of
/// it or nothing. All changes of one call are one.
#[async_trait]
pub trait SearchIndex: Send + Sync + 'static {
    /// Makes these changes, in their order.
    ///
    /// # Errors
    /// [`IndexError`]; then none of them was made.
    async fn apply(&self, changes: Vec<Change>) -> Result<(), IndexError>;

    /// The vectors that a space has for contents, so that these need not be embedded again. They are as exact as the index keeps them.
    ///
    /// # Errors
    /// When the index cannot be read.
    async fn vectors(
        &self,
        space: Space,
        ids: Vec<ChunkId>,
    ) -> Result<HashMap<ChunkId, Vec<f32>>, IndexError>;

    /// The best passages of a space; none where the space has nothing.
    ///
    /// # Errors
    /// When a vector of the question does not fit, or the index cannot be read.
    async fn search(&self, request: SearchRequest) -> Result<SearchResponse, IndexError>;

    /// Returns the texts of chunks of a space, without those that are not in it any more.
    ///
    /// # Errors
    /// When the index cannot be read.
    async fn texts(
        &self,
        space: Space,
        places: Vec<Place>,
    ) -> Result<HashMap<Place, ChunkText>, IndexError>;

    /// What it holds.
    ///
    /// # Errors
    /// When the index cannot be read.
    async fn usage(&self) -> Result<Usage, IndexError>;
}
