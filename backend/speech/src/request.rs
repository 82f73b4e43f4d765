//! The body of a request for speech: read, checked, and refused with all of its wrong fields at once.

use colloquy_audio::encode::Format;
use colloquy_base::{invalid::InvalidField, json, language::language_codes};
use serde_json::{Map, Value};

use super::voice::SPEED;

/// The longest text, in characters (Unicode scalar values).
const MAX_CHARACTERS: usize = 2_000;

/// A request that was checked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SpeechBody {
    pub(super) voice: String,
    /// 1 to [`MAX_CHARACTERS`] characters.
    pub(super) input: String,
    /// A code of the interface; `None` to detect it.
    pub(super) language: Option<&'static str>,
    pub(super) format: Format,
    pub(super) speed: f32,
}

impl SpeechBody {
    /// Reads a body. Fields that the interface does not have are passed over; optional ones may be null.
    ///
    /// # Errors
    /// Every wrong field.
    pub(super) fn parse(bytes: &[u8], model: &str) -> Result<Self, Vec<InvalidField>> {
        let body = Body(json::read(bytes).map_err(|invalid| vec![invalid])?);
        let mut wrong = Vec::new();
        let mut checked = Checked(&mut wrong);
        checked.take("model", body.model(model));
        let voice = checked.take("voice", body.voice());
        let input = checked.take("input", body.input());
        let language = checked.take("language", body.language());
        let format = checked.take("response_format", body.format());
        let speed = checked.take("speed", body.speed());
        match (voice, input, language, format, speed) {
            (Some(voice), Some(input), Some(language), Some(format), Some(speed))
                if wrong.is_empty() =>
            {
                Ok(Self {
                    voice,
                    input,
                    language,
                    format,
                    speed,
                })
            }
            _ => Err(wrong),
        }
    }
}

/// Collects what is wrong.
struct Checked<'a>(&'a mut Vec<InvalidField>);

impl Checked<'_> {
    fn take<T>(&mut self, field: &'static str, value: Result<T, String>) -> Option<T> {
        value
            .map_err(|message| self.0.push(InvalidField::new(field, message)))
            .ok()
    }
}

struct Body(Map<String, Value>);

impl Body {
    fn model(&self, model: &str) -> Result<(), String> {
        match self.required("model")? {
            named if named == model => Ok(()),
            _ => Err(format!("must be {model}")),
        }
    }

    fn voice(&self) -> Result<String, String> {
        match self.required("voice")? {
            "" => Err("must not be empty".to_owned()),
            voice => Ok(voice.to_owned()),
        }
    }

    fn input(&self) -> Result<String, String> {
        let input = self.required("input")?;
        let characters = input.chars().count();
        if (1..=MAX_CHARACTERS).contains(&characters) {
            Ok(input.to_owned())
        } else {
            Err(format!(
                "must have 1 to {MAX_CHARACTERS} characters, has {characters}"
            ))
        }
    }

