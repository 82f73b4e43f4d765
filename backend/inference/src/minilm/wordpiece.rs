//! From text to the tokens of BERT: words and punctuation marks (`letters`), cut into the longest pieces that the vocabulary
//! has. The file is a `tokenizer.json` of Hugging Face's library `tokenizers`, whose tokens these are, but for page breaks and for
//! letters that are newer than its tables. What it replaces by name (`[SEP]`) is text here and never a token, since texts are
//! anybody's.

use std::{collections::HashMap, ops::ControlFlow};

use serde::Deserialize;

use super::letters::{Letters, Part};
use crate::InferenceError;

/// The longest file that is read.
const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;

/// The longest that `max_input_chars_per_word` may be.
const MAX_WORD_LETTERS: usize = 1_000;

/// Words and pieces of words, by token.
#[derive(Debug)]
pub(super) struct WordPiece {
    letters: Letters,
    /// What a word may begin with.
    beginnings: HashMap<Box<str>, i32>,
    /// What may follow in it.
    continuations: HashMap<Box<str>, i32>,
    /// The length of the longest piece.
    longest_bytes: usize,
    /// Words of more letters than this are unknown.
    max_letters: usize,
    unknown: i32,
    /// What stands before and after a text.
    ends: [i32; 2],
    padding: i32,
    tokens: usize,
}

/// What a file says.
#[derive(Debug, Deserialize)]
struct TokenizerFile {
    normalizer: NormalizerFile,
    #[serde(rename = "pre_tokenizer")]
    _pre_tokenizer: PreTokenizerFile,
    model: ModelFile,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
enum NormalizerFile {
    BertNormalizer {
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: Option<bool>,
        lowercase: bool,
    },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
enum PreTokenizerFile {
    BertPreTokenizer,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
enum ModelFile {
    WordPiece {
        unk_token: String,
        continuing_subword_prefix: String,
        max_input_chars_per_word: usize,
        vocab: HashMap<Box<str>, u32>,
    },
}

impl WordPiece {
    /// Reads a file.
    pub(super) fn parse(file: &[u8]) -> Result<Self, InferenceError> {
        if file.len() > MAX_FILE_BYTES {
            return Err(malformed("it is too long"));
        }
        let file: TokenizerFile =
            serde_json::from_slice(file).map_err(|error| malformed(&error.to_string()))?;
        let NormalizerFile::BertNormalizer {
            clean_text,
            handle_chinese_chars,
            strip_accents,
            lowercase,
        } = file.normalizer;
        let ModelFile::WordPiece {
            unk_token,
            continuing_subword_prefix: prefix,
            max_input_chars_per_word: max_letters,
            vocab,
        } = file.model;
        if max_letters > MAX_WORD_LETTERS || prefix.is_empty() {
            return Err(malformed("its words are of another kind"));
        }
        let token = |name: &str| {
            let token = vocab.get(name).and_then(|token| i32::try_from(*token).ok());
            token.ok_or_else(|| malformed(&format!("it has no token {name}")))
        };
        let (unknown, padding) = (token(&unk_token)?, token("[PAD]")?);
        let ends = [token("[CLS]")?, token("[SEP]")?];
        let tokens = vocab.len();
        let longest_bytes = vocab.keys().map(|piece| piece.len()).max().unwrap_or(0);
        let (mut beginnings, mut continuations) = (HashMap::new(), HashMap::new());
        for (piece, token) in vocab {
            // They count from zero without a gap, so that the network has a vector for each.
            let token = i32::try_from(token)
                .ok()
                .filter(|_| (token as usize) < tokens)
                .ok_or_else(|| malformed(&format!("its token {token} is out of range")))?;
            match piece.strip_prefix(prefix.as_str()) {
                Some(rest) => continuations.insert(rest.into(), token),
                None => beginnings.insert(piece, token),
            };
        }
        Ok(Self {
            letters: Letters {
                cleans: clean_text,
                parts_ideographs: handle_chinese_chars,
                strips_accents: strip_accents.unwrap_or(lowercase),
                lowers: lowercase,
            },
            beginnings,
            continuations,
            longest_bytes,
            max_letters,
            unknown,
            ends,
            padding,
            tokens,
        })
    }

