//! What Word 97 to 2003 stores behind the body and the footnotes of a document: headers and footers, comments, and text boxes. Of these,
//! `undoc` reads the margins of odd pages of the first section alone. Pictures that it does not read are counted here: those that float,
//! and those in a line of anything but the body.
//!
//! Sources: [MS-DOC], sections 2.3 (parts of a document), 2.5 (where they are), 2.8 and 2.9.38 (positions and pieces of the text).

use std::fmt;

use encoding_rs::WINDOWS_1252;
use undoc::Paragraph;

use super::{
    blips, comments,
    compound::CompoundFile,
    inserts::Inserts,
    page_numbers::{PAGE_NUMBER, TAB, without_page_numbers},
};
use crate::{
    error::{Bound, ExtractError},
    limits::Bounds,
};

/// What a document of Word begins with, and the first version whose documents are laid out like this.
const WORD: u16 = 0xA5EC;
const WORD_97: u16 = 0x00C0;
/// Where the version and the flags stand, and the flag of documents with the stream `1Table`.
const VERSION_AT: usize = 2;
const FLAGS_AT: usize = 10;
const IN_TABLE_1: u16 = 0x0200;
/// Where the lists of numbers begin.
const LISTS_AT: usize = 32;
/// Where the lengths of what is not the body stand in earlier versions, and how many there are.
const EARLIER_LENGTHS_AT: usize = 0x38;
const EARLIER_LENGTHS: usize = 7;

/// Lengths of the parts of the text, by their places in the second list, in the order of the text.
const PARTS: [usize; 8] = [
    BODY,
    FOOTNOTES,
    MARGINS,
    RESERVED,
    COMMENTS,
    ENDNOTES,
    BOXES,
    MARGIN_BOXES,
];
const BODY: usize = 3;
const FOOTNOTES: usize = 4;
const MARGINS: usize = 5;
/// Earlier versions had macros as text.
const RESERVED: usize = 6;
const COMMENTS: usize = 7;
const ENDNOTES: usize = 8;
const BOXES: usize = 9;
const MARGIN_BOXES: usize = 10;

/// Ranges of the table stream, by their places in the third list.
const COMMENT_MARKS: usize = 4;
const COMMENT_TEXTS: usize = 5;
const MARGIN_TEXTS: usize = 11;
const PIECES: usize = 33;
const COMMENT_AUTHORS: usize = 36;
const DRAWINGS: usize = 50;

/// Separators of notes come before the margins of the first section.
const SEPARATORS: usize = 6;
/// Each section has six margins: of even and odd pages the headers, then the footers, and those of the first page.
const OF_SECTION: usize = 6;
const HEADERS: [usize; 3] = [4, 1, 0];
const FOOTERS: [usize; 3] = [5, 3, 2];

/// Bytes of what is stored with the mark of a comment, and where the number of its author stands in it.
const MARK_BYTES: usize = 30;
const AUTHOR_AT: usize = 20;
/// The largest number of an author.
const MOST_AUTHORS: usize = u16::MAX as usize;

/// What is stored behind the body and the footnotes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stories {
    headers: Vec<String>,
    footers: Vec<String>,
    /// In Markdown.
    comments: String,
    boxes: Vec<String>,
    /// True if text is missing that the document has according to itself.
    pub(super) has_lost: bool,
    /// Number of pictures and drawn texts that are not read. A picture that floats counts once, however often the body and the margins show
    /// it; text boxes, which float as well, do not count. A picture in a line counts with each place that shows it.
    pub(super) unread: u32,
}

impl Stories {
    /// Adds the text boxes to a document that `undoc` read, replaces its margins, and adds the comments to `inserts`: they come last.
    pub(super) fn add(self, to: &mut undoc::Document, inserts: &mut Inserts) {
        inserts.add_certain(self.comments, None);
        let Some(section) = to.sections.first_mut() else {
            return;
        };
        let paragraphs = |texts: Vec<String>| texts.into_iter().map(Paragraph::with_text);
        for text in paragraphs(self.boxes) {
            section.add_paragraph(text);
        }
        for (margin, texts) in [
            (&mut section.header, self.headers),
            (&mut section.footer, self.footers),
        ] {
            // An empty margin replaces that of `undoc`, too, which keeps the numbers of pages. After a loss, `undoc` may have the text.
            if !texts.is_empty() || !self.has_lost {
                *margin = Some(paragraphs(texts).collect());
            }
        }
    }

