//! Speech: the voice of a character, and the speech interface (`/v2/audio`).
//!
//! It owns which voice speaks, what of a text is spoken, how sound becomes a file and a file sound, and the interface's
//! requests. Calls and the interface take the same way to the synthesizer. It stops at samples where a call begins: playing
//! is the engine's.

mod aloud;
mod bill;
mod cache;
mod detect;
mod formats;
mod language;
mod ogg_reader;
mod recording;
mod request;
pub mod routes;
mod sound;
mod spoken;
mod voice;
mod voices;

use futures_util::{StreamExt as _, stream};

use self::{aloud::Reading, formats::Format, recording::Recording};
pub use self::{
    cache::SpeechCache,
    formats::EncodeError,
    language::{language_codes, language_tag},
    ogg_reader::{OggError, decode_ogg},
    recording::SoundError,
    spoken::spoken,
    voice::Voice,
};
use crate::{
    app::App,
    providers::{ProviderError, SpeechRequest, SpeechStream},
};

/// Speaks a text. Marks that cannot be heard are left out; a text of nothing else gives no sound and asks nobody.
///
/// # Errors
/// When the synthesizer gives no first piece, after its retry.
pub async fn speak(app: &App, voice: &Voice, text: &str) -> Result<SpeechStream, ProviderError> {
    let text = spoken(text);
    if !text.chars().any(char::is_alphanumeric) {
        return Ok(stream::empty().boxed());
    }
    ask(app, voice, text).await
}

/// Reads a text aloud into a file of Opus in Ogg; `None` when nothing in it can be heard.
///
/// # Errors
/// When the synthesizer fails, after its retry.
pub async fn record(app: &App, voice: &Voice, text: &str) -> Result<Option<Vec<u8>>, SoundError> {
    let Some(reading) = Reading::new(app, voice.clone(), text) else {
        return Ok(None);
    };
    let characters = text.chars().count() as u64;
    let serial = app.clock.new_id().as_u128() as u32;
    let recording = Recording::new(reading, Format::Opus, characters, serial);
    recording.whole().await.map(Some)
}

/// Asks the synthesizer for a text as it is.
async fn ask(app: &App, voice: &Voice, text: String) -> Result<SpeechStream, ProviderError> {
    let default = app.config.synthesizer.voice.as_ref();
    let request = SpeechRequest {
        text,
        voice: voice.id.as_ref().or(default).cloned(),
        language: voice.language.clone(),
        speed: voice.speed,
    };
    app.providers.synthesizer.speak(request).await
}
