//! What is asked: read from JSON or from a form, and checked before anything is stored. All wrong fields are told at once.

use colloquy_audio::media::Container;
use colloquy_base::invalid::InvalidField;
use colloquy_blobs::Written;
use colloquy_providers::Understood;
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

/// The most terms that may be boosted.
pub(super) const MAX_BOOSTED: usize = 100;
/// The longest of them, in characters.
const MAX_BOOSTED_CHARS: usize = 100;
/// The longest address, in bytes.
const MAX_URL_BYTES: usize = 8 * 1024;

/// A recording to write down, by its address.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = CreateTranscript)]
pub(super) struct TranscriptBody {
    /// Where the recording is got from.
    #[schema(required)]
    pub(super) audio_url: Option<String>,
    /// The language that is spoken.
    #[schema(value_type = Option<LanguageCode>, default = "en_us")]
    pub(super) language_code: Option<String>,
    /// Whether the language is detected; `language_code` then counts for nothing.
    #[schema(default = false)]
    pub(super) language_auto: Option<bool>,
    /// Whether words such as "um" are kept.
    #[schema(default = false)]
    pub(super) filler_words: Option<bool>,
    /// Whether the text has capital letters and punctuation.
    #[schema(default = true)]
    pub(super) format_text: Option<bool>,
    /// Terms that are likelier than they would be; at most 100, of at most 100 characters each.
    #[schema(max_items = 100)]
    pub(super) boosted_words: Option<Vec<String>>,
}

/// A recording to write down, as a file.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct TranscriptForm {
    /// The recording: MP3, WAV, Ogg, FLAC, M4A, MP4 or WebM, 100 MB at most. Exactly one of `audio` and `audio_url` is given.
    #[schema(value_type = Option<String>, format = Binary)]
    audio: Option<Vec<u8>>,
    /// Where the recording is got from.
    audio_url: Option<String>,
    /// The language that is spoken.
    #[schema(value_type = Option<LanguageCode>, default = "en_us")]
    language_code: Option<String>,
    /// Whether the language is detected; `language_code` then counts for nothing.
    #[schema(default = false)]
    language_auto: Option<bool>,
    /// Whether words such as "um" are kept.
    #[schema(default = false)]
    filler_words: Option<bool>,
    /// Whether the text has capital letters and punctuation.
    #[schema(default = true)]
    format_text: Option<bool>,
    /// Terms that are likelier than they would be; the field is repeated.
    #[schema(rename = "boosted_words[]", max_items = 100)]
    boosted_words: Option<Vec<String>>,
}

/// Makes [`LanguageCode`] of a line for each: its name, its code, and its BCP 47 tag.
macro_rules! languages {
    ($($name:ident = $code:literal, $tag:literal;)+) => {
        /// A language that recordings may be in.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub(super) enum LanguageCode {
            $(
                #[doc = $tag]
                #[serde(rename = $code)]
                $name,
            )+
        }

        impl LanguageCode {
            /// The codes, in the order of the document.
            pub(super) const CODES: [&str; [$($code,)+].len()] = [$($code,)+];

            pub(super) fn of_code(code: &str) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)+
                    _ => None,
                }
            }

            pub(super) fn tag(self) -> &'static str {
                match self {
                    $(Self::$name => $tag,)+
                }
            }
        }
    };
}

languages! {
    En = "en", "en";
    EnUs = "en_us", "en-US";
    EnUk = "en_uk", "en-GB";
    EnAu = "en_au", "en-AU";
    Es = "es", "es";
    Fr = "fr", "fr";
    De = "de", "de";
    Id = "id", "id";
    It = "it", "it";
    Ja = "ja", "ja";
    Nl = "nl", "nl";
    Pl = "pl", "pl";
    Pt = "pt", "pt";
    Ru = "ru", "ru";
    Tr = "tr", "tr";
    Uk = "uk", "uk";
    Ca = "ca", "ca";
}

/// The languages that are told apart when none is named.
pub(super) const DETECTED: [&str; 14] = [
    "en", "es", "fr", "de", "id", "it", "ja", "nl", "pl", "pt", "ru", "tr", "uk", "ca",
];

