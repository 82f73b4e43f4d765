//! Chunks of a document as they were embedded, read from its manifest without the vectors.

use std::{fmt, ops::Range};

use bytes::Bytes;
use colloquy_blobs::{BlobKey, ObjectError};
use colloquy_index::chunking::Chunk;
use futures_util::{StreamExt as _, stream::BoxStream};
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use tokio::task::spawn_blocking;

use super::manifest::{self, Entry, LENGTH_BYTES, NoManifest};
use crate::{Bases, error::BaseError};

/// The largest JSON of a manifest that is believed, in bytes.
const MAX_JSON_BYTES: u64 = 1024 * 1024 * 1024;

/// An opened manifest, of which the length of its JSON is known.
pub(crate) struct StoredChunks {
    length: usize,
    /// The JSON as far as it was read.
    begin: Vec<u8>,
    rest: BoxStream<'static, Result<Bytes, ObjectError>>,
}

/// Some chunks of a document.
#[derive(Debug, PartialEq)]
pub(crate) struct ChunkSlice {
    pub(crate) chunks: Vec<Chunk>,
    /// The number of all chunks.
    pub(crate) total: usize,
}

impl StoredChunks {
    /// Opens the manifest of a document.
    ///
    /// # Errors
    /// The file cannot be read, or is no manifest.
    pub(crate) async fn open(bases: &Bases, blob: &BlobKey) -> Result<Self, BaseError> {
        let file = bases.blobs.read(blob).await?;
        let (mut begin, mut rest) = (Vec::new(), file.pieces);
        while begin.len() < LENGTH_BYTES {
            let piece = rest.next().await.ok_or(ObjectError::Damaged)??;
            begin.extend_from_slice(&piece);
        }
        let json = begin.split_off(LENGTH_BYTES);
        let length = <[u8; LENGTH_BYTES]>::try_from(begin.as_slice());
        let length = length.map_or(u64::MAX, u64::from_le_bytes);
        if length > file.bytes.min(MAX_JSON_BYTES) {
            return Err(ObjectError::Damaged.into());
        }
        Ok(Self {
            length: usize::try_from(length).map_err(|_| ObjectError::Damaged)?,
            begin: json,
            rest,
        })
    }

    /// The bytes of memory that [`Self::read`] takes besides the chunks that it returns.
    pub(crate) fn memory(&self) -> usize {
        self.length
    }

    /// Returns the chunks with these indexes, off the threads of the runtime.
    ///
    /// # Errors
    /// The file cannot be read, or is no manifest.
    pub(crate) async fn read(mut self, indexes: Range<usize>) -> Result<ChunkSlice, BaseError> {
        let mut json = self.begin;
        json.reserve_exact(self.length.saturating_sub(json.len()));
        while json.len() < self.length {
            let piece = self.rest.next().await.ok_or(ObjectError::Damaged)??;
            let missing = self.length - json.len();
            json.extend_from_slice(&piece[..piece.len().min(missing)]);
        }
        json.truncate(self.length);
        let slice = spawn_blocking(move || ChunkSlice::parse(&json, indexes)).await?;
        Ok(slice.map_err(|NoManifest| ObjectError::Damaged)?)
    }
}

impl ChunkSlice {
    /// Reads the chunks with these indexes from the JSON of a manifest, and skips the others.
    fn parse(json: &[u8], indexes: Range<usize>) -> Result<Self, NoManifest> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let slice = deserializer.deserialize_map(Wanted(indexes));
        let slice = slice.map_err(|_| NoManifest)?;
        deserializer.end().map_err(|_| NoManifest)?;
        Ok(slice)
    }
}

/// Indexes of chunks that are wanted of a header, or of its list of chunks.
#[derive(Clone)]
struct Wanted(Range<usize>);

impl<'de> Visitor<'de> for Wanted {
    type Value = ChunkSlice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the header of a manifest")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ChunkSlice, A::Error> {
        let (mut slice, mut is_known) = (None, false);
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "version" => is_known = manifest::is_known(map.next_value()?),
                "chunks" => slice = Some(map.next_value_seed(self.clone())?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let slice = slice.filter(|_| is_known);
        slice.ok_or_else(|| A::Error::custom("no chunks of a known version"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ChunkSlice, A::Error> {
        let (mut chunks, mut total) = (Vec::new(), 0);
        loop {
            if self.0.contains(&total) {
                let Some(entry) = seq.next_element::<Entry>()? else {
                    break;
                };
                let chunk = entry.into_chunk(total);
                chunks.push(chunk.map_err(A::Error::custom)?);
            } else if seq.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            total += 1;
        }
        Ok(ChunkSlice { chunks, total })
    }
}

impl<'de> DeserializeSeed<'de> for Wanted {
    type Value = ChunkSlice;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ChunkSlice, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

#[cfg(test)]
mod tests {
    use colloquy_index::chunking::{ChunkOptions, chunk};

    use super::*;
    use crate::embedding::manifest::to_bytes;

    #[test]
    fn the_wanted_chunks_are_read() {
        let text =
            "# Hours\n\nThe zoo opens at nine.\n\n# Prices\n\nIt costs ten dollars.\n".repeat(5);
        let chunks = chunk(&text, "Zoo", ChunkOptions::of(16), &|text| text.len() / 4);
        let vector = [0.5, -1.0].as_slice().into();
        let pairs: Vec<_> = chunks.iter().map(|chunk| (chunk, &vector)).collect();
        let bytes = to_bytes(None, &pairs).unwrap();
        let (length, rest) = bytes.split_at(LENGTH_BYTES);
        let length = u64::from_le_bytes(length.try_into().unwrap());
        let json = &rest[..usize::try_from(length).unwrap()];
        let total = chunks.len();
        assert!(total > 3, "{total}");
        for wanted in [0..2, 1..3, 0..total, total - 1..total + 5, total..total + 1] {
            let slice = ChunkSlice::parse(json, wanted.clone()).unwrap();
            let last = wanted.end.min(total);
            assert_eq!(slice.chunks, chunks[wanted.start..last]);
            assert_eq!(slice.total, total);
        }
        for wrong in ["", "{}", "[]", r#"{"version":3,"chunks":[]}"#] {
            ChunkSlice::parse(wrong.as_bytes(), 0..1).unwrap_err();
        }
        ChunkSlice::parse(&json[..json.len() - 1], 0..1).unwrap_err();
    }
}
