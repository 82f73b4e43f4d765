//! Workbooks of Excel 5.0 to 2003. `undoc` prints their numbers as they are stored, and takes text in a format for a date: here, cells with
//! numbers become cells with text before it reads them, by the rules for workbooks of Office Open XML (`numbers.rs`). The text of shapes is
//! read here (`xls/objects.rs`); pictures and charts are counted.
//!
//! Sources: [MS-XLS], sections 2.1 and 2.4; for Excel 5.0 and 95, OpenOffice.org's documentation of the Excel file format.

mod margins;
mod objects;

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use encoding_rs::{Encoding, UTF_16LE, WINDOWS_1252};
use undoc::{Paragraph, xls::XlsParser};

use self::{margins::more_margins, objects::Objects};
use super::{
    blips, code_page,
    compound::CompoundFile,
    numbers::{MOST_STYLES, Numbers},
    ppt::summary,
    refusal,
    sheet_margins::Margins,
};
use crate::{
    error::{Bound, ExtractError},
    limits::Bounds,
};

/// Bytes of the header of a record: its kind, and the length of its data.
const HEADER_BYTES: usize = 4;

/// What begins a substream, from Excel 2.0 to 4.0 and later.
const BEGINS: [u16; 4] = [0x0009, 0x0209, 0x0409, BEGIN];
const BEGIN: u16 = 0x0809;
const END: u16 = 0x000A;
const CONTINUE: u16 = 0x003C;

/// Versions and kinds of substreams.
const EXCEL_5: u16 = 0x0500;
const EXCEL_97: u16 = 0x0600;
const WORKBOOK: u16 = 0x0005;

const HEADER: u16 = 0x0014;
const FOOTER: u16 = 0x0015;
/// The headers and footers of even pages and of the first one.
const MORE_MARGINS: u16 = 0x089C;
/// What all drawings have in common, with the store of their pictures.
const DRAWINGS: u16 = 0x00EB;
const DATE_MODE: u16 = 0x0022;
const ENCRYPTED: u16 = 0x002F;
const CODE_PAGE: u16 = 0x0042;
const SHEET: u16 = 0x0085;
/// A view that a user keeps of a sheet, which has a header and a footer of its own.
const VIEW: u16 = 0x01AA;
const VIEW_END: u16 = 0x01AB;
const STYLE: u16 = 0x00E0;
const FORMAT: u16 = 0x041E;

const FORMULA: u16 = 0x0006;
const NUMBERS: u16 = 0x00BD;
const NUMBER: u16 = 0x0203;
const LABEL: u16 = 0x0204;
const SHORT_NUMBER: u16 = 0x027E;
const SHARED_TEXT: u16 = 0x00FD;
const RICH_TEXT: u16 = 0x00D6;
const TRUTH: u16 = 0x0205;
const COMMENT: u16 = 0x001C;

/// Kinds of sheets: one that has cells, and one that is a chart.
const WITH_CELLS: u8 = 0;
const CHART: u8 = 2;
/// What the last bytes of the result of a formula are where it is no number.
const NO_NUMBER: u16 = 0xFFFF;

/// Reads a workbook, and counts its charts, pictures and other objects that are not read. Before Excel 5.0, none is counted.
///
/// # Errors
/// When it is encrypted, is damaged, or goes beyond the bounds.
pub(super) fn read(bytes: &[u8], bounds: &Bounds) -> Result<(undoc::Document, u32), ExtractError> {
    let mut file = CompoundFile::open(bytes).map_err(damaged)?;
    let workbook = match file.read("/Workbook") {
        Ok(workbook) => workbook,
        Err(_) => file.read("/Book").map_err(damaged)?,
    };
    let properties = file.read("/\u{5}SummaryInformation").unwrap_or_default();
    let Rewritten {
        stream,
        margins,
        shapes,
        unread,
    } = match rewritten(&workbook, bounds)? {
        Some(rewritten) => rewritten,
        None => Rewritten {
            stream: workbook,
            ..Rewritten::default()
        },
    };
    let read = XlsParser::from_bytes(stream).and_then(|mut parser| parser.parse());
    let mut read = read.map_err(|error| refusal(&error))?;
    read.metadata = summary::metadata(&properties);
    let mut seen = HashSet::new();
    let beside = margins.into_iter().zip(shapes);
    for (section, (margins, texts)) in read.sections.iter_mut().zip(beside) {
        margins.add(section, &mut seen);
        for text in texts {
            section.add_paragraph(Paragraph::with_text(text));
        }
    }
    Ok((read, unread))
}

