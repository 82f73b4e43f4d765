//! The records that the streams of a presentation are made of, and how many of them are read. Source: [MS-PPT], section 2.3.1.

use crate::{
    error::{Bound, ExtractError},
    limits::Bounds,
};

/// Bytes of the header of a record.
const HEADER_BYTES: usize = 8;
/// Bytes of content that count as one element: what takes the time that a small record takes.
const BYTES_OF_ELEMENT: usize = 16;
/// What a paragraph takes beside its text, in bytes of text.
const PARAGRAPH_BYTES: usize = 64;
/// The version of records that hold records.
const CONTAINER: u16 = 0xF;

/// A record: its header, and its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) instance: u16,
    pub(super) kind: u16,
    pub(super) data: &'a [u8],
    /// True if the record is longer than what is left of the stream. Its content is what is left then, if it holds records, and nothing
    /// otherwise: it may be part of other records.
    pub(super) is_cut_off: bool,
}

impl<'a> Record<'a> {
    /// The record that begins at an offset of a stream, where all of its header is there.
    pub(super) fn at(stream: &'a [u8], offset: usize) -> Option<Self> {
        let bytes = stream.get(offset..)?;
        let mut header = Fields::of(bytes);
        let (version, kind, length) = (header.u16()?, header.u16()?, header.u32()?);
        let rest = bytes.get(HEADER_BYTES..)?;
        let all = usize::try_from(length)
            .ok()
            .and_then(|length| rest.get(..length));
        let is_container = version & 0xF == CONTAINER;
        Some(Self {
            instance: version >> 4,
            kind,
            data: all.unwrap_or(if is_container { rest } else { &[] }),
            is_cut_off: all.is_none(),
        })
    }
}

/// Reads the fields of a record one after another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    /// The fields from an offset on.
    pub(super) fn from(data: &'a [u8], offset: usize) -> Self {
        Self::of(data.get(offset..).unwrap_or_default())
    }

    pub(super) fn skip(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        let (field, rest) = self.rest.split_first_chunk::<2>()?;
        self.rest = rest;
        Some(u16::from_le_bytes(*field))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let (field, rest) = self.rest.split_first_chunk::<4>()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*field))
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }
}

/// The `u32` at an offset of a record's content.
pub(super) fn u32_at(data: &[u8], offset: usize) -> Option<u32> {
    Fields::from(data, offset).u32()
}

/// Units of UTF-16.
pub(super) fn units(data: &[u8]) -> Vec<u16> {
    let units = data.as_chunks::<2>().0.iter();
    units.map(|unit| u16::from_le_bytes(*unit)).collect()
}

/// Text of UTF-16.
pub(super) fn string(data: &[u8]) -> String {
    String::from_utf16_lossy(&units(data))
}

/// What is left of the bounds of a document. Whatever is read twice counts twice, so that records that name each other cannot be
/// read without end.
#[derive(Debug)]
pub(super) struct Budget {
    bounds: Bounds,
    elements: usize,
    cells: usize,
    text_bytes: usize,
    has_lost: bool,
}

impl Budget {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            bounds: *bounds,
            elements: bounds.elements,
            cells: bounds.cells,
            text_bytes: bounds.markdown_bytes,
            has_lost: false,
        }
    }

    /// Notes that something could not be read which may have had text.
    pub(super) fn lose(&mut self) {
        self.has_lost = true;
    }

    /// True if something could not be read since this was asked last.
    pub(super) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.has_lost)
    }

    fn take(left: &mut usize, count: usize, bound: Bound, most: usize) -> Result<(), ExtractError> {
        match left.checked_sub(count) {
            Some(rest) => *left = rest,
            None => return Err(ExtractError::too_large(bound, most)),
        }
        Ok(())
    }

    pub(super) fn elements(&mut self, count: usize) -> Result<(), ExtractError> {
        let most = self.bounds.elements;
        Self::take(&mut self.elements, count, Bound::Elements, most)
    }

    /// Charges the content of a record that is read to its end.
    pub(super) fn content(&mut self, data: &[u8]) -> Result<(), ExtractError> {
        self.elements(data.len() / BYTES_OF_ELEMENT)
    }

    /// Charges units of UTF-16 that are looked at.
    pub(super) fn units(&mut self, count: usize) -> Result<(), ExtractError> {
        self.elements(count * 2 / BYTES_OF_ELEMENT)
    }

    pub(super) fn cells(&mut self, count: usize) -> Result<(), ExtractError> {
        Self::take(&mut self.cells, count, Bound::Cells, self.bounds.cells)
    }

    pub(super) fn text(&mut self, bytes: usize) -> Result<(), ExtractError> {
        let most = self.bounds.markdown_bytes;
        Self::take(&mut self.text_bytes, bytes, Bound::MarkdownBytes, most)
    }

    pub(super) fn paragraph(&mut self) -> Result<(), ExtractError> {
        self.text(PARAGRAPH_BYTES)
    }

    /// Refuses what is nested deeper than `level`.
    pub(super) fn depth(&self, level: usize) -> Result<(), ExtractError> {
        if level > self.bounds.depth {
            return Err(ExtractError::too_large(Bound::Depth, self.bounds.depth));
        }
        Ok(())
    }

    /// The records of a content, up to one that is cut off, which is the last.
    pub(super) fn children<'a>(
        &mut self,
        mut data: &'a [u8],
    ) -> Result<Vec<Record<'a>>, ExtractError> {
        let mut children = vec![];
        while let Some(record) = Record::at(data, 0) {
            self.elements(1)?;
            children.push(record);
            if record.is_cut_off {
                self.lose();
                return Ok(children);
            }
            data = data
                .get(HEADER_BYTES + record.data.len()..)
                .unwrap_or_default();
        }
        // Zeros fill up.
        if data.iter().any(|byte| *byte != 0) {
            self.lose();
        }
        Ok(children)
    }

    /// The first record of a kind in a content.
    pub(super) fn child<'a>(
        &mut self,
        data: &'a [u8],
        kind: u16,
    ) -> Result<Option<Record<'a>>, ExtractError> {
        let mut children = self.children(data)?.into_iter();
        Ok(children.find(|record| record.kind == kind))
    }
}
