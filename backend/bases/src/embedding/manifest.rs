//! Manifests: the chunks of a document with their vectors, as a file.
//!
//! The file is a length, JSON of that length with the chunks, and the vectors: for each chunk a scale and its numbers as bytes, as indexes keep
//! them, too.

use std::collections::HashMap;

use bytes::{Buf as _, Bytes};
use colloquy_index::{
    analysis::Language,
    chunking::{Chunk, ChunkId, Heading},
    search::PackedVector,
};
use serde::{Deserialize, Serialize};

/// The format that is written.
const VERSION: u32 = 2;
/// The first one, which names no language, and is read, too.
const WITHOUT_LANGUAGE: u32 = 1;
/// The number before the JSON that says how long the JSON is.
pub(super) const LENGTH_BYTES: usize = 8;
/// The scale of a vector.
const SCALE_BYTES: usize = 4;

/// The chunks of a document with their vectors.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Manifest {
    /// The language of the text, where it is known.
    pub(crate) language: Option<Language>,
    pub(crate) chunks: Vec<(Chunk, PackedVector)>,
}

/// The file is no manifest.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the file is no manifest")]
pub(crate) struct NoManifest;

/// True for a format that is read.
pub(super) fn is_known(version: u32) -> bool {
    matches!(version, VERSION | WITHOUT_LANGUAGE)
}

/// The header as it is written, of chunks that others hold.
#[derive(Serialize)]
struct WrittenHeader<'a> {
    version: u32,
    language: Option<&'a str>,
    dimensions: usize,
    chunks: Vec<WrittenEntry<'a>>,
}

#[derive(Serialize)]
struct WrittenEntry<'a> {
    id: String,
    path: &'a [String],
    headings: &'a [Heading],
    text: &'a str,
    start: usize,
    end: usize,
    tokens: usize,
}

#[derive(Deserialize)]
struct Header {
    version: u32,
    #[serde(default)]
    language: Option<String>,
    dimensions: usize,
    chunks: Vec<Entry>,
}

/// A chunk as it is stored.
#[derive(Deserialize)]
pub(super) struct Entry {
    id: String,
    path: Vec<String>,
    headings: Vec<Heading>,
    text: String,
    start: usize,
    end: usize,
    tokens: usize,
}

impl Entry {
    /// Returns the chunk that has this place.
    pub(super) fn into_chunk(self, index: usize) -> Result<Chunk, NoManifest> {
        Ok(Chunk {
            id: self.id.parse().map_err(|_| NoManifest)?,
            index,
            path: self.path,
            headings: self.headings,
            text: self.text,
            range: self.start..self.end,
            tokens: self.tokens,
        })
    }
}