/// A workbook as `undoc` reads it, and what it has beside its cells.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rewritten {
    /// The workbook and its sheets with cells, in which numbers are text.
    stream: Vec<u8>,
    /// Margins of these sheets.
    margins: Vec<Margins>,
    /// Paragraphs of shapes on these sheets.
    shapes: Vec<Vec<String>>,
    /// Number of charts, pictures and other objects that are not read.
    unread: u32,
}

/// The stream as it is read; none where it is no workbook of Excel 5.0 or later.
fn rewritten(stream: &[u8], bounds: &Bounds) -> Result<Option<Rewritten>, ExtractError> {
    let (begin, mut records) = Records::of(stream, 0)?;
    let kind = (begin.kind, begin.u16_at(0), begin.u16_at(2));
    let is_wide = match kind {
        (BEGIN, Some(EXCEL_97), Some(WORKBOOK)) => true,
        (BEGIN, Some(EXCEL_5), Some(WORKBOOK)) => false,
        _ => return Ok(None),
    };
    let mut written = Written {
        bytes: Vec::with_capacity(stream.len()),
        read: Read::default(),
        bounds,
    };
    written.add(begin.whole)?;
    let (mut sheets, mut formats, mut styles) = (vec![], vec![], Vec::<u32>::new());
    let (mut from_1904, mut page, mut unread) = (false, None, 0_u32);
    let (mut drawings, mut pictures) = (vec![], 0_u32);
    let mut shown = blips::Shown::default();
    for record in records.by_ref() {
        let record = record?;
        match record.kind {
            ENCRYPTED => return Err(ExtractError::Encrypted),
            DRAWINGS => objects::add_all_of(&record, &mut drawings),
            DATE_MODE => from_1904 = record.u16_at(0) == Some(1),
            CODE_PAGE => page = record.u16_at(0),
            FORMAT if formats.len() < MOST_STYLES => formats.push(record.data),
            STYLE if styles.len() < MOST_STYLES => {
                styles.push(record.u16_at(2).unwrap_or_default().into());
            }
            SHEET if record.data.get(5) == Some(&WITH_CELLS) => {
                let place = written.bytes.len() + HEADER_BYTES;
                sheets.extend(record.u32_at(0).map(|offset| (place, offset)));
            }
            SHEET if record.data.get(5) == Some(&CHART) => unread = unread.saturating_add(1),
            _ => {}
        }
        written.add(record.whole)?;
    }
    written.record(END, &[])?;
    written.charge(Read {
        bytes: records.read,
        cells: 0,
    })?;
    let text = match is_wide {
        true => Text::Wide,
        // A text goes back as it came, also where the code page is not known.
        false => Text::Narrow(
            page.and_then(|page| code_page::encoding(page.into()))
                .unwrap_or(WINDOWS_1252),
        ),
    };
    let formats = formats.into_iter().filter_map(|data| text.format(data));
    let numbers = Numbers::of(formats, styles, from_1904);
    let mut known = HashMap::<u32, (u32, Read)>::new();
    let (mut margins, mut shapes) = (vec![], vec![]);
    for (at, offset) in sheets {
        let (place, read) = match known.get(&offset) {
            Some(sheet) => {
                margins.push(Margins::default());
                shapes.push(vec![]);
                *sheet
            }
            None => {
                let (place, read, beside) = written.sheet(stream, offset, &numbers, text)?;
                known.insert(offset, (place, read));
                margins.push(beside.margins);
                shapes.push(beside.objects.texts);
                unread = unread.saturating_add(beside.objects.unread);
                pictures = pictures.saturating_add(beside.objects.pictures);
                shown.extend(beside.objects.shown);
                (place, read)
            }
        };
        written.charge(read)?;
        written.bytes[at..at + 4].copy_from_slice(&place.to_le_bytes());
    }
    // One that is shown again is stored once, and those that are too small for a word do not count.
    let pictures = blips::of_workbook(&drawings, &shown, pictures, bounds);
    Ok(Some(Rewritten {
        stream: written.bytes,
        margins,
        shapes,
        unread: unread.saturating_add(pictures),
    }))
}

