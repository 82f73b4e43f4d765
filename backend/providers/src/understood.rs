//! Which languages a transcriber understands, what to install for the others, and what no voice of this server can read.
//!
//! Calls, transcripts and voice messages in a language that nothing here understands are refused: a model transcribes them all the same,
//! as words of its own language.

use std::{collections::BTreeSet, fmt};

use colloquy_base::language::{NamedLanguage, language_tag, primary};
use colloquy_language::{Script, unread_script};

/// The model that understands every language of the interface, and tells them apart.
pub(crate) const EVERY_LANGUAGE: &str = "whisper-base";

/// The languages that a transcriber understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Understood {
    /// Any language; it also tells which one is spoken.
    Any,
    /// These, by their primary language subtags; it also tells which of them is spoken.
    Detected(BTreeSet<&'static str>),
    /// These, by their primary language subtags.
    Only(BTreeSet<&'static str>),
}

/// Why speech cannot be transcribed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotUnderstood {
    /// No model understands this language.
    #[error("no transcription model on this server understands {0:?}; {hint}", hint = Hint)]
    Language(String),
    /// The models understand many languages, but not this one.
    #[error(
        "no transcription model understands {0:?}; a speech service may (transcriber.base_url)"
    )]
    Unsupported(String),
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
    /// Most of the text is in a script that only voices of other languages read. espeak-ng names each letter of some scripts.
    #[error(
        "most of the text is in the {0} script, which is not read in the language of the request or its voice; set the language to auto or to \
         that of the text, or take a voice that reads it"
    )]
    OtherLanguage(Script),
    /// Most of the text is in a script that no voice reads.
    #[error(
        "most of the text is in the {0} script, which no voice of this server reads; it needs a speech service (synthesizer.base_url)"
    )]
    Script(Script),
}

impl NotSpoken {
    /// The check of voices whose text goes through espeak-ng, which has voices of the languages that are installed.
    pub(crate) fn check_for_espeak(
        voice: Option<&str>,
        language: Option<&str>,
        text: Option<&str>,
        is_installed: impl Fn(&str) -> bool,
    ) -> Result<(), Self> {
        Self::check_kanji(voice, language, text)?;
        let Some(text) = text else {
            return Ok(());
        };
        let of_voice = voice.and_then(own_language);
        let default = of_voice.is_none().then_some(DEFAULT_LANGUAGE);
        let tags = [of_voice.as_deref(), language.or(default)];
        let reads = |script: Script, tag: &str| script.is_of(tag) && is_installed(tag);
        let is_read = |script: Script| {
            script.language().is_none()
                || script.is_read_by_espeak()
                || tags.iter().flatten().any(|tag| reads(script, tag))
        };
        match unread_script(text, is_read) {
            None => Ok(()),
            Some(script) => match script.language().is_some_and(|other| reads(script, other)) {
                true => Err(Self::OtherLanguage(script)),
                false => Err(Self::Script(script)),
            },
        }
    }

    /// Checks a text for characters of Japanese that espeak-ng does not read.
    pub(crate) fn check_kanji(
        voice: Option<&str>,
        language: Option<&str>,
        text: Option<&str>,
    ) -> Result<(), Self> {
        match is_japanese(voice, language) && text.is_none_or(colloquy_language::has_han) {
            true => Err(Self::Kanji),
            false => Ok(()),
        }
    }
}

/// The language of a text where neither it nor its voice names one.
const DEFAULT_LANGUAGE: &str = "en";

/// What espeak-ng calls its Japanese voice: its language, and its name.
const JAPANESE: [&str; 2] = ["ja", "japanese"];

/// The Chinese languages of which espeak-ng has voices that read their characters.
const CHINESE: [&str; 3] = ["zh", "cmn", "yue"];

/// True if a text is Japanese: by its language, or by that of its voice where it names none.
fn is_japanese(voice: Option<&str>, language: Option<&str>) -> bool {
    match (language, voice) {
        (Some(language), _) => is_of(language, &["ja"]),
        (None, Some(voice)) => is_of(without_variant(voice), &JAPANESE),
        (None, None) => false,
    }
}

