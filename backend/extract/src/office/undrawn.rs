//! Pictures that nothing here draws beside metafiles: drawings in SVG, and pictures that are broken or of an unknown kind. Sources: SVG 2,
//! chapter 8 (sizes); [MS-ODRAWXML], section 2.3.2.4 (`svgBlip`).

use std::collections::HashMap;

use quick_xml::events::Event;

use super::{events, pictures::has_word, relations::value};
use crate::{format::extension, limits::Bounds, picture};

/// So many of the first bytes of a drawing say its size.
pub(super) const HEADER_BYTES: u64 = 16 * 1024;
/// Pixels of a screen in units of length. A length without one is in pixels.
const UNITS: [(&str, f64); 7] = [
    ("", 1.0),
    ("px", 1.0),
    ("pt", 96.0 / 72.0),
    ("pc", 16.0),
    ("in", 96.0),
    ("cm", 96.0 / 2.54),
    ("mm", 96.0 / 25.4),
];
/// Offsets of the length of the header in a bitmap of Windows, and of the width and the height, which have 16 bits in the oldest header
/// (`BITMAPCOREHEADER`).
const BITMAP_HEADER_AT: usize = 14;
const BITMAP_SIDES_AT: usize = 18;
const OLDEST_HEADER_BYTES: [u8; 4] = [12, 0, 0, 0];
/// Kinds of pictures that nothing here decodes. Small ones do not say their size, and are taken for bullets and lines.
const WITHOUT_DECODER: [&str; 3] = ["jp2", "pcx", "wdp"];

/// True if a file is called as drawings in SVG are.
pub(super) fn is_drawing(name: &str) -> bool {
    extension(name) == "svg"
}

/// True if a file is called as pictures are that cannot be decoded here.
pub(super) fn has_no_decoder(name: &str) -> bool {
    WITHOUT_DECODER.contains(&extension(name).as_str())
}

/// True if a drawing that begins with these bytes has the pixels of a word, or does not say its size.
pub(super) fn may_hold_text(begin: &[u8]) -> bool {
    dimensions(&String::from_utf8_lossy(begin)).is_none_or(has_word)
}

/// How wide and how high a drawing is, in pixels of a screen; none where it does not say it.
fn dimensions(xml: &str) -> Option<(u32, u32)> {
    let root = events(xml).find_map(|event| match event {
        Event::Start(start) | Event::Empty(start) => Some(start),
        _ => None,
    })?;
    let side = |name| value(&root, name).and_then(|length| pixels(&length));
    if let (Some(width), Some(height)) = (side("width"), side("height")) {
        return Some((width, height));
    }
    let view = value(&root, "viewBox")?;
    let numbers = view.split([' ', ',', '\t', '\n', '\r']);
    let mut sides = numbers.filter(|number| !number.is_empty()).skip(2);
    Some((pixels(sides.next()?)?, pixels(sides.next()?)?))
}

/// Returns a length in pixels, rounded down; none where it is relative or is not above zero.
fn pixels(length: &str) -> Option<u32> {
    let length = length.trim();
    let end = length.find(|c: char| c.is_ascii_alphabetic() || c == '%');
    let (number, unit) = length.split_at(end.unwrap_or(length.len()));
    let (_, factor) = UNITS.iter().find(|(known, _)| *known == unit)?;
    let pixels = number.trim().parse::<f64>().ok()? * factor;
    (pixels > 0.0).then_some(pixels as u32)
}

/// True if a picture cannot be decoded, and is not a bitmap of Windows without the pixels of a word, whose kind is not decoded here.
pub(super) fn is_undecodable(bytes: &[u8], bounds: &Bounds) -> bool {
    picture::dimensions(bytes, bounds).is_err() && bitmap(bytes).is_none_or(has_word)
}