    /// Counts the pictures in the lines of a text. The same sign in the instructions of a field stands for what the field stores.
    fn count_pictures(&mut self, units: &[u16]) {
        const PICTURE: u16 = 0x01;
        const FIELD: u16 = 0x13;
        const RESULT: u16 = 0x14;
        const FIELD_END: u16 = 0x15;
        // True for each open field whose instructions are not at their end, and how many these are.
        let (mut fields, mut hidden) = (Vec::<bool>::new(), 0_usize);
        for unit in units {
            match *unit {
                FIELD => {
                    fields.push(true);
                    hidden += 1;
                }
                RESULT => {
                    if let Some(is_instructions) = fields.last_mut() {
                        hidden -= usize::from(std::mem::take(is_instructions));
                    }
                }
                FIELD_END => hidden -= usize::from(fields.pop().unwrap_or_default()),
                PICTURE if hidden == 0 => self.unread = self.unread.saturating_add(1),
                _ => {}
            }
        }
    }
}

/// Reads what a document has. Of earlier versions, `undoc` reads the body alone, and the rest is lost.
///
/// # Errors
/// When it is damaged, or goes beyond the bounds.
pub(super) fn read(bytes: &[u8], bounds: &Bounds) -> Result<Stories, ExtractError> {
    let mut file = CompoundFile::open(bytes).map_err(damaged)?;
    let word = file.read("/WordDocument").map_err(damaged)?;
    let is_word_97 = u16_at(&word, 0) == Some(WORD)
        && u16_at(&word, VERSION_AT).is_some_and(|version| version >= WORD_97);
    if !is_word_97 {
        return Ok(of_earlier(&word));
    }
    let flags = u16_at(&word, FLAGS_AT).unwrap_or_default();
    let table = match flags & IN_TABLE_1 {
        0 => "/0Table",
        _ => "/1Table",
    };
    let table = file.read(table).map_err(damaged)?;
    of(&word, &table, bounds)
}

/// What is told of a document of Word 6.0 or 95.
fn of_earlier(word: &[u8]) -> Stories {
    let mut lengths = (0..EARLIER_LENGTHS).map(|part| u32_at(word, EARLIER_LENGTHS_AT + 4 * part));
    Stories {
        has_lost: lengths.any(|length| length.is_some_and(|length| length > 0)),
        ..Stories::default()
    }
}

/// What the streams of a document have.
fn of(word: &[u8], table: &[u8], bounds: &Bounds) -> Result<Stories, ExtractError> {
    let mut stories = Stories::default();
    let Some(information) = Information::of(word, table) else {
        stories.has_lost = true;
        return Ok(stories);
    };
    if let Some(drawings) = information.range(DRAWINGS) {
        stories.unread = blips::of_word(drawings, word, bounds);
    }
    let lengths = PARTS.map(|part| match part {
        RESERVED => 0,
        part => information.length(part),
    });
    // Where each part begins, behind the one before.
    let mut end = 0;
    let places = lengths.map(|length| {
        let begin = end;
        end += length;
        begin
    });
    let of_part = |part: usize| (places[part - BODY], lengths[part - BODY]);
    // `undoc` reads the text of notes.
    for (begin, length) in [FOOTNOTES, ENDNOTES].map(of_part) {
        if length <= word.len().min(bounds.markdown_bytes)
            && let Some(notes) = information.text(begin, begin + length)
        {
            stories.count_pictures(&notes);
        }
    }
    let (begin, _) = of_part(MARGINS);
    let behind_notes = [MARGINS, COMMENTS, BOXES, MARGIN_BOXES];
    if behind_notes.iter().all(|part| of_part(*part).1 == 0) {
        return Ok(stories);
    }
    // Each unit takes a byte at least.
    if end - begin > word.len() {
        stories.has_lost = true;
        return Ok(stories);
    }
    if end - begin > bounds.markdown_bytes {
        let most = bounds.markdown_bytes;
        return Err(ExtractError::too_large(Bound::MarkdownBytes, most));
    }
    let Some(units) = information.text(begin, end) else {
        stories.has_lost = true;
        return Ok(stories);
    };
    let of_part = |part: usize| {
        let (place, length) = of_part(part);
        &units[place - begin..place - begin + length]
    };
    for part in [MARGINS, COMMENTS, BOXES, MARGIN_BOXES] {
        stories.count_pictures(of_part(part));
    }
    let margins = of_part(MARGINS);
    if !margins.is_empty() {
        match Positions::of(information.range(MARGIN_TEXTS), 0) {
            Some(positions) => {
                for section in (SEPARATORS..positions.count).step_by(OF_SECTION) {
                    for (places, texts) in [
                        (HEADERS, &mut stories.headers),
                        (FOOTERS, &mut stories.footers),
                    ] {
                        for place in places {
                            texts.extend(paragraphs(positions.text(margins, section + place)));
                        }
                    }
                }
            }
            None => stories.has_lost = true,
        }
    }
    let said = of_part(COMMENTS);
    if !said.is_empty() {
        let marks = Positions::of(information.range(COMMENT_MARKS), MARK_BYTES);
        match (marks, Positions::of(information.range(COMMENT_TEXTS), 0)) {
            (Some(marks), Some(texts)) => {
                let authors = strings(information.range(COMMENT_AUTHORS).unwrap_or_default());
                let all = (0..marks.count).map(|number| {
                    let author = marks.data(number);
                    let author = author.and_then(|mark| u16_at(mark, AUTHOR_AT));
                    let author = author.and_then(|author| authors.get(usize::from(author)));
                    let text = paragraphs(texts.text(said, number)).join("\n");
                    (author.map_or("", String::as_str), text)
                });
                stories.comments = comments::of_binary(all, bounds)?;
            }
            _ => stories.has_lost = true,
        }
    }
    stories.boxes.extend(paragraphs(of_part(BOXES)));
    // A box in a margin may hold the number of the page alone, which is left out of margins.
    stories.footers.extend(paragraphs(of_part(MARGIN_BOXES)));
    Ok(stories)
}

