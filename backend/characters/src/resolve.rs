//! From what a request names to the character it means, for whoever asks.

use std::{sync::Arc, time::Duration};

use colloquy_accounts::{Principal, Tenant, partners::PartnerDependent};
use colloquy_base::{cache::ShortCache, clock::Clock};
use colloquy_knowledge::{CharacterDocuments, DocumentCache};

use super::{Character, CharacterInput, CharacterName, NoDocumentMemory, ResolveError, store};
use crate::Characters;

/// How long another node may miss an update.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Saved characters that were read a moment ago, and what was made of their documents.
#[derive(Debug)]
pub struct CharacterCache {
    rows: ShortCache<(Tenant, CharacterName), Arc<Character>>,
    documents: DocumentCache,
}

impl CharacterCache {
    /// An empty cache. All documents may take `document_bytes` with their indexes, those of one partner half of it.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, document_bytes: usize) -> Self {
        Self {
            rows: ShortCache::new(Arc::clone(&clock), MAX_AGE, 1_000),
            documents: DocumentCache::new(clock, document_bytes),
        }
    }

    pub(super) fn forget(&self, tenant: &Tenant, name: &CharacterName) {
        self.rows
            .forget(|(owner, character), _| owner == tenant && character == name);
        let known = format!("{}/{}", tenant.partner().as_str(), name.as_str());
        self.documents.forget(|reference| reference == known);
    }

    /// Like [`Characters::documents`].
    ///
    /// # Errors
    /// [`NoDocumentMemory`] if this node, or the partner's share of it, has less free.
    pub fn documents(
        &self,
        tenant: &Tenant,
        character: &Character,
    ) -> Result<Option<CharacterDocuments>, NoDocumentMemory> {
        let documents = &character.parameters.documents;
        if !character.parameters.rag_enabled || documents.is_empty() {
            return Ok(None);
        }
        let documents = match &character.reference {
            Some(reference) => self.documents.saved(reference, documents),
            None => self.documents.inline(tenant.partner().as_str(), documents),
        };
        documents.map(Some).map_err(|why| {
            metrics::counter!("colloquy_character_documents_refused_total").increment(1);
            NoDocumentMemory(why)
        })
    }
}

impl PartnerDependent for CharacterCache {
    fn forget(&self, tenant: &Tenant) {
        self.rows.forget(|(owner, _), _| owner == tenant);
        let partner = tenant.partner().as_str();
        self.documents.forget(|reference| {
            let name = reference.strip_prefix(partner);
            name.is_some_and(|name| name.starts_with('/'))
        });
    }
}

/// The character that a request means. `repo-force:` reads it from the database.
///
/// # Errors
/// When a saved one is unknown, or the database fails; another partner's is unknown to the caller.
pub async fn resolve(
    characters: &Characters,
    principal: &Principal,
    input: CharacterInput,
) -> Result<Arc<Character>, ResolveError> {
    let (partner, name, force) = match input {
        CharacterInput::Inline(character) => return Ok(Arc::from(character)),
        CharacterInput::Saved {
            partner,
            name,
            force,
        } => (partner, name, force),
    };
    let tenant = principal
        .tenant(&partner)
        .map_err(|_| ResolveError::Unknown)?;
    let key = (tenant, name);
    if !force && let Some(character) = characters.cache.rows.get(&key) {
        return Ok(character);
    }
    let generation = characters.cache.rows.generation();
    let saved = store::find(characters.store.db(), &key.0, &key.1, None)
        .await?
        .ok_or(ResolveError::Unknown)?;
    let character = Arc::new(saved.into_character(&key.0));
    characters
        .cache
        .rows
        .insert(generation, key, Arc::clone(&character));
    Ok(character)
}