/// True if a tag is of one of these languages.
fn is_of(tag: &str, codes: &[&str]) -> bool {
    let primary = primary(tag);
    codes.iter().any(|code| primary.eq_ignore_ascii_case(code))
}

/// The name of one of espeak-ng's voices without its variant: `ja` of `ja+f3`.
fn without_variant(voice: &str) -> &str {
    voice.split_once('+').map_or(voice, |(name, _)| name)
}

/// The language of one of espeak-ng's voices, as a BCP 47 tag; `None` for a variant, which speaks any.
fn own_language(voice: &str) -> Option<String> {
    language_tag(without_variant(voice))
}

/// The language to speak a text in that names none, with a voice of espeak-ng's, or one of the language `own`; `None` for the voice's own.
pub(crate) fn detect_for_espeak(
    voice: Option<&str>,
    own: Option<&str>,
    text: &str,
) -> Option<&'static str> {
    let of_voice = voice.and_then(own_language);
    let own = own.or(of_voice.as_deref()).unwrap_or(DEFAULT_LANGUAGE);
    colloquy_language::detect_for_voice(own, text)
}

/// The voice for a text: the named one, or its variant alone (`f3` of `de+f3`), which takes the voice of the text's language, where that reads
/// the text's script and the named one does not.
pub(crate) fn voice_to_read<'a>(
    voice: Option<&'a str>,
    language: Option<&str>,
    text: &str,
) -> Option<&'a str> {
    let named = voice?;
    let (Some(own), Some(language)) = (own_language(named), language) else {
        return voice;
    };
    let reads = |tag: &str| unread_script(text, |script| script.is_of(tag)).is_none();
    match !reads(&own) && reads(language) {
        true => named.split_once('+').map(|(_, variant)| variant),
        false => voice,
    }
}