    fn language(&self) -> Result<Option<&'static str>, String> {
        match self.optional("language")? {
            None | Some("auto") => Ok(None),
            Some(named) => match language_codes().find(|code| *code == named) {
                Some(code) => Ok(Some(code)),
                None => {
                    let codes = language_codes().collect::<Vec<_>>().join(", ");
                    Err(format!("must be auto or one of {codes}"))
                }
            },
        }
    }

    fn format(&self) -> Result<Format, String> {
        let Some(named) = self.optional("response_format")? else {
            return Ok(Format::default());
        };
        let known = Format::ALL
            .into_iter()
            .find(|format| format.name() == named);
        known.ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            format!("must be one of {names}")
        })
    }

    fn speed(&self) -> Result<f32, String> {
        match self.0.get("speed") {
            None | Some(Value::Null) => Ok(1.0),
            Some(value) => {
                let speed = value.as_f64().map(|speed| speed as f32);
                let speed = speed.ok_or_else(|| "must be a number".to_owned())?;
                if SPEED.contains(&speed) {
                    Ok(speed)
                } else {
                    Err(format!("must be {} to {}", SPEED.start(), SPEED.end()))
                }
            }
        }
    }

    fn required(&self, field: &str) -> Result<&str, String> {
        self.optional(field)?
            .ok_or_else(|| "is required".to_owned())
    }

    fn optional(&self, field: &str) -> Result<Option<&str>, String> {
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err("must be a string".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use colloquy_fuzz::fuzz;

    fn parse(body: &Value) -> Result<SpeechBody, Vec<(String, String)>> {
        SpeechBody::parse(body.to_string().as_bytes(), "tts").map_err(|wrong| {
            let told = |wrong: InvalidField| (wrong.field.into_owned(), wrong.message.into_owned());
            wrong.into_iter().map(told).collect()
        })
    }

    #[test]
    fn defaults_and_everything() {
        let least = json!({"model": "tts", "voice": "en", "input": "x"});
        let expected = SpeechBody {
            voice: "en".to_owned(),
            input: "x".to_owned(),
            language: None,
            format: Format::Mp3,
            speed: 1.0,
        };
        assert_eq!(parse(&least), Ok(expected.clone()));
        let nulls = json!({
            "model": "tts", "voice": "en", "input": "x", "language": null, "response_format": null,
            "speed": null, "instructions": "Whisper.",
        });
        assert_eq!(parse(&nulls), Ok(expected.clone()));
        let all = json!({
            "model": "tts", "voice": "en", "input": "x", "language": "zh-cn", "response_format": "opus",
            "speed": 1.5,
        });
        let expected = SpeechBody {
            language: Some("zh-cn"),
            format: Format::Opus,
            speed: 1.5,
            ..expected
        };
        assert_eq!(parse(&all), Ok(expected));
    }

    #[test]
    fn fuzzed_bodies_are_taken_within_the_limits_or_refused_with_their_fields() {
        let all = json!({
            "model": "tts", "voice": "en", "input": "Grüße 👋🏽", "language": "zh-cn", "response_format": "opus",
            "speed": 1.25,
        });
        let seeds = [json!({"model": "tts", "voice": "en", "input": "x"}), all];
        let seeds = seeds.map(|body| body.to_string().into_bytes());
        fuzz(&seeds, |bytes| match SpeechBody::parse(bytes, "tts") {
            Ok(body) => {
                assert!(!body.voice.is_empty() && SPEED.contains(&body.speed));
                assert!((1..=MAX_CHARACTERS).contains(&body.input.chars().count()));
                format!("{:?} {:?}", body.format, body.language)
            }
            Err(wrong) => {
                assert!(!wrong.is_empty());
                let names = wrong.iter().map(|wrong| wrong.field.as_ref());
                names.collect::<Vec<_>>().join(" ")
            }
        });
    }

    #[test]
    fn the_limits_count_characters() {
        let with = |input: String| parse(&json!({"model": "tts", "voice": "en", "input": input}));
        assert!(with("語".repeat(2_000)).is_ok());
        let wrong = with("語".repeat(2_001)).unwrap_err();
        assert_eq!(wrong[0].1, "must have 1 to 2000 characters, has 2001");
        assert!(with(String::new()).is_err());
        for (speed, taken) in [(0.5, true), (1.5, true), (0.49, false), (1.51, false)] {
            let body = json!({"model": "tts", "voice": "en", "input": "x", "speed": speed});
            assert_eq!(parse(&body).is_ok(), taken, "{speed}");
        }
    }

    #[test]
    fn a_speed_may_have_an_exponent() {
        for (speed, read) in [
            ("1e0", Some(1.0)),
            ("15e-1", Some(1.5)),
            ("1", Some(1.0)),
            ("1e3", None),
        ] {
            let text =
                format!(r#"{{"model": "tts", "voice": "en", "input": "x", "speed": {speed}}}"#);
            let body = SpeechBody::parse(text.as_bytes(), "tts");
            assert_eq!(body.map(|body| body.speed).ok(), read, "{speed}");
        }
    }

    #[test]
    fn all_wrong_fields_are_named() {
        let body = json!({
            "model": "tts-1", "voice": 7, "language": "en-US", "response_format": "flac", "speed": "fast",
        });
        let expected = [
            ("model", "must be tts"),
            ("voice", "must be a string"),
            ("input", "is required"),
            (
                "language",
                "must be auto or one of en, es, fr, de, it, pt, pl, ru, nl, ar, zh-cn, ja, ko, hi, he",
            ),
            ("response_format", "must be one of mp3, opus, wav, pcm"),
            ("speed", "must be a number"),
        ];
        let expected = expected.map(|(field, text)| (field.to_owned(), text.to_owned()));
        assert_eq!(parse(&body), Err(expected.to_vec()));
    }
}
