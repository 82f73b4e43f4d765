//! Speech: the voice of a character, and the speech interface (`/v2/audio`).
//!
//! It owns which voice speaks, what of a text is spoken, how sound becomes a file and a file sound, and the interface's
//! requests. Calls and the interface take the same way to the synthesizer. It stops at samples where a call begins: playing
//! is the engine's.

mod bill;
mod cache;
mod directions;
mod error;
mod library;
mod recording;
mod request;
pub mod routes;
mod sandboxed;
mod sound;
mod spoken;
mod text_reader;
mod voice;
mod voices;

use std::{borrow::Cow, sync::Arc};

use axum::extract::FromRef;
use colloquy_accounts::Accounts;
use colloquy_audio::encode::Format;
pub use colloquy_audio::{
    encode::EncodeError,
    ogg_reader::{OggError, decode_ogg},
};
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_http::Interface;
use colloquy_kernel::{Capability, Routes, State};
use colloquy_providers::{
    NotSpoken, ProviderError, Providers, SpeechRequest, SpeechStream, Synthesizer,
};
use colloquy_sandbox::Sandbox;
use futures_util::{StreamExt as _, stream};

use self::{cache::SpeechCache, recording::Recording, text_reader::TextReader};
pub use self::{
    library::{SpeakingVoice, VoiceLibrary, voice_of},
    recording::SoundError,
    sandboxed::{AudioDecoder, decode},
    spoken::spoken,
    voice::Voice,
};

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Speech(Arc<Parts>);

/// What [`Speech`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
    providers: Providers,
    sandbox: Arc<Sandbox>,
    library: Arc<dyn VoiceLibrary>,
    /// Speech that may be asked for again.
    pub cache: SpeechCache,
}

impl Speech {
    /// Puts the parts together.
    #[must_use]
    pub fn new(
        accounts: Accounts,
        providers: Providers,
        sandbox: Arc<Sandbox>,
        library: Arc<dyn VoiceLibrary>,
    ) -> Self {
        Self(Arc::new(Parts {
            sandbox,
            library,
            cache: SpeechCache::new(&accounts.config.speech),
            accounts,
            providers,
        }))
    }
}

colloquy_kernel::state!(Speech: Parts.accounts: Accounts);

/// The speech interface, as a part of a server.
#[derive(Debug)]
pub struct SpeechCapability;

impl<S: State> Capability<S> for SpeechCapability
where
    Accounts: FromRef<S>,
    Speech: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "speech"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![(Interface::SPEECH, routes::routes())]
    }
}

/// A text that was read aloud.
#[derive(Debug)]
pub enum Recorded {
    /// A file of Opus in Ogg.
    Sound(Vec<u8>),
    /// Nothing can be heard: the reason, or `None` where the text has no words, or none that the voice reads.
    Silent(Option<NotSpoken>),
}

/// Speaks a text. Marks that cannot be heard are left out; a text of nothing else, or in a script that the voice does not read, gives no sound and
/// asks nobody.
///
/// # Errors
/// When the synthesizer gives no first piece, after its retry.
pub async fn speak(
    speech: &Speech,
    voice: &Voice,
    text: &str,
    claim: &Claim,
) -> Result<SpeechStream, ProviderError> {
    let heard = spoken(text);
    let voice = for_text(speech, voice, &heard, claim);
    let voice = voice.as_ref();
    if let Err(reason) = check_script(speech, voice, &heard, claim)
        && speech.limits.may_warn("a sentence without sound")
    {
        tracing::warn!(%reason, "a sentence of a call has no sound");
    }
    let text = readable(speech, voice, heard, claim);
    if !text.chars().any(char::is_alphanumeric) {
        return Ok(stream::empty().boxed());
    }
    ask(speech, voice, text, claim).await
}

/// Reads a text aloud into a file of Opus in Ogg, unless nothing in it can be heard.
///
/// # Errors
/// When the text is Japanese that the synthesizer does not read, or the synthesizer fails, after its retry.
pub async fn record(
    speech: &Speech,
    voice: &Voice,
    text: &str,
    claim: &Claim,
) -> Result<Recorded, SoundError> {
    let heard = spoken(text);
    let voice = for_text(speech, voice, &heard, claim).into_owned();
    match check_script(speech, &voice, &heard, claim) {
        Ok(()) => {}
        // Japanese itself is spoken, so its answers in kana have sound and those in kanji fail.
        Err(NotSpoken::Kanji) => return Err(NotSpoken::Kanji.into()),
        Err(unread) => return Ok(Recorded::Silent(Some(unread))),
    }
    let Some(reading) = TextReader::new(speech, voice, text, claim) else {
        return Ok(Recorded::Silent(None));
    };
    let characters = text.chars().count() as u64;
    let serial = speech.clock.new_id().as_u128() as u32;
    let recording = Recording::new(reading, Format::Opus, characters, serial);
    recording.whole().await.map(Recorded::Sound)
}

/// The voice in the language of a text, where the voice detects it.
fn for_text<'a>(speech: &Speech, voice: &'a Voice, text: &str, claim: &Claim) -> Cow<'a, Voice> {
    let id = voice_id(speech, voice).map(String::as_str);
    let is_unread = || {
        let checked = synthesizer(speech, claim).check_language(id, None, Some(text));
        matches!(checked, Err(NotSpoken::OtherLanguage(_)))
    };
    voice.for_text(is_unread, || {
        synthesizer(speech, claim).detect_language(id, text)
    })
}

/// Checks that a voice reads the script of a text.
fn check_script(
    speech: &Speech,
    voice: &Voice,
    text: &str,
    claim: &Claim,
) -> Result<(), NotSpoken> {
    let id = voice_id(speech, voice).map(String::as_str);
    synthesizer(speech, claim).check_language(id, voice.language.as_deref(), Some(text))
}

/// The text that the synthesizer is asked for: what of it can be heard, and what the voice reads.
fn audible(speech: &Speech, voice: &Voice, text: &str, claim: &Claim) -> String {
    readable(speech, voice, spoken(text), claim)
}

/// What the voice reads of a text that can be heard.
fn readable(speech: &Speech, voice: &Voice, text: String, claim: &Claim) -> String {
    let id = voice_id(speech, voice).map(String::as_str);
    synthesizer(speech, claim).readable(id, voice.language.as_deref(), text)
}

/// The provider's id of a voice, or of the configured default.
fn voice_id<'a>(speech: &'a Speech, voice: &'a Voice) -> Option<&'a String> {
    let default = speech.config.synthesizer.voice.as_ref();
    voice.id.as_ref().or(default)
}

/// The synthesizer that has the patience of a claim.
fn synthesizer<'a>(speech: &'a Speech, claim: &Claim) -> &'a Arc<dyn Synthesizer> {
    let providers = &speech.providers;
    match claim.priority {
        Priority::Call => &providers.synthesizer,
        Priority::Request | Priority::Background => &providers.batch.synthesizer,
    }
}

/// Asks the synthesizer for a text as it is.
async fn ask(
    speech: &Speech,
    voice: &Voice,
    text: String,
    claim: &Claim,
) -> Result<SpeechStream, ProviderError> {
    let request = SpeechRequest {
        text,
        voice: voice_id(speech, voice).cloned(),
        language: voice.language.clone(),
        speed: voice.speed,
        claim: claim.clone(),
    };
    synthesizer(speech, claim).speak(request).await
}