/// The block of a document that says where all else is.
struct Information<'a> {
    word: &'a [u8],
    table: &'a [u8],
    /// The second list, of lengths, and the third, of ranges.
    lengths: &'a [u8],
    ranges: &'a [u8],
}

impl<'a> Information<'a> {
    fn of(word: &'a [u8], table: &'a [u8]) -> Option<Self> {
        let list = |at: usize, bytes: usize| {
            let count = usize::from(u16_at(word, at)?);
            let begin = at + 2;
            let end = begin + count * bytes;
            Some((word.get(begin..end)?, end))
        };
        let (_, end) = list(LISTS_AT, 2)?;
        let (lengths, end) = list(end, 4)?;
        let (ranges, _) = list(end, 8)?;
        Some(Self {
            word,
            table,
            lengths,
            ranges,
        })
    }

    /// How many units of text a part has.
    fn length(&self, part: usize) -> usize {
        u32_at(self.lengths, 4 * part).unwrap_or_default()
    }

    /// A range of the table stream; none where it is not there, or empty.
    fn range(&self, place: usize) -> Option<&'a [u8]> {
        let begin = u32_at(self.ranges, 8 * place)?;
        let length = u32_at(self.ranges, 8 * place + 4)?;
        let range = self.table.get(begin..begin + length)?;
        (!range.is_empty()).then_some(range)
    }

    /// The units of UTF-16 between two positions; none where some of them are missing.
    fn text(&self, from: usize, to: usize) -> Option<Vec<u16>> {
        const IS_NARROW: usize = 0x4000_0000;
        const PLACE: usize = 0x3FFF_FFFF;
        const PIECE_BYTES: usize = 8;
        let pieces = Positions::of(pieces(self.range(PIECES)?), PIECE_BYTES)?;
        let mut units = vec![];
        for piece in 0..pieces.count {
            let (begin, end) = pieces.range(piece)?;
            let (first, last) = (begin.max(from), end.min(to));
            if first >= last {
                continue;
            }
            let stored = u32_at(pieces.data(piece)?, 2)?;
            let (skipped, length) = (first - begin, last - first);
            match stored & IS_NARROW {
                0 => {
                    let place = (stored & PLACE) + 2 * skipped;
                    let text = self.word.get(place..place + 2 * length)?;
                    let text = text.as_chunks::<2>().0.iter();
                    units.extend(text.map(|unit| u16::from_le_bytes(*unit)));
                }
                _ => {
                    let place = (stored & PLACE) / 2 + skipped;
                    let text = self.word.get(place..place + length)?;
                    // Each byte is one unit.
                    let (text, _) = WINDOWS_1252.decode_without_bom_handling(text);
                    units.extend(text.encode_utf16());
                }
            }
        }
        (units.len() == to - from).then_some(units)
    }
}

/// The list of pieces, behind changes of properties that it may have before it.
fn pieces(mut range: &[u8]) -> Option<&[u8]> {
    const CHANGE: u8 = 1;
    const LIST: u8 = 2;
    while range.first() == Some(&CHANGE) {
        range = range.get(3 + usize::from(u16_at(range, 1)?)..)?;
    }
    let length = u32_at(range, 1)?;
    let list = range.get(5..)?.get(..length)?;
    (range.first() == Some(&LIST)).then_some(list)
}

/// Positions in a text in ascending order, and data that may stand behind them for each range between two of them.
struct Positions<'a> {
    list: &'a [u8],
    data_bytes: usize,
    /// How many ranges there are.
    count: usize,
}

impl<'a> Positions<'a> {
    fn of(list: Option<&'a [u8]>, data_bytes: usize) -> Option<Self> {
        let list = list?;
        let count = list.len().checked_sub(4)? / (4 + data_bytes);
        // Where the last range ends may mean nothing.
        let (positions, _) = list[..4 * count].as_chunks::<4>();
        let positions = positions.iter().map(|one| u32::from_le_bytes(*one));
        positions.is_sorted().then_some(Self {
            list,
            data_bytes,
            count,
        })
    }

