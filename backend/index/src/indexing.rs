//! What every index makes of documents and questions before it keeps or looks for them, wherever that is.

use crate::{
    analysis::{Language, document_terms, query_terms},
    chunking::Chunk,
    search::{
        IndexError, IndexedDocument, MAX_CHUNK_BYTES, MAX_DIMENSIONS, MAX_DOCUMENT_CHUNKS,
        MAX_QUESTION_BYTES,
    },
};

/// The terms of a question that are looked up.
const MAX_QUESTION_TERMS: usize = 512;
/// The most terms of a question that are compared, the rarest of them.
const MAX_TERMS: usize = 48;
/// In a space of at least so many chunks, a term that stands in half of them is not compared when there are others.
const COMMON_FROM: u64 = 16;

/// Whether a document is one that an index takes, in a space whose vectors have so many numbers. `None`: they have as many as the
/// document's first one. Says how many that is, for the next document.
///
/// # Errors
/// When something of it is too large, or a vector does not fit.
pub fn check(
    document: &IndexedDocument,
    dimensions: Option<usize>,
) -> Result<Option<usize>, IndexError> {
    if document.chunks.len() > MAX_DOCUMENT_CHUNKS {
        return Err(IndexError::TooLarge("a document"));
    }
    let mut expected = dimensions;
    for (chunk, vector) in &document.chunks {
        let headings = chunk
            .headings
            .iter()
            .map(|heading| heading.title.len() + 32);
        let path = chunk.path.iter().map(String::len);
        if chunk.text.len() + path.chain(headings).sum::<usize>() > MAX_CHUNK_BYTES {
            return Err(IndexError::TooLarge("a chunk"));
        }
        let dimensions = vector.codes().len();
        let expected = *expected.get_or_insert(dimensions);
        let is_large = dimensions > MAX_DIMENSIONS;
        if dimensions != expected || is_large || !has_direction(&vector.numbers()) {
            return Err(IndexError::Vector);
        }
    }
    Ok(expected)
}

/// Whether a vector has a direction.
#[must_use]
pub fn has_direction(vector: &[f32]) -> bool {
    let squares: f64 = vector.iter().map(|number| f64::from(*number).powi(2)).sum();
    squares.sqrt().is_normal()
}

/// The language of a document: what is said of it, else what its first chunks are in.
#[must_use]
pub fn language(document: &IndexedDocument) -> Language {
    if let Some(language) = document.language {
        return language;
    }
    let mut text = String::new();
    for (chunk, _) in document.chunks.iter().take(4) {
        text.push_str(&chunk.text);
        text.push('\n');
    }
    match Language::detect(&text) {
        // Too short to tell, and most such texts are English. The question's words are stemmed in the same way, so a wrong guess
        // costs little.
        Language::UNKNOWN if text.is_ascii() => Language::from_tag("en"),
        detected => detected,
    }
}

/// The terms of a chunk. What is in a heading counts twice.
#[must_use]
pub fn terms(chunk: &Chunk, language: Language) -> Vec<String> {
    let mut terms = Vec::new();
    for title in &chunk.path {
        let title = document_terms(title, language);
        terms.extend_from_slice(&title);
        terms.extend(title);
    }
    terms.extend(document_terms(&chunk.text, language));
    terms
}

/// The terms of a question, in each language of the space.
#[must_use]
pub fn question_terms(question: &str, languages: &[Language]) -> Vec<String> {
    let question = &question[..question.floor_char_boundary(MAX_QUESTION_BYTES)];
    query_terms(question, languages, MAX_QUESTION_TERMS)
}

/// How rare a term is that stands in `with` of so many chunks, as BM25 has it; 0 where it does not stand at all.
#[must_use]
pub fn rarity(chunks: u64, with: u64) -> f64 {
    let (all, with) = (chunks as f64, with.min(chunks) as f64);
    let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
    if with > 0.0 { rarity } else { 0.0 }
}

/// Which terms are compared, of those that are known with their weights and how many chunks of the space they stand in.
#[must_use]
pub fn compared<T>(mut known: Vec<(T, f32, u64)>, chunks: u64) -> Vec<(T, f32, u64)> {
    known.retain(|(_, weight, with)| *with > 0 && weight.is_finite() && *weight > 0.0);
    let is_common = |with: u64| chunks >= COMMON_FROM && with * 2 > chunks;
    if known.iter().any(|(.., with)| !is_common(*with)) {
        known.retain(|(.., with)| !is_common(*with));
    }
    // The rarest tell most, and are read fastest.
    known.sort_by_key(|(.., with)| *with);
    known.truncate(MAX_TERMS);
    known
}
