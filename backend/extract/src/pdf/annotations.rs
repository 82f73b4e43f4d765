//! Text that somebody has typed on the pages of a PDF: annotations of the kind FreeText, which `unpdf` neither reads nor paints.
//! Source: ISO 32000-1, sections 7.9.2.2 (text strings), 12.5.3 (flags), 12.5.6.6.

use std::collections::{HashMap, HashSet};

use super::packed;
use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE};
use memchr::memmem;
use unpdf::parser::raw::{PdfDict, PdfObject, RawDocument};

/// The kind of annotations that show text.
const NAME: &[u8] = b"FreeText";
/// How many annotations are looked at.
const MOST: usize = 200_000;
/// Flags of what is not shown.
const HIDDEN: i64 = 2;
const NOT_VIEWED: i64 = 32;
/// What stands for the bytes from 0x80 on in strings without a mark. Source: ISO 32000-1, annex D.3.
const UPPER: [char; 33] = [
    '•', '†', '‡', '…', '—', '–', 'ƒ', '⁄', '‹', '›', '−', '‰', '„', '“', '”', '‘', '’', '‚', '™',
    'ﬁ', 'ﬂ', 'Ł', 'Œ', 'Š', 'Ÿ', 'Ž', 'ı', 'ł', 'œ', 'š', 'ž', '\u{FFFD}', '€',
];

/// The texts on each page that has such, by its number.
pub(super) fn texts(bytes: &[u8]) -> HashMap<u32, Vec<String>> {
    let mut texts: HashMap<u32, Vec<String>> = HashMap::new();
    let is_named = memmem::find(bytes, NAME).is_some();
    if !is_named && !packed::may_hold(bytes, NAME) {
        return texts;
    }
    let Ok(document) = RawDocument::load(bytes) else {
        return texts;
    };
    let (mut left, mut seen) = (MOST, HashSet::new());
    for (number, page) in document.pages() {
        let annotations = document.get_dict(page).ok().and_then(|page| {
            let annotations = page.get(&b"Annots"[..])?;
            document.resolve(annotations).as_array()
        });
        for annotation in annotations.unwrap_or_default() {
            let Some(rest) = left.checked_sub(1) else {
                return texts;
            };
            left = rest;
            // An annotation is on one page.
            if let Some(annotation) = document.resolve(annotation).as_dict()
                && let Some(text) = text(&document, annotation)
                && seen.insert(std::ptr::from_ref(annotation))
            {
                texts.entry(number).or_default().push(text);
            }
        }
    }
    texts
}

/// The text of an annotation, where it is one that shows text.
fn text(document: &RawDocument, annotation: &PdfDict) -> Option<String> {
    let value = |key: &[u8]| annotation.get(key).map(|value| document.resolve(value));
    let flags = value(b"F").and_then(PdfObject::as_i64).unwrap_or_default();
    if value(b"Subtype")?.as_name()? != NAME || flags & (HIDDEN | NOT_VIEWED) != 0 {
        return None;
    }
    let text = decoded(value(b"Contents")?.as_str_bytes()?);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    (!text.trim().is_empty()).then_some(text)
}

/// A text string.
fn decoded(bytes: &[u8]) -> String {
    let encoding = match bytes {
        [0xFE, 0xFF, ..] => UTF_16BE,
        [0xFF, 0xFE, ..] => UTF_16LE,
        [0xEF, 0xBB, 0xBF, ..] => UTF_8,
        _ => {
            let upper = |byte: u8| UPPER.get(usize::from(byte).checked_sub(0x80)?).copied();
            let character = |byte: &u8| upper(*byte).unwrap_or(char::from(*byte));
            return bytes.iter().map(character).collect();
        }
    };
    encoding.decode_with_bom_removal(bytes).0.into_owned()
}
