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

/// A record: its header, and its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) instance: u16,
    pub(super) kind: u16,
    pub(super) data: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record that begins at an offset of a stream, where all of it is there.
    pub(super) fn at(stream: &'a [u8], offset: usize) -> Option<Self> {
        let bytes = stream.get(offset..)?;
        let mut header = Fields::of(bytes);
        let (version, kind, length) = (header.u16()?, header.u16()?, header.u32()?);
        let data = bytes.get(HEADER_BYTES..)?;
        Some(Self {
            instance: version >> 4,
            kind,
            data: data.get(..usize::try_from(length).ok()?)?,
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
}

impl Budget {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            bounds: *bounds,
            elements: bounds.elements,
            cells: bounds.cells,
            text_bytes: bounds.markdown_bytes,
        }
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

    /// The records of a content, up to one that is cut off.
    pub(super) fn children<'a>(
        &mut self,
        mut data: &'a [u8],
    ) -> Result<Vec<Record<'a>>, ExtractError> {
        let mut children = vec![];
        while let Some(record) = Record::at(data, 0) {
            self.elements(1)?;
            children.push(record);
            data = data
                .get(HEADER_BYTES + record.data.len()..)
                .unwrap_or_default();
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