/// What a sheet has beside its cells.
struct Beside {
    margins: Margins,
    objects: Objects,
}

/// What was read of a stream.
#[derive(Debug, Default, Clone, Copy)]
struct Read {
    /// Bytes of substreams.
    bytes: usize,
    /// Cells of sheets, with the gaps between them.
    cells: usize,
}

/// A stream that is written.
struct Written<'b> {
    bytes: Vec<u8>,
    /// What was read for it: a sheet counts as often as the workbook lists it, and a substream inside of others with each.
    read: Read,
    bounds: &'b Bounds,
}

impl Written<'_> {
    fn add(&mut self, bytes: &[u8]) -> Result<(), ExtractError> {
        if self.bytes.len() + bytes.len() > self.bounds.unpacked_bytes {
            return Err(self.too_long());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn charge(&mut self, read: Read) -> Result<(), ExtractError> {
        self.read.bytes = self.read.bytes.saturating_add(read.bytes);
        self.read.cells = self.read.cells.saturating_add(read.cells);
        if self.read.bytes > self.bounds.unpacked_bytes {
            return Err(self.too_long());
        }
        let most = self.bounds.cells;
        if self.read.cells > most {
            return Err(ExtractError::too_large(Bound::Cells, most));
        }
        Ok(())
    }

    fn too_long(&self) -> ExtractError {
        ExtractError::too_large(Bound::UnpackedBytes, self.bounds.unpacked_bytes)
    }

    fn record(&mut self, kind: u16, data: &[u8]) -> Result<(), ExtractError> {
        let length = length_of(data.len())?;
        self.add(&[kind, length].map(u16::to_le_bytes).concat())?;
        self.add(data)
    }

    /// Writes a sheet, and returns where it begins, what was read of it, and what it has beside its cells.
    fn sheet(
        &mut self,
        stream: &[u8],
        offset: u32,
        numbers: &Numbers,
        text: Text,
    ) -> Result<(u32, Read, Beside), ExtractError> {
        let (mut above, mut below) = (Vec::<String>::new(), Vec::<String>::new());
        let (mut is_view, mut objects) = (false, Objects::default());
        let place = u32::try_from(self.bytes.len()).map_err(|_| self.too_long())?;
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let (begin, mut records) = Records::of(stream, offset)?;
        self.add(begin.whole)?;
        let mut widths = HashMap::<u16, usize>::new();
        for record in records.by_ref() {
            let record = record?;
            if let Some((row, end)) = record.row() {
                let width = widths.entry(row).or_default();
                *width = end.max(*width);
            }
            match record.kind {
                VIEW => is_view = true,
                VIEW_END => is_view = false,
                HEADER if !is_view => above.extend(text.string(record.data)),
                FOOTER if !is_view => below.extend(text.string(record.data)),
                MORE_MARGINS if !is_view => {
                    for [header, footer] in more_margins(record.data).into_iter().flatten() {
                        above.push(header);
                        below.push(footer);
                    }
                }
                _ => objects.read(&record, text),
            }
            match record.cells() {
                Some(cells) => {
                    for cell in cells {
                        let shown = numbers.shown(cell.value, cell.style.into());
                        self.record(LABEL, &text.label(&cell, &shown)?)?;
                    }
                }
                None => self.add(record.whole)?,
            }
        }
        self.record(END, &[])?;
        // A substream inside of a sheet is a chart.
        objects.count(records.nested);
        let read = Read {
            bytes: records.read,
            cells: widths.values().sum(),
        };
        let beside = Beside {
            margins: Margins::of(&above, &below),
            objects,
        };
        Ok((place, read, beside))
    }
}

/// A record of a stream.
struct Record<'a> {
    kind: u16,
    data: &'a [u8],
    /// All of it, and the records that continue it.
    whole: &'a [u8],
}

