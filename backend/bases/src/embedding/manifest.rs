//! Manifests: the chunks of a document with their vectors, as a file.
//!
//! The file is a length, JSON of that length with the chunks, and the vectors: for each chunk a scale and its numbers as bytes, as indexes keep
//! them, too.

use std::collections::HashMap;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use colloquy_index::{
    analysis::Language,
    chunking::{Chunk, ChunkId, Heading},
};
use serde::{Deserialize, Serialize};

/// The format that is written.
const VERSION: u32 = 2;
/// The first one, which names no language, and is read, too.
const WITHOUT_LANGUAGE: u32 = 1;

/// The chunks of a document with their vectors.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Manifest {
    /// The language of the text, where it is known.
    pub(crate) language: Option<Language>,
    pub(crate) chunks: Vec<(Chunk, Vec<f32>)>,
}

/// The file is no manifest.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the file is no manifest")]
pub(crate) struct NoManifest;

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    #[serde(default)]
    language: Option<String>,
    dimensions: usize,
    chunks: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    id: String,
    path: Vec<String>,
    headings: Vec<Heading>,
    text: String,
    start: usize,
    end: usize,
    tokens: usize,
}

impl Manifest {
    /// The vectors by the content of their chunks.
    pub(crate) fn vectors(self) -> HashMap<ChunkId, Vec<f32>> {
        let vectors = self.chunks.into_iter();
        vectors.map(|(chunk, vector)| (chunk.id, vector)).collect()
    }

    /// The bytes of the file.
    pub(crate) fn to_bytes(&self) -> serde_json::Result<Bytes> {
        let dimensions = self.chunks.first().map_or(0, |(_, vector)| vector.len());
        let entry = |(chunk, _): &(Chunk, Vec<f32>)| Entry {
            id: chunk.id.to_string(),
            path: chunk.path.clone(),
            headings: chunk.headings.clone(),
            text: chunk.text.clone(),
            start: chunk.range.start,
            end: chunk.range.end,
            tokens: chunk.tokens,
        };
        let header = serde_json::to_vec(&Header {
            version: VERSION,
            language: self.language.map(|language| language.tag().to_owned()),
            dimensions,
            chunks: self.chunks.iter().map(entry).collect(),
        })?;
        let vectors = self.chunks.len() * (4 + dimensions);
        let mut bytes = BytesMut::with_capacity(8 + header.len() + vectors);
        bytes.put_u64_le(header.len() as u64);
        bytes.put_slice(&header);
        for (_, vector) in &self.chunks {
            let largest = vector
                .iter()
                .fold(0.0_f32, |most, number| most.max(number.abs()));
            let scale = largest / 127.0;
            bytes.put_f32_le(scale);
            let code = |number: &f32| match scale > 0.0 {
                true => (number / scale).round() as i8,
                false => 0,
            };
            bytes.extend(vector.iter().map(|number| code(number).cast_unsigned()));
        }
        Ok(bytes.freeze())
    }

    /// The manifest of a file.
    pub(crate) fn read(mut bytes: Bytes) -> Result<Self, NoManifest> {
        let length = bytes.try_get_u64_le().map_err(|_| NoManifest)?;
        let length = usize::try_from(length).map_err(|_| NoManifest)?;
        if length > bytes.len() {
            return Err(NoManifest);
        }
        let header: Header =
            serde_json::from_slice(&bytes.split_to(length)).map_err(|_| NoManifest)?;
        let expected = header.chunks.len().checked_mul(4 + header.dimensions);
        let is_known = matches!(header.version, VERSION | WITHOUT_LANGUAGE);
        if !is_known || expected != Some(bytes.len()) {
            return Err(NoManifest);
        }
        let mut chunks = Vec::with_capacity(header.chunks.len());
        for (index, entry) in header.chunks.into_iter().enumerate() {
            let scale = bytes.get_f32_le();
            let codes = bytes.split_to(header.dimensions);
            let vector = codes
                .iter()
                .map(|code| f32::from(code.cast_signed()) * scale);
            let chunk = Chunk {
                id: entry.id.parse().map_err(|_| NoManifest)?,
                index,
                path: entry.path,
                headings: entry.headings,
                text: entry.text,
                range: entry.start..entry.end,
                tokens: entry.tokens,
            };
            chunks.push((chunk, vector.collect()));
        }
        let language = header.language.as_deref().map(Language::from_tag);
        let language = language.filter(|language| *language != Language::UNKNOWN);
        Ok(Self { language, chunks })
    }
}

#[cfg(test)]
mod tests {
    use colloquy_index::chunking::{ChunkOptions, chunk};

    use super::*;

    #[test]
    fn a_file_has_what_was_written() {
        let text = "# Hours\n\nThe zoo opens at nine in the morning.\n\n# Prices\n\nIt costs ten dollars.\n".repeat(5);
        let chunks = chunk(&text, "Zoo", ChunkOptions::of(16), &|text| text.len() / 4);
        assert!(chunks.len() > 1);
        let vector = |place: usize| vec![0.5, -1.0, place as f32, 0.0];
        let chunks = chunks.into_iter().enumerate();
        let manifest = Manifest {
            language: Some(Language::from_tag("de")),
            chunks: chunks.map(|(at, chunk)| (chunk, vector(at))).collect(),
        };
        let bytes = manifest.to_bytes().unwrap();
        let read = Manifest::read(bytes.clone()).unwrap();
        assert_eq!(read.language, manifest.language);
        for ((chunk, vector), (was, exact)) in read.chunks.iter().zip(&manifest.chunks) {
            assert_eq!(chunk, was);
            for (number, exact) in vector.iter().zip(exact) {
                // Half a step of the largest number.
                assert!((number - exact).abs() < 0.03, "{vector:?} {exact:?}");
            }
        }
        assert_eq!(
            Manifest::read(read.to_bytes().unwrap()).unwrap(),
            read,
            "nothing is lost when it is written again"
        );
        for cut in [0, 7, 20, bytes.len() - 1] {
            assert!(Manifest::read(bytes.slice(..cut)).is_err());
        }
        let empty = Manifest {
            language: None,
            chunks: vec![],
        };
        assert_eq!(Manifest::read(empty.to_bytes().unwrap()).unwrap(), empty);
    }

    /// A file as the first format has it: it is as long as it says, and names no language.
    #[test]
    fn older_files_are_read() {
        let entry = serde_json::json!({
            "id": "00".repeat(16), "path": ["Zoo"], "headings": [], "text": "It opens at nine.", "start": 0, "end": 17, "tokens": 5,
        });
        let header =
            serde_json::json!({"version": 1, "dimensions": 2, "chunks": [entry]}).to_string();
        let mut bytes = BytesMut::new();
        bytes.put_u64_le(header.len() as u64);
        bytes.put_slice(header.as_bytes());
        bytes.put_f32_le(0.5);
        bytes.put_slice(&[2, 0xFF]);
        let read = Manifest::read(bytes.freeze()).unwrap();
        assert_eq!(read.language, None);
        let (chunk, vector) = &read.chunks[0];
        assert_eq!(
            (chunk.text.as_str(), vector.as_slice()),
            ("It opens at nine.", [1.0, -0.5].as_slice())
        );
        let later = header.replace("\"version\":1", "\"version\":3");
        let mut bytes = BytesMut::new();
        bytes.put_u64_le(later.len() as u64);
        bytes.put_slice(later.as_bytes());
        bytes.put_slice(&[0; 6]);
        assert!(Manifest::read(bytes.freeze()).is_err());
    }
}
