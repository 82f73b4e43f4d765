//! Voices that partners have made, by references: `repo:<partner>/<name>`, as saved characters have them.

use std::fmt::Debug;

use async_trait::async_trait;
use colloquy_accounts::Tenant;
use colloquy_characters::Character;
use colloquy_store::StoreError;

use super::Voice;
use crate::Speech;

/// The most characters of a name that the log holds: that of an inline character's voice may be anything.
const MAX_LOGGED: usize = 200;

/// What a reference begins with.
const SCHEME: &str = "repo:";

/// Where the voices of partners are.
#[async_trait]
pub trait VoiceLibrary: Debug + Send + Sync + 'static {
    /// The voices of a partner that the synthesizer can speak with, by name.
    async fn voices(&self, tenant: &Tenant) -> Result<Vec<SpeakingVoice>, StoreError>;

    /// The voice of this name, where the synthesizer can speak with it.
    async fn voice(&self, tenant: &Tenant, name: &str)
    -> Result<Option<SpeakingVoice>, StoreError>;
}

/// A voice of a library that the synthesizer can speak with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeakingVoice {
    /// What its partner calls it.
    pub name: String,
    /// What the synthesizer calls it.
    pub synthesizer_voice: String,
}

/// The reference to a voice of a partner.
pub(super) fn reference(tenant: &Tenant, name: &str) -> String {
    format!("{SCHEME}{}/{name}", tenant.partner().as_str())
}

/// The partner and the name of a reference; `None` for the id of a voice of the synthesizer.
pub(super) fn parsed(id: &str) -> Option<(&str, &str)> {
    id.strip_prefix(SCHEME)?.split_once('/')
}

/// What the synthesizer calls the voice that a reference of a partner means; `None` where there is none that it may speak with.
pub(super) async fn meant(
    speech: &Speech,
    tenant: &Tenant,
    (partner, name): (&str, &str),
) -> Result<Option<String>, StoreError> {
    if partner != tenant.partner().as_str() {
        return Ok(None);
    }
    let found = speech.library.voice(tenant, name).await?;
    Ok(found.map(|voice| voice.synthesizer_voice))
}

/// The voice of a character of a partner. Where it names one of the library that cannot be had, the default one speaks: what is said
/// matters more.
pub async fn voice_of(speech: &Speech, tenant: &Tenant, character: &Character) -> Voice {
    let voice = Voice::of(&character.parameters);
    let Some(reference) = voice.id.as_deref().and_then(parsed) else {
        return voice;
    };
    let id = match meant(speech, tenant, reference).await {
        Ok(Some(id)) => Some(id),
        Ok(None) => {
            if speech
                .limits
                .may_warn("a voice of the library that cannot speak")
            {
                warn_of(tenant, character, &voice);
            }
            None
        }
        Err(error) => {
            tracing::warn!("the voice library cannot be read: {error}");
            None
        }
    };
    Voice { id, ..voice }
}

/// Logs which character names which voice that cannot speak; a character that is not saved has no name.
fn warn_of(tenant: &Tenant, character: &Character, voice: &Voice) {
    let logged = |name: &str| name.chars().take(MAX_LOGGED).collect::<String>();
    tracing::warn!(
        partner = tenant.partner().as_str(),
        character = character.reference.as_deref().map(logged),
        voice = voice.id.as_deref().map(logged),
        "a character names a voice of the library that cannot speak"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_name_a_partner_and_a_voice() {
        assert_eq!(
            parsed("repo:acme/Anna & Bert"),
            Some(("acme", "Anna & Bert"))
        );
        for id in ["en", "repo:acme", "acme/Anna", ""] {
            assert_eq!(parsed(id), None, "{id}");
        }
    }
}
