//! From Whisper's tokens to text. A token is a piece of text in bytes, each of which the vocabulary writes as a letter.

use std::collections::HashMap;

use crate::InferenceError;

/// The most tokens that a vocabulary has.
const MAX_TOKENS: usize = 60_000;

/// The pieces of text, by token.
#[derive(Debug)]
pub(super) struct Vocabulary {
    pieces: Vec<Box<[u8]>>,
    tokens: HashMap<Box<[u8]>, usize>,
    /// The length of the longest piece.
    longest: usize,
}

impl Vocabulary {
    /// Reads a file, of which only the pieces before `end` are of text. It has a piece in each line, or is JSON: a list of pieces, or
    /// the number of each.
    pub(super) fn parse(file: &[u8], end: usize) -> Result<Self, InferenceError> {
        let text = std::str::from_utf8(file).map_err(|_| malformed("is not UTF-8"))?;
        // No list of lines begins with these: the first piece is an exclamation mark.
        let pieces: Vec<_> = match text.trim_start().chars().next() {
            Some('{') => numbered(text, end)?,
            Some('[') => {
                let list: Vec<String> = serde_json::from_str(text).map_err(malformed_json)?;
                list.iter().take(end).map(|piece| bytes(piece)).collect()
            }
            _ => text.split('\n').take(end).map(bytes).collect(),
        };
        if pieces.len() < end || end > MAX_TOKENS {
            let message = format!("has {} pieces instead of {end}", pieces.len());
            return Err(malformed(&message));
        }
        let numbered = pieces.iter().cloned().zip(0..);
        Ok(Self {
            longest: pieces.iter().map(|piece| piece.len()).max().unwrap_or(0),
            tokens: numbered.collect(),
            pieces,
        })
    }

    /// The bytes of a token; none for those that are not of text.
    pub(super) fn piece(&self, token: usize) -> &[u8] {
        self.pieces.get(token).map_or(&[], |piece| piece)
    }

    /// A text in tokens, the longest that fit one after the other; what no token is of is left out.
    pub(super) fn tokens(&self, text: &str) -> Vec<usize> {
        let mut tokens = Vec::new();
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let longest = self.longest.min(rest.len());
            let mut fitting = (1..=longest).rev();
            let token =
                fitting.find_map(|length| Some((length, *self.tokens.get(&rest[..length])?)));
            tokens.extend(token.map(|(_, token)| token));
            rest = &rest[token.map_or(1, |(length, _)| length)..];
        }
        tokens
    }

    /// The text of tokens. Bytes that are no text become replacement characters.
    pub(super) fn text(&self, tokens: impl IntoIterator<Item = usize>) -> String {
        let bytes: Vec<u8> = tokens
            .into_iter()
            .flat_map(|token| self.piece(token))
            .copied()
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn malformed(what: &str) -> InferenceError {
    InferenceError::Malformed(format!("the vocabulary {what}"))
}

fn malformed_json(error: serde_json::Error) -> InferenceError {
    malformed(&format!("is not understood: {error}"))
}

/// The pieces of a vocabulary that gives each its number, up to the first number that is missing.
fn numbered(text: &str, end: usize) -> Result<Vec<Box<[u8]>>, InferenceError> {
    let numbers: HashMap<String, usize> = serde_json::from_str(text).map_err(malformed_json)?;
    let mut pieces: Vec<_> = numbers
        .iter()
        .map(|(piece, number)| (number, piece))
        .collect();
    pieces.sort_unstable();
    let pieces = (0..end)
        .zip(pieces)
        .take_while(|(expected, (number, _))| expected == *number);
    Ok(pieces.map(|(_, (_, piece))| bytes(piece)).collect())
}

/// The bytes that letters stand for; letters that stand for none are left out.
fn bytes(piece: &str) -> Box<[u8]> {
    piece.chars().filter_map(byte).collect()
}

/// The byte that a letter stands for. Those that can be printed are themselves; the others are the letters from U+0100 on,
/// in their order.
fn byte(letter: char) -> Option<u8> {
    const PRINTED: [std::ops::RangeInclusive<u8>; 3] = [b'!'..=b'~', 0xa1..=0xac, 0xae..=0xff];
    let is_printed = |byte: &u8| PRINTED.iter().any(|range| range.contains(byte));
    match u32::from(letter) {
        code @ ..=0xff => u8::try_from(code).ok().filter(is_printed),
        code => {
            let index = usize::try_from(code - 0x100).ok()?;
            (0..=u8::MAX).filter(|byte| !is_printed(byte)).nth(index)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_stand_for_bytes() {
        let vocabulary = Vocabulary::parse("Hello\nĠworld\nÃ\n©\nĊ\n<|x|>".as_bytes(), 5).unwrap();
        assert_eq!(vocabulary.text([0, 1]), "Hello world");
        assert_eq!(vocabulary.text([2, 3, 4]), "é\n");
        assert_eq!(vocabulary.text([2]), "\u{fffd}");
        assert_eq!(vocabulary.tokens("Hello worldé?\n"), [0, 1, 2, 3, 4]);
        assert!(vocabulary.tokens("").is_empty());
        assert_eq!(vocabulary.text([5, 99]), "");
        let every: Vec<u8> = (0..0x200)
            .filter_map(|code| byte(char::from_u32(code)?))
            .collect();
        let mut sorted = every.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..=u8::MAX).collect::<Vec<_>>());
    }

    #[test]
    fn a_vocabulary_may_be_json() {
        for json in [
            r#"["Hello","Ġworld","Ã","©","Ċ","<|x|>"]"#,
            r#" {"Ġworld": 1, "Hello": 0, "Ċ": 4, "Ã": 2, "\u00a9": 3, "<|x|>": 5}"#,
        ] {
            let vocabulary = Vocabulary::parse(json.as_bytes(), 5).unwrap();
            assert_eq!(vocabulary.text(0..5), "Hello worldé\n");
        }
        for wrong in [
            r#"{"a": 0, "b": 2}"#,
            r#"{"a": 0, "b": 0}"#,
            r#"{"a": 0, "b": -1}"#,
            r#"{"a": 0, "b": [1]}"#,
            r#"{"a": 0"#,
            r#"["a"]"#,
            r#"["a", 1]"#,
            r#"{"a": 0, "b": 18446744073709551615}"#,
        ] {
            assert!(Vocabulary::parse(wrong.as_bytes(), 2).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_vocabulary_that_is_too_short_is_refused() {
        assert!(Vocabulary::parse(b"a\nb", 3).is_err());
        assert!(Vocabulary::parse(b"\xff\xfe", 1).is_err());
    }

    #[test]
    fn no_fuzzed_file_makes_it_panic() {
        let seeds = [
            "Hello\nĠworld\nÃ\n©\nĊ\n<|x|>",
            r#"{"Ġworld": 1, "Hello": 0, "Ċ": 4, "Ã": 2, "\u00a9": 3}"#,
            r#"["Hello","Ġworld","Ã","©","Ċ"]"#,
        ];
        let seeds = seeds.map(|seed| seed.as_bytes().to_vec());
        colloquy_fuzz::fuzz(&seeds, |file| match Vocabulary::parse(file, 5) {
            Ok(vocabulary) => vocabulary.text(0..8).chars().take(8).collect(),
            Err(error) => error.to_string(),
        });
    }
}
