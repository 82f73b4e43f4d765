//! Saved characters: each update makes a version, and the newest one is what a reference means.

use super::{Character, CharacterName, CharacterParameters, store, validate};
use crate::{
    App,
    accounts::{Tenant, partner_exists},
    http::ApiError,
};

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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    fn validated(self) -> Result<Self, ApiError> {
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

/// The partner's characters, by name.
///
/// # Errors
/// The database's failure.
pub async fn list(app: &App, tenant: &Tenant) -> Result<Vec<CharacterEntry>, ApiError> {
    store::list(app.store.db(), tenant).await
}

/// Makes a character.
///
/// # Errors
/// 400 that names the field, 404 when the partner is gone, 409 when the name is taken.
pub async fn create(
    app: &App,
    tenant: &Tenant,
    name: CharacterName,
    content: Content,
) -> Result<SavedCharacter, ApiError> {
    let content = content.validated()?;
    let now_ms = app.clock.now_ms();
    let saved = SavedCharacter {
        name,
        version: 1,
        personality: content.personality,
        parameters: content.parameters,
        created_at: now_ms,
        updated_at: now_ms,
    };
    let transaction = app.store.begin().await?;
    if !partner_exists(&transaction, tenant).await? {
        return Err(ApiError::not_found("Partner"));
    }
    if !store::insert_head(&transaction, tenant, &saved).await? {
        return Err(ApiError::conflict("A character of this name exists"));
    }
    store::insert_version(&transaction, tenant, &saved).await?;
    transaction.commit().await?;
    app.characters.forget(tenant, &saved.name);
    Ok(saved)
}

/// A character; `version` `None` means the newest.
///
/// # Errors
/// 404, or the database's failure.
pub async fn read(
    app: &App,
    tenant: &Tenant,
    name: &CharacterName,
    version: Option<i64>,
) -> Result<SavedCharacter, ApiError> {
    store::find(app.store.db(), tenant, name, version)
        .await?
        .ok_or_else(|| ApiError::not_found("Character"))
}

/// Makes a new version. With `expected`, only when that is the newest one.
///
/// # Errors
/// 400 that names the field, 404, 409 when another version is the newest.
pub async fn update(
    app: &App,
    tenant: &Tenant,
    name: &CharacterName,
    content: Content,
    expected: Option<i64>,
) -> Result<SavedCharacter, ApiError> {
    let content = content.validated()?;
    let now_ms = app.clock.now_ms();
    let transaction = app.store.begin().await?;
    let Some(head) = store::raise_version(&transaction, tenant, name, expected, now_ms).await?
    else {
        return match store::find(&transaction, tenant, name, None).await? {
            Some(newest) => Err(ApiError::conflict(format!(
                "The newest version is {}",
                newest.version
            ))),
            None => Err(ApiError::not_found("Character")),
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
    store::insert_version(&transaction, tenant, &saved).await?;
    transaction.commit().await?;
    app.characters.forget(tenant, name);
    Ok(saved)
}

/// Deletes a character with all its versions.
///
/// # Errors
/// 404, or the database's failure.
pub async fn delete(app: &App, tenant: &Tenant, name: &CharacterName) -> Result<(), ApiError> {
    let found = store::delete(app.store.db(), tenant, name).await?;
    app.characters.forget(tenant, name);
    match found {
        true => Ok(()),
        false => Err(ApiError::not_found("Character")),
    }
}

/// The versions of a character, newest first.
///
/// # Errors
/// 404, or the database's failure.
pub async fn versions(
    app: &App,
    tenant: &Tenant,
    name: &CharacterName,
) -> Result<Vec<CharacterEntry>, ApiError> {
    let versions = store::list_versions(app.store.db(), tenant, name).await?;
    match versions.is_empty() {
        true => Err(ApiError::not_found("Character")),
        false => Ok(versions),
    }
}
