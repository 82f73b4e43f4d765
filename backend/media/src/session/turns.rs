//! When turns begin and end, and when what is said in them is transcribed: the settings of a server's calls.

use std::time::Duration;

use colloquy_base::language::primary;
use colloquy_config::CallsConfig;
use colloquy_speech::Voice;
use colloquy_voice::{PredictedHold, TurnSettings};

use crate::Media;

/// How often running utterances are transcribed by those that may start early.
const EARLY_INTERIM_MS: u32 = 1_000;

/// "One moment", by language.
const PATIENCE: [(&str, &str); 17] = [
    ("ar", "لحظة من فضلك."),
    ("cs", "Okamžik, prosím."),
    ("de", "Einen Moment, bitte."),
    ("en", "One moment, please."),
    ("es", "Un momento, por favor."),
    ("fr", "Un instant, s'il vous plaît."),
    ("he", "רגע אחד, בבקשה."),
    ("hi", "एक क्षण, कृपया।"),
    ("it", "Un momento, per favore."),
    ("ja", "少々お待ちください。"),
    ("ko", "잠시만 기다려 주세요."),
    ("nl", "Een moment, alstublieft."),
    ("pl", "Chwileczkę, proszę."),
    ("pt", "Um momento, por favor."),
    ("ru", "Одну минуту, пожалуйста."),
    ("tr", "Bir dakika, lütfen."),
    ("zh", "请稍等。"),
];

/// The message for a visitor who waits for the model: the first of these, the character's and the server's, else "One moment" in the language
/// of the call, else in that of the voice where its name begins with one, as `de+f3` does, else in English.
pub(super) fn patience_message(messages: [&Option<String>; 2], voice: &Voice) -> Option<String> {
    let begins_voice = || {
        let name = voice
            .id
            .as_deref()?
            .split(|letter: char| !letter.is_ascii_alphabetic());
        let name = name.into_iter().next()?.to_ascii_lowercase();
        PATIENCE
            .iter()
            .any(|(known, _)| *known == name)
            .then_some(name)
    };
    let language = voice.language.as_deref();
    let tag = language.map(str::to_ascii_lowercase).or_else(begins_voice);
    let tag = tag.unwrap_or_else(|| "en".to_owned());
    let known = PATIENCE.iter().find(|(known, _)| *known == primary(&tag));
    let message = messages.into_iter().find_map(Option::as_deref);
    let message = message.or(known.map(|(_, message)| *message))?.trim();
    (!message.is_empty()).then(|| message.to_owned())
}

/// When the message for a visitor who waits is spoken: the character's delay, else the server's.
pub(super) fn patience_after(own_ms: Option<u32>, settings: &CallsConfig) -> Duration {
    Duration::from_millis(own_ms.unwrap_or(settings.patience_ms).into())
}

/// The settings for a call in this language. What is transcribed before the end of an utterance depends on who transcribes.
pub(super) fn turn_settings(media: &Media, language: Option<&str>) -> TurnSettings {
    let settings = &media.config.calls;
    let starts_early = media.providers.transcriber.starts_early(language);
    let interim_ms = settings.interim_ms;
    let interim_ms = interim_ms.unwrap_or(if starts_early { EARLY_INTERIM_MS } else { 0 });
    let predicted_hold = media.providers.turns.end_of_turn.as_ref();
    TurnSettings {
        start_ms: settings.turn_start_ms,
        stop_ms: settings.turn_stop_ms,
        min_speech_ms: settings.min_speech_ms,
        interim_ms: Some(interim_ms).filter(|interim| *interim > 0),
        pause_ms: Some(settings.pause_ms).filter(|pause| *pause > 0),
        early_transcripts: starts_early,
        predicted_hold: predicted_hold.map(|_| PredictedHold {
            complete_ms: settings.complete_stop_ms,
            incomplete_ms: settings.incomplete_stop_ms,
        }),
        ..TurnSettings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(id: Option<&str>, language: Option<&str>) -> Voice {
        Voice {
            id: id.map(str::to_owned),
            language: language.map(str::to_owned),
            ..Voice::default()
        }
    }

    #[test]
    fn who_has_words_of_patience_says_them() {
        let said = |of_character, of_server, language| {
            let messages: [Option<&str>; 2] = [of_character, of_server];
            let [own, servers] = messages.map(|message| message.map(str::to_owned));
            patience_message([&own, &servers], &voice(None, language)).unwrap_or_default()
        };
        assert_eq!(said(Some("Wait."), Some("Moment."), None), "Wait.");
        assert_eq!(said(None, Some("Moment."), Some("de")), "Moment.");
        assert_eq!(said(None, None, Some("de-AT")), "Einen Moment, bitte.");
        assert_eq!(said(None, None, None), "One moment, please.");
        assert_eq!(said(Some(" "), Some("Moment."), None), "");
        assert_eq!(said(None, Some(""), None), "");
        assert_eq!(said(None, None, Some("tlh")), "", "English would be wrong");
    }

    #[test]
    fn the_delay_of_a_character_goes_before_that_of_the_server() {
        let settings = CallsConfig::default();
        let after = |own| patience_after(own, &settings);
        assert_eq!(after(None), Duration::from_secs(3));
        assert_eq!(after(Some(500)), Duration::from_millis(500));
    }

    #[test]
    fn a_voice_of_a_language_asks_for_patience_in_it() {
        let said = |language, id| {
            patience_message([&None, &None], &voice(Some(id), language)).unwrap_or_default()
        };
        assert_eq!(said(None, "de+f3"), "Einen Moment, bitte.");
        assert_eq!(said(None, "en_US-joe-medium"), "One moment, please.");
        assert_eq!(said(None, "alloy"), "One moment, please.");
        assert_eq!(said(Some("fr"), "de"), "Un instant, s'il vous plaît.");
    }
}
