//! A chunk as it is kept on disk: all that its row in memory is made of, and what a passage shows.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::dense::{Codes, Row};
use crate::{
    analysis::Language,
    chunking::{Chunk, ChunkId, Heading},
    search::{Place, Space},
};

/// The first byte, which tells how the others are read.
const VERSION: u8 = 1;

/// What a passage shows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Shown {
    pub(super) path: Vec<String>,
    pub(super) headings: Vec<Heading>,
    pub(super) text: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Shown {
    pub(super) fn of(chunk: &Chunk) -> Self {
        Self {
            path: chunk.path.clone(),
            headings: chunk.headings.clone(),
            text: chunk.text.clone(),
            start: chunk.range.start,
            end: chunk.range.end,
        }
    }
}

/// The bytes of a chunk.
pub(super) fn write(space: Space, row: &Row, codes: &Codes, shown: &Shown) -> Option<Vec<u8>> {
    let mut bytes = vec![VERSION];
    bytes.extend(space.base.as_bytes());
    bytes.extend(space.generation.to_le_bytes());
    bytes.extend(row.place.document.as_bytes());
    bytes.extend(u32::try_from(row.place.index).ok()?.to_le_bytes());
    bytes.extend(row.id.to_bytes());
    bytes.extend(row.number.to_le_bytes());
    bytes.extend(row.terms.to_le_bytes());
    bytes.push(row.language.number());
    bytes.extend(codes.scale.to_le_bytes());
    bytes.extend(u16::try_from(codes.codes.len()).ok()?.to_le_bytes());
    bytes.extend(codes.codes.iter().map(|code| code.cast_unsigned()));
    serde_json::to_writer(&mut bytes, shown).ok()?;
    Some(bytes)
}

/// What is read of a chunk, and the rest, whose [`Shown`] is read when it is asked for.
pub(super) struct Read<'a> {
    pub(super) space: Space,
    pub(super) row: Row,
    pub(super) codes: Codes,
    rest: &'a [u8],
}

impl Read<'_> {
    /// What the passage shows.
    pub(super) fn shown(&self) -> Option<Shown> {
        serde_json::from_slice(self.rest).ok()
    }
}

/// Reads the bytes of a chunk; `None` where they are none.
pub(super) fn read(bytes: &[u8]) -> Option<Read<'_>> {
    let mut rest = bytes;
    if take::<1>(&mut rest)? != [VERSION] {
        return None;
    }
    let space = Space {
        base: Uuid::from_bytes(take(&mut rest)?),
        generation: u32::from_le_bytes(take(&mut rest)?),
    };
    let place = Place {
        document: Uuid::from_bytes(take(&mut rest)?),
        index: usize::try_from(u32::from_le_bytes(take(&mut rest)?)).ok()?,
    };
    let id = ChunkId::from_bytes(take(&mut rest)?);
    let number = u64::from_le_bytes(take(&mut rest)?);
    let terms = u32::from_le_bytes(take(&mut rest)?);
    let [language] = take(&mut rest)?;
    let scale = f32::from_le_bytes(take(&mut rest)?);
    let dimensions = usize::from(u16::from_le_bytes(take(&mut rest)?));
    let (codes, rest) = rest.split_at_checked(dimensions)?;
    Some(Read {
        space,
        row: Row {
            number,
            id,
            place,
            terms,
            language: Language::from_number(language),
        },
        codes: Codes {
            codes: codes.iter().map(|code| code.cast_signed()).collect(),
            scale,
        },
        rest,
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(*taken)
}