    /// How many tokens there are.
    pub(super) fn vocabulary(&self) -> usize {
        self.tokens
    }

    /// The token that fills up shorter texts.
    pub(super) fn padding(&self) -> i32 {
        self.padding
    }

    /// How many tokens a text has, its ends not counted.
    pub(super) fn count(&self, text: &str) -> usize {
        let mut count = 0;
        let _ = self.each_token(text, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    /// The first tokens of a text, between its ends.
    pub(super) fn tokens(&self, text: &str, most: usize) -> Vec<i32> {
        let [begin, end] = self.ends;
        let mut tokens = vec![begin];
        let _ = self.each_token(text, &mut |token| {
            if tokens.len() > most {
                return ControlFlow::Break(());
            }
            tokens.push(token);
            ControlFlow::Continue(())
        });
        tokens.push(end);
        tokens
    }

    /// Gives the tokens of a text one by one, until no more are wanted. It keeps no more than a word of the text.
    fn each_token(
        &self,
        text: &str,
        each: &mut dyn FnMut(i32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut word = Word::default();
        self.letters.each(text, &mut |part| match part {
            Part::Letter(letter) => {
                word.push(letter, self.max_letters);
                ControlFlow::Continue(())
            }
            Part::Boundary => self.end_word(&mut word, each),
            Part::Alone(letter) => {
                self.end_word(&mut word, each)?;
                word.push(letter, self.max_letters);
                self.end_word(&mut word, each)
            }
        })?;
        self.end_word(&mut word, each)
    }

    /// Gives the tokens of a word, and empties it. A word with a part that is not in the vocabulary is unknown as a whole.
    fn end_word(
        &self,
        word: &mut Word,
        each: &mut dyn FnMut(i32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let letters = std::mem::take(&mut word.letters);
        if letters == 0 {
            return ControlFlow::Continue(());
        }
        word.tokens.clear();
        if letters > self.max_letters || !self.cut(&word.text, &mut word.tokens) {
            word.tokens.clear();
            word.tokens.push(self.unknown);
        }
        word.text.clear();
        word.tokens.iter().try_for_each(|token| each(*token))
    }

    /// Cuts a word into the longest pieces from its beginning on; whether all of them are there.
    fn cut(&self, word: &str, tokens: &mut Vec<i32>) -> bool {
        let mut rest = word;
        while !rest.is_empty() {
            let pieces = match tokens.is_empty() {
                true => &self.beginnings,
                false => &self.continuations,
            };
            let mut end = rest.floor_char_boundary(self.longest_bytes);
            let token = loop {
                match pieces.get(&rest[..end]) {
                    _ if end == 0 => return false,
                    Some(token) => break *token,
                    None => end = rest.floor_char_boundary(end - 1),
                }
            };
            tokens.push(token);
            rest = &rest[end..];
        }
        true
    }
}

/// The word that is being read, as far as it is not longer than words may be.
#[derive(Debug, Default)]
struct Word {
    text: String,
    letters: usize,
    tokens: Vec<i32>,
}

impl Word {
    fn push(&mut self, letter: char, most: usize) {
        self.letters += 1;
        if self.letters <= most {
            self.text.push(letter);
        }
    }
}

fn malformed(message: &str) -> InferenceError {
    InferenceError::Malformed(format!("the tokenizer: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small one, whose tokens are the places in the list.
    const PIECES: [&str; 18] = [
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "able", "!", "cafe", "東",
        "京", "a", "##a", "##ß", "[", "]", "sep",
    ];

    fn file() -> String {
        let vocabulary: Vec<_> = PIECES
            .iter()
            .enumerate()
            .map(|(token, piece)| format!("{piece:?}:{token}"))
            .collect();
        format!(
            r###"{{"normalizer":{{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,
                "lowercase":true}},"pre_tokenizer":{{"type":"BertPreTokenizer"}},"model":{{"type":"WordPiece","unk_token":"[UNK]",
                "continuing_subword_prefix":"##","max_input_chars_per_word":20,"vocab":{{{}}}}}}}"###,
            vocabulary.join(",")
        )
    }

    fn pieces(text: &str) -> Vec<&'static str> {
        let tokenizer = WordPiece::parse(file().as_bytes()).unwrap();
        let tokens = tokenizer.tokens(text, 100);
        assert_eq!(tokenizer.count(text), tokens.len() - 2);
        assert_eq!(tokenizer.tokens(text, 1).len(), tokens.len().min(3));
        let inner = &tokens[1..tokens.len() - 1];
        inner.iter().map(|token| PIECES[*token as usize]).collect()
    }

    #[test]
    fn words_are_cut_into_the_longest_pieces() {
        assert_eq!(
            pieces("Unaffable, able!"),
            ["un", "##aff", "##able", "[UNK]", "able", "!"]
        );
        assert_eq!(pieces(" CAFÉ\tcafe\u{301} "), ["cafe", "cafe"]);
        assert_eq!(pieces("東京a"), ["東", "京", "a"]);
        assert_eq!(pieces("aß"), ["a", "##ß"]);
        // One part that is unknown makes all of it so.
        assert_eq!(
            pieces("unaffß unaffx able😀"),
            ["un", "##aff", "##ß", "[UNK]", "[UNK]"]
        );
        assert_eq!(pieces(""), [""; 0]);
        assert_eq!(pieces("\0\u{200d}\u{fffd} \u{301}"), [""; 0]);
    }

    #[test]
    fn words_are_bounded_and_names_of_tokens_are_text() {
        assert_eq!(pieces(&"a".repeat(20)).len(), 20);
        assert_eq!(pieces(&"a".repeat(21)), ["[UNK]"]);
        assert_eq!(pieces(&"a".repeat(1_000_000)), ["[UNK]"]);
        assert_eq!(pieces("[SEP]"), ["[", "sep", "]"]);
    }

    #[test]
    fn files_that_are_malformed_are_errors() {
        let file = file();
        for (from, to, part) in [
            ("\"[CLS]\":2", "\"[CLT]\":2", "no token [CLS]"),
            ("\"[CLS]\":2", "\"[CLS]\":-2", "invalid"),
            ("\"able\":7", "\"able\":18", "out of range"),
            ("\"able\":7", "\"able\":4294967295", "out of range"),
            ("\"[UNK]\",\n", "\"[UNQ]\",\n", "no token [UNQ]"),
            ("\"##\"", "\"\"", "another kind"),
            (":20,", ":2000,", "another kind"),
            ("\"WordPiece\"", "\"BPE\"", "unknown variant"),
            ("BertNormalizer", "NFC", "unknown variant"),
            ("BertPreTokenizer", "Whitespace", "unknown variant"),
        ] {
            assert!(file.contains(from), "{from}");
            let changed = file.replace(from, to);
            let error = WordPiece::parse(changed.as_bytes())
                .unwrap_err()
                .to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(WordPiece::parse(&vec![b' '; MAX_FILE_BYTES + 1]).is_err());
    }

    #[test]
    fn no_fuzzed_file_makes_it_panic() {
        let text = "Unaffable, cafés 東京 [SEP] 😀 \0a\u{301}";
        colloquy_fuzz::fuzz(&[file().into_bytes()], |file| {
            match WordPiece::parse(file) {
                Ok(tokenizer) => format!("{:?}", tokenizer.tokens(text, 8).len()),
                Err(error) => {
                    let kind = error.to_string();
                    let kind = kind.chars().filter(char::is_ascii_lowercase);
                    kind.take(60).collect()
                }
            }
        });
    }

    #[test]
    fn no_fuzzed_text_makes_it_panic() {
        let tokenizer = WordPiece::parse(file().as_bytes()).unwrap();
        let seed = "Unaffable, cafés 東京 [SEP] 😀 \0a\u{301}İ"
            .as_bytes()
            .to_vec();
        colloquy_fuzz::fuzz(&[seed], |text| {
            let text = String::from_utf8_lossy(text);
            let tokens = tokenizer.tokens(&text, 6);
            assert_eq!(tokens.len(), tokenizer.count(&text).min(6) + 2);
            format!("{tokens:?}")
        });
    }
}
