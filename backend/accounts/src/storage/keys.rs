//! How API keys and quotas count in the storage of their partner.
//!
//! A row counts a fixed amount, about as much as its short columns have at most with its indexes, beside the bytes of its lists. Rows of
//! revoked keys and quotas stay, and count as before. Keys of operators have no partner, and budgets are rows of quotas that the server
//! makes: neither counts.
//!
//! A quota's key is rotated within its row. An API key is replaced by another row, which a partner beyond its limit must be able to make:
//! so API keys count, and are refused beyond the limit only once those of the partner have [`KEYS_RESERVE`] by themselves.

use colloquy_base::identifiers::PartnerId;
use colloquy_kernel::Base;
use colloquy_store::{Executor, StoreError, Transaction, statement};

use super::{ChargeError, Sum, change, charge_text, check_counted, counted, note_refusal, release};

/// The bytes of API keys, revoked ones too, that a partner may have whatever else it stores: a thousand keys without origins.
const KEYS_RESERVE: u64 = 1_024 * 1_024;
/// The bytes of a row of `api_keys`.
const KEY: &str = "1024 + COALESCE(octet_length(allowed_origins), 0)";
/// The bytes of a row of `quotas` that has a key, with the rows of its limits and counters.
const QUOTA: &str = "2048 + COALESCE(octet_length(allowed_models), 0) + COALESCE(octet_length(allowed_characters), 0)";

/// The query of the bytes of each API key and quota of the partner `$1`, for [`recount_texts`](super::recount_texts).
pub const TEXTS: &str = "SELECT 1024 + COALESCE(octet_length(allowed_origins), 0) AS bytes FROM api_keys WHERE partner = $1 \
     UNION ALL SELECT 2048 + COALESCE(octet_length(allowed_models), 0) + COALESCE(octet_length(allowed_characters), 0) \
     FROM quotas WHERE partner = $1 AND purpose = 'key'";

/// Counts an API key that the transaction has inserted, and returns its bytes. The transaction is not to be committed after an error.
///
/// # Errors
/// When the partner would store more than it may, and its keys have more than [`KEYS_RESERVE`]; or the database fails.
pub(crate) async fn charge_key(
    base: &Base,
    transaction: &Transaction,
    partner: &PartnerId,
    id: &str,
) -> Result<u64, ChargeError> {
    let sql = format!("SELECT CAST({KEY} AS BIGINT) FROM api_keys WHERE id = $1");
    let bytes = transaction.fetch_count(statement(sql, [id.into()])).await?;
    change(transaction, partner, Sum::Texts, counted(bytes)).await?;
    let Err(refused) = check_counted(base, transaction, partner, bytes).await else {
        return Ok(bytes);
    };
    // The row of the sums is locked, so of keys that are made together each sees those before it.
    if matches!(refused, ChargeError::Limit(_))
        && bytes_of_keys(transaction, partner).await? <= KEYS_RESERVE
    {
        return Ok(bytes);
    }
    note_refusal(&refused);
    Err(refused)
}

/// The bytes of all API keys of a partner.
async fn bytes_of_keys(transaction: &Transaction, partner: &PartnerId) -> Result<u64, StoreError> {
    let sql =
        format!("SELECT CAST(COALESCE(SUM({KEY}), 0) AS BIGINT) FROM api_keys WHERE partner = $1");
    transaction
        .fetch_count(statement(sql, [partner.as_str().into()]))
        .await
}

/// The bytes of a quota.
///
/// # Errors
/// The database's failure.
pub(crate) async fn bytes_of_quota(transaction: &Transaction, id: &str) -> Result<u64, StoreError> {
    let sql = format!("SELECT CAST({QUOTA} AS BIGINT) FROM quotas WHERE id = $1");
    transaction.fetch_count(statement(sql, [id.into()])).await
}

/// Counts a quota that the transaction has written and that had `before` bytes, 0 if it is new. One that has not grown is never refused.
/// The transaction is not to be committed after an error.
///
/// # Errors
/// When the quota has grown and the partner would store more than it may, or the database fails.
pub(crate) async fn charge_quota(
    base: &Base,
    transaction: &Transaction,
    partner: &PartnerId,
    id: &str,
    before: u64,
) -> Result<(), ChargeError> {
    let after = bytes_of_quota(transaction, id).await?;
    if after > before {
        let more = usize::try_from(after - before).unwrap_or(usize::MAX);
        return charge_text(base, transaction, partner, more).await;
    }
    if after < before {
        let less = counted(before - after);
        release(transaction, partner.as_str(), Sum::Texts, less).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_counts_what_is_charged() {
        let expected = format!(
            "SELECT {KEY} AS bytes FROM api_keys WHERE partner = $1 \
             UNION ALL SELECT {QUOTA} FROM quotas WHERE partner = $1 AND purpose = 'key'"
        );
        assert_eq!(TEXTS, expected);
    }
}
