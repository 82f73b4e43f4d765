//! The memory of the documents that an inline character carries.

use colloquy_accounts::Tenant;
use colloquy_http::{
    Edge,
    memory::{NoRoom, Share},
};
use colloquy_knowledge::CharacterDocuments;

use super::Character;

impl Character {
    /// The most memory that the index of its documents takes which is made for one call, message or request alone, in bytes: that of an
    /// inline character. That of a saved one is made once for all of them, and its cache has a bound of its own.
    #[must_use]
    pub fn own_index_bytes(&self) -> u64 {
        let parameters = &self.parameters;
        if self.reference.is_some() || !parameters.rag_enabled {
            return 0;
        }
        CharacterDocuments::index_bytes(&parameters.documents)
    }
}

/// Reserves the memory of the index of an inline character's documents in the room for bodies, in the share of its partner, until the last
/// clone of the share is dropped. A character that needs none gets an empty share, however full the room is.
///
/// # Errors
/// [`NoRoom`] when the node, or the partner's part of it, has less free.
pub fn reserve_documents(
    edge: &Edge,
    tenant: &Tenant,
    character: &Character,
) -> Result<Share, NoRoom> {
    let share = Share::new(edge.clone());
    share.belongs_to(Some(tenant.partner().as_str()));
    let bytes = character.own_index_bytes();
    if bytes > 0 {
        share.grow(usize::try_from(bytes).unwrap_or(usize::MAX))?;
    }
    Ok(share)
}
