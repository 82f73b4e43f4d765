//! How many bytes the files of a partner have together.
//!
//! A row of `partner_storage` is the sum over the partner's files, whatever their state, and changes in the transaction that changes one of
//! them, after its row. These are short transactions of their own: the row is locked by whoever writes files, so that parallel uploads
//! cannot pass the limit together, and nobody waits for a longer one. Which files there are is for `blobs` to say.

use colloquy_base::identifiers::PartnerId;
use colloquy_store::{Executor, StoreError, Transaction, statement};

use super::PartnerSettings;

/// Adds bytes to what a partner stores, or takes some away, and returns the sum. The row is locked until the transaction ends.
///
/// # Errors
/// The database's failure; also when there is no such partner.
pub async fn change(
    transaction: &Transaction,
    partner: &PartnerId,
    by: i64,
) -> Result<u64, StoreError> {
    let sql = "INSERT INTO partner_storage (partner, bytes) VALUES ($1, $2) \
               ON CONFLICT (partner) DO UPDATE SET bytes = partner_storage.bytes + excluded.bytes RETURNING bytes";
    let values = [partner.as_str().into(), by.into()];
    transaction.fetch_count(statement(sql, values)).await
}

/// Takes bytes away from what a partner stores, if the partner is still there.
///
/// # Errors
/// The database's failure.
pub async fn release(
    transaction: &Transaction,
    partner: &str,
    bytes: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE partner_storage SET bytes = CASE WHEN bytes > $2 THEN bytes - $2 ELSE 0 END WHERE partner = $1";
    let values = [partner.into(), bytes.into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// How many bytes a partner may store by its own settings; `None` where it has none for it.
///
/// # Errors
/// The database's failure, or settings that cannot be read.
pub async fn own_limit(
    transaction: &Transaction,
    partner: &PartnerId,
) -> Result<Option<u64>, StoreError> {
    let sql = "SELECT settings FROM partners WHERE id = $1";
    let settings: Option<String> = transaction
        .fetch_scalar(statement(sql, [partner.as_str().into()]))
        .await?;
    let settings = settings.map(|text| PartnerSettings::of_row(&text));
    let settings = settings.transpose().map_err(StoreError::malformed)?;
    Ok(settings.and_then(|settings| settings.storage_bytes))
}

/// How many bytes the files of all partners have together.
///
/// # Errors
/// The database's failure.
pub async fn total(db: &impl Executor) -> Result<u64, StoreError> {
    let sql = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM partner_storage";
    db.fetch_count(statement(sql, [])).await
}
