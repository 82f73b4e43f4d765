//! Speech: the voice of a character, and the speech interface (`/v2/audio`).
//!
//! It owns which voice speaks, what of a text is spoken, how sound becomes a file and a file sound, and the interface's
//! requests. Calls and the interface take the same way to the synthesizer. It stops at samples where a call begins: playing
//! is the engine's.

mod bill;
mod cache;
mod detect;
mod recording;
mod request;
pub mod routes;
mod sandboxed;
mod sound;
mod spoken;
mod text_reader;
mod voice;
mod voices;

use futures_util::{StreamExt as _, stream};

pub(crate) use self::sandboxed::AudioDecoder;
pub use self::{
    cache::SpeechCache, recording::SoundError, sandboxed::decode, spoken::spoken, voice::Voice,
};
use self::{recording::Recording, text_reader::TextReader};
use crate::{
    app::App,
    fair_queue::Claim,
    http::Interface,
    kernel::{Capability, Routes},
    providers::{ProviderError, SpeechRequest, SpeechStream},
};
use colloquy_audio::encode::Format;
pub use colloquy_audio::{
    encode::EncodeError,
    ogg_reader::{OggError, decode_ogg},
};

/// The speech interface.
#[derive(Debug)]
pub(crate) struct Speech;

impl Capability<App> for Speech {
    fn name(&self) -> &'static str {
        "speech"
    }

    fn routes(&self) -> Vec<Routes<App>> {
        vec![(Interface::SPEECH, routes::routes())]
    }
}

/// Speaks a text. Marks that cannot be heard are left out; a text of nothing else gives no sound and asks nobody.
///
/// # Errors
/// When the synthesizer gives no first piece, after its retry.
pub async fn speak(
    app: &App,
    voice: &Voice,
    text: &str,
    claim: &Claim,
) -> Result<SpeechStream, ProviderError> {
    let text = spoken(text);
    if !text.chars().any(char::is_alphanumeric) {
        return Ok(stream::empty().boxed());
    }
    ask(app, voice, text, claim).await
}

/// Reads a text aloud into a file of Opus in Ogg; `None` when nothing in it can be heard.
///
/// # Errors
/// When the synthesizer fails, after its retry.
pub async fn record(
    app: &App,
    voice: &Voice,
    text: &str,
    claim: &Claim,
) -> Result<Option<Vec<u8>>, SoundError> {
    let Some(reading) = TextReader::new(app, voice.clone(), text, claim) else {
        return Ok(None);
    };
    let characters = text.chars().count() as u64;
    let serial = app.clock.new_id().as_u128() as u32;
    let recording = Recording::new(reading, Format::Opus, characters, serial);
    recording.whole().await.map(Some)
}

/// Asks the synthesizer for a text as it is.
async fn ask(
    app: &App,
    voice: &Voice,
    text: String,
    claim: &Claim,
) -> Result<SpeechStream, ProviderError> {
    let default = app.config.synthesizer.voice.as_ref();
    let request = SpeechRequest {
        text,
        voice: voice.id.as_ref().or(default).cloned(),
        language: voice.language.clone(),
        speed: voice.speed,
        claim: claim.clone(),
    };
    app.providers.synthesizer.speak(request).await
}
