//! From bytes to characters, for formats that are nothing but text: by their byte order mark, by what they declare, as UTF-8
//! where they are, and else by what their bytes look like.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// How much of a text its encoding is guessed from.
const GUESSED_FROM: usize = 256 * 1024;
/// Where a text may declare its encoding: browsers look so far.
const DECLARED_WITHIN: usize = 1_024;
/// How many bytes without a mark are looked at for the pattern of two bytes a character.
const PATTERN_BYTES: usize = 1_024;

/// The characters of a text: lines end in `\n`, and there is neither a mark at the begin nor a null. `told` is an encoding
/// that came with the text, as the header `Content-Type` names it.
#[must_use]
pub fn decode(bytes: &[u8], told: Option<&str>) -> String {
    let (encoding, mark) = encoding(bytes, told);
    // What is not of the encoding becomes U+FFFD.
    let (text, _) = encoding.decode_without_bom_handling(&bytes[mark..]);
    clean(&text)
}

/// Text without what no text needs, with lines that end in `\n`.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' => {
                characters.next_if_eq(&'\n');
                clean.push('\n');
            }
            '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{0B}' => clean.push('\n'),
            // A page ends: what follows is another paragraph.
            '\u{0C}' => clean.push_str("\n\n"),
            '\n' | '\t' => clean.push(character),
            '\u{FEFF}' | '\u{AD}' | '\u{7F}' => {}
            _ if character < ' ' => {}
            _ => clean.push(character),
        }
    }
    clean
}

/// The encoding, and how many bytes its mark takes.
fn encoding(bytes: &[u8], told: Option<&str>) -> (&'static Encoding, usize) {
    if let Some(marked) = Encoding::for_bom(bytes) {
        return marked;
    }
    if let Some(wide) = wide_without_mark(bytes) {
        return (wide, 0);
    }
    let named = told
        .and_then(|name| Encoding::for_label(name.as_bytes()))
        .or_else(|| declared(&bytes[..bytes.len().min(DECLARED_WITHIN)]));
    let is_ascii_based = |encoding: &&'static Encoding| encoding.is_ascii_compatible();
    // Text that happens to be valid UTF-8 is UTF-8, whatever it declares; an encoding of plain bytes is told by its name alone.
    match (named, std::str::from_utf8(bytes)) {
        (Some(named), Ok(_)) if !named.is_ascii_compatible() => (named, 0),
        (_, Ok(_)) => (UTF_8, 0),
        (Some(named), Err(_)) if is_ascii_based(&named) && named != UTF_8 => (named, 0),
        _ => {
            let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
            let sample = &bytes[..bytes.len().min(GUESSED_FROM)];
            detector.feed(sample, sample.len() == bytes.len());
            let guessed = detector.guess(None, Utf8Detection::Deny);
            // A text of UTF-8 with a few broken characters is better read as that.
            let broken = UTF_8.decode_without_bom_handling(sample).0;
            let lost = broken.chars().filter(|c| *c == '\u{FFFD}').count();
            let wide = broken.chars().filter(|c| !c.is_ascii()).count();
            if guessed == WINDOWS_1252 && lost * 4 < wide {
                (UTF_8, 0)
            } else {
                (guessed, 0)
            }
        }
    }
}

/// The encoding that an XML declaration or a `meta` element names.
fn declared(head: &[u8]) -> Option<&'static Encoding> {
    let head: String = head
        .iter()
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect();
    let after = |mark: &str, from: &str| from.split_once(mark).map(|(_, rest)| rest.to_owned());
    let value = if head.trim_start().starts_with("<?xml") {
        let declaration = head.split("?>").next().unwrap_or_default();
        after("encoding", declaration)
    } else {
        after("<meta", &head).and_then(|_| after("charset", &head))
    }?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    let end =
        value.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')));
    let encoding = Encoding::for_label(&value.as_bytes()[..end.unwrap_or(value.len())])?;
    // Where the declaration itself could be read byte by byte, the text is not of two bytes a character.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else {
        encoding
    })
}

