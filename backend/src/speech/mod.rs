//! The voice of a character: which voice speaks, and what of a text is spoken.
//!
//! It stops at samples; audio formats come with the speech endpoint, and playing is the engine's.

mod language;
mod spoken;
mod voice;

use futures_util::{StreamExt as _, stream};

pub use self::{language::language_tag, spoken::spoken, voice::Voice};
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
    let default = app.config.synthesizer.voice.as_ref();
    let request = SpeechRequest {
        text,
        voice: voice.id.as_ref().or(default).cloned(),
        language: voice.language.clone(),
        speed: voice.speed,
    };
    app.providers.synthesizer.speak(request).await
}
