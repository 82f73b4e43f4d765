//! Which voice a character speaks with.

use std::borrow::Cow;

use colloquy_characters::CharacterParameters;

/// The speeds of the interface document.
pub(super) const SPEED: std::ops::RangeInclusive<f32> = 0.5..=1.5;

/// A voice.
#[derive(Debug, Clone, PartialEq)]
pub struct Voice {
    /// The provider's voice id; `None` for the configured default.
    pub id: Option<String>,
    /// The language, as a BCP 47 tag.
    pub language: Option<String>,
    /// True if each text without a `language` is spoken in its own.
    pub detects_language: bool,
    /// The speed, 1 is normal.
    pub speed: f32,
}

impl Default for Voice {
    fn default() -> Self {
        Self {
            id: None,
            language: None,
            detects_language: false,
            speed: 1.0,
        }
    }
}

impl Voice {
    /// The voice of a character: `voice` is an id, or an object with `id` (or `voice`), `speed` and `language`; the
    /// language is the character's where the voice names none. What is of another form counts as absent.
    #[must_use]
    pub fn of(parameters: &CharacterParameters) -> Self {
        let voice = parameters.voice.as_ref();
        let speed = voice.and_then(|voice| voice.get("speed")?.as_f64());
        let speed = speed.map_or(1.0, |speed| speed as f32);
        Self {
            id: parameters.voice_id().map(str::to_owned),
            language: parameters.spoken_language(),
            detects_language: parameters.detects_language(),
            speed: speed.clamp(*SPEED.start(), *SPEED.end()),
        }
    }

    /// The voice in the language of a text, which `detect` tells, where the voice detects it, or names no language and leaves the text unread.
    pub(super) fn for_text(
        &self,
        is_unread: impl FnOnce() -> bool,
        detect: impl FnOnce() -> Option<&'static str>,
    ) -> Cow<'_, Self> {
        let detects = self.language.is_none() && (self.detects_language || is_unread());
        let detected = detects.then(detect).flatten();
        match detected {
            Some(language) => Cow::Owned(Self {
                language: Some(language.to_owned()),
                ..self.clone()
            }),
            None => Cow::Borrowed(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn voices_of_characters() {
        let of = |voice: Value| {
            let parameters = json!({"voice": voice, "language": "German"});
            Voice::of(&serde_json::from_value(parameters).unwrap())
        };
        let voice = |id: Option<&str>, language: &str, speed: f32| Voice {
            id: id.map(str::to_owned),
            language: Some(language.to_owned()),
            detects_language: false,
            speed,
        };
        assert_eq!(of(json!(null)), voice(None, "de", 1.0));
        assert_eq!(of(json!("de+f3")), voice(Some("de+f3"), "de", 1.0));
        assert_eq!(of(json!("  ")), voice(None, "de", 1.0));
        assert_eq!(
            of(json!({"id": "anna", "speed": 1.25, "language": "fr"})),
            voice(Some("anna"), "fr", 1.25)
        );
        assert_eq!(
            of(json!({"voice": "anna", "speed": 9})),
            voice(Some("anna"), "de", 1.5)
        );
        assert_eq!(of(json!(7)), voice(None, "de", 1.0));
        assert_eq!(Voice::of(&CharacterParameters::default()), Voice::default());
    }

    #[test]
    fn a_detecting_voice_speaks_each_text_in_its_language() {
        let of = |parameters: Value| Voice::of(&serde_json::from_value(parameters).unwrap());
        let detecting = of(json!({"language": "auto"}));
        let language = |voice: &Voice, text| {
            let voice = voice.for_text(|| false, || colloquy_language::detect_to_speak(text));
            voice.language.clone()
        };
        let german = "Das Museum öffnet um neun Uhr, und der Eintritt ist heute für alle frei.";
        assert_eq!(language(&detecting, german).as_deref(), Some("de"));
        assert_eq!(language(&detecting, "12"), None);
        // One that names no language does so where its voice leaves the text unread.
        let unnamed = of(json!({}));
        assert_eq!(language(&unnamed, german), None);
        let voice = unnamed.for_text(|| true, || Some("el"));
        assert_eq!(voice.language.as_deref(), Some("el"));
        let english = of(json!({"language": "auto", "voice": {"language": "English"}}));
        assert_eq!(language(&english, german).as_deref(), Some("en"));
        let own = of(json!({"language": "English", "voice": {"language": "auto"}}));
        assert_eq!(language(&own, german).as_deref(), Some("en"));
        assert_eq!(language(&Voice::default(), german), None);
    }
}