/// A text without Chinese characters and kana where the voice would say "Chinese letter" or "Japanese letter" for each of them, and without words in
/// scripts whose letters it would name. The Chinese characters of Japanese stay: a text in it is refused ([`NotSpoken::Kanji`]).
pub(crate) fn readable_by_espeak(
    voice: Option<&str>,
    language: Option<&str>,
    text: String,
) -> String {
    let voice_name = voice.map(without_variant);
    let mut tags = voice_name.into_iter().chain(language);
    let is_chinese = tags.any(|tag| is_of(tag, &CHINESE));
    let is_japanese = is_japanese(voice, language);
    let text = match is_japanese || is_chinese {
        true => text,
        false => colloquy_language::without_han(&text),
    };
    // A voice that is named reads its own script in a text of any language.
    let reads_kana = is_japanese || voice_name.is_some_and(|name| is_of(name, &JAPANESE));
    let text = match reads_kana {
        true => text,
        false => colloquy_language::without_kana(&text),
    };
    let of_voice = voice.and_then(own_language);
    let default = of_voice.is_none().then_some(DEFAULT_LANGUAGE);
    let tags = [of_voice.as_deref(), language.or(default)];
    colloquy_language::without_unread(&text, |script| {
        matches!(script, Script::Han | Script::Kana)
            || script.is_read_by_espeak()
            || tags.iter().flatten().any(|tag| script.is_of(tag))
    })
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
            Self::Detected(known) if !known.contains(code.as_str()) => {
                Err(NotUnderstood::Unsupported(language.to_owned()))
            }
            Self::Any | Self::Only(_) | Self::Detected(_) => Ok(()),
        }
    }

    /// Checks that a language is understood; if it is `auto`, that it can be detected.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_named(&self, language: &NamedLanguage) -> Result<(), NotUnderstood> {
        match language {
            NamedLanguage::Tag(tag) => self.check(tag),
            NamedLanguage::Detected => self.check_detection(),
        }
    }

    /// Checks that the spoken language can be detected.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check_detection(&self) -> Result<(), NotUnderstood> {
        match self {
            Self::Any | Self::Detected(_) => Ok(()),
            Self::Only(_) => Err(NotUnderstood::Detection),
        }
    }

    /// The codes of the languages; `None` for any.
    #[must_use]
    pub fn codes(&self) -> Option<Vec<&'static str>> {
        match self {
            Self::Any => None,
            Self::Only(known) | Self::Detected(known) => Some(known.iter().copied().collect()),
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
    fn named_languages_follow_the_rule_of_their_tag_or_of_detection() {
        let named = |name| NamedLanguage::parse(name).unwrap();
        let english = Understood::Only(BTreeSet::from(["en"]));
        for name in [
            "Turkish",
            "Ukrainian",
            "Catalan",
            "Indonesian",
            "Thai",
            "Finnish",
            "Swahili",
            "Vietnamese",
            "Türkçe",
            "tur",
            "tr-TR",
            "auto",
        ] {
            let refused = english.check_named(&named(name)).unwrap_err().to_string();
            let told = refused.ends_with("colloquy models pull whisper-base");
            assert!(told, "{name}: {refused}");
        }
        assert_eq!(english.check_named(&named("British English")), Ok(()));
        let several = Understood::Detected(BTreeSet::from(["en", "tr"]));
        assert_eq!(several.check_named(&named("Turkish")), Ok(()));
        assert_eq!(several.check_named(&named("auto")), Ok(()));
        let refused = several.check_named(&named("Zulu"));
        assert_eq!(refused, Err(NotUnderstood::Unsupported("zu".to_owned())));
        assert_eq!(several.codes(), Some(vec!["en", "tr"]));
    }

    #[test]
    fn any_language_is_understood_and_detected() {
        assert_eq!(Understood::Any.check("xx"), Ok(()));
        assert_eq!(Understood::Any.check_detection(), Ok(()));
        assert_eq!(Understood::Any.codes(), None);
    }

    #[test]
    fn kanji_are_not_read_by_espeak() {
        let check = |language, text| {
            NotSpoken::check_for_espeak(Some("f3"), Some(language), text, |_| true)
        };
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
    fn a_text_without_a_language_is_in_that_of_its_japanese_voice() {
        const KANJI: &str = "きょう東京へ";
        for voice in ["ja", "JA+f3", "Japanese", "japanese+Andy", "ja-JP"] {
            let check = |text| NotSpoken::check_for_espeak(Some(voice), None, text, |_| true);
            assert_eq!(check(Some("漢字")), Err(NotSpoken::Kanji), "{voice}");
            assert_eq!(check(Some(KANJI)), Err(NotSpoken::Kanji), "{voice}");
            assert_eq!(check(None), Err(NotSpoken::Kanji), "{voice}");
            assert_eq!(check(Some("きょう")), Ok(()), "{voice}");
            let readable = readable_by_espeak(Some(voice), None, KANJI.to_owned());
            assert_eq!(readable, KANJI, "{voice}: refused, not shortened");
            let text = Some("In 東京");
            let english = NotSpoken::check_for_espeak(Some(voice), Some("en"), text, |_| true);
            assert_eq!(english, Ok(()), "{voice}");
        }
        for voice in [None, Some("f3"), Some("jabberwock"), Some("javanese")] {
            let check = NotSpoken::check_for_espeak(voice, None, Some(KANJI), |_| true);
            let other = Err(NotSpoken::OtherLanguage(Script::Kana));
            assert_eq!(check, other, "{voice:?}");
        }
    }

    #[test]
    fn texts_in_a_script_that_the_voice_does_not_read_are_refused() {
        use NotSpoken::{OtherLanguage, Script as Unread};
        let is_installed = |tag: &str| !["lo", "zh-cn"].contains(&tag);
        for (voice, language, text, expected) in [
            (
                None,
                None,
                "Καλημέρα σας",
                Err(OtherLanguage(Script::Greek)),
            ),
            (
                Some("de+f3"),
                Some("en"),
                "Привет",
                Err(OtherLanguage(Script::Cyrillic)),
            ),
            (Some("de+f3"), Some("ru"), "Привет", Ok(())),
            (Some("Greek"), Some("en"), "Καλημέρα", Ok(())),
            (Some("f3"), Some("el"), "Καλημέρα", Ok(())),
            (
                Some("en"),
                None,
                "Say Καλημέρα to your Greek friends.",
                Ok(()),
            ),
            (Some("en"), Some("lo"), "ສະບາຍດີ", Err(Unread(Script::Lao))),
            (Some("en"), None, "ສະບາຍດີ", Err(Unread(Script::Lao))),
            (Some("en"), Some("zh-cn"), "漢字", Err(Unread(Script::Han))),
            (Some("yue"), None, "漢字", Ok(())),
            (Some("ko"), None, "漢字", Err(Unread(Script::Han))),
            (Some("en"), Some("tlh"), "nuqneH", Ok(())),
            (Some("en"), Some("lo"), "12, Vientiane", Ok(())),
        ] {
            let check = NotSpoken::check_for_espeak(voice, language, Some(text), is_installed);
            assert_eq!(check, expected, "{voice:?} {language:?} {text}");
        }
        let told = Unread(Script::Lao).to_string();
        assert!(
            told.contains("Lao script") && told.contains("synthesizer.base_url"),
            "{told}"
        );
        let told = OtherLanguage(Script::Thai).to_string();
        assert!(
            told.contains("Thai script") && told.contains("language to auto"),
            "{told}"
        );
    }

    #[test]
    fn a_text_is_in_the_language_of_its_script_unless_the_voice_reads_that() {
        for (voice, own, text, expected) in [
            (Some("en+f3"), None, "Καλημέρα", Some("el")),
            (None, Some("en-us"), "สวัสดี", Some("th")),
            (None, None, "Привет", Some("ru")),
            (Some("Ukrainian"), None, "Добранич, Андрію", None),
            (Some("f3"), None, "漢字", Some("zh-cn")),
            (Some("japanese+Andy"), None, "漢字", None),
        ] {
            assert_eq!(
                detect_for_espeak(voice, own, text),
                expected,
                "{voice:?} {text}"
            );
        }
    }

    #[test]
    fn a_voice_that_does_not_read_a_script_lends_its_variant_to_one_that_does() {
        for (voice, language, text, expected) in [
            (Some("de+f3"), Some("ru"), "Привет", Some("f3")),
            (Some("de"), Some("ru"), "Привет", None),
            (Some("de"), Some("ru"), "Berlin, 12", Some("de")),
            (Some("de"), Some("en"), "Привет", Some("de")),
            (Some("de"), None, "Привет", Some("de")),
            (Some("f3"), Some("ru"), "Привет", Some("f3")),
            (Some("uk"), Some("ru"), "Привет", Some("uk")),
            (None, Some("ru"), "Привет", None),
        ] {
            let chosen = voice_to_read(voice, language, text);
            assert_eq!(chosen, expected, "{voice:?} {language:?} {text}");
        }
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

    #[test]
    fn kana_reach_voices_that_read_them() {
        const TEXT: &str = "Say こんにちは to カナ!";
        for (voice, language, expected) in [
            (None, Some("ja-JP"), TEXT),
            (Some("ja+f3"), None, TEXT),
            (Some("japanese"), Some("en"), TEXT),
            (None, None, "Say to!"),
            (None, Some("en"), "Say to!"),
            (Some("f3"), Some("ko"), "Say to!"),
            (Some("cmn"), None, "Say to!"),
        ] {
            let readable = readable_by_espeak(voice, language, TEXT.to_owned());
            assert_eq!(readable, expected, "{voice:?} {language:?}");
        }
        let mixed = readable_by_espeak(None, Some("zh"), "去 東京 の カナ".to_owned());
        assert_eq!(mixed, "去 東京");
    }
}
