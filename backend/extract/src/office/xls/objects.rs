//! Objects on the sheets of a workbook: the text of text boxes and other shapes, and how many objects are not read.
//!
//! Sources: [MS-XLS], sections 2.4 (`Obj`, `TxO`) and 2.5 (`FtCmo`, `FtPictFmla`); for Excel 5.0 and 95, OpenOffice.org's documentation of
//! the Excel file format.

use super::{HEADER_BYTES, Record, Text, header};
use crate::office::blips::Shown;

const OBJECT: u16 = 0x005D;
const TEXT: u16 = 0x01B6;
/// A part of the drawing of a sheet. The part with the shape of an object stands before the object.
const DRAWING: u16 = 0x00EC;

/// Offset of the kind of an object in its record, in all versions.
const KIND_AT: usize = 4;
/// Kinds of objects. Excel 5.0 and 95 store the text of a text box in its object, behind fields that are not read here.
const TEXT_BOX: u16 = 0x06;
const PICTURE: u16 = 0x08;
const COMMENT: u16 = 0x19;
/// Record inside of the object of a picture which says that another program makes it.
const OF_OTHER_PROGRAM: u16 = 0x09;

/// Offset of the number of units of text in a `TxO` record.
const COUNT_AT: usize = 10;

/// The objects of a sheet.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Paragraphs of shapes that are no comments, in the order of the file.
    pub(super) texts: Vec<String>,
    /// Pictures in the store of the workbook that objects show.
    pub(super) shown: Shown,
    /// Number of objects that show a picture of the store, of which nobody knows which; all of them may be one picture.
    pub(super) pictures: u32,
    /// Number of charts, objects of other programs, texts, and pictures of earlier versions, none of which is read.
    pub(super) unread: u32,
    /// Kind of the object before, whose text may follow.
    kind: Option<u16>,
    /// What the part of the drawing before shows.
    before: Shown,
}

impl Objects {
    /// Reads a record of a sheet if it belongs to an object.
    pub(super) fn read(&mut self, record: &Record<'_>, text: Text) {
        let is_wide = matches!(text, Text::Wide);
        match record.kind {
            DRAWING => {
                let mut part = vec![];
                add_all_of(record, &mut part);
                self.before = Shown::default();
                self.before.add(&part);
            }
            OBJECT => {
                self.kind = record.u16_at(KIND_AT);
                let before = std::mem::take(&mut self.before);
                match self.kind {
                    Some(PICTURE) if is_wide && !is_of_other_program(record.data) => {
                        match before.has_no_picture() {
                            true => self.pictures = self.pictures.saturating_add(1),
                            false => self.shown.extend(before),
                        }
                    }
                    Some(PICTURE) => self.count(1),
                    Some(TEXT_BOX) if !is_wide => self.count(1),
                    _ => {}
                }
            }
            // `undoc` reads the text of comments.
            TEXT if is_wide && self.kind.take() != Some(COMMENT) => match text_of(record) {
                Some(text) => self.texts.extend(paragraphs(&text)),
                None => self.count(1),
            },
            _ => {}
        }
    }

    /// Counts what is not read.
    pub(super) fn count(&mut self, unread: usize) {
        let unread = u32::try_from(unread).unwrap_or(u32::MAX);
        self.unread = self.unread.saturating_add(unread);
    }
}

/// Returns the text of an object, which stands in the records that continue the `TxO` record; none if the text is cut off.
fn text_of(record: &Record<'_>) -> Option<String> {
    const IS_WIDE: u8 = 1;
    let count = usize::from(record.u16_at(COUNT_AT)?);
    let mut units = Vec::with_capacity(count);
    let mut parts = continued(record);
    while units.len() < count {
        let (flags, text) = parts.next()?.split_first()?;
        let left = count - units.len();
        match flags & IS_WIDE {
            IS_WIDE => {
                let wide = text.as_chunks::<2>().0.iter().take(left);
                units.extend(wide.map(|unit| u16::from_le_bytes(*unit)));
            }
            // The first 256 characters of Unicode.
            _ => units.extend(text.iter().take(left).map(|byte| u16::from(*byte))),
        }
    }
    Some(String::from_utf16_lossy(&units))
}

/// True if an object has a record of another program inside of it.
fn is_of_other_program(object: &[u8]) -> bool {
    let mut rest = object;
    while let Some((kind, length)) = header(rest) {
        if kind == OF_OTHER_PROGRAM {
            return true;
        }
        rest = rest.get(HEADER_BYTES + length..).unwrap_or_default();
    }
    false
}

/// Adds the data of a record, and of those that continue it.
pub(super) fn add_all_of(record: &Record<'_>, to: &mut Vec<u8>) {
    to.extend_from_slice(record.data);
    continued(record).for_each(|part| to.extend_from_slice(part));
}

/// The data of each record that continues a record.
fn continued<'a>(record: &Record<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let rest = record.whole.get(HEADER_BYTES + record.data.len()..);
    let mut rest: &'a [u8] = rest.unwrap_or_default();
    std::iter::from_fn(move || {
        let (_, length) = header(rest)?;
        let (part, behind) = rest.get(HEADER_BYTES..)?.split_at_checked(length)?;
        rest = behind;
        Some(part)
    })
}

/// The paragraphs of a text that are not empty.
fn paragraphs(text: &str) -> impl Iterator<Item = String> {
    let words = |line: &str| {
        let line = line.replace(char::is_control, " ");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let lines = text.split(['\n', '\r']).map(words);
    lines.filter(|line| !line.is_empty())
}