impl Record<'_> {
    fn u16_at(&self, at: usize) -> Option<u16> {
        bytes_at(self.data, at).map(u16::from_le_bytes)
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        bytes_at(self.data, at).map(u32::from_le_bytes)
    }

    /// The row of the cells of a record, and how wide the row is up to the last of them; none for records without cells.
    fn row(&self) -> Option<(u16, usize)> {
        /// Bytes of a number in a record of several, and of what is around them.
        const NUMBER_BYTES: usize = 6;
        const AROUND: usize = 6;
        let (row, column) = (self.u16_at(0)?, usize::from(self.u16_at(2)?));
        let count = match self.kind {
            NUMBERS => self.data.len().checked_sub(AROUND)? / NUMBER_BYTES,
            FORMULA | NUMBER | LABEL | SHORT_NUMBER | SHARED_TEXT | RICH_TEXT | TRUTH | COMMENT => {
                1
            }
            _ => return None,
        };
        Some((row, column + count))
    }

    /// The cells of a record that holds numbers; none for other records.
    fn cells(&self) -> Option<Vec<Cell>> {
        const PLACE_BYTES: usize = 4;
        const LAST_COLUMN_BYTES: usize = 2;
        let (row, column) = (self.u16_at(0)?, self.u16_at(2)?);
        let one = |value: f64| {
            let style = self.u16_at(PLACE_BYTES)?;
            Some(vec![Cell {
                row,
                column,
                style,
                value,
            }])
        };
        let number = || bytes_at(self.data, PLACE_BYTES + 2).map(f64::from_le_bytes);
        let cells = match self.kind {
            NUMBER => one(number()?)?,
            FORMULA if self.u16_at(12)? != NO_NUMBER => one(number()?)?,
            SHORT_NUMBER => one(short_number(self.u32_at(PLACE_BYTES + 2)?))?,
            NUMBERS => {
                let end = self.data.len().checked_sub(LAST_COLUMN_BYTES)?;
                let (cells, _) = self.data.get(PLACE_BYTES..end)?.as_chunks::<6>();
                let cells = (column..=u16::MAX).zip(cells);
                let cells = cells.map(|(column, [low, high, a, b, c, d])| Cell {
                    row,
                    column,
                    style: u16::from_le_bytes([*low, *high]),
                    value: short_number(u32::from_le_bytes([*a, *b, *c, *d])),
                });
                cells.collect()
            }
            _ => return None,
        };
        let are_numbers = cells.iter().all(|cell| cell.value.is_finite());
        are_numbers.then_some(cells)
    }
}

/// A cell that holds a number.
struct Cell {
    row: u16,
    column: u16,
    style: u16,
    value: f64,
}

/// The records of a substream, without those of other substreams inside of it.
struct Records<'a> {
    rest: &'a [u8],
    /// Bytes of the records so far.
    read: usize,
    /// How many substreams are open inside of it.
    inside: usize,
    /// How many stand inside of it so far, without those inside of others.
    nested: usize,
}

impl<'a> Records<'a> {
    /// The record that begins the substream at an offset, and those behind it.
    fn of(stream: &'a [u8], offset: usize) -> Result<(Record<'a>, Self), ExtractError> {
        let rest = stream.get(offset..).unwrap_or_default();
        let mut records = Self {
            rest,
            read: 0,
            inside: 0,
            nested: 0,
        };
        match records.record()? {
            Some(begin) if BEGINS.contains(&begin.kind) => Ok((begin, records)),
            _ => Err(damaged(format_args!(
                "no sheet begins at the offset {offset}"
            ))),
        }
    }

    fn record(&mut self) -> Result<Option<Record<'a>>, ExtractError> {
        let all = self.rest;
        let Some((kind, length)) = header(all) else {
            return Ok(None);
        };
        let data = all.get(HEADER_BYTES..HEADER_BYTES + length);
        let data = data.ok_or_else(|| damaged("a record is cut off"))?;
        let mut end = HEADER_BYTES + length;
        while let Some((CONTINUE, length)) = header(&all[end..])
            && end + HEADER_BYTES + length <= all.len()
        {
            end += HEADER_BYTES + length;
        }
        let (whole, rest) = all.split_at(end);
        self.rest = rest;
        self.read += end;
        Ok(Some(Record { kind, data, whole }))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, ExtractError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let record = match self.record() {
                Ok(record) => record?,
                Err(error) => {
                    self.rest = &[];
                    return Some(Err(error));
                }
            };
            match record.kind {
                kind if BEGINS.contains(&kind) => {
                    self.nested += usize::from(self.inside == 0);
                    self.inside += 1;
                }
                END if self.inside == 0 => {
                    self.rest = &[];
                    return None;
                }
                END => self.inside -= 1,
                _ if self.inside > 0 => {}
                _ => return Some(Ok(record)),
            }
        }
    }
}

