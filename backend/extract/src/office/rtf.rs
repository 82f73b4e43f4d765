//! The text of RTF, without its looks. Source: Rich Text Format Specification 1.9.1.

use encoding_rs::{Encoding, WINDOWS_1252};

use super::code_page;

/// Destinations whose text is no text of the document. Those that readers may skip (`\*`) are skipped as well.
const SKIPPED: [&str; 22] = [
    "fonttbl",
    "colortbl",
    "stylesheet",
    "listtable",
    "listoverridetable",
    "info",
    "pict",
    "object",
    "header",
    "headerl",
    "headerr",
    "headerf",
    "footer",
    "footerl",
    "footerr",
    "footerf",
    "fldinst",
    "themedata",
    "datastore",
    "xmlnstbl",
    "rsidtbl",
    "generator",
];
/// How many groups stand in each other, at most; deeper ones are read as if they were not.
const DEEPEST: usize = 1_000;

/// What ends with a group.
#[derive(Debug, Clone, Copy)]
struct Group {
    is_skipped: bool,
    /// How many characters stand in for one of Unicode.
    stand_ins: usize,
}

struct Rtf<'a> {
    bytes: &'a [u8],
    at: usize,
    text: String,
    /// Bytes of the encoding that are not decoded yet.
    pending: Vec<u8>,
    encoding: &'static Encoding,
    group: Group,
    open: Vec<Group>,
    /// The first half of a character of UTF-16.
    high: Option<u16>,
    /// How many stand-ins follow.
    skip: usize,
}

/// The text of a document, a line for each paragraph.
pub(super) fn text(bytes: &[u8]) -> String {
    let mut rtf = Rtf {
        bytes,
        at: 0,
        text: String::new(),
        pending: vec![],
        encoding: WINDOWS_1252,
        group: Group {
            is_skipped: false,
            stand_ins: 1,
        },
        open: vec![],
        high: None,
        skip: 0,
    };
    while let Some(byte) = rtf.next() {
        match byte {
            b'{' => {
                if rtf.open.len() < DEEPEST {
                    rtf.open.push(rtf.group);
                }
                rtf.skip = 0;
            }
            b'}' => {
                rtf.group = rtf.open.pop().unwrap_or(rtf.group);
                rtf.skip = 0;
            }
            b'\\' => rtf.control(),
            b'\r' | b'\n' | 0 => {}
            byte => rtf.byte(byte),
        }
    }
    rtf.flush();
    rtf.text
}

impl Rtf<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn byte(&mut self, byte: u8) {
        if self.skip > 0 {
            self.skip -= 1;
        } else if !self.group.is_skipped {
            self.pending.push(byte);
        }
    }

    /// Decodes what is pending.
    fn flush(&mut self) {
        if !self.pending.is_empty() {
            let (decoded, _) = self.encoding.decode_without_bom_handling(&self.pending);
            self.text.push_str(&decoded);
            self.pending.clear();
        }
    }

    fn push(&mut self, text: &str) {
        self.flush();
        if !self.group.is_skipped {
            self.text.push_str(text);
        }
    }

    /// Reads what follows a backslash.
    fn control(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let letters = rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphabetic())
            .take(32)
            .count();
        if letters == 0 {
            return self.symbol();
        }
        let word = std::str::from_utf8(&rest[..letters]).unwrap_or_default();
        let rest = &rest[letters..];
        let sign = usize::from(rest.first() == Some(&b'-'));
        let digits = rest[sign..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .take(10)
            .count();
        let number = if digits > 0 { sign + digits } else { 0 };
        let parameter = std::str::from_utf8(&rest[..number])
            .ok()
            .and_then(|text| text.parse::<i64>().ok());
        let blank = usize::from(rest.get(number) == Some(&b' '));
        self.at += letters + number + blank;
        self.word(word, parameter);
    }

    fn symbol(&mut self) {
        match self.next() {
            Some(b'\'') => {
                let hex = self.bytes.get(self.at..self.at + 2).unwrap_or_default();
                self.at += hex.len();
                let hex = std::str::from_utf8(hex).unwrap_or_default();
                if let Ok(byte) = u8::from_str_radix(hex, 16) {
                    self.byte(byte);
                }
            }
            Some(b'*') => self.group.is_skipped = true,
            Some(b'~') => self.push(" "),
            Some(b'_') => self.push("-"),
            Some(b'\r' | b'\n') => self.push("\n\n"),
            Some(byte @ (b'\\' | b'{' | b'}')) => self.byte(byte),
            _ => {}
        }
    }

    fn word(&mut self, word: &str, parameter: Option<i64>) {
        let number = || usize::try_from(parameter.unwrap_or(1)).unwrap_or_default();
        match word {
            "par" | "sect" | "page" | "row" => self.push("\n\n"),
            "line" => self.push("\n"),
            "cell" => self.push(" "),
            "tab" => self.push(" "),
            "emdash" => self.push("—"),
            "endash" => self.push("–"),
            "lquote" => self.push("‘"),
            "rquote" => self.push("’"),
            "ldblquote" => self.push("“"),
            "rdblquote" => self.push("”"),
            "bullet" => self.push("•"),
            "uc" => self.group.stand_ins = number().min(16),
            "u" => self.unicode(parameter.unwrap_or_default()),
            "bin" => self.at = self.at.saturating_add(number()),
            "ansicpg" => {
                self.flush();
                let encoding = parameter.and_then(code_page::encoding);
                self.encoding = encoding.unwrap_or(WINDOWS_1252);
            }
            _ if SKIPPED.contains(&word) => self.group.is_skipped = true,
            _ => {}
        }
    }

    /// A unit of UTF-16, which is written as a signed number. What stands in for it follows.
    fn unicode(&mut self, unit: i64) {
        self.skip = self.group.stand_ins;
        let unit = (unit & 0xFFFF) as u16;
        let units = [self.high.take().unwrap_or(unit), unit];
        let is_pair = units[0] != unit || matches!(units[0], 0xD800..=0xDBFF);
        match char::decode_utf16(units[usize::from(!is_pair)..].iter().copied()).next() {
            Some(Ok(character)) => self.push(character.encode_utf8(&mut [0; 4])),
            _ if matches!(unit, 0xD800..=0xDBFF) => self.high = Some(unit),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_is_shown() {
        let rtf = br"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\*\generator Word;}\f0\b Gr\'fc\'dfe\b0  an \{alle\}\par
Pri\uc1\u233?s {\field{\*\fldinst HYPERLINK x}{\fldrslt link}}\u-10179?\u-8704?.{\pict\bin4 }}}}}\line A\cell B\row}";
        let words: Vec<String> = text(rtf)
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(words, ["Grüße an {alle}", "Priés link😀.", "A B"]);
        assert_eq!(text(br"{\rtf1\ansicpg1251 \'cf\'f0\'e8"), "При");
    }

    #[test]
    fn what_is_no_rtf_does_no_harm() {
        for bytes in [
            &b"\\"[..],
            b"}}}}",
            b"{\\u",
            b"\\'",
            b"\\'f",
            b"\\bin99999999999",
            b"{\\rtf1\\u-9999999999999 x",
        ] {
            text(bytes);
        }
        text(&b"{".repeat(1_000_000));
    }
}