/// How wide and how high a bitmap of Windows is.
fn bitmap(bytes: &[u8]) -> Option<(u32, u32)> {
    if !bytes.starts_with(b"BM") {
        return None;
    }
    let sides = bytes.get(BITMAP_SIDES_AT..)?;
    if bytes.get(BITMAP_HEADER_AT..BITMAP_SIDES_AT)? == OLDEST_HEADER_BYTES {
        let [width_low, width_high, height_low, height_high] = *sides.first_chunk::<4>()?;
        let width = u16::from_le_bytes([width_low, width_high]);
        let height = u16::from_le_bytes([height_low, height_high]);
        return Some((width.into(), height.into()));
    }
    let (width, rest) = sides.split_first_chunk::<4>()?;
    let height = rest.first_chunk::<4>()?;
    // One that begins at its top has a negative height.
    let side = |bytes: &[u8; 4]| i32::from_le_bytes(*bytes).unsigned_abs();
    Some((side(width), side(height)))
}

/// The names of drawings in a part that stand beside a picture of the same, with the name of that picture.
pub(super) fn doubles(xml: &str) -> HashMap<String, String> {
    let (mut doubles, mut picture) = (HashMap::new(), None);
    for event in events(xml) {
        match event {
            Event::Start(start) if start.local_name().as_ref() == "blip" => {
                picture = value(&start, "embed").filter(|id| !id.is_empty());
            }
            Event::Start(start) | Event::Empty(start)
                if start.local_name().as_ref() == "svgBlip" =>
            {
                doubles.extend(value(&start, "embed").zip(picture.clone()));
            }
            Event::End(end) if end.local_name().as_ref() == "blip" => picture = None,
            _ => {}
        }
    }
    doubles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_drawings_are_those_of_their_root() {
        for (attributes, expected) in [
            (r#"width="96" height="48px""#, Some((96, 48))),
            (r#"width="1in" height=" 36pt ""#, Some((96, 48))),
            (
                r#"width="100%" height="9" viewBox="0 0 24 25.5""#,
                Some((24, 25)),
            ),
            (r#"viewBox="-1,-1, 300,200""#, Some((300, 200))),
            (r#"width="0" height="9""#, None),
            (r#"width="99999999999" height="1""#, Some((u32::MAX, 1))),
            (r#"viewBox="0 0 5""#, None),
            (r#"width="wide" height="é""#, None),
            ("", None),
        ] {
            let xml = format!("<?xml version='1.0'?><!-- a --><svg {attributes}><g/></svg>");
            assert_eq!(dimensions(&xml), expected, "{attributes}");
        }
        assert!(may_hold_text(b"") && may_hold_text(b"<svg/>") && may_hold_text(b"\xFF\xFE<"));
        assert!(!may_hold_text(br#"<svg viewBox="0 0 24 24">"#));
    }

    #[test]
    fn small_bitmaps_are_no_text() {
        let bitmap = |width: i32, height: i32| {
            let mut bytes = b"BM".to_vec();
            bytes.resize(BITMAP_SIDES_AT, 0);
            bytes.extend(width.to_le_bytes());
            bytes.extend(height.to_le_bytes());
            bytes
        };
        let bounds = Bounds::default();
        assert!(is_undecodable(&bitmap(200, -100), &bounds));
        assert!(!is_undecodable(&bitmap(8, 8), &bounds));
        assert!(is_undecodable(&bitmap(8, 8)[..20], &bounds));
        let oldest = |width: u16, height: u16| {
            let mut bytes = b"BM".to_vec();
            bytes.resize(BITMAP_HEADER_AT, 0);
            bytes.extend(OLDEST_HEADER_BYTES);
            bytes.extend(width.to_le_bytes());
            bytes.extend(height.to_le_bytes());
            // Planes, and the bits of a pixel that no decoder has.
            bytes.extend([1, 0, 77, 0]);
            bytes
        };
        assert!(is_undecodable(&oldest(200, 100), &bounds));
        assert!(!is_undecodable(&oldest(8, 100), &bounds));
        assert!(is_undecodable(b"", &bounds));
    }

    #[test]
    fn drawings_beside_a_picture_are_doubles() {
        let double = r#"<a:blip r:embed="p"><a:ext><v:svgBlip r:embed="s"/></a:ext></a:blip>"#;
        let alone = r#"<a:blip r:embed="q"/><a:blip><v:svgBlip r:embed="t"/></a:blip>"#;
        let xml = format!("{alone}{double}{alone}");
        assert_eq!(
            doubles(&xml),
            HashMap::from([("s".to_owned(), "p".to_owned())])
        );
        assert_eq!(doubles("<a:blip r:embed='p'><a"), HashMap::new());
    }
}
