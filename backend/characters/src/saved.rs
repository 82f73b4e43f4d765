//! Saved characters: each update makes a version, and the newest one is what a reference means.

use colloquy_accounts::{
    Tenant, partner_exists,
    storage::{self, Sum},
};
use colloquy_base::invalid::InvalidField;
use colloquy_knowledge::UnknownBase;
use colloquy_store::{Slice, StoreError};

use super::{
    Character, CharacterError, CharacterName, CharacterParameters, base::unknown_base, store,
    validate,
};
use crate::Characters;

/// A version of a saved character.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedCharacter {
    /// The name.
    pub name: CharacterName,
    /// The version, counted from 1.
    pub version: i64,
    /// The prompt template.
    pub personality: String,
    /// The parameters.
    pub parameters: CharacterParameters,
    /// When the character was made, in milliseconds since 1970.
    pub created_at: i64,
    /// When this version was made, in milliseconds since 1970.
    pub updated_at: i64,
}

impl SavedCharacter {
    pub(super) fn into_character(self, tenant: &Tenant) -> Character {
        Character {
            reference: Some(format!(
                "{}/{}",
                tenant.partner().as_str(),
                self.name.as_str()
            )),
            personality: self.personality,
            parameters: self.parameters,
        }
    }
}

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct CharacterEntry {
    /// The name.
    pub name: String,
    /// The newest version, or the version that the entry is about.
    pub version: i64,
    /// When the character was made, in milliseconds since 1970.
    pub created_at: i64,
    /// When the version was made, in milliseconds since 1970.
    pub updated_at: i64,
}

/// What a version holds.
#[derive(Debug, Clone)]
pub struct Content {
    /// The prompt template.
    pub personality: String,
    /// The parameters.
    pub parameters: CharacterParameters,
}

impl Content {
    fn validated(self) -> Result<Self, InvalidField> {
        let character = Character {
            reference: None,
            personality: self.personality,
            parameters: self.parameters,
        };
        validate::character(&character)?;
        Ok(Self {
            personality: character.personality,
            parameters: character.parameters,
        })
    }
}

/// Refuses a knowledge base that the partner does not have, where the character looks things up.
pub(super) async fn check_base(
    characters: &Characters,
    tenant: &Tenant,
    parameters: &CharacterParameters,
) -> Result<(), CharacterError> {
    match unknown_base(characters, tenant, parameters).await? {
        None => Ok(()),
        Some(UnknownBase(index)) => {
            let message = format!("there is no knowledge base {index}");
            Err(InvalidField::new("parameters.rag_index_required", message).into())
        }
    }
}

/// A part of the partner's characters, by name.
///
/// # Errors
/// The database's failure.
pub async fn list(
    characters: &Characters,
    tenant: &Tenant,
    slice: &Slice,
) -> Result<Vec<CharacterEntry>, StoreError> {
    store::list(characters.store.db(), tenant, slice).await
}

/// Makes a character.
///
/// # Errors
/// Names the field that is wrong; when the partner is gone or would store more than it may, when the name is taken, or when the database
/// fails.
pub async fn create(
    characters: &Characters,
    tenant: &Tenant,
    name: CharacterName,
    content: Content,
) -> Result<SavedCharacter, CharacterError> {
    let content = content.validated()?;
    check_base(characters, tenant, &content.parameters).await?;
    let now_ms = characters.clock.now_ms();
    let saved = SavedCharacter {
        name,
        version: 1,
        personality: content.personality,
        parameters: content.parameters,
        created_at: now_ms,
        updated_at: now_ms,
    };
    let transaction = characters.store.begin().await?;
    if !partner_exists(&transaction, tenant).await? {
        return Err(CharacterError::NotFound("Partner"));
    }
    if !store::insert_head(&transaction, tenant, &saved).await? {
        return Err(CharacterError::NameTaken);
    }
    let bytes = store::insert_version(&transaction, tenant, &saved).await?;
    storage::charge_text(characters, &transaction, tenant.partner(), bytes).await?;
    transaction.commit().await?;
    characters.cache.forget(tenant, &saved.name);
    Ok(saved)
}

/// A character; `version` `None` means the newest.
///
/// # Errors
/// When there is none, or the database fails.
pub async fn read(
    characters: &Characters,
    tenant: &Tenant,
    name: &CharacterName,
    version: Option<i64>,
) -> Result<SavedCharacter, CharacterError> {
    store::find(characters.store.db(), tenant, name, version)
        .await?
        .ok_or_else(|| CharacterError::NotFound("Character"))
}

/// Makes a new version. With `expected`, only when that is the newest one.
///
/// # Errors
/// Names the field that is wrong; when there is none, when another version is the newest, when the partner would store more than it may, or
/// when the database fails.
pub async fn update(
    characters: &Characters,
    tenant: &Tenant,
    name: &CharacterName,
    content: Content,
    expected: Option<i64>,
) -> Result<SavedCharacter, CharacterError> {
    let content = content.validated()?;
    check_base(characters, tenant, &content.parameters).await?;
    let now_ms = characters.clock.now_ms();
    let transaction = characters.store.begin().await?;
    let Some(head) = store::raise_version(&transaction, tenant, name, expected, now_ms).await?
    else {
        return match store::find(&transaction, tenant, name, None).await? {
            Some(newest) => Err(CharacterError::NewerVersion(newest.version)),
            None => Err(CharacterError::NotFound("Character")),
        };
    };
    let saved = SavedCharacter {
        name: name.clone(),
        version: head.version,
        personality: content.personality,
        parameters: content.parameters,
        created_at: head.created_at,
        updated_at: now_ms,
    };
    let bytes = store::insert_version(&transaction, tenant, &saved).await?;
    storage::charge_text(characters, &transaction, tenant.partner(), bytes).await?;
    transaction.commit().await?;
    characters.cache.forget(tenant, name);
    Ok(saved)
}

/// Deletes a character with all its versions.
///
/// # Errors
/// When there is none, or the database fails.
pub async fn delete(
    characters: &Characters,
    tenant: &Tenant,
    name: &CharacterName,
) -> Result<(), CharacterError> {
    let transaction = characters.store.begin().await?;
    let bytes = store::delete(&transaction, tenant, name).await?;
    if let Some(bytes) = bytes {
        let partner = tenant.partner().as_str();
        storage::release(&transaction, partner, Sum::Texts, bytes).await?;
    }
    transaction.commit().await?;
    characters.cache.forget(tenant, name);
    match bytes {
        Some(_) => Ok(()),
        None => Err(CharacterError::NotFound("Character")),
    }
}

/// A part of the versions of a character, newest first; the cursor is a version.
///
/// # Errors
/// When there is none, for a cursor that is no version, or when the database fails.
pub async fn versions(
    characters: &Characters,
    tenant: &Tenant,
    name: &CharacterName,
    slice: &Slice,
) -> Result<Vec<CharacterEntry>, CharacterError> {
    let before = slice.after.as_deref().map(str::parse).transpose();
    let before =
        before.map_err(|_| InvalidField::new("cursor", "The cursor is not one of this list"))?;
    let versions =
        store::list_versions(characters.store.db(), tenant, name, before, slice.limit).await?;
    match versions.is_empty() && before.is_none() {
        true => Err(CharacterError::NotFound("Character")),
        false => Ok(versions),
    }
}
