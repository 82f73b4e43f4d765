//! What is asked: read from JSON or from a form, and checked before anything is stored. All wrong fields are told at once.

use std::borrow::Cow;

use colloquy_audio::media::Container;
use colloquy_base::invalid::InvalidField;
use colloquy_blobs::Written;
use colloquy_providers::Understood;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;
use utoipa::ToSchema;

/// The most terms that may be boosted.
pub(super) const MAX_BOOSTED: usize = 100;
/// The longest of them, in characters.
const MAX_BOOSTED_CHARS: usize = 100;
/// The longest address, in bytes.
const MAX_URL_BYTES: usize = 8 * 1024;
/// The most wrong fields that are told.
const MAX_TOLD: usize = 100;
/// The field with the address of the recording.
const URL: &str = "audio_url";
/// The part of a form with the recording.
pub(super) const AUDIO: &str = "audio";
/// The field with the terms that are boosted.
pub(super) const BOOSTED: &str = "boosted_words";

/// A recording to write down, by its address.
#[derive(ToSchema)]
#[schema(as = CreateTranscript)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct TranscriptBody {
    /// Where the recording is got from. A file goes into a form, as `audio`.
    #[schema(required)]
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
    /// Terms that are likelier than they would be; at most 100, of at most 100 characters each.
    #[schema(max_items = 100)]
    boosted_words: Option<Vec<String>>,
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