/// Returns the bytes of a file with these chunks and their vectors, which are held by the caller and not copied before they are written.
pub(crate) fn to_bytes(
    language: Option<Language>,
    chunks: &[(&Chunk, &PackedVector)],
) -> serde_json::Result<Bytes> {
    let dimensions = chunks.first().map_or(0, |(_, vector)| vector.codes().len());
    let entries = chunks.iter().map(|(chunk, _)| WrittenEntry {
        id: chunk.id.to_string(),
        path: &chunk.path,
        headings: &chunk.headings,
        text: &chunk.text,
        start: chunk.range.start,
        end: chunk.range.end,
        tokens: chunk.tokens,
    });
    let header = WrittenHeader {
        version: VERSION,
        language: language.map(Language::tag),
        dimensions,
        chunks: entries.collect(),
    };
    // Its length is known once it is there.
    let mut bytes = vec![0_u8; LENGTH_BYTES];
    serde_json::to_writer(&mut bytes, &header)?;
    drop(header);
    let length = (bytes.len() - LENGTH_BYTES) as u64;
    bytes[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    bytes.reserve_exact(chunks.len() * (SCALE_BYTES + dimensions));
    for (_, vector) in chunks {
        bytes.extend_from_slice(&vector.scale().to_le_bytes());
        bytes.extend(vector.codes().iter().map(|code| code.cast_unsigned()));
    }
    Ok(bytes.into())
}

impl Manifest {
    /// The vectors by the content of their chunks.
    pub(crate) fn vectors(self) -> HashMap<ChunkId, PackedVector> {
        let vectors = self.chunks.into_iter();
        vectors.map(|(chunk, vector)| (chunk.id, vector)).collect()
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
        let expected = header
            .chunks
            .len()
            .checked_mul(SCALE_BYTES + header.dimensions);
        if !is_known(header.version) || expected != Some(bytes.len()) {
            return Err(NoManifest);
        }
        let mut chunks = Vec::with_capacity(header.chunks.len());
        for (index, entry) in header.chunks.into_iter().enumerate() {
            let scale = bytes.get_f32_le();
            let codes = bytes.split_to(header.dimensions);
            let codes = codes.iter().map(|code| code.cast_signed());
            let vector = PackedVector::new(scale, codes.collect());
            chunks.push((entry.into_chunk(index)?, vector));
        }
        let language = header.language.as_deref().map(Language::from_tag);
        let language = language.filter(|language| *language != Language::UNKNOWN);
        Ok(Self { language, chunks })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bytes::{BufMut as _, BytesMut};
    use colloquy_index::chunking::{ChunkOptions, chunk};

    use super::*;

    fn written(manifest: &Manifest) -> Bytes {
        let chunks = manifest.chunks.iter();
        let chunks: Vec<_> = chunks.map(|(chunk, vector)| (chunk, vector)).collect();
        to_bytes(manifest.language, &chunks).unwrap()
    }

    /// A figure of this process, in bytes.
    fn figure(name: &str) -> usize {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let figure = line.split_whitespace().nth(1).unwrap();
        figure.parse::<usize>().unwrap() * 1_024
    }

    /// The most that a process took is known of it as a whole: `cargo nextest` gives each test its own.
    #[test]
    fn the_vectors_of_a_document_are_held_once_as_bytes() {
        const CHUNKS: usize = 20_000;
        const DIMENSIONS: usize = 384;
        let chunks: Vec<Chunk> = (0..CHUNKS)
            .map(|index| Chunk {
                id: ChunkId::of(&index.to_string()),
                index,
                path: Vec::new(),
                headings: Vec::new(),
                text: format!("# {index}"),
                range: 0..0,
                tokens: 2,
            })
            .collect();
        let held = figure("VmRSS");
        let vectors: Vec<PackedVector> = (0..CHUNKS)
            .map(|at| PackedVector::from([at as f32, 0.5].repeat(DIMENSIONS / 2).as_slice()))
            .collect();
        let vectors_take = figure("VmRSS").saturating_sub(held);
        // A number takes a byte; the vectors of a model take four.
        let most = CHUNKS * DIMENSIONS * 3 / 2;
        assert!(vectors_take < most, "{vectors_take} of {most}");
        let pairs: Vec<_> = chunks.iter().zip(&vectors).collect();
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let held = figure("VmRSS");
        let bytes = to_bytes(None, &pairs).unwrap();
        let writing_takes = figure("VmHWM").saturating_sub(held);
        // The file, and the table of what is written.
        let most = 2 * bytes.len() + CHUNKS * 200;
        assert!(writing_takes < most, "{writing_takes} of {most}");
    }

    #[test]
    fn a_file_has_what_was_written() {
        let text = "# Hours\n\nThe zoo opens at nine in the morning.\n\n# Prices\n\nIt costs ten dollars.\n".repeat(5);
        let chunks = chunk(&text, "Zoo", ChunkOptions::of(16), &|text| text.len() / 4);
        assert!(chunks.len() > 1);
        let vector = |place: usize| vec![0.5, -1.0, place as f32, 0.0];
        let chunks = chunks.into_iter().enumerate();
        let manifest = Manifest {
            language: Some(Language::from_tag("de")),
            chunks: chunks
                .map(|(at, chunk)| (chunk, vector(at).as_slice().into()))
                .collect(),
        };
        let bytes = written(&manifest);
        let read = Manifest::read(bytes.clone()).unwrap();
        assert_eq!(read.language, manifest.language);
        for ((chunk, vector), (was, exact)) in read.chunks.iter().zip(&manifest.chunks) {
            assert_eq!(chunk, was);
            assert_eq!(vector, exact);
            let index = chunk.index as f32;
            for (number, exact) in vector.numbers().iter().zip([0.5, -1.0, index, 0.0]) {
                // Half a step of the largest number.
                assert!((number - exact).abs() < 0.03, "{vector:?} {exact:?}");
            }
        }
        assert_eq!(
            Manifest::read(written(&read)).unwrap(),
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
        assert_eq!(Manifest::read(written(&empty)).unwrap(), empty);
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
            (chunk.text.as_str(), vector.numbers().as_slice()),
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
