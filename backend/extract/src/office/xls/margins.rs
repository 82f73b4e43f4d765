//! Margins of sheets that Excel 2007 added to workbooks. Source: [MS-XLS], section 2.4 (`HeaderFooter`).

use super::{Text, bytes_at};

/// The headers and footers of even pages and of the first one, by the data of their record; none where it is that of a view that a user
/// keeps, or is cut off.
pub(super) fn more_margins(data: &[u8]) -> Option<[[String; 2]; 2]> {
    const VIEW_AT: usize = 12;
    const OF_SHEET: [u8; 16] = [0; 16];
    const LENGTHS_AT: usize = 30;
    const TEXTS_AT: usize = 38;
    const BEFORE_TEXT: usize = 3;
    const IS_WIDE: u8 = 1;
    let view: [u8; 16] = bytes_at(data, VIEW_AT)?;
    if view != OF_SHEET {
        return None;
    }
    let mut rest = data.get(TEXTS_AT..)?;
    let mut margins = <[[String; 2]; 2]>::default();
    for (number, margin) in margins.as_flattened_mut().iter_mut().enumerate() {
        let length: [u8; 2] = bytes_at(data, LENGTHS_AT + 2 * number)?;
        // A margin without text has no string.
        if length != [0, 0] {
            *margin = Text::Wide.string(rest)?;
            let count = bytes_at(rest, 0).map(u16::from_le_bytes)?;
            let bytes = usize::from(count) << (rest.get(2)? & IS_WIDE);
            rest = rest.get(BEFORE_TEXT + bytes..)?;
        }
    }
    Some(margins)
}