/// Makes [`LanguageCode`] of a line for each: its name, its code, and its BCP 47 tag. The code is a token, since the API document does not see
/// through what is matched as a literal.
macro_rules! languages {
    ($($name:ident = $code:tt, $tag:literal;)+) => {
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

/// The wrong fields that are found while a request is read.
#[derive(Debug, Default)]
pub(super) struct Wrong(Vec<InvalidField>);

impl Wrong {
    /// Adds a field, unless there are too many already.
    pub(super) fn tell(
        &mut self,
        field: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) {
        if self.0.len() < MAX_TOLD {
            self.0.push(InvalidField::new(field, message));
        }
    }

    /// Returns true if the field was added.
    pub(super) fn has(&self, field: &str) -> bool {
        self.0.iter().any(|wrong| wrong.field == field)
    }
}

impl Options {
    /// Reads the fields of a body, and the address where one is given. `wrong` are the fields that were found wrong before.
    ///
    /// # Errors
    /// All fields that are wrong, also those of a wrong type.
    pub(super) fn read(
        fields: &Map<String, Value>,
        has_audio: bool,
        allowed: impl FnOnce(&Url) -> Result<(), String>,
        understood: &Understood,
        mut wrong: Wrong,
    ) -> Result<(Self, Option<Url>), Vec<InvalidField>> {
        // A form has it as a file, which is none of its fields.
        let is_in_json = is_given(fields.get(AUDIO));
        if is_in_json {
            wrong.tell(
                AUDIO,
                "is a file, which only a form has (multipart/form-data)",
            );
        }
        let has_audio = has_audio || is_in_json;
        let url = url(fields, has_audio, allowed, &mut wrong);
        let options = Self {
            language: language(fields, understood, &mut wrong),
            filler_words: flag(fields, "filler_words", false, &mut wrong),
            format_text: flag(fields, "format_text", true, &mut wrong),
            boosted_words: boosted_words(fields, &mut wrong),
        };
        match wrong.0.is_empty() {
            true => Ok((options, url)),
            false => Err(wrong.0),
        }
    }
}

/// Returns false for null and for an empty text, too.
fn is_given(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null() && value.as_str() != Some(""))
}

/// The address of the recording; `None` for an upload, or where it is wrong.
fn url(
    fields: &Map<String, Value>,
    has_audio: bool,
    allowed: impl FnOnce(&Url) -> Result<(), String>,
    wrong: &mut Wrong,
) -> Option<Url> {
    let given = match fields.get(URL) {
        None | Some(Value::Null) => None,
        Some(Value::String(url)) => Some(url.as_str()).filter(|url| !url.is_empty()),
        Some(_) => {
            wrong.tell(URL, "must be a string");
            return None;
        }
    };
    match (given, has_audio) {
        (None, true) => {}
        (None, false) => {
            wrong.tell(URL, "is required when there is no audio");
            wrong.tell(AUDIO, "is required when there is no audio_url");
        }
        (Some(_), true) => wrong.tell(URL, "is given beside audio; only one of them may be"),
        (Some(url), false) => match address(url, allowed) {
            Ok(url) => return Some(url),
            Err(message) => wrong.tell(URL, message),
        },
    }
    None
}

/// The language of the recording; `None` to detect it, or where it is wrong.
fn language(
    fields: &Map<String, Value>,
    understood: &Understood,
    wrong: &mut Wrong,
) -> Option<LanguageCode> {
    const CODE: &str = "language_code";
    const AUTO: &str = "language_auto";
    let named = match fields.get(CODE) {
        None | Some(Value::Null) => Some(LanguageCode::EnUs),
        Some(code) => {
            let known = code.as_str().and_then(LanguageCode::of_code);
            if known.is_none() {
                let codes = LanguageCode::CODES.join(", ");
                wrong.tell(CODE, format!("must be one of {codes}"));
            }
            known
        }
    };
    let is_detected = flag(fields, AUTO, false, wrong);
    if is_detected && let Err(error) = understood.check_detection() {
        wrong.tell(AUTO, error.to_string());
    }
    let language = named.filter(|_| !is_detected);
    if let Some(language) = language
        && let Err(error) = understood.check(language.tag())
    {
        wrong.tell(CODE, error.to_string());
    }
    language
}

fn flag(fields: &Map<String, Value>, name: &'static str, default: bool, wrong: &mut Wrong) -> bool {
    match fields.get(name) {
        None | Some(Value::Null) => default,
        Some(Value::Bool(flag)) => *flag,
        Some(_) => {
            wrong.tell(name, "must be true or false");
            default
        }
    }
}

fn boosted_words(fields: &Map<String, Value>, wrong: &mut Wrong) -> Vec<String> {
    let given = match fields.get(BOOSTED) {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(given)) => given,
        Some(_) => {
            wrong.tell(BOOSTED, "must be an array of strings");
            return Vec::new();
        }
    };
    if given.len() > MAX_BOOSTED {
        wrong.tell(BOOSTED, format!("has at most {MAX_BOOSTED} items"));
    }
    let mut terms = Vec::new();
    for (index, term) in given.iter().enumerate().take(MAX_BOOSTED) {
        let path = format!("{BOOSTED}.{index}");
        let Value::String(term) = term else {
            wrong.tell(path, "must be a string");
            continue;
        };
        let trimmed = term.trim();
        let is_short = (1..=MAX_BOOSTED_CHARS).contains(&trimmed.chars().count());
        match is_short && !term.chars().any(char::is_control) {
            true => terms.push(trimmed.to_owned()),
            false => wrong.tell(path, format!("has 1 to {MAX_BOOSTED_CHARS} characters")),
        }
    }
    terms
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
        let fields = json::object(body.as_bytes()).unwrap();
        let allowed = |url: &Url| match url.host_str() {
            Some("inside") => Err("the host has no public address".to_owned()),
            _ => Ok(()),
        };
        let wrong = |wrong: Vec<InvalidField>| {
            let told = wrong.iter();
            told.map(|wrong| format!("{}: {}", wrong.field, wrong.message))
                .collect()
        };
        Options::read(&fields, has_upload, allowed, understood, Wrong::default()).map_err(wrong)
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
        assert!(told[1].starts_with("language_code: must be one of en, en_us, en_uk"));
        assert!(told[2].starts_with("boosted_words.1: "));
        let types = r#"{"audio_url": 7, "language_code": ["en"], "language_auto": "no", "filler_words": 0, "format_text": "no",
            "boosted_words": "w"}"#;
        let expected = [
            "audio_url: must be a string",
            "language_code: must be one of ",
            "language_auto: must be true or false",
            "filler_words: must be true or false",
            "format_text: must be true or false",
            "boosted_words: must be an array of strings",
        ];
        let told = check(types, false).unwrap_err();
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(expected), "{told}");
        }
        let terms = r#"{"boosted_words": ["ok", 7, null, "\u0000"]}"#;
        assert_eq!(
            check(terms, true).unwrap_err(),
            [
                "boosted_words.1: must be a string",
                "boosted_words.2: must be a string",
                "boosted_words.3: has 1 to 100 characters",
            ]
        );
        let neither = check("{}", false).unwrap_err();
        assert_eq!(neither.len(), 2);
        assert!(neither[0].starts_with("audio_url: ") && neither[1].starts_with("audio: "));
        let address = r#""audio_url": "https://example.com""#;
        for (body, expected) in [
            (format!(r#"{{{address}, "audio": "UklGRg=="}}"#), 2),
            (r#"{"audio": {"data": "UklGRg=="}}"#.to_owned(), 1),
            (format!(r#"{{{address}, "audio": null}}"#), 0),
            (format!(r#"{{{address}, "audio": ""}}"#), 0),
        ] {
            let told = check(&body, false).err().unwrap_or_default();
            assert_eq!(told.len(), expected, "{body}: {told:?}");
            let mut told = told
                .iter()
                .zip(["audio: is a file", "audio_url: is given beside"]);
            assert!(told.all(|(told, expected)| told.starts_with(expected)));
        }
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
    fn fuzzed_bodies_are_taken_or_refused_with_their_fields() {
        let seed = br#"{"audio_url": "https://example.com/a.mp3", "language_code": "en_uk", "language_auto": false,
            "filler_words": true, "format_text": false, "boosted_words": ["Colloquy", "Gr\u00fc\u00dfe"]}"#;
        let read = |fields: &Map<String, Value>| {
            let wrong = Wrong::default();
            Options::read(fields, false, |_| Ok(()), &Understood::Any, wrong)
        };
        fuzz(&[seed.to_vec()], |bytes| match json::object(bytes) {
            Ok(fields) => match read(&fields) {
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
        });
    }
}
