//! How many bytes a partner stores, and how many it may.
//!
//! A row of `partner_storage` has two sums: over the partner's files, whatever their state, and over the texts that it has the server keep:
//! stored responses, versions of characters, open calls, transcripts and metadata of calls that ended, transcripts of recordings, webhook
//! deliveries, analyses, legacy completions, the rows of knowledge bases, API keys and quotas.
//! The limit is on both together. A sum changes in the transaction that changes one of the rows that it counts, after that row. These are
//! short transactions: the row of the sums is locked by whoever stores something, so that parallel uploads cannot pass the limit together,
//! and nobody waits for a longer one.
//!
//! A text counts with the bytes of its columns in UTF-8, which its row still tells when it is deleted (`octet_length`) or has as a number, or
//! with as much as a row of its kind has at most. Which files and texts there are belongs to the capabilities that store them.

mod keys;
mod pending;
mod recount;

use std::collections::BTreeMap;

use colloquy_base::identifiers::PartnerId;
use colloquy_kernel::Base;
use colloquy_store::{Executor, Store, StoreError, Transaction, statement};

pub(crate) use self::keys::{bytes_of_quota, charge_key, charge_quota};
pub use self::{
    keys::TEXTS,
    pending::{PendingText, PendingTexts},
    recount::recount_texts,
};
use super::PartnerSettings;

/// How many texts are removed in a transaction.
const AT_ONCE: i64 = 500;

/// One of the sums of what a partner stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// The bytes of its files.
    Files,
    /// The bytes of its texts.
    Texts,
}

/// A partner would store more bytes than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the storage of the partner has no room for this: its files and texts may have {limit} bytes together, and have {used}; delete \
     documents, recordings, voices, characters, stored responses, transcripts or calls that ended (analyses, completions and webhook \
     deliveries are deleted once they are old, and calls release their characters when they end), or have the operator raise the \
     partner's storage_bytes (limits.storage_bytes_per_partner)"
)]
pub struct StorageLimitReached {
    /// The bytes that they have.
    pub used: u64,
    /// The bytes that they may have.
    pub limit: u64,
}

