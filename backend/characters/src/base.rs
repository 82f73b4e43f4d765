//! The knowledge base that a character names and its partner does not have.

use axum::http::{HeaderName, HeaderValue};
use colloquy_accounts::Tenant;
use colloquy_http::WARNING;
use colloquy_knowledge::UnknownBase;

use super::{CharacterError, CharacterParameters, Characters};

/// Returns the knowledge base that a character of a partner looks things up in, if the partner has no such base.
///
/// # Errors
/// When the knowledge bases cannot be asked.
pub async fn unknown_base(
    characters: &Characters,
    tenant: &Tenant,
    parameters: &CharacterParameters,
) -> Result<Option<UnknownBase>, CharacterError> {
    let index = parameters.rag_index_required.as_deref();
    let Some(index) = index.filter(|_| parameters.rag_enabled) else {
        return Ok(None);
    };
    let own = tenant.partner();
    let named = index.split_once('/');
    let is_known = match named.filter(|(partner, _)| *partner == own.as_str()) {
        Some((_, name)) => {
            let found = characters.bases.exists(own, name).await;
            found.map_err(CharacterError::Bases)?
        }
        None => false,
    };
    Ok((!is_known).then(|| UnknownBase(index.to_owned())))
}

/// The header of an answer that goes without a knowledge base. A name that no header holds is left out.
#[must_use]
pub fn base_warning(unknown: &UnknownBase) -> (HeaderName, HeaderValue) {
    let value = HeaderValue::try_from(unknown.to_string());
    let value = value.unwrap_or(HeaderValue::from_static("unknown rag_index_required"));
    (WARNING, value)
}
