//! Secrets that the server makes for itself and keeps in the database, the same on every node.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use colloquy_store::{Store, StoreError};

use super::store;

/// The secret of this name: 32 random bytes, made when it is asked for the first time.
///
/// # Errors
/// When the database does not answer or holds something else under the name.
pub async fn server_secret(database: &Store, name: &str) -> Result<Vec<u8>, StoreError> {
    if let Some(value) = store::read_secret(database.db(), name).await? {
        return decode(name, &value);
    }
    let fresh = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
    // Two nodes may come here at once: the first insert wins, and both read what is stored.
    store::insert_secret(database.db(), name, &fresh).await?;
    let value = store::read_secret(database.db(), name)
        .await?
        .ok_or_else(|| StoreError::other(format!("the server secret {name} was not kept")))?;
    decode(name, &value)
}

fn decode(name: &str, value: &str) -> Result<Vec<u8>, StoreError> {
    URL_SAFE_NO_PAD
        .decode(value)
        .map_err(|_| StoreError::malformed(format!("the server secret {name} is malformed")))
}