/// Why bytes were not counted.
#[derive(Debug, thiserror::Error)]
pub enum ChargeError {
    /// The partner would store more than it may.
    #[error(transparent)]
    Limit(#[from] StorageLimitReached),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Adds bytes to a sum of a partner, or takes some away. The row is locked until the transaction ends.
///
/// # Errors
/// The database's failure; also when there is no such partner.
pub async fn change(
    transaction: &Transaction,
    partner: &PartnerId,
    sum: Sum,
    by: i64,
) -> Result<(), StoreError> {
    let sql = match sum {
        Sum::Files => {
            "INSERT INTO partner_storage (partner, bytes, texts) VALUES ($1, $2, 0) \
             ON CONFLICT (partner) DO UPDATE SET bytes = partner_storage.bytes + excluded.bytes"
        }
        Sum::Texts => {
            "INSERT INTO partner_storage (partner, bytes, texts) VALUES ($1, 0, $2) \
             ON CONFLICT (partner) DO UPDATE SET texts = partner_storage.texts + excluded.texts"
        }
    };
    let values = [partner.as_str().into(), by.into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// Takes bytes away from a sum of a partner, or adds some where `bytes` is negative, if the partner is still there.
///
/// # Errors
/// The database's failure.
pub async fn release(
    transaction: &Transaction,
    partner: &str,
    sum: Sum,
    bytes: i64,
) -> Result<(), StoreError> {
    let sql = match sum {
        Sum::Files => {
            "UPDATE partner_storage SET bytes = CASE WHEN bytes > $2 THEN bytes - $2 ELSE 0 END WHERE partner = $1"
        }
        Sum::Texts => {
            "UPDATE partner_storage SET texts = CASE WHEN texts > $2 THEN texts - $2 ELSE 0 END WHERE partner = $1"
        }
    };
    let values = [partner.into(), bytes.into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// Adds bytes to a sum of a partner, unless it would store more than it may. The transaction is not to be committed after an error.
///
/// # Errors
/// When it would store more than it may, there is no such partner, or the database fails.
pub async fn charge(
    base: &Base,
    transaction: &Transaction,
    partner: &PartnerId,
    sum: Sum,
    bytes: u64,
) -> Result<(), ChargeError> {
    change(transaction, partner, sum, counted(bytes)).await?;
    check_counted(base, transaction, partner, bytes).await
}

/// Checks that a partner may store bytes that the transaction has added to one of its sums.
async fn check_counted(
    base: &Base,
    transaction: &Transaction,
    partner: &PartnerId,
    bytes: u64,
) -> Result<(), ChargeError> {
    let Standing { stored, limit } = standing(base, transaction, partner).await?;
    let used = stored.saturating_sub(bytes);
    require(transaction, partner, used, bytes, limit).await
}

/// Checks that a partner may store so many more bytes.
///
/// # Errors
/// When it would store more than it may, or the database fails.
pub async fn check(base: &Base, partner: &PartnerId, bytes: u64) -> Result<(), ChargeError> {
    let db = base.store.db();
    let Standing { stored, limit } = standing(base, db, partner).await?;
    require(db, partner, stored, bytes, limit).await
}

/// Counts a text whose row the transaction has inserted, unless the partner would store more than it may. The transaction is not to be
/// committed after an error.
///
/// # Errors
/// When the partner would store more than it may, there is no such partner, or the database fails.
pub async fn charge_text(
    base: &Base,
    transaction: &Transaction,
    partner: &PartnerId,
    bytes: usize,
) -> Result<(), ChargeError> {
    let charged = charge(base, transaction, partner, Sum::Texts, bytes as u64).await;
    charged.inspect_err(note_refusal)
}

/// Counts a text of a quota's partner whose row the transaction has inserted. The text was paid for, so it is stored beyond the limit, too:
/// what of it was known before was reserved ([`PendingTexts`]).
///
/// # Errors
/// The database's failure.
pub async fn count_text_of_quota(
    transaction: &Transaction,
    quota: &str,
    bytes: usize,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO partner_storage (partner, bytes, texts) SELECT partner, 0, $2 FROM quotas WHERE id = $1 \
               ON CONFLICT (partner) DO UPDATE SET texts = partner_storage.texts + excluded.texts";
    let values = [quota.into(), counted(bytes as u64).into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// Counts the text that a row has now in place of the one that it had before. The text was paid for, so it is stored beyond the limit,
/// too.
///
/// # Errors
/// The database's failure.
pub async fn replace_text(
    transaction: &Transaction,
    partner: &str,
    before: usize,
    after: usize,
) -> Result<(), StoreError> {
    let less = counted(before as u64) - counted(after as u64);
    release(transaction, partner, Sum::Texts, less).await
}

/// Deletes the texts that a statement finds and returns how many they were. The statement deletes at most `$2` rows that are to go at
/// the time `$1`, and returns `partner` and `bytes` of each. Each batch has its own transaction, so that nobody waits for all of them.
///
/// # Errors
/// The database's failure. Batches before it are deleted.
pub async fn purge_texts(store: &Store, sql: &str, at: i64) -> Result<u64, StoreError> {
    let mut purged = 0;
    loop {
        let transaction = store.begin_patient().await?;
        let values = [at.into(), AT_ONCE.into()];
        let batch = statement(sql.to_owned(), values);
        let rows: Vec<PurgedRow> = transaction.fetch_all(batch).await?;
        let count = rows.len() as u64;
        let released = rows.into_iter().map(|row| (row.partner, row.bytes));
        release_texts(&transaction, released.collect()).await?;
        transaction.commit().await?;
        purged += count;
        if count < AT_ONCE.unsigned_abs() {
            return Ok(purged);
        }
    }
}

#[derive(sqlx::FromRow)]
struct PurgedRow {
    partner: String,
    bytes: i64,
}

/// Takes the bytes of texts away, each with the partner that had it.
///
/// # Errors
/// The database's failure.
pub async fn release_texts(
    transaction: &Transaction,
    texts: Vec<(String, i64)>,
) -> Result<(), StoreError> {
    // Always in the order of the partners, so that two nodes do not wait for each other.
    let mut released = BTreeMap::<String, i64>::new();
    for (partner, bytes) in texts {
        *released.entry(partner).or_default() += bytes;
    }
    for (partner, bytes) in released {
        release(transaction, &partner, Sum::Texts, bytes).await?;
    }
    Ok(())
}

/// How many bytes the files and texts of all partners have together, without files that were deleted and are not removed yet.
///
/// # Errors
/// The database's failure.
pub async fn total(db: &impl Executor) -> Result<u64, StoreError> {
    let sql = "SELECT CAST(COALESCE(SUM(kept.bytes), 0) AS BIGINT) FROM (SELECT bytes + texts AS bytes FROM partner_storage \
               UNION ALL SELECT -bytes FROM blobs WHERE owner IS NOT NULL AND state = 'doomed') AS kept";
    db.fetch_count(statement(sql, [])).await
}

#[derive(sqlx::FromRow)]
struct TextsRow {
    partner: String,
    settings: String,
    texts: i64,
}

/// Returns the partners whose texts have more than half of what they may store, with that half in bytes.
///
/// # Errors
/// The database's failure.
pub async fn half_full(base: &Base) -> Result<Vec<(String, u64)>, StoreError> {
    let sql = "SELECT p.id AS partner, p.settings, s.texts FROM partners p \
               JOIN partner_storage s ON s.partner = p.id WHERE s.texts > 0 ORDER BY p.id";
    let rows: Vec<TextsRow> = base.store.db().fetch_all(statement(sql, [])).await?;
    let mut found = Vec::new();
    for row in rows {
        let Ok(settings) = PartnerSettings::of_row(&row.settings) else {
            // Whatever reads the partner reports it; the others have their bound.
            continue;
        };
        let limit = settings
            .storage_bytes
            .unwrap_or(base.config.limits.storage_bytes_per_partner);
        if row.texts.max(0).unsigned_abs() > limit / 2 {
            found.push((row.partner, limit / 2));
        }
    }
    Ok(found)
}

/// Returns how many bytes the files and texts of a partner may have together.
///
/// # Errors
/// The database's failure.
pub async fn limit(
    base: &Base,
    db: &impl Executor,
    partner: &PartnerId,
) -> Result<u64, StoreError> {
    let standing = standing(base, db, partner).await?;
    Ok(standing.limit)
}

/// What a partner stores, and what it may.
struct Standing {
    stored: u64,
    limit: u64,
}

#[derive(sqlx::FromRow)]
struct StandingRow {
    settings: String,
    stored: Option<i64>,
}

async fn standing(
    base: &Base,
    db: &impl Executor,
    partner: &PartnerId,
) -> Result<Standing, StoreError> {
    let sql = "SELECT p.settings, s.bytes + s.texts AS stored FROM partners p \
               LEFT JOIN partner_storage s ON s.partner = p.id WHERE p.id = $1";
    let row: Option<StandingRow> = db
        .fetch_one(statement(sql, [partner.as_str().into()]))
        .await?;
    let (own, stored) = match row {
        Some(StandingRow { settings, stored }) => {
            let settings = PartnerSettings::of_row(&settings).map_err(StoreError::malformed)?;
            (settings.storage_bytes, stored.unwrap_or_default())
        }
        None => (None, 0),
    };
    Ok(Standing {
        stored: stored.max(0).unsigned_abs(),
        limit: own.unwrap_or(base.config.limits.storage_bytes_per_partner),
    })
}

/// Checks that `bytes` are within the limit, beside those that are used.
async fn require(
    db: &impl Executor,
    partner: &PartnerId,
    used: u64,
    bytes: u64,
    limit: u64,
) -> Result<(), ChargeError> {
    if used.saturating_add(bytes) <= limit {
        return Ok(());
    }
    // Files that were deleted and are not removed yet are not held against the partner.
    let used = used.saturating_sub(doomed_bytes(db, partner).await?);
    match used.saturating_add(bytes) <= limit {
        true => Ok(()),
        false => Err(StorageLimitReached { used, limit }.into()),
    }
}

/// How many bytes the files of a partner have that nobody refers to and that are not removed yet.
async fn doomed_bytes(db: &impl Executor, partner: &PartnerId) -> Result<u64, StoreError> {
    let sql = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM blobs WHERE owner = $1 AND state = 'doomed'";
    db.fetch_count(statement(sql, [partner.as_str().into()]))
        .await
}

/// Counts a text that was refused.
fn note_refusal(error: &ChargeError) {
    if matches!(error, ChargeError::Limit(_)) {
        metrics::counter!("colloquy_storage_refusals_total", "reason" => "partner_limit")
            .increment(1);
    }
}

/// Bytes as the database has them.
#[must_use]
pub fn counted(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX / 4)
}