/// Whether the begin of a file is text of two bytes a character.
pub(crate) fn is_wide(head: &[u8]) -> bool {
    let encoding = match Encoding::for_bom(head) {
        Some((encoding, _)) if encoding != UTF_8 => encoding,
        Some(_) => return false,
        None => match wide_without_mark(head) {
            Some(encoding) => encoding,
            None => return false,
        },
    };
    let even = &head[..head.len() & !1];
    let text = encoding.decode_without_bom_handling(even).0;
    let mut wrong = text
        .chars()
        .filter(|c| c.is_control() && !c.is_whitespace() || *c == '\u{FFFD}');
    // The last character may be cut in half.
    wrong.nth(1).is_none()
}

/// Two bytes a character, mostly of ASCII: every other byte is null.
fn wide_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    let (pairs, _) = bytes[..bytes.len().min(PATTERN_BYTES)].as_chunks::<2>();
    if pairs.len() < 2 {
        return None;
    }
    let nulls = |place: usize| pairs.iter().filter(|pair| pair[place] == 0).count();
    let (first, second) = (nulls(0), nulls(1));
    let most = pairs.len() * 7 / 10;
    if second >= most && first == 0 {
        Some(UTF_16LE)
    } else if first >= most && second == 0 {
        Some(UTF_16BE)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Größe: Straße, façade – “quoted” €5\nžluťoučký";

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn marks_patterns_and_utf8_are_known() {
        assert_eq!(decode(TEXT.as_bytes(), None), TEXT);
        assert_eq!(decode(format!("\u{FEFF}{TEXT}").as_bytes(), None), TEXT);
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let marked = utf16(&format!("\u{FEFF}{TEXT}"), bytes);
            assert_eq!(decode(&marked, None), TEXT);
            assert!(is_wide(&marked));
            let plain = utf16("no mark at all", bytes);
            assert_eq!(decode(&plain, None), "no mark at all");
            assert!(is_wide(&plain));
        }
        assert!(!is_wide(TEXT.as_bytes()));
        assert!(!is_wide(b"\xFF\xFE\x01\x00\x02\x00\x03\x00"));
    }

    #[test]
    fn encodings_of_one_byte_are_told_or_guessed() {
        let western = "Die Größe der Straße überrascht, fünf Äpfel kosten 5 €";
        let (bytes, ..) = WINDOWS_1252.encode(western);
        assert_eq!(decode(&bytes, None), western);
        let russian = "Съешь же ещё этих мягких французских булок, да выпей чаю";
        for label in ["windows-1251", "koi8-r"] {
            let encoding = Encoding::for_label(label.as_bytes()).unwrap();
            let (bytes, ..) = encoding.encode(russian);
            assert_eq!(decode(&bytes, Some(label)), russian, "{label}");
            assert_eq!(decode(&bytes, None), russian, "{label}");
        }
        let (bytes, ..) = Encoding::for_label(b"shift_jis")
            .unwrap()
            .encode("吾輩は猫である。名前はまだ無い。");
        assert_eq!(decode(&bytes, None), "吾輩は猫である。名前はまだ無い。");
    }

    #[test]
    fn declarations_count_where_they_can_be_true() {
        let body = "<p>Žluťoučký kůň</p>";
        for declaration in [
            "<?xml version='1.0' encoding=\"iso-8859-2\"?>",
            "<html><head><meta charset=iso-8859-2>",
            "<meta http-equiv=\"Content-Type\" content=\"text/html; charset=ISO-8859-2\">",
        ] {
            let text = format!("{declaration}{body}");
            let encoding = Encoding::for_label(b"iso-8859-2").unwrap();
            assert_eq!(decode(&encoding.encode(&text).0, None), text);
            // The same text in UTF-8 is what it is.
            assert_eq!(decode(text.as_bytes(), None), text);
        }
    }

    #[test]
    fn lines_end_in_one_way_and_nothing_hidden_is_left() {
        let text = decode(b"a\r\nb\rc\0d\x0Ce\x1B\xC2\xADf", None);
        assert_eq!(text, "a\nb\ncd\n\nef");
    }
}
