//! Keys that were shown earlier: what sessions remember of a key instead of its text.

use std::fmt;

use colloquy_store::StoreError;

use super::{CONFIGURED_KEY_ID, configured, principal, read, verify};
use crate::{Accounts, Directory, KeyRefused, Principal};

/// A key that somebody has shown: what there is to remember of it, instead of its text. It gives access for as long as the key does.
#[derive(Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// The id.
    pub id: String,
    /// The HMAC of its text, hexadecimal. It tells the configured key from one that was configured before.
    pub mac: String,
}

impl fmt::Debug for KnownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnownKey").field(&self.id).finish()
    }
}

/// Remembers a key that was just [authenticated](super::authenticate).
///
/// # Errors
/// The database's failure.
pub async fn remember(
    directory: &Directory,
    principal: &Principal,
    text: &str,
) -> Result<KnownKey, StoreError> {
    Ok(KnownKey {
        id: principal.key_id.clone(),
        mac: directory.key_ring.mac(&directory.store, text).await?,
    })
}

/// Authenticates a key that was shown earlier.
///
/// # Errors
/// When it has expired or was revoked since, or is not configured any more; when the database fails.
pub async fn authenticate_known(
    accounts: &Accounts,
    known: &KnownKey,
) -> Result<Principal, KeyRefused> {
    if known.id == CONFIGURED_KEY_ID {
        let configured_key = accounts.config.admin_key.as_ref();
        let is_same = match configured_key {
            Some(key) => verify(accounts, key.reveal(), &known.mac).await?,
            None => false,
        };
        return is_same.then(configured).ok_or(KeyRefused::Invalid);
    }
    let Some(key) = read(accounts, &known.id).await? else {
        return Err(KeyRefused::Invalid);
    };
    match key.mac == known.mac {
        true => principal(accounts, &key),
        false => Err(KeyRefused::Invalid),
    }
}

/// Returns when a key expires, in milliseconds since 1970; `None` if it does not.
///
/// # Errors
/// The database's failure.
pub async fn expires_at(accounts: &Accounts, known: &KnownKey) -> Result<Option<i64>, StoreError> {
    if known.id == CONFIGURED_KEY_ID {
        return Ok(None);
    }
    let key = read(accounts, &known.id).await?;
    Ok(key.and_then(|key| key.expires_at))
}
