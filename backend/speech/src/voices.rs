//! The voices that requests may name.

use colloquy_base::language::primary;
use colloquy_providers::{ProviderError, VoiceInfo, VoiceList};

use super::Voice;
use crate::Speech;

/// The voices of the configured synthesizer.
pub(super) async fn list(speech: &Speech) -> Result<VoiceList, ProviderError> {
    speech.providers.synthesizer.voices().await
}

/// The voice that a request names, in the language of its text; `None` when there is no such voice.
pub(super) fn choose(
    list: &VoiceList,
    id: &str,
    language: Option<&str>,
    speed: f32,
) -> Option<Voice> {
    let known = list.voices.iter().find(|voice| voice.id == id);
    let id = match known {
        Some(voice) if is_abroad(voice, language) => &voice.abroad,
        Some(voice) => &voice.id,
        None if list.may_have_others => id,
        None => return None,
    };
    Some(Voice {
        id: Some(id.to_owned()),
        language: language.map(str::to_owned),
        speed,
        ..Voice::default()
    })
}

/// Whether the text is in another language than the voice's own.
fn is_abroad(voice: &VoiceInfo, language: Option<&str>) -> bool {
    match (&voice.language, language) {
        (Some(own), Some(language)) => !primary(own).eq_ignore_ascii_case(primary(language)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(may_have_others: bool) -> VoiceList {
        let voice = |id: &str, abroad: &str| VoiceInfo {
            id: id.to_owned(),
            name: id.to_owned(),
            language: Some("en-gb".to_owned()),
            gender: None,
            abroad: abroad.to_owned(),
            is_neural: false,
        };
        VoiceList {
            voices: vec![voice("en-gb", ""), voice("en-gb+f3", "f3")],
            may_have_others,
        }
    }

    #[test]
    fn a_voice_speaks_its_own_language_or_lends_its_sound() {
        let cases = [
            ("en-gb", None, Some("en-gb")),
            ("en-gb", Some("en"), Some("en-gb")),
            ("en-gb+f3", Some("en"), Some("en-gb+f3")),
            ("en-gb", Some("de"), Some("")),
            ("en-gb+f3", Some("de"), Some("f3")),
            ("nobody", Some("de"), None),
        ];
        for (id, language, expected) in cases {
            let chosen = choose(&list(false), id, language, 1.0);
            let expected = expected.map(|id| Voice {
                id: Some(id.to_owned()),
                language: language.map(str::to_owned),
                ..Voice::default()
            });
            assert_eq!(chosen, expected, "{id} {language:?}");
        }
    }

    #[test]
    fn a_service_that_may_have_more_voices_is_asked() {
        let chosen = choose(&list(true), "nobody", None, 1.0);
        assert_eq!(chosen.and_then(|voice| voice.id).as_deref(), Some("nobody"));
    }
}
