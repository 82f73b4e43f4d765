//! From Whisper's tokens to text. A token is a piece of text in bytes, each of which the vocabulary writes as a letter.

use crate::InferenceError;

/// The most tokens that a vocabulary has.
const MAX_TOKENS: usize = 60_000;

/// The pieces of text, by token.
#[derive(Debug)]
pub(super) struct Vocabulary {
    pieces: Vec<Box<[u8]>>,
}

impl Vocabulary {
    /// Reads a file with a piece in each line; only those before `end` are of text.
    pub(super) fn parse(file: &[u8], end: usize) -> Result<Self, InferenceError> {
        let text = std::str::from_utf8(file)
            .map_err(|_| InferenceError::Malformed("the vocabulary is not UTF-8".to_owned()))?;
        let pieces: Vec<_> = text
            .split('\n')
            .take(end.min(MAX_TOKENS))
            .map(bytes)
            .collect();
        if pieces.len() < end {
            let message = format!(
                "the vocabulary has {} pieces instead of {end}",
                pieces.len()
            );
            return Err(InferenceError::Malformed(message));
        }
        Ok(Self { pieces })
    }

    /// The bytes of a token; none for those that are not of text.
    pub(super) fn piece(&self, token: usize) -> &[u8] {
        self.pieces.get(token).map_or(&[], |piece| piece)
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
        assert_eq!(vocabulary.text([5, 99]), "");
        let every: Vec<u8> = (0..0x200)
            .filter_map(|code| byte(char::from_u32(code)?))
            .collect();
        let mut sorted = every.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..=u8::MAX).collect::<Vec<_>>());
    }

    #[test]
    fn a_vocabulary_that_is_too_short_is_refused() {
        assert!(Vocabulary::parse(b"a\nb", 3).is_err());
        assert!(Vocabulary::parse(b"\xff\xfe", 1).is_err());
    }

    #[test]
    fn no_file_makes_it_panic() {
        let seed = "Hello\nĠworld\nÃ\n©\nĊ\n<|x|>".as_bytes().to_vec();
        colloquy_fuzz::fuzz(&[seed], |file| match Vocabulary::parse(file, 5) {
            Ok(vocabulary) => vocabulary.text(0..8).chars().take(8).collect(),
            Err(error) => error.to_string(),
        });
    }
}
