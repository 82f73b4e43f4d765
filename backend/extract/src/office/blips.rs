//! Pictures in drawings of Office 97 to 2003 (blips), which are counted and not looked at: what the shapes of drawings show, and which of
//! the pictures in the store of a document may hold text. Source: [MS-ODRAW], sections 2.2.12 to 2.2.32, 2.3.7.1 (`fillType`),
//! 2.3.7.7 (`fillBlip`), 2.3.7.43 (`fFilled`), 2.3.22.5 (`gtextUNICODE`) and 2.3.23.5 (`pib`).

#[cfg(test)]
pub(super) mod made;

use std::collections::{BTreeSet, HashSet};

use super::pictures::{LARGE_BYTES, has_word};
use crate::{limits::Bounds, picture};

const STORE: u16 = 0xF001;
/// A drawing, a group of shapes, and a shape.
const CONTAINERS: [u16; 3] = [0xF002, 0xF003, 0xF004];
const ENTRY: u16 = 0xF007;
const PROPERTIES: u16 = 0xF00B;
/// The record of a shape that says what it is, offset of its flags, and the flag of a background, which is decoration.
const SHAPE: u16 = 0xF00A;
const FLAGS_AT: usize = 4;
const IS_BACKGROUND: u32 = 1 << 10;

/// Names of properties, whose highest two bits say what their value is.
const NAME: u16 = 0x3FFF;
const IS_COMPLEX: u16 = 0x8000;
const PICTURE: u16 = 0x0104;
const DRAWN_TEXT: u16 = 0x00C0;
/// Kind of what fills a shape, and the picture where that is one; a texture or a pattern is decoration.
const FILL: u16 = 0x0180;
const FILL_PICTURE: u16 = 0x0186;
const IS_PICTURE: u32 = 3;
/// Flags of a fill: the shape is filled, and that flag counts. Shapes are filled where nothing says so.
const FILL_FLAGS: u16 = 0x01BF;
const IS_FILLED: u32 = 1 << 4;
const USES_IS_FILLED: u32 = 1 << 20;
/// Bytes of the value of a text without a character.
const NO_TEXT_BYTES: u32 = 2;

/// Bytes of an entry of the store before the name of its picture, and offsets of the length of that name and of the place of the picture in
/// another stream.
const ENTRY_BYTES: usize = 36;
const NAME_LENGTH_AT: usize = 33;
const DELAYED_AT: usize = 28;

/// Kinds of pictures.
const METAFILES: [u16; 3] = [0xF01A, 0xF01B, 0xF01C];
const BITMAP: u16 = 0xF01F;
const FILES: [u16; 4] = [0xF01D, 0xF01E, 0xF029, 0xF02A];
/// Bytes of an identifier of a picture. Those with an odd instance have two.
const IDENTIFIER_BYTES: usize = 16;
/// Offsets of the width and the height in the header of a metafile, and units of length (EMU) in a pixel of a screen.
const METAFILE_SIDES_AT: [usize; 2] = [20, 24];
const UNITS_OF_PIXEL: u32 = 9_525;
/// Offsets of the width and the height in a bitmap, behind the tag.
const BITMAP_SIDES_AT: [usize; 2] = [1 + 4, 1 + 8];

/// What shapes show that is not read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Numbers of pictures in the store, from 1 on. A picture that is shown again counts once.
    pictures: BTreeSet<u32>,
    /// Number of texts that are drawn as pictures are (WordArt), and of pictures that stand in their shape.
    others: u32,
}

impl Shown {
    /// Adds what the shapes in the content of a drawing show, however deep they are grouped.
    pub(super) fn add(&mut self, drawing: &[u8]) {
        let mut open = vec![Records(drawing)];
        while let Some(records) = open.last_mut() {
            match records.next() {
                Some(record) if CONTAINERS.contains(&record.kind) => {
                    open.push(Records(record.data));
                }
                // Its properties come behind that.
                Some(record) if is_background(&record) => {
                    open.pop();
                }
                Some(record) if record.kind == PROPERTIES => self.add_properties(&record),
                Some(_) => {}
                None => {
                    open.pop();
                }
            }
        }
    }

    fn add_properties(&mut self, record: &Record<'_>) {
        let (properties, _) = record.data.as_chunks::<6>();
        let properties = properties.iter().take(record.instance.into());
        let properties = properties.map(|[low, high, value @ ..]| {
            let name = u16::from_le_bytes([*low, *high]);
            (name, u32::from_le_bytes(*value))
        });
        let has_fill = properties
            .clone()
            .any(|(name, value)| name & NAME == FILL && value == IS_PICTURE);
        let is_empty = properties.clone().any(|(name, value)| {
            let flags = value & (USES_IS_FILLED | IS_FILLED);
            name & NAME == FILL_FLAGS && flags == USES_IS_FILLED
        });
        let is_filled = has_fill && !is_empty;
        for (name, value) in properties {
            let is_complex = name & IS_COMPLEX != 0;
            match name & NAME {
                FILL_PICTURE if is_filled && value > 0 && !is_complex => {
                    self.pictures.insert(value);
                }
                PICTURE if value > 0 && !is_complex => {
                    self.pictures.insert(value);
                }
                PICTURE if value > 0 => self.others = self.others.saturating_add(1),
                DRAWN_TEXT if is_complex && value > NO_TEXT_BYTES => {
                    self.others = self.others.saturating_add(1);
                }
                _ => {}
            }
        }
    }

    /// True if no picture of the store is shown.
    pub(super) fn has_no_picture(&self) -> bool {
        self.pictures.is_empty()
    }

    /// Adds what other shapes show.
    pub(super) fn extend(&mut self, other: Self) {
        self.pictures.extend(other.pictures);
        self.others = self.others.saturating_add(other.others);
    }

