//! Words: which of the tokens of a text are one, when it was said, and how sure it is.

use std::{ops::Range, time::Duration};

use super::{pauses::Pauses, vocabulary::Vocabulary};

/// Marks that stand before the word that they belong to.
const OPENING: &[char] = &[
    '"', '\'', '(', '[', '{', '¿', '¡', '“', '‘', '«', '„', '「', '『', '（', '【', '《', '〈',
    '-', '–', '—',
];

/// What is said although it is no letter and no number.
const SAID: &[char] = &[
    '$', '€', '£', '¥', '₹', '%', '&', '+', '=', '@', '#', '°', '§', '％', '＆',
];

/// A word of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// The word with the punctuation at it, without blanks around.
    pub text: String,
    /// When it begins, from the beginning of the utterance.
    pub start: Duration,
    /// When it ends.
    pub end: Duration,
    /// How sure it is, 0 to 1: the geometric mean of the probabilities of its tokens, without those of punctuation.
    pub probability: f32,
}

/// Tokens that are a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    text: String,
    /// Those that are said: without punctuation at the beginning and at the end, if there is something else.
    tokens: Range<usize>,
    is_said: bool,
}

impl Span {
    /// Puts what follows to it.
    fn push(&mut self, next: Span) {
        self.text.push_str(&next.text);
        match (self.is_said, next.is_said) {
            (true, false) => {}
            (false, true) => self.tokens = next.tokens,
            _ => self.tokens.end = next.tokens.end,
        }
        self.is_said |= next.is_said;
    }

    fn opens(&self) -> bool {
        self.text
            .chars()
            .all(|letter| letter.is_whitespace() || OPENING.contains(&letter))
    }
}

/// The words of a text: divided at blanks in languages that have them, and wherever a token ends in others. Punctuation that
/// stands alone belongs to the word before it, or after it if it opens something.
pub(super) fn split(vocabulary: &Vocabulary, tokens: &[usize], has_blanks: bool) -> Vec<Span> {
    let mut words: Vec<Span> = Vec::new();
    for part in characters(vocabulary, tokens) {
        let begins = !has_blanks || part.text.starts_with(char::is_whitespace);
        match words.last_mut() {
            Some(word) if !begins => word.push(part),
            _ => words.push(part),
        }
    }
    let mut whole: Vec<Span> = Vec::new();
    let mut opening: Option<Span> = None;
    for word in words {
        let word = match opening.take() {
            Some(mut opening) => {
                opening.push(word);
                opening
            }
            None => word,
        };
        if word.is_said {
            whole.push(word);
            continue;
        }
        match whole.last_mut() {
            Some(before) if !word.opens() => before.push(word),
            _ => opening = Some(word),
        }
    }
    match (whole.last_mut(), opening) {
        (Some(word), Some(rest)) => word.push(rest),
        (None, Some(rest)) => whole.push(rest),
        (_, None) => {}
    }
    whole
}

/// Tokens by themselves, or several of them where a character begins in one and ends in another.
fn characters(vocabulary: &Vocabulary, tokens: &[usize]) -> Vec<Span> {
    let mut parts = Vec::new();
    let (mut first, mut bytes) = (0, Vec::new());
    for (index, token) in tokens.iter().enumerate() {
        bytes.extend_from_slice(vocabulary.piece(*token));
        if is_whole(&bytes) || index + 1 == tokens.len() {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            parts.push(Span {
                is_said: text
                    .chars()
                    .any(|letter| letter.is_alphanumeric() || SAID.contains(&letter)),
                text,
                tokens: first..index + 1,
            });
            (first, bytes) = (index + 1, Vec::new());
        }
    }
    parts
}

/// Whether bytes do not end within a character.
fn is_whole(bytes: &[u8]) -> bool {
    let last = bytes.utf8_chunks().last();
    let cut = last.map_or(&[][..], |chunk| chunk.invalid());
    // Bytes that can be no character are whole; those that lack only others are not.
    std::str::from_utf8(cut).map_or_else(|error| error.error_len().is_some(), |_| true)
}

/// When words were said, of which it is known at which position each of their tokens begins, and where the text ends.
pub(super) fn timed(
    spans: Vec<Span>,
    begins: &[usize],
    probabilities: &[f32],
    pauses: &Pauses,
) -> Vec<Word> {
    let at = |token: usize| begins.get(token).or(begins.last()).copied().unwrap_or(0);
    let raw: Vec<_> = spans
        .iter()
        .map(|span| at(span.tokens.start)..at(span.tokens.end))
        .collect();
    let settled = pauses.settle(&raw);
    spans
        .into_iter()
        .zip(settled)
        .map(|(span, positions)| Word {
            text: span.text.trim().to_owned(),
            start: pauses.time(positions.start),
            end: pauses.time(positions.end),
            probability: mean(probabilities.get(span.tokens).unwrap_or_default()),
        })
        .filter(|word| !word.text.is_empty())
        .collect()
}