/// How a recording is to be written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Options {
    /// The language; `None` to detect it.
    pub(super) language: Option<LanguageCode>,
    pub(super) filler_words: bool,
    pub(super) format_text: bool,
    pub(super) boosted_words: Vec<String>,
}

/// A recording that was uploaded.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    pub(super) container: Container,
    pub(super) written: Written,
}

/// Where the recording comes from.
#[derive(Debug)]
pub(super) enum Source {
    Upload(Upload),
    Url(Url),
}

impl TranscriptBody {
    /// The options, and the address where one is given.
    ///
    /// # Errors
    /// All fields that are wrong.
    pub(super) fn check(
        self,
        has_upload: bool,
        allowed: impl FnOnce(&Url) -> Result<(), String>,
        understood: &Understood,
    ) -> Result<(Options, Option<Url>), Vec<InvalidField>> {
        let mut wrong = Vec::new();
        let mut tell =
            |field: String, message: String| wrong.push(InvalidField::new(field, message));
        let url = match (self.audio_url.filter(|url| !url.is_empty()), has_upload) {
            (None, true) => None,
            (None, false) => {
                tell(
                    "audio_url".to_owned(),
                    "is required when there is no audio".to_owned(),
                );
                tell(
                    "audio".to_owned(),
                    "is required when there is no audio_url".to_owned(),
                );
                None
            }
            (Some(_), true) => {
                tell(
                    "audio_url".to_owned(),
                    "is given beside audio; only one of them may be".to_owned(),
                );
                None
            }
            (Some(url), false) => match address(&url, allowed) {
                Ok(url) => Some(url),
                Err(message) => {
                    tell("audio_url".to_owned(), message);
                    None
                }
            },
        };
        let language = match self.language_code.as_deref() {
            None => Some(LanguageCode::EnUs),
            Some(code) => {
                let known = LanguageCode::of_code(code);
                if known.is_none() {
                    let codes = LanguageCode::CODES.join(", ");
                    tell("language_code".to_owned(), format!("is one of {codes}"));
                }
                known
            }
        };
        let is_detected = self.language_auto.unwrap_or_default();
        let language = language.filter(|_| !is_detected);
        if is_detected && let Err(error) = understood.check_detection() {
            tell("language_auto".to_owned(), error.to_string());
        }
        if let Some(language) = language
            && let Err(error) = understood.check(language.tag())
        {
            tell("language_code".to_owned(), error.to_string());
        }
        let boosted_words = self.boosted_words.unwrap_or_default();
        if boosted_words.len() > MAX_BOOSTED {
            tell(
                "boosted_words".to_owned(),
                format!("has at most {MAX_BOOSTED} items"),
            );
        }
        for (index, term) in boosted_words.iter().enumerate().take(MAX_BOOSTED) {
            let is_short = (1..=MAX_BOOSTED_CHARS).contains(&term.trim().chars().count());
            if !is_short || term.chars().any(char::is_control) {
                let message = format!("has 1 to {MAX_BOOSTED_CHARS} characters");
                tell(format!("boosted_words.{index}"), message);
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let options = Options {
            language,
            filler_words: self.filler_words.unwrap_or_default(),
            format_text: self.format_text.unwrap_or(true),
            boosted_words: boosted_words
                .iter()
                .map(|term| term.trim().to_owned())
                .collect(),
        };
        Ok((options, url))
    }
}

fn address(url: &str, allowed: impl FnOnce(&Url) -> Result<(), String>) -> Result<Url, String> {
    if url.len() > MAX_URL_BYTES {
        return Err(format!("has at most {MAX_URL_BYTES} bytes"));
    }
    let url = Url::parse(url).map_err(|_| "is not an http or https URL".to_owned())?;
    allowed(&url)?;
    Ok(url)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use colloquy_base::json;
    use colloquy_fuzz::fuzz;

    use super::*;

    fn check(body: &str, has_upload: bool) -> Result<(Options, Option<Url>), Vec<String>> {
        check_for(&Understood::Any, body, has_upload)
    }

    fn check_for(
        understood: &Understood,
        body: &str,
        has_upload: bool,
    ) -> Result<(Options, Option<Url>), Vec<String>> {
        let body: TranscriptBody = json::read(body.as_bytes()).unwrap();
        let allowed = |url: &Url| match url.host_str() {
            Some("inside") => Err("the host has no public address".to_owned()),
            _ => Ok(()),
        };
        let wrong = |wrong: Vec<InvalidField>| {
            let told = wrong.iter();
            told.map(|wrong| format!("{}: {}", wrong.field, wrong.message))
                .collect()
        };
        body.check(has_upload, allowed, understood).map_err(wrong)
    }

    #[test]
    fn defaults_are_those_of_the_document() {
        let (options, url) = check(r#"{"audio_url": "https://example.com/a.mp3"}"#, false).unwrap();
        assert_eq!(url.unwrap().as_str(), "https://example.com/a.mp3");
        let expected = Options {
            language: Some(LanguageCode::EnUs),
            filler_words: false,
            format_text: true,
            boosted_words: vec![],
        };
        assert_eq!(options, expected);
        let auto = check(r#"{"language_code": "de", "language_auto": true}"#, true).unwrap();
        assert_eq!((auto.0.language, auto.1), (None, None));
        for code in LanguageCode::CODES {
            let language = LanguageCode::of_code(code).unwrap();
            let primary = language.tag().split('-').next().unwrap();
            assert!(DETECTED.contains(&primary), "{code}");
            assert_eq!(
                serde_json::to_string(&language).unwrap(),
                format!("{code:?}")
            );
        }
    }

    #[test]
    fn all_wrong_fields_are_told() {
        let both = r#"{"audio_url": "https://example.com", "language_code": "xx", "boosted_words": ["ok", " "]}"#;
        let told = check(both, true).unwrap_err();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("audio_url: is given beside audio"));
        assert!(told[1].starts_with("language_code: is one of en, en_us, en_uk"));
        assert!(told[2].starts_with("boosted_words.1: "));
        let neither = check("{}", false).unwrap_err();
        assert_eq!(neither.len(), 2);
        assert!(neither[0].starts_with("audio_url: ") && neither[1].starts_with("audio: "));
        for (url, reason) in [("here", "is not"), ("http://inside/", "no public address")] {
            let told = check(&format!(r#"{{"audio_url": "{url}"}}"#), false).unwrap_err();
            assert!(told.len() == 1 && told[0].contains(reason), "{told:?}");
        }
        let english = Understood::Only(BTreeSet::from(["en"]));
        let refused = [
            (r#"{"language_code": "ja"}"#, "language_code: "),
            (
                r#"{"language_code": "ja", "language_auto": true}"#,
                "language_auto: ",
            ),
        ];
        for (body, field) in refused {
            let told = check_for(&english, body, true).unwrap_err();
            let [told] = &told[..] else {
                panic!("{told:?}")
            };
            assert!(told.starts_with(field), "{told}");
            assert!(
                told.ends_with("colloquy models pull whisper-base"),
                "{told}"
            );
            check(body, true).unwrap();
        }
        check_for(&english, r#"{"language_code": "en_au"}"#, true).unwrap();
        let many = serde_json::json!({"boosted_words": vec!["word"; 101]}).to_string();
        assert_eq!(
            check(&many, true).unwrap_err(),
            ["boosted_words: has at most 100 items"]
        );
        let most = serde_json::json!({"boosted_words": vec!["word"; 100]}).to_string();
        check(&most, true).unwrap();
    }

    #[test]
    fn changed_bodies_are_taken_or_refused_with_their_fields() {
        let seed = br#"{"audio_url": "https://example.com/a.mp3", "language_code": "en_uk", "language_auto": false,
            "filler_words": true, "format_text": false, "boosted_words": ["Colloquy", "Gr\u00fc\u00dfe"]}"#;
        fuzz(&[seed.to_vec()], |bytes| {
            match json::read::<TranscriptBody>(bytes) {
                Ok(body) => match body.check(false, |_| Ok(()), &Understood::Any) {
                    Ok((options, url)) => {
                        assert!(url.is_some() && options.boosted_words.len() <= MAX_BOOSTED);
                        format!("{:?} {}", options.language, options.boosted_words.len())
                    }
                    Err(wrong) => wrong
                        .iter()
                        .map(|wrong| wrong.field.chars().take(13).collect::<String>())
                        .collect(),
                },
                Err(error) => error
                    .field
                    .chars()
                    .filter(|c| !c.is_ascii_digit())
                    .take(40)
                    .collect(),
            }
        });
    }
}