    /// Counts what is shown and may hold text. `group` is the content of the record that has the store; its pictures stand in it or in
    /// `delayed`. A picture that is in neither is not in the document, as links are.
    pub(super) fn count(&self, group: &[u8], delayed: &[u8], bounds: &Bounds) -> u32 {
        let is_shown = |number: u32| self.pictures.contains(&number);
        count(group, delayed, is_shown, bounds).saturating_add(self.others)
    }
}

/// True if a record says that its shape is the background of a page or a slide.
fn is_background(record: &Record<'_>) -> bool {
    let flags = u32_at(record.data, FLAGS_AT).unwrap_or_default();
    record.kind == SHAPE && flags & IS_BACKGROUND != 0
}

/// Counts those pictures of a store that are shown, by their numbers, and may hold text. Entries of one picture count once.
fn count(group: &[u8], delayed: &[u8], is_shown: impl Fn(u32) -> bool, bounds: &Bounds) -> u32 {
    let store = Records(group).find(|record| record.kind == STORE);
    let entries = Records(store.map(|store| store.data).unwrap_or_default()).zip(1_u32..);
    let shown = entries.filter(|(_, number)| is_shown(*number));
    let blips = shown.filter_map(|(entry, _)| blip(&entry, delayed));
    let places: HashSet<*const u8> = blips
        .filter(|blip| may_hold_text(blip, bounds))
        .map(|blip| blip.data.as_ptr())
        .collect();
    u32::try_from(places.len()).unwrap_or(u32::MAX)
}

/// Counts what the sheets of a workbook show that may hold text, each picture once. `drawings` is what the workbook says of all drawings of
/// its sheets, and `unknown` the number of objects that show pictures of the store of which nobody knows the numbers.
pub(super) fn of_workbook(drawings: &[u8], shown: &Shown, unknown: u32, bounds: &Bounds) -> u32 {
    let Some(group) = Records(drawings).next() else {
        let shown = u32::try_from(shown.pictures.len()).unwrap_or(u32::MAX);
        return shown.saturating_add(unknown);
    };
    let known = count(
        group.data,
        &[],
        |number| shown.pictures.contains(&number),
        bounds,
    );
    let stored = count(group.data, &[], |_| true, bounds);
    known.saturating_add(unknown).min(stored)
}

/// Counts what the drawings of a Word document show that is not read, in its body and its margins. `content` is what the document says of
/// its drawings, and `word` its main stream.
pub(super) fn of_word(content: &[u8], word: &[u8], bounds: &Bounds) -> u32 {
    let mut records = Records(content);
    let Some(group) = records.next() else {
        return 0;
    };
    let mut shown = Shown::default();
    // A byte before each drawing says whether it belongs to the body or to margins.
    while let Some((_, drawing)) = records.0.split_first() {
        records = Records(drawing);
        if let Some(drawing) = records.next() {
            shown.add(drawing.data);
        } else {
            break;
        }
    }
    shown.count(group.data, word, bounds)
}

/// The picture of an entry of the store; none where it is not in the document.
fn blip<'a>(entry: &Record<'a>, delayed: &'a [u8]) -> Option<Record<'a>> {
    if entry.kind != ENTRY {
        return Some(*entry);
    }
    let name = usize::from(*entry.data.get(NAME_LENGTH_AT)?);
    let embedded = entry.data.get(ENTRY_BYTES + name..).unwrap_or_default();
    let place = || usize::try_from(u32_at(entry.data, DELAYED_AT)?).ok();
    Records(embedded)
        .next()
        .or_else(|| Records(delayed.get(place()?..)?).next())
}

/// True if a picture has the pixels of a word, or is large, by the rule for pictures of Office Open XML.
fn may_hold_text(blip: &Record<'_>, bounds: &Bounds) -> bool {
    let identifiers = IDENTIFIER_BYTES * (1 + usize::from(blip.instance & 1));
    let data = blip.data.get(identifiers..).unwrap_or_default();
    let is_large = data.len() as u64 >= LARGE_BYTES;
    if METAFILES.contains(&blip.kind) {
        let sides = METAFILE_SIDES_AT.map(|at| u32_at(data, at).filter(|side| *side > 0));
        return match sides {
            [Some(width), Some(height)] => {
                has_word((width / UNITS_OF_PIXEL, height / UNITS_OF_PIXEL))
            }
            _ => is_large,
        };
    }
    if blip.kind == BITMAP {
        let sides = BITMAP_SIDES_AT.map(|at| u32_at(data, at));
        // A bitmap that begins at its top has a negative height.
        let side = |side: u32| side.cast_signed().unsigned_abs();
        return is_large
            || matches!(sides, [Some(width), Some(height)] if has_word((side(width), side(height))));
    }
    let file = data.get(1..).unwrap_or_default();
    FILES.contains(&blip.kind)
        && (is_large || picture::dimensions(file, bounds).is_ok_and(has_word))
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

/// A record of a drawing or a store.
#[derive(Debug, Clone, Copy)]
struct Record<'a> {
    instance: u16,
    kind: u16,
    data: &'a [u8],
}

/// The records of a content. One that is cut off is the last, and has what is left.
#[derive(Debug)]
struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.0.split_first_chunk::<8>()?;
        let [first, second, third, fourth, length @ ..] = *header;
        let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
        let (data, rest) = rest.split_at_checked(length).unwrap_or((rest, &[][..]));
        self.0 = rest;
        Some(Record {
            instance: u16::from_le_bytes([first, second]) >> 4,
            kind: u16::from_le_bytes([third, fourth]),
            data,
        })
    }
}

#[cfg(test)]
mod tests;