    fn range(&self, number: usize) -> Option<(usize, usize)> {
        let in_list = number < self.count;
        let range = (
            u32_at(self.list, 4 * number)?,
            u32_at(self.list, 4 * (number + 1))?,
        );
        in_list.then_some(range)
    }

    fn data(&self, number: usize) -> Option<&'a [u8]> {
        let data = self.list.get(4 * (self.count + 1)..)?;
        let begin = number * self.data_bytes;
        data.get(begin..begin + self.data_bytes)
    }

    /// The units of a range of a part; none where there is no such range.
    fn text<'t>(&self, part: &'t [u16], number: usize) -> &'t [u16] {
        let range = self.range(number);
        let text = range.and_then(|(begin, end)| part.get(begin..end));
        text.unwrap_or_default()
    }
}

/// Strings, each behind its length.
fn strings(mut range: &[u8]) -> Vec<String> {
    let mut strings = vec![];
    while strings.len() <= MOST_AUTHORS
        && let Some(count) = u16_at(range, 0)
    {
        let end = 2 + 2 * usize::from(count);
        let Some(text) = range.get(2..end) else {
            break;
        };
        let units = text.as_chunks::<2>().0.iter();
        let units: Vec<u16> = units.map(|unit| u16::from_le_bytes(*unit)).collect();
        strings.push(String::from_utf16_lossy(&units));
        range = &range[end..];
    }
    strings
}

/// A field that is open.
enum Field {
    /// Its instructions, as far as they were read.
    Instructions(String),
    Result,
    /// The result of one that shows the number of a page, which is that of the page that was laid out last.
    PageNumber,
}

/// True if the instructions of a field are to show the number of a page, or how many there are.
fn is_of_page(instructions: &str) -> bool {
    const NAMES: [&str; 3] = ["PAGE", "NUMPAGES", "SECTIONPAGES"];
    let name = instructions.split_whitespace().next().unwrap_or_default();
    NAMES.iter().any(|one| one.eq_ignore_ascii_case(name))
}

/// The paragraphs of a text that are not empty: without the instructions of fields, of which the results are shown, without the numbers of
/// pages, and without signs that stand for something else.
fn paragraphs(units: &[u16]) -> Vec<String> {
    const CELL: char = '\u{7}';
    const LINE: char = '\u{B}';
    const PAGE: char = '\u{C}';
    const FIELD: char = '\u{13}';
    const RESULT: char = '\u{14}';
    const FIELD_END: char = '\u{15}';
    const HYPHEN: char = '\u{1E}';
    let mut paragraphs = vec![];
    let mut line = String::new();
    let mut end = |line: &mut String| {
        let shown = without_page_numbers(line);
        if !shown.is_empty() {
            paragraphs.push(shown);
        }
        line.clear();
    };
    // Open fields, and how many of them show nothing of what is read.
    let (mut fields, mut hidden) = (Vec::<Field>::new(), 0_usize);
    for character in String::from_utf16_lossy(units).chars() {
        match character {
            FIELD => {
                fields.push(Field::Instructions(String::new()));
                hidden += 1;
            }
            RESULT => {
                if let Some(field) = fields.last_mut()
                    && let Field::Instructions(instructions) = &*field
                {
                    if is_of_page(instructions) {
                        if hidden == 1 {
                            line.push(PAGE_NUMBER);
                        }
                        *field = Field::PageNumber;
                    } else {
                        *field = Field::Result;
                        hidden -= 1;
                    }
                }
            }
            FIELD_END => match fields.pop() {
                // Its result was left out.
                Some(Field::Instructions(instructions)) => {
                    if hidden == 1 && is_of_page(&instructions) {
                        line.push(PAGE_NUMBER);
                    }
                    hidden -= 1;
                }
                Some(Field::PageNumber) => hidden -= 1,
                Some(Field::Result) | None => {}
            },
            other if hidden > 0 => {
                if let Some(Field::Instructions(instructions)) = fields.last_mut() {
                    instructions.push(other);
                }
            }
            '\r' | CELL | PAGE => end(&mut line),
            // A line break separates parts as a tab does.
            TAB | LINE => line.push(TAB),
            HYPHEN => line.push('-'),
            other if other < ' ' => {}
            other => line.push(other),
        }
    }
    end(&mut line);
    paragraphs
}

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    let bytes = data.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

/// A number of four bytes, as places and lengths are.
fn u32_at(data: &[u8], at: usize) -> Option<usize> {
    let bytes = data.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

fn damaged(why: impl fmt::Display) -> ExtractError {
    ExtractError::damaged(format_args!("Word document: {why}"))
}

#[cfg(test)]
mod tests;
