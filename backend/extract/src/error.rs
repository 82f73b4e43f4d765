//! Why there is no text. What it says is for whoever uploaded the document.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::format::Format;

/// A bound that a document goes beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Files inside of its container.
    Entries,
    /// Bytes that its parts take when they are unpacked.
    UnpackedBytes,
    /// Elements inside of elements.
    Depth,
    /// Elements in all.
    Elements,
    /// Cells of its tables.
    Cells,
    /// Pages.
    Pages,
    /// Pixels of a picture.
    Pixels,
    /// Bytes of its Markdown.
    MarkdownBytes,
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Entries => "files inside of it",
            Self::UnpackedBytes => "bytes when it is unpacked",
            Self::Depth => "levels of nesting",
            Self::Elements => "elements",
            Self::Cells => "cells",
            Self::Pages => "pages",
            Self::Pixels => "pixels",
            Self::MarkdownBytes => "bytes of text",
        })
    }
}

/// Why a document is refused, or has no text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ExtractError {
    /// The name has no extension that is accepted.
    #[error("{}", unknown_extension(.0))]
    UnknownExtension(String),
    /// It is an archive, by its name or by what it holds.
    #[error("archives are not accepted: {0}")]
    Archive(String),
    /// It is not what its name says.
    #[error("the name says {expected}, but the file is {found}")]
    Mismatch {
        /// What the name says.
        expected: Format,
        /// What was found, in words.
        found: String,
    },
    /// It needs a password, or is protected otherwise.
    #[error("the document is encrypted or protected")]
    Encrypted,
    /// It breaks off, or does not follow its format.
    #[error("the document is damaged: {0}")]
    Damaged(String),
    /// It has nothing in it.
    #[error("the document is empty")]
    Empty,
    /// It has pictures and no text.
    #[error("the document holds pictures only, and no text")]
    PicturesOnly,
    /// It goes beyond a bound.
    #[error("the document is too large: more than {most} {bound}")]
    TooLarge {
        /// Of what there is too much.
        bound: Bound,
        /// How much there may be.
        most: u64,
    },
    /// It declares entities: short names for text, which may stand for each other.
    #[error("the document declares entities, which may stand for text without end")]
    Entities,
    /// It is known, but its text is not in it to be read.
    #[error("{0} has no text to be read")]
    NotText(Format),
    /// There is no such page.
    #[error("the document has no page {0}")]
    NoPage(u32),
    /// What reads the format failed on it.
    #[error("the document could not be read: {0}")]
    Failed(String),
}

impl ExtractError {
    /// The longest words of others that an error repeats, in characters.
    const LONGEST_DETAIL: usize = 200;

    /// A document that does not follow its format; `why` is cut where it is long.
    pub(crate) fn damaged(why: impl fmt::Display) -> Self {
        Self::Damaged(shortened(&why.to_string()))
    }

    /// A failure of what reads the format; `why` is cut where it is long.
    pub(crate) fn failed(why: impl fmt::Display) -> Self {
        Self::Failed(shortened(&why.to_string()))
    }

    /// Not what the name says.
    pub(crate) fn mismatch(expected: Format, found: impl fmt::Display) -> Self {
        Self::Mismatch {
            expected,
            found: shortened(&found.to_string()),
        }
    }

    /// Too much of something.
    pub(crate) fn too_large(bound: Bound, most: impl TryInto<u64>) -> Self {
        Self::TooLarge {
            bound,
            most: most.try_into().unwrap_or(u64::MAX),
        }
    }
}

fn unknown_extension(extension: &str) -> String {
    match extension {
        "" => "a file without an extension is not supported; end its name with that of its type, such as .pdf or .md"
            .to_owned(),
        extension => format!("files of the type {extension:?} are not supported"),
    }
}

/// One line of words, not too long.
fn shortened(words: &str) -> String {
    let line = words.lines().next().unwrap_or_default();
    let clean = line.chars().filter(|c| !c.is_control());
    clean.take(ExtractError::LONGEST_DETAIL).collect()
}
