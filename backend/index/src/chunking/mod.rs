//! Markdown as chunks: pieces that follow the structure of the text, each small enough for an embedder.
//!
//! A chunk is a range of the document. It ends where a section ends, else between blocks (paragraphs, lists, tables, code), else between
//! the items, rows, lines or sentences of a block that is too large for one chunk; a word is cut only when it is longer than a chunk. Small
//! sections share one. The headings above a chunk are its path: they are embedded with it, since "It closes at six" says little without
//! them.

mod blocks;
mod packing;
mod toc;

use std::{fmt, ops::Range, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use self::toc::{TocEntry, table_of_contents};

/// How large chunks become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkOptions {
    /// The most tokens of a chunk, its path included. At least [`ChunkOptions::SMALLEST`]; less is taken for that.
    pub max_tokens: usize,
    /// A section of fewer tokens shares a chunk with those that follow, when they are not of a higher level.
    pub min_tokens: usize,
    /// The most bytes of a chunk's text, without the row of names that stands before rows of a table. A token may be long, and some of what stands
    /// in a text is no token.
    pub max_bytes: usize,
}

impl ChunkOptions {
    /// The least that [`ChunkOptions::max_tokens`] can be.
    pub const SMALLEST: usize = 16;
    /// The most bytes of a text that is searched: with its path and its headings it is what an index takes
    /// ([`MAX_CHUNK_BYTES`](crate::search::MAX_CHUNK_BYTES)).
    const SEARCHED_BYTES: usize = 12 * 1024;

    /// Chunks of so many tokens at most, which an index takes.
    #[must_use]
    pub fn of(max_tokens: usize) -> Self {
        Self {
            max_bytes: Self::SEARCHED_BYTES,
            ..Self::sections(max_tokens)
        }
    }

    /// Sections of so many tokens at most, for whoever reads them and does not search.
    #[must_use]
    pub fn sections(max_tokens: usize) -> Self {
        let max_tokens = max_tokens.max(Self::SMALLEST);
        Self {
            max_tokens,
            min_tokens: max_tokens / 4,
            max_bytes: usize::MAX,
        }
    }
}

impl Default for ChunkOptions {
    /// What the embedded model reads of a text.
    fn default() -> Self {
        Self::of(254)
    }
}

/// The name of a chunk's content: chunks with the same path and text have the same. A chunk whose id has a vector needs no other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId([u8; 16]);

impl ChunkId {
    /// The id of what is embedded.
    #[must_use]
    pub fn of(passage: &str) -> Self {
        let hash = Sha256::digest(passage);
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Self(id)
    }

    /// Its bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The id with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkId({self})")
    }
}

/// Something that is not the 32 hexadecimal digits of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnId;

impl FromStr for ChunkId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
        id.map(|id| Self(id.to_be_bytes())).ok_or(NotAnId)
    }
}

/// A heading of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// 1 to 6; 1 is the highest.
    pub level: u8,
    /// Its words, without markup.
    pub title: String,
    /// Where it begins, in bytes of the document.
    pub start: usize,
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The name of its content.
    pub id: ChunkId,
    /// Its place among the chunks of the document, from 0.
    pub index: usize,
    /// The document's title and the headings that the chunk stands under, the highest first.
    pub path: Vec<String>,
    /// The headings that begin after the chunk before and until the end of this one: each of the document is in one chunk, up to the first 50,000.
    pub headings: Vec<Heading>,
    /// The text, as Markdown. Rows from the middle of a table come with the row of its names.
    pub text: String,
    /// What of the document it is, in bytes.
    pub range: Range<usize>,
    /// The tokens of what is embedded, as they were counted piece by piece.
    pub tokens: usize,
}

impl Chunk {
    /// What is embedded and searched: the path, and the text below it.
    #[must_use]
    pub fn passage(&self) -> String {
        passage(&self.path, &self.text)
    }
}

/// What is embedded and searched of a text below a path.
#[must_use]
pub fn passage(path: &[String], text: &str) -> String {
    match path {
        [] => text.to_owned(),
        path => format!("{}\n{text}", path.join(" > ")),
    }
}

/// What ends cutting a document early.
pub struct CutLimits<'a> {
    /// The most chunks.
    pub max_chunks: usize,
    /// True once nobody wants the chunks any more. It is asked for each block.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// Why a document was not cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotCut {
    /// [`CutLimits::is_stopped`] was true.
    #[error("cutting the document was stopped")]
    Stopped,
    /// It has more than [`CutLimits::max_chunks`].
    #[error("the document has too many parts")]
    TooMany,
}

/// Cuts a document. `count` tells the tokens of a text; the tokens of a text may be no more than those of its parts together, as with any
/// tokenizer that cuts at white space, else a chunk may have more than it should.
///
/// The document is parsed a piece at a time, so beside the chunks this takes a bounded amount of memory, whatever stands in the document.
///
/// # Errors
/// [`NotCut`], when a limit is reached.
pub fn try_chunk(
    markdown: &str,
    title: &str,
    options: ChunkOptions,
    count: &dyn Fn(&str) -> usize,
    limits: &CutLimits<'_>,
) -> Result<Vec<Chunk>, NotCut> {
    packing::Packer::new(markdown, title, options, count).pack(limits)
}

/// Like [`try_chunk`], without limits: for documents that are known.
#[must_use]
pub fn chunk(
    markdown: &str,
    title: &str,
    options: ChunkOptions,
    count: &dyn Fn(&str) -> usize,
) -> Vec<Chunk> {
    let limits = CutLimits {
        max_chunks: usize::MAX,
        is_stopped: &|| false,
    };
    try_chunk(markdown, title, options, count, &limits).unwrap_or_default()
}

#[cfg(test)]
mod tests;