/// How text is stored: in UTF-16, or in a code page before Excel 97.
#[derive(Clone, Copy)]
enum Text {
    Wide,
    Narrow(&'static Encoding),
}

impl Text {
    /// The number and the code of a format; none where its record is too short.
    fn format(self, data: &[u8]) -> Option<(u32, String)> {
        let id = bytes_at(data, 0).map(u16::from_le_bytes)?;
        Some((id.into(), self.string(data.get(2..)?)?))
    }

    /// A string behind its length; none where it is cut off.
    fn string(self, data: &[u8]) -> Option<String> {
        const IS_WIDE: u8 = 1;
        let decoded = |encoding: &'static Encoding, bytes: &[u8]| {
            let (text, _) = encoding.decode_without_bom_handling(bytes);
            text.into_owned()
        };
        match self {
            Self::Wide => {
                let count = usize::from(bytes_at(data, 0).map(u16::from_le_bytes)?);
                let (flags, text) = data.get(2..)?.split_first()?;
                Some(match flags & IS_WIDE {
                    IS_WIDE => decoded(UTF_16LE, text.get(..2 * count)?),
                    // The first 256 characters of Unicode.
                    _ => text.get(..count)?.iter().copied().map(char::from).collect(),
                })
            }
            Self::Narrow(encoding) => {
                let (count, text) = data.split_first()?;
                Some(decoded(encoding, text.get(..usize::from(*count))?))
            }
        }
    }

    /// The data of a cell with this text.
    fn label(self, cell: &Cell, text: &str) -> Result<Vec<u8>, ExtractError> {
        const IS_WIDE: u8 = 1;
        let mut data = [cell.row, cell.column, cell.style]
            .map(u16::to_le_bytes)
            .concat();
        match self {
            Self::Wide => {
                let units: Vec<u16> = text.encode_utf16().collect();
                data.extend(length_of(units.len())?.to_le_bytes());
                data.push(IS_WIDE);
                data.extend(units.into_iter().flat_map(u16::to_le_bytes));
            }
            Self::Narrow(encoding) => {
                let (bytes, ..) = encoding.encode(text);
                data.extend(length_of(bytes.len())?.to_le_bytes());
                data.extend_from_slice(&bytes);
            }
        }
        Ok(data)
    }
}

/// The kind and the length of the record that begins a stream.
fn header(stream: &[u8]) -> Option<(u16, usize)> {
    let [kind, length] = [0, 2].map(|at| bytes_at(stream, at).map(u16::from_le_bytes));
    Some((kind?, length?.into()))
}

fn bytes_at<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk().copied()
}

/// A length as records store it.
fn length_of(length: usize) -> Result<u16, ExtractError> {
    u16::try_from(length).map_err(|_| damaged("a format makes too long a text of a number"))
}

/// A number of four bytes: a whole one, or the upper half of a double; either may be a hundred times the value.
fn short_number(stored: u32) -> f64 {
    const IS_HUNDREDFOLD: u32 = 1;
    const IS_WHOLE: u32 = 2;
    let value = if stored & IS_WHOLE == 0 {
        f64::from_bits(u64::from(stored & !(IS_HUNDREDFOLD | IS_WHOLE)) << 32)
    } else {
        f64::from(stored.cast_signed() >> 2)
    };
    if stored & IS_HUNDREDFOLD == 0 {
        value
    } else {
        value / 100.0
    }
}

fn damaged(why: impl fmt::Display) -> ExtractError {
    ExtractError::damaged(format_args!("Excel workbook: {why}"))
}

#[cfg(test)]
mod tests;
