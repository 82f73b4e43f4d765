//! What a presentation or a workbook says of itself: the set of properties that documents of Office 97 to 2003 carry. Source: [MS-OLEPS],
//! section 2.

use encoding_rs::{UTF_8, UTF_16LE};
use undoc::Metadata;

use super::records::{Fields, string, u32_at};
use crate::office::code_page;

/// Where the place of the first set stands.
const SET_OFFSET: usize = 44;
/// The most properties that are looked at.
const MOST: u32 = 1_024;

const CODE_PAGE: u32 = 1;
const TITLE: u32 = 2;
const AUTHOR: u32 = 4;

/// Types of values: text of the code page, and of UTF-16.
const NARROW_TEXT: u16 = 0x1E;
const WIDE_TEXT: u16 = 0x1F;
const SMALL_NUMBER: u16 = 0x02;

/// The title and the author of a stream of properties; what cannot be read is not there.
pub(in crate::office) fn metadata(stream: &[u8]) -> Metadata {
    let set = u32_at(stream, SET_OFFSET).and_then(|at| stream.get(usize::try_from(at).ok()?..));
    let set = set.unwrap_or_default();
    let mut directory = Fields::from(set, 4);
    let count = directory.u32().unwrap_or_default().min(MOST);
    let mut properties = vec![];
    for _ in 0..count {
        let (Some(name), Some(offset)) = (directory.u32(), directory.u32()) else {
            break;
        };
        if let Ok(offset) = usize::try_from(offset) {
            properties.push((name, Fields::from(set, offset)));
        }
    }
    let value = |name| {
        let mut properties = properties.iter();
        properties.find(|(it, _)| *it == name).map(|(_, at)| *at)
    };
    let page = value(CODE_PAGE).and_then(number).unwrap_or(1252);
    let text_of = |name| value(name).and_then(|fields| text(fields, page));
    Metadata {
        title: text_of(TITLE),
        author: text_of(AUTHOR),
        ..Metadata::default()
    }
}

fn number(mut fields: Fields<'_>) -> Option<u16> {
    let kind = fields.u16()?;
    fields.skip(2)?;
    (kind == SMALL_NUMBER).then(|| fields.u16()).flatten()
}

fn text(mut fields: Fields<'_>, page: u16) -> Option<String> {
    let kind = fields.u16()?;
    fields.skip(2)?;
    let length = usize::try_from(fields.u32()?).ok()?;
    let text = match kind {
        NARROW_TEXT => {
            let bytes = fields.bytes(length)?;
            let encoding = match page {
                1200 => Some(UTF_16LE),
                65_001 => Some(UTF_8),
                other => code_page::encoding(other.into()),
            };
            match encoding {
                Some(encoding) => {
                    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
                    text?.into_owned()
                }
                None => str::from_utf8(bytes)
                    .ok()
                    .filter(|it| it.is_ascii())?
                    .to_owned(),
            }
        }
        WIDE_TEXT => string(fields.bytes(length.checked_mul(2)?)?),
        _ => return None,
    };
    let text = text.split('\0').next().unwrap_or_default().trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of properties, each with its name, its type and its value.
    fn stream(properties: &[(u32, u16, &[u8])]) -> Vec<u8> {
        let count = u32::try_from(properties.len()).unwrap();
        let (mut directory, mut values) = (vec![], vec![]);
        for (name, kind, value) in properties {
            let offset = 8 + 8 * count + u32::try_from(values.len()).unwrap();
            directory.extend([*name, offset].map(u32::to_le_bytes).concat());
            values.extend(u32::from(*kind).to_le_bytes());
            values.extend_from_slice(value);
        }
        let mut stream = vec![0; SET_OFFSET];
        stream.extend(48_u32.to_le_bytes());
        stream.extend([0_u32, count].map(u32::to_le_bytes).concat());
        stream.extend(directory);
        stream.extend(values);
        stream
    }

    fn narrow(text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(text.len() + 1).unwrap();
        [&length.to_le_bytes()[..], text, b"\0"].concat()
    }

    #[test]
    fn title_and_author_are_read_in_the_code_page_of_the_set() {
        let title = narrow(b"\xCF\xF0\xE8");
        let author = [&4_u32.to_le_bytes()[..], b"J\0\xFC\0\0\0x\0"].concat();
        let stream = stream(&[
            (TITLE, NARROW_TEXT, &title),
            (CODE_PAGE, SMALL_NUMBER, &1251_u32.to_le_bytes()),
            (AUTHOR, WIDE_TEXT, &author),
        ]);
        let read = metadata(&stream);
        assert_eq!(read.title.as_deref(), Some("При"));
        assert_eq!(read.author.as_deref(), Some("Jü"));
        for length in 0..stream.len() {
            metadata(&stream[..length]);
        }
    }

    #[test]
    fn text_of_code_pages_that_are_not_known_is_left_out_unless_it_is_plain() {
        let of = |text: &[u8]| {
            let text = narrow(text);
            metadata(&stream(&[
                (CODE_PAGE, SMALL_NUMBER, &9_u32.to_le_bytes()),
                (TITLE, NARROW_TEXT, &text),
            ]))
        };
        assert_eq!(of(b"plain").title.as_deref(), Some("plain"));
        assert_eq!(of(b"\xCF").title, None);
        assert_eq!(metadata(b"").title, None);
    }
}
