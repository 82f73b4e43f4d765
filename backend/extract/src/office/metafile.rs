//! Metafiles of Windows: pictures that are a list of lines and texts to draw, which nothing here draws. Sources: [MS-EMF], section 2.3.4.2;
//! [MS-WMF], section 2.3.2.3.

use crate::format::extension;

/// Pixels of a screen in an inch, and hundredths of a millimeter.
const DOTS: i64 = 96;
const HUNDREDTHS: i64 = 2_540;

/// What an enhanced metafile begins with, and the mark in its header.
const ENHANCED_HEADER: [u8; 4] = [1, 0, 0, 0];
const ENHANCED: [u8; 4] = *b" EMF";
const ENHANCED_AT: usize = 40;
/// The frame around the picture: left, top, right, bottom.
const FRAME_AT: usize = 24;
/// What a metafile begins with that says its size.
const PLACEABLE: [u8; 4] = [0xD7, 0xCD, 0xC6, 0x9A];
/// Its frame, and how many of its units an inch has.
const BOX_AT: usize = 6;
const UNITS_AT: usize = 14;

/// So many of the first bytes say the size.
pub(super) const HEADER_BYTES: u64 = 44;

/// True if a file is called as metafiles are; some are compressed.
pub(super) fn is_one(name: &str) -> bool {
    matches!(extension(name).as_str(), "emf" | "wmf" | "emz" | "wmz")
}

/// How wide and how high a metafile is, in pixels of a screen; none where it does not say it.
pub(super) fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    let begin: [u8; 4] = bytes_at(bytes, 0)?;
    let (frame, inch) =
        if begin == ENHANCED_HEADER && bytes_at(bytes, ENHANCED_AT) == Some(ENHANCED) {
            let side = |at: usize| bytes_at(bytes, FRAME_AT + 4 * at).map(i32::from_le_bytes);
            ([0, 1, 2, 3].map(|at| side(at).map(i64::from)), HUNDREDTHS)
        } else if begin == PLACEABLE {
            let side = |at: usize| bytes_at(bytes, BOX_AT + 2 * at).map(i16::from_le_bytes);
            let units = bytes_at(bytes, UNITS_AT).map(u16::from_le_bytes)?;
            ([0, 1, 2, 3].map(|at| side(at).map(i64::from)), units.into())
        } else {
            return None;
        };
    let [left, top, right, bottom] = frame;
    let pixels = |from: i64, to: i64| {
        let length = (to - from).abs() * DOTS;
        let pixels = u32::try_from(length.checked_div(inch)?).ok()?;
        // A frame without an extent says nothing.
        (length > 0).then_some(pixels)
    };
    Some((pixels(left?, right?)?, pixels(top?, bottom?)?))
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_frame() {
        let enhanced = |frame: [i32; 4]| {
            let mut bytes = [&ENHANCED_HEADER[..], &[0; 20]].concat();
            bytes.extend(frame.into_iter().flat_map(i32::to_le_bytes));
            bytes.extend(ENHANCED);
            bytes
        };
        let placeable = |frame: [i16; 4], inch: u16| {
            let mut bytes = [&PLACEABLE[..], &[0; 2]].concat();
            bytes.extend(frame.into_iter().flat_map(i16::to_le_bytes));
            bytes.extend(inch.to_le_bytes());
            bytes
        };
        for (bytes, expected) in [
            (enhanced([0, 0, 2_540, 1_270]), Some((96, 48))),
            (enhanced([2_540, 0, 0, 127]), Some((96, 4))),
            (enhanced([0; 4]), None),
            (enhanced([i32::MIN, 0, i32::MAX, 9]), Some((162_329_472, 0))),
            (placeable([-720, 0, 720, 144], 1_440), Some((96, 9))),
            (placeable([0, 0, 720, 144], 0), None),
            (b"\x01\0\x09\0\0\x03".to_vec(), None),
            (vec![], None),
        ] {
            assert_eq!(dimensions(&bytes), expected, "{bytes:?}");
        }
        let whole = enhanced([0, 0, 9, 9]);
        for length in 0..whole.len() {
            assert_eq!(dimensions(&whole[..length]), None);
        }
        assert!(is_one("word/media/image1.EMF") && is_one("a.wmz") && !is_one("emf"));
    }
}
