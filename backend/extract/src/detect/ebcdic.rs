//! Text in EBCDIC, which is refused by its name: how markup begins in it, and how often its letters, blanks and marks are there. Its code
//! pages put letters without accents, digits and most marks at the same places, so that those of 37, 500, 1047 and 1140 are told without
//! knowing which it is. Source: IBM Character Data Representation Architecture, appendix G (invariant character set).

/// The `<` of markup.
const LESS_THAN: u8 = 0x4C;
/// What follows it, with letters in upper case. The exclamation mark stands at one of two places.
const MARKUP: [&[u8]; 4] = [
    // html
    b"\xC8\xE3\xD4\xD3",
    // ?xml
    b"\x6F\xE7\xD4\xD3",
    // !doctype
    b"\x5A\xC4\xD6\xC3\xE3\xE8\xD7\xC5",
    b"\x4F\xC4\xD6\xC3\xE3\xE8\xD7\xC5",
];
/// Letters and digits that a text has at least: fewer may be a word in another encoding.
const FEWEST_LETTERS: usize = 8;

/// Returns true if a file that begins with these bytes is text in EBCDIC.
pub(super) fn is_text(head: &[u8]) -> bool {
    begins_markup(head) || has_its_letters(head)
}

fn begins_markup(head: &[u8]) -> bool {
    let text = head.iter().skip_while(|byte| is_blank(**byte));
    let mut text = text.copied();
    if text.next() != Some(LESS_THAN) {
        return false;
    }
    let longest = MARKUP.iter().map(|markup| markup.len()).max();
    let begin: Vec<u8> = text.take(longest.unwrap_or_default()).map(upper).collect();
    MARKUP.iter().any(|markup| begin.starts_with(markup))
}

/// A letter in upper case.
fn upper(byte: u8) -> u8 {
    match byte {
        0x81..=0xA9 => byte | 0x40,
        _ => byte,
    }
}

/// Returns true if nearly all bytes are letters, digits, blanks and marks, with something between words or values, and there is neither a
/// blank of ASCII nor UTF-8.
fn has_its_letters(head: &[u8]) -> bool {
    let count = |of: fn(u8) -> bool| head.iter().filter(|byte| of(**byte)).count();
    let is_utf8 = std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |_| true);
    if is_utf8 || count(|byte| matches!(byte, b' ' | b'\n')) > 0 {
        return false;
    }
    let (letters, blanks) = (count(is_letter), count(is_blank));
    let separators = blanks + count(|byte| matches!(byte, 0x4F | 0x5E | 0x6B));
    letters >= FEWEST_LETTERS
        && letters * 5 >= head.len()
        && separators * 50 >= head.len()
        && (letters + blanks + count(is_mark)) * 10 >= head.len() * 9
}

/// True for letters without accents, and for digits.
fn is_letter(byte: u8) -> bool {
    matches!(
        byte,
        0x81..=0x89 | 0x91..=0x99 | 0xA2..=0xA9 | 0xC1..=0xC9 | 0xD1..=0xD9 | 0xE2..=0xE9 | 0xF0..=0xF9
    )
}

/// True for the blank, the tab, and what ends lines.
fn is_blank(byte: u8) -> bool {
    matches!(byte, 0x05 | 0x0D | 0x15 | 0x25 | 0x40)
}

/// True for punctuation, and for the brackets of each code page.
fn is_mark(byte: u8) -> bool {
    matches!(
        byte,
        0x4A..=0x50 | 0x5A..=0x61 | 0x6A..=0x6F | 0x79..=0x7F | 0xA1 | 0xAD | 0xB0 | 0xBA | 0xBB | 0xBD | 0xC0 | 0xD0 | 0xE0
    )
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::detect::detect;

    /// A text in code page 37, the lines of which end as in code page 1047.
    fn ebcdic(text: &str) -> Vec<u8> {
        const MARKS: &str = "\n\u{15} @.K<L(M+N&P!Z*\\)];^-`/a,k%l_m>n?o:z#{@|'}=~\"\u{7F}";
        let mark = |mark: char| {
            let mut pairs = MARKS.chars();
            while let (Some(one), Some(place)) = (pairs.next(), pairs.next()) {
                if one == mark {
                    return place as u8;
                }
            }
            panic!("{mark:?}")
        };
        let place = |letter: u8, begin: u8| match letter {
            0..9 => begin + 1 + letter,
            9..18 => begin + 0x11 + letter - 9,
            _ => begin + 0x22 + letter - 18,
        };
        let byte = |character: char| match character {
            'a'..='z' => place(character as u8 - b'a', 0x80),
            'A'..='Z' => place(character as u8 - b'A', 0xC0),
            '0'..='9' => 0xF0 + (character as u8 - b'0'),
            '{' => 0xC0,
            '}' => 0xD0,
            other => mark(other),
        };
        text.chars().map(byte).collect()
    }

    const XML: &str = "<?xml version=\"1.0\" encoding=\"IBM037\"?>\n<stock>\n          <bolt>7</bolt>\n          <nut>9</nut>\n</stock>\n";

    #[test]
    fn text_in_ebcdic_is_refused_by_its_name() {
        for (name, text) in [
            ("a.html", "<html><body>Hi</body></html>"),
            ("a.html", "\n  <HTML>"),
            ("a.html", "<!DOCTYPE html><p>Hi"),
            ("a.html", "<p>No root, and several words.</p>"),
            ("a.txt", "Dear Ann,\nthe order is on its way."),
            ("a.txt", "NAME                CITY                10117"),
            ("a.md", "# A title\n\n* one\n* two, and more\n"),
            ("a.csv", "name,city,count\nAnn,Bonn,12\nBo,Rome,7\n"),
            ("a.csv", "12;34;56\n78;90;12\n"),
            ("a.xml", XML),
            ("a.xml", "<stock><bolt size=\"M6\">7</bolt></stock>"),
            ("a.json", "{\"name\": \"Ann\", \"count\": 12}"),
        ] {
            let refused = detect(name, &mut Cursor::new(ebcdic(text))).unwrap_err();
            let refused = refused.to_string();
            assert!(
                refused.ends_with("text in EBCDIC, which is not read"),
                "{name} {text}: {refused}"
            );
        }
        // The exclamation mark of code page 500.
        let mut page = ebcdic("<!doctype html>");
        page[1] = 0x4F;
        assert!(is_text(&page));
        // Letters with accents, here those of a French text.
        let mut text = ebcdic("Les El_ves de l'_cole ont re_u leurs livres.");
        text.iter_mut()
            .filter(|byte| **byte == 0x6D)
            .for_each(|byte| *byte = 0x51);
        assert!(is_text(&text));
    }

    #[test]
    fn other_text_is_not_ebcdic() {
        for text in [
            "josé@café",
            "日本語のテキスト@改行なし",
            "Ünïcödé@Ünïcödé",
            "",
            "LLLL@@@@kkkk",
        ] {
            assert!(!is_text(text.as_bytes()), "{text}");
        }
        for (label, text) in [
            ("windows-1251", "Привет,@мир!@Как@дела?"),
            ("koi8-r", "Привет,@мир!@Как@дела?"),
            (
                "shift_jis",
                "吾輩は猫である。名前はまだ無い。　どこで生れたか",
            ),
            ("big5", "這是一段沒有空格的文字,@而且沒有換行"),
            ("gb18030", "这是一段没有空格的文字,@而且没有换行"),
            ("windows-1252", "Größe@Straße,Äpfel"),
        ] {
            let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
            let (bytes, ..) = encoding.encode(text);
            assert!(!is_text(&bytes), "{label}");
        }
    }
}
