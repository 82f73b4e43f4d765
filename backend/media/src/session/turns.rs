//! When turns begin and end, and when what is said in them is transcribed: the settings of a server's calls.

use colloquy_voice::{PredictedHold, TurnSettings};

use crate::Media;

/// How often running utterances are transcribed by those that may start early.
const EARLY_INTERIM_MS: u32 = 1_000;

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
