//! From what a request names to the character it means, for whoever asks.

use std::{sync::Arc, time::Duration};

use super::{Character, CharacterInput, CharacterName, store};
use crate::{
    App,
    accounts::{Principal, Tenant},
    cache::ShortCache,
    clock::Clock,
    http::ApiError,
};

/// How long another node may miss an update.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Saved characters that were read a moment ago.
#[derive(Debug)]
pub struct CharacterCache(ShortCache<(Tenant, CharacterName), Arc<Character>>);

impl CharacterCache {
    /// An empty cache.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(ShortCache::new(clock, MAX_AGE, 1_000))
    }

    pub(super) fn forget(&self, tenant: &Tenant, name: &CharacterName) {
        self.0
            .forget(|(owner, character), _| owner == tenant && character == name);
    }

    /// Forgets all characters of a partner.
    pub(crate) fn forget_partner(&self, tenant: &Tenant) {
        self.0.forget(|(owner, _), _| owner == tenant);
    }
}

/// The character that a request means. `repo-force:` reads it from the database.
///
/// # Errors
/// 400 `invalid_character` when a saved one is unknown; another partner's is unknown to the caller, so that nobody
/// learns which names others use. The database's failure.
pub async fn resolve(
    app: &App,
    principal: &Principal,
    input: CharacterInput,
) -> Result<Character, ApiError> {
    let (partner, name, force) = match input {
        CharacterInput::Inline(character) => return Ok(*character),
        CharacterInput::Saved {
            partner,
            name,
            force,
        } => (partner, name, force),
    };
    let unknown = || ApiError::invalid_character("Unknown character");
    let tenant = principal.tenant(&partner).map_err(|_| unknown())?;
    let key = (tenant, name);
    if !force && let Some(character) = app.characters.0.get(&key) {
        return Ok(Character::clone(&character));
    }
    let generation = app.characters.0.generation();
    let saved = store::find(app.store.db(), &key.0, &key.1, None)
        .await?
        .ok_or_else(unknown)?;
    let character = Arc::new(saved.into_character(&key.0));
    app.characters
        .0
        .insert(generation, key, Arc::clone(&character));
    Ok(Arc::unwrap_or_clone(character))
}
