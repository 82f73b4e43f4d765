//! Repetitions in a text: its last sentence said twice, and the same words many times running.

use std::ops::Range;

/// The words of the shortest sentence whose repetition is doubted: people do say "no, no".
const DOUBTED_SENTENCE_WORDS: usize = 3;
/// How often words of a run stand there at least.
const RUN_TIMES: usize = 3;
/// The most words that a run repeats.
const MOST_RUN_WORDS: usize = 16;
/// Scripts without blanks, in which each letter counts as a word: those of Thailand, Laos, Myanmar and Cambodia, and of East Asia without Hangul.
const WITHOUT_BLANKS: [(char, char); 5] = [
    ('\u{e00}', '\u{eff}'),
    ('\u{1000}', '\u{109f}'),
    ('\u{1780}', '\u{17ff}'),
    ('\u{2e80}', '\u{a4cf}'),
    ('\u{f900}', '\u{faff}'),
];

/// Words that stand in a text many times running.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The bytes of their last time, with what stands before it, and of a last time that is not complete.
    pub(super) last: Range<usize>,
    /// The number of words of the whole text.
    pub(super) all_words: usize,
}

/// Returns the text without its last sentence if that is the one before it once more.
pub(super) fn without_repetition(text: &str) -> Option<&str> {
    let sentences = text.split_inclusive(['.', '?', '!', '。', '？', '！']);
    let mut start = text.len();
    let backwards = sentences.rev().map(|sentence| {
        start -= sentence.len();
        let words = words(sentence).map(|(_, word)| word.to_lowercase());
        (start, words.collect::<Vec<_>>())
    });
    let mut said = backwards.filter(|(_, words)| !words.is_empty());
    let ((start, last), (_, before)) = (said.next()?, said.next()?);
    let repeats = last.len() >= DOUBTED_SENTENCE_WORDS && last == before;
    repeats.then(|| text[..start].trim_end())
}

/// Returns the longest run of a text, if it has one.
pub(super) fn longest_run(text: &str) -> Option<Run> {
    let mut ends = Vec::new();
    let mut all = Vec::new();
    for (start, word) in words(text) {
        for (at, part) in parts(word) {
            ends.push(start + at + part.len());
            all.push(part.to_lowercase());
        }
    }
    let mut longest = (0, 0, 0);
    for unit in 1..=MOST_RUN_WORDS.min(all.len() / RUN_TIMES) {
        let mut same = 0;
        for (at, (before, word)) in all.iter().zip(&all[unit..]).enumerate() {
            same = if word == before { same + 1 } else { 0 };
            let length = (same / unit + 1) * unit;
            if length >= RUN_TIMES * unit && length > longest.0 {
                longest = (length, at + unit + 1 - same % unit, unit);
            }
        }
    }
    let (length, end, unit) = longest;
    if length == 0 {
        return None;
    }
    let is_beginning = all[end..].len() < unit && all[end - unit..].starts_with(&all[end..]);
    let last = if is_beginning { all.len() } else { end };
    Some(Run {
        last: ends[end - unit - 1]..ends[last - 1],
        all_words: all.len(),
    })
}

/// The words of a text, and where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_between = |letter: char| !letter.is_alphanumeric() && letter != '\'';
    let mut start = 0;
    let split = text.split_inclusive(is_between).map(move |part| {
        let at = start;
        start += part.len();
        (at, part.trim_end_matches(is_between))
    });
    split.filter(|(_, word)| !word.is_empty())
}

/// The letters of a word where each counts, and where they begin; otherwise the word.
fn parts(word: &str) -> Vec<(usize, &str)> {
    let counts = |letter: char| {
        let mut ranges = WITHOUT_BLANKS.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&letter))
    };
    match word.contains(counts) {
        true => word
            .char_indices()
            .map(|(at, letter)| (at, &word[at..at + letter.len_utf8()]))
            .collect(),
        false => vec![(0, word)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_is_the_last_sentence_said_twice() {
        for (text, without) in [
            (
                "See you tomorrow. See you tomorrow.",
                Some("See you tomorrow."),
            ),
            (
                "We met. See you tomorrow! see you, tomorrow ...",
                Some("We met. See you tomorrow!"),
            ),
            ("See you tomorrow. See you tomorrow. Bye.", None),
            ("No. No.", None),
            ("See you tomorrow.", None),
            ("", None),
        ] {
            assert_eq!(without_repetition(text), without, "{text}");
        }
    }

    #[test]
    fn a_run_is_the_same_words_three_times_or_more() {
        let shorter = |text: &str| {
            longest_run(text).map(|run| {
                let mut text = text.to_owned();
                text.replace_range(run.last, "");
                (text, run.all_words)
            })
        };
        for (text, expected, words) in [
            (
                "No, no, no, no. I do not want that.",
                "No, no, no. I do not want that.",
                9,
            ),
            (
                "Nine. Five! five, Five. Five.",
                "Nine. Five! five, Five.",
                5,
            ),
            (
                "I'm going I'm going I'm going I'm",
                "I'm going I'm going",
                7,
            ),
            (
                "We said see you soon see you soon see you soon now",
                "We said see you soon see you soon now",
                12,
            ),
            ("はいはいはい、そう。", "はいはい、そう。", 8),
        ] {
            assert_eq!(shorter(text), Some((expected.to_owned(), words)), "{text}");
        }
        for text in [
            "",
            "No. No.",
            "See you tomorrow. See you tomorrow.",
            "はいはい",
        ] {
            assert_eq!(shorter(text), None, "{text}");
        }
    }
}
