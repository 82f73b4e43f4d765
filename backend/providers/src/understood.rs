//! Which languages a transcriber understands, what to install for the others, and what no voice of this server can read.
//!
//! Calls, transcripts and voice messages in a language that nothing here understands are refused: a model transcribes them all the same,
//! as words of its own language.

use std::{collections::BTreeSet, fmt};

use colloquy_base::language::primary;

/// The model that understands every language of the interface, and tells them apart.
pub(crate) const EVERY_LANGUAGE: &str = "whisper-base";

/// The languages that a transcriber understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Understood {
    /// Any language; it also tells which one is spoken.
    Any,
    /// These, by their primary language subtags.
    Only(BTreeSet<&'static str>),
}

/// Why speech cannot be transcribed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotUnderstood {
    /// No model understands this language.
    #[error("no transcription model on this server understands {0:?}; {hint}", hint = Hint)]
    Language(String),
    /// No model tells which language is spoken.
    #[error("no transcription model on this server detects languages; {hint}", hint = Hint)]
    Detection,
}

/// Why a text cannot be spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSpoken {
    /// espeak-ng, which also makes the phonemes of the neural voices, says "Chinese letter" for each kanji.
    #[error(
        "the voices of this server read Japanese in kana only; kanji need a speech service (synthesizer.base_url)"
    )]
    Kanji,
}

impl NotSpoken {
    /// The check of voices whose text goes through espeak-ng.
    pub(crate) fn check_for_espeak(language: &str, text: Option<&str>) -> Result<(), Self> {
        let is_japanese = primary(language).eq_ignore_ascii_case("ja");
        match is_japanese && text.is_none_or(colloquy_language::has_han) {
            true => Err(Self::Kanji),
            false => Ok(()),
        }
    }
}

/// The Chinese languages of which espeak-ng has voices that read their characters.
const CHINESE: [&str; 3] = ["zh", "cmn", "yue"];

/// A text without Chinese characters where the voice would say "Chinese letter" for each of them. Those of Japanese stay: a text in it is
/// refused ([`NotSpoken::Kanji`]).
pub(crate) fn readable_by_espeak(
    voice: Option<&str>,
    language: Option<&str>,
    text: String,
) -> String {
    let is_of = |tag: &str, code: &str| primary(tag).eq_ignore_ascii_case(code);
    let is_japanese = language.is_some_and(|tag| is_of(tag, "ja"));
    let voice = voice.and_then(|voice| voice.split('+').next());
    let mut tags = voice.into_iter().chain(language);
    let is_chinese = tags.any(|tag| CHINESE.iter().any(|code| is_of(tag, code)));
    match is_japanese || is_chinese {
        true => text,
        false => colloquy_language::without_han(&text),
    }
}

/// What an operator does about it.
struct Hint;

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "install one with: colloquy models pull {EVERY_LANGUAGE}")
    }
}

impl Understood {
    /// Checks that a language, a BCP 47 tag, is understood.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self, language: &str) -> Result<(), NotUnderstood> {
        let code = primary(language).to_lowercase();
        match self {
            Self::Only(known) if !known.contains(code.as_str()) => {
                Err(NotUnderstood::Language(language.to_owned()))
            }
            Self::Any | Self::Only(_) => Ok(()),
        }
    }

    /// Checks that the spoken language can be detected.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check_detection(&self) -> Result<(), NotUnderstood> {
        match self {
            Self::Any => Ok(()),
            Self::Only(_) => Err(NotUnderstood::Detection),
        }
    }

    /// The codes of the languages; `None` for any.
    #[must_use]
    pub fn codes(&self) -> Option<Vec<&'static str>> {
        match self {
            Self::Any => None,
            Self::Only(known) => Some(known.iter().copied().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use colloquy_models::manifest::{self, Languages};

    use super::*;

    #[test]
    fn the_model_to_install_understands_every_language() {
        let languages = manifest::model(EVERY_LANGUAGE).map(|model| model.languages);
        assert_eq!(languages, Some(Languages::All));
    }

    #[test]
    fn languages_beyond_the_known_ones_are_refused_with_what_to_install() {
        let english = Understood::Only(BTreeSet::from(["en"]));
        for tag in ["en", "en-US", "EN-gb"] {
            assert_eq!(english.check(tag), Ok(()), "{tag}");
        }
        let refused = english.check("de-AT").unwrap_err().to_string();
        assert_eq!(
            refused,
            "no transcription model on this server understands \"de-AT\"; \
             install one with: colloquy models pull whisper-base"
        );
        let undetected = english.check_detection().unwrap_err().to_string();
        assert!(undetected.contains("detects languages") && undetected.contains(EVERY_LANGUAGE));
        assert_eq!(english.codes(), Some(vec!["en"]));
    }

    #[test]
    fn any_language_is_understood_and_detected() {
        assert_eq!(Understood::Any.check("xx"), Ok(()));
        assert_eq!(Understood::Any.check_detection(), Ok(()));
        assert_eq!(Understood::Any.codes(), None);
    }

    #[test]
    fn kanji_are_not_read_by_espeak() {
        let check = NotSpoken::check_for_espeak;
        assert_eq!(check("ja", Some("きょうは いい てんきです。2026")), Ok(()));
        assert_eq!(check("ja-JP", Some("今日は")), Err(NotSpoken::Kanji));
        assert_eq!(
            check("ja", None),
            Err(NotSpoken::Kanji),
            "whatever may come"
        );
        assert_eq!(check("zh-cn", Some("今天")), Ok(()));
        assert_eq!(check("en", None), Ok(()));
    }

    #[test]
    fn chinese_characters_reach_voices_that_read_them() {
        const TEXT: &str = "Welcome to 東京!";
        let readable = |voice, language| readable_by_espeak(voice, language, TEXT.to_owned());
        for (voice, language) in [
            (None, Some("zh-CN")),
            (Some("cmn+f3"), Some("en")),
            (Some("yue"), None),
            (Some("f3"), Some("ja")),
        ] {
            assert_eq!(readable(voice, language), TEXT, "{voice:?} {language:?}");
        }
        for (voice, language) in [
            (None, None),
            (None, Some("en-US")),
            (Some("hak"), Some("de")),
            (Some("f3"), Some("ko")),
        ] {
            assert_eq!(
                readable(voice, language),
                "Welcome to!",
                "{voice:?} {language:?}"
            );
        }
        assert_eq!(readable_by_espeak(None, Some("en"), "東京".to_owned()), "");
    }
}
