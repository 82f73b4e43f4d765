//! Whisper's tokens that are no text, and those of text that are never said.

use crate::InferenceError;

/// The languages, by their codes, in the order of their tokens.
pub(super) const LANGUAGES: [&str; 99] = [
    "en", "zh", "de", "es", "ru", "ko", "fr", "ja", "pt", "tr", "pl", "ca", "nl", "ar", "sv", "it",
    "id", "hi", "fi", "vi", "he", "uk", "el", "ms", "cs", "ro", "da", "hu", "ta", "no", "th", "ur",
    "hr", "bg", "lt", "la", "mi", "ml", "cy", "sk", "te", "fa", "lv", "bn", "sr", "az", "sl", "kn",
    "et", "mk", "br", "eu", "is", "hy", "ne", "mn", "bs", "kk", "sq", "sw", "gl", "mr", "pa", "si",
    "km", "sn", "yo", "so", "af", "oc", "ka", "be", "tg", "sd", "gu", "am", "yi", "lo", "uz", "fo",
    "ht", "ps", "tk", "nn", "mt", "sa", "lb", "my", "bo", "tl", "mg", "as", "tt", "haw", "ln",
    "ha", "ba", "jw", "su",
];

/// Languages that are written without blanks between words.
const WITHOUT_BLANKS: [&str; 5] = ["zh", "ja", "th", "lo", "my"];

/// Tokens of the models for English.
const ENGLISH: usize = 51_864;

/// Tokens of the models for all languages.
const MULTILINGUAL: usize = 51_865;

/// What is written and not said, such as brackets, notes and `♪`, in the models for English.
const NOT_SAID_ENGLISH: &[usize] = &[
    1, 2, 7, 8, 9, 10, 14, 25, 26, 27, 28, 29, 31, 58, 59, 60, 61, 62, 63, 90, 91, 92, 93, 357,
    366, 438, 532, 685, 705, 796, 930, 1058, 1220, 1267, 1279, 1303, 1343, 1377, 1391, 1635, 1782,
    1875, 2162, 2361, 2488, 3467, 4008, 4211, 4600, 4808, 5299, 5855, 6329, 7203, 9609, 9959,
    10563, 10786, 11420, 11709, 11907, 13163, 13697, 13700, 14808, 15306, 16410, 16791, 17992,
    19203, 19510, 20724, 22305, 22935, 27007, 30109, 30420, 33409, 34949, 40283, 40493, 40549,
    47282, 49146,
];

/// The same in the models for all languages.
const NOT_SAID: &[usize] = &[
    1, 2, 7, 8, 9, 10, 14, 25, 26, 27, 28, 29, 31, 58, 59, 60, 61, 62, 63, 90, 91, 92, 93, 359,
    503, 522, 542, 873, 893, 902, 918, 922, 931, 1350, 1853, 1982, 2460, 2627, 3246, 3253, 3268,
    3536, 3846, 3961, 4183, 4667, 6585, 6647, 7273, 9061, 9383, 10428, 10929, 11938, 12033, 12331,
    12562, 13793, 14157, 14635, 15265, 15618, 16553, 16604, 18362, 18956, 20075, 21675, 22520,
    26130, 26161, 26435, 28279, 29464, 31650, 32302, 32470, 36865, 42863, 47425, 49870, 50254,
];

/// A blank, which no text begins with.
const BLANK: usize = 220;

/// The most tokens that a text begins with.
pub(super) const LONGEST_PROMPT: usize = 4;

/// Whether a language is written with blanks between words.
pub(super) fn has_blanks(language: &str) -> bool {
    !WITHOUT_BLANKS.contains(&language)
}

/// The tokens of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tokens {
    /// The end of a text; what is before it is text.
    pub(super) end: usize,
    is_multilingual: bool,
}

impl Tokens {
    /// Those of a model with so many.
    pub(super) fn of(vocabulary: usize) -> Result<Self, InferenceError> {
        match vocabulary {
            ENGLISH => Ok(Self {
                end: 50_256,
                is_multilingual: false,
            }),
            MULTILINGUAL => Ok(Self {
                end: 50_257,
                is_multilingual: true,
            }),
            other => Err(InferenceError::Malformed(format!(
                "models with {other} tokens are not known"
            ))),
        }
    }

    /// Whether the model knows other languages than English.
    pub(super) fn is_multilingual(&self) -> bool {
        self.is_multilingual
    }

    pub(super) fn start(&self) -> usize {
        self.end + 1
    }

    /// The token of each language; none in the models for English.
    pub(super) fn languages(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let first = self.start() + 1;
        let known = if self.is_multilingual {
            LANGUAGES.len()
        } else {
            0
        };
        LANGUAGES.into_iter().zip(first..).take(known)
    }

    fn transcribe(&self) -> usize {
        self.start() + 101
    }

    /// What is said of a sound without speech, first of all.
    pub(super) fn no_speech(&self) -> usize {
        self.start() + 104
    }

    /// What words come after that somebody expects, or that were said before.
    pub(super) fn previous(&self) -> usize {
        self.start() + 103
    }

    fn no_timestamps(&self) -> usize {
        self.start() + 105
    }

    /// What a text begins with: one in this language. `None` when the model does not know it.
    pub(super) fn prompt(&self, language: &str) -> Option<Vec<usize>> {
        if !self.is_multilingual {
            return (language == "en").then(|| vec![self.start(), self.no_timestamps()]);
        }
        let (_, token) = self.languages().find(|(code, _)| *code == language)?;
        Some(vec![
            self.start(),
            token,
            self.transcribe(),
            self.no_timestamps(),
        ])
    }

    /// Makes everything impossible that no text has; at its beginning, also a blank and its end.
    pub(super) fn suppress(&self, scores: &mut [f32], is_first: bool) {
        let not_said = match self.is_multilingual {
            true => NOT_SAID,
            false => NOT_SAID_ENGLISH,
        };
        let first = [BLANK, self.end];
        let first = first.iter().filter(|_| is_first);
        for token in not_said.iter().chain(first) {
            if let Some(score) = scores.get_mut(*token) {
                *score = f32::MIN;
            }
        }
        if let Some(special) = scores.get_mut(self.start()..) {
            special.fill(f32::MIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_name_their_language() {
        let english = Tokens::of(51_864).unwrap();
        assert_eq!(english.prompt("en").unwrap(), [50_257, 50_362]);
        assert_eq!(english.prompt("de"), None);
        assert_eq!((english.previous(), english.no_speech()), (50_360, 50_361));
        let all = Tokens::of(51_865).unwrap();
        assert_eq!(all.prompt("en").unwrap(), [50_258, 50_259, 50_359, 50_363]);
        assert_eq!(all.prompt("su").unwrap()[1], 50_357);
        assert_eq!(all.prompt("xx"), None);
        assert_eq!((all.previous(), all.no_speech()), (50_361, 50_362));
        assert!(Tokens::of(51_866).is_err());
    }

    #[test]
    fn only_what_is_said_is_possible() {
        for vocabulary in [51_864, 51_865] {
            let tokens = Tokens::of(vocabulary).unwrap();
            for is_first in [true, false] {
                let mut scores = vec![0.0; vocabulary];
                tokens.suppress(&mut scores, is_first);
                let is_possible = |token: usize| scores[token] == 0.0;
                assert_eq!(is_possible(tokens.end), !is_first);
                assert_eq!(is_possible(BLANK), !is_first);
                assert!(is_possible(0) && is_possible(1_000) && !is_possible(1));
                assert!((tokens.start()..vocabulary).all(|token| !is_possible(token)));
            }
            tokens.suppress(&mut [0.0; 10], true);
        }
    }
}