/// The geometric mean.
pub(super) fn mean(probabilities: &[f32]) -> f32 {
    let logarithms: f32 = probabilities.iter().map(|one| one.max(1e-10).ln()).sum();
    match probabilities.len() {
        0 => 0.0,
        count => (logarithms / count as f32).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of tokens with these texts, each with those of its tokens that are said.
    fn words(tokens: &[&str], has_blanks: bool) -> Vec<(String, Range<usize>)> {
        let pieces: Vec<_> = tokens.iter().map(|token| token.replace(' ', "Ġ")).collect();
        let vocabulary = Vocabulary::parse(pieces.join("\n").as_bytes(), pieces.len()).unwrap();
        let tokens: Vec<_> = (0..pieces.len()).collect();
        let words = split(&vocabulary, &tokens, has_blanks).into_iter();
        words.map(|word| (word.text, word.tokens)).collect()
    }

    fn texts(tokens: &[&str], has_blanks: bool) -> Vec<String> {
        let words = words(tokens, has_blanks).into_iter();
        words.map(|(text, _)| text).collect()
    }

    #[test]
    fn words_are_divided_at_blanks_and_have_their_punctuation() {
        let tokens = [
            " He", "llo", ",", " Mr", ".", " \"", "O", "'", "Neil", "\"", "!",
        ];
        let expected = [(" Hello,", 0..2), (" Mr.", 3..4), (" \"O'Neil\"!", 6..9)];
        assert_eq!(
            words(&tokens, true),
            expected.map(|(text, tokens)| (text.to_owned(), tokens))
        );
        let expected = [" Well ...", " - no -", " $5", " &", " 3%."];
        let tokens = [
            " Well", " ...", " -", " no", " -", " $", "5", " &", " 3", "%", ".",
        ];
        // What opens something belongs to what follows it, and to what is before it at the end.
        assert_eq!(texts(&tokens[..4], true), [" Well ...", " - no"]);
        assert_eq!(texts(&tokens[5..], true), expected[2..]);
        assert_eq!(texts(&tokens[2..5], true), [" - no -"]);
        assert_eq!(texts(&[" ..."], true), [" ..."]);
        assert_eq!(texts(&[" ...", " Yes"], true), [" ... Yes"]);
        assert!(texts(&[], true).is_empty());
    }

    #[test]
    fn without_blanks_each_token_is_a_word() {
        // 你 and 好 are of three bytes each, of which the first token has two.
        let tokens = ["ä½", "łå¥½", "ï¼Į", "ä¸ĸçķĮ", "ãĢĤ"];
        assert_eq!(texts(&tokens, false), ["你好，", "世界。"]);
        assert_eq!(words(&tokens, false)[0].1, 0..2);
        assert_eq!(
            texts(&["ãĢĮ", "ä¸ĸ", "çķĮ", "ãĢį"], false),
            ["「世", "界」"]
        );
    }

    #[test]
    fn bytes_that_are_no_text_lose_nothing() {
        let pieces = "Ã\n©\nÿ\nĠa\n".as_bytes();
        let vocabulary = Vocabulary::parse(pieces, 4).unwrap();
        for tokens in [[0, 1, 3, 2], [0, 0, 1, 3], [2, 0, 3, 0], [1, 1, 2, 3]] {
            let words = split(&vocabulary, &tokens, false);
            let text: String = words.into_iter().map(|word| word.text).collect();
            assert_eq!(text, vocabulary.text(tokens));
        }
    }

    #[test]
    fn words_come_one_after_the_other_and_are_as_sure_as_their_tokens() {
        let pieces = "ĠHe\nllo\n,\nĠyou".as_bytes();
        let vocabulary = Vocabulary::parse(pieces, 4).unwrap();
        let spans = split(&vocabulary, &[0, 1, 2, 3], true);
        let pauses = Pauses::of(&[0.0; 32_000]);
        let probabilities = [0.5, 0.125, 0.01, 0.75];
        let words = timed(spans, &[5, 10, 15, 20, 200], &probabilities, &pauses);
        let at = Duration::from_millis;
        assert_eq!(
            (words[0].text.as_str(), words[0].start, words[0].end),
            ("Hello,", at(100), at(300))
        );
        // A comma takes no time, and the utterance ends at 2 s.
        assert_eq!(
            (words[1].text.as_str(), words[1].start, words[1].end),
            ("you", at(300), at(2_000))
        );
        assert!((words[0].probability - 0.25).abs() < 1e-6);
        assert!((words[1].probability - 0.75).abs() < 1e-6);
        assert!(timed(Vec::new(), &[], &[], &pauses).is_empty());
    }
}
