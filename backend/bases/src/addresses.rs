//! Several addresses that become documents together.
//!
//! Each of them is taken or refused by itself. They are inserted a piece at a time: one transaction counts the documents of the base and
//! charges the partner for a whole piece, and whoever else writes waits for a piece at most.

use std::collections::{HashMap, hash_map::Entry};

use colloquy_accounts::{
    Tenant, share_partner,
    storage::{self, ChargeError, StorageLimitReached},
};
use colloquy_store::StoreError;

use super::{
    Bases,
    base::KnowledgeBase,
    document::{Document, MOST_DUPLICATES},
    error::BaseError,
    folder::Folder,
    rows, store,
    upload::{self, DocumentOptions},
};

/// Documents that are inserted in one transaction.
const AT_ONCE: usize = 20;

/// A document that was made of one of several addresses.
#[derive(Debug)]
pub(crate) struct AddedUrl {
    pub(crate) document_id: String,
    /// Other documents of the base with the same address, oldest first, without those that follow it in the request.
    pub(crate) duplicates: Vec<String>,
}

/// Makes documents of addresses, and has what is there read. Returns the outcome of each address, in their order.
///
/// # Errors
/// The database's failure. Documents of the pieces before it are made.
pub(crate) async fn add(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    folder: &Folder,
    urls: &[String],
    options: &DocumentOptions,
) -> Result<Vec<Result<AddedUrl, BaseError>>, StoreError> {
    let mut outcomes: Vec<Result<AddedUrl, BaseError>> = Vec::with_capacity(urls.len());
    for piece in urls.chunks(AT_ONCE) {
        let document = |url: &String| upload::of_url(bases, folder, url.clone(), options.clone());
        let documents = piece.iter().map(document).collect();
        let (made, refusal) = insert(bases, tenant, &base.id, documents).await?;
        let refused = piece.len() - made.len();
        let added = with_duplicates(bases, base, piece, made).await?;
        outcomes.extend(added.into_iter().map(Ok));
        outcomes.extend((0..refused).map(|_| Err(refusal.error(bases))));
    }
    Ok(outcomes)
}

/// A reason to refuse documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// The base has as many as it may.
    Documents,
    /// The partner would store more than it may.
    Storage(StorageLimitReached),
}

impl Refusal {
    fn error(self, bases: &Bases) -> BaseError {
        match self {
            Self::Documents => upload::full(bases),
            Self::Storage(reached) => BaseError::NoRoom(reached.into()),
        }
    }
}

/// Inserts as many of these documents, from the first one on, as there is room for. Returns those, and why the others are refused.
async fn insert(
    bases: &Bases,
    tenant: &Tenant,
    base: &str,
    mut documents: Vec<Document>,
) -> Result<(Vec<Document>, Refusal), StoreError> {
    let mut refusal = Refusal::Documents;
    while !documents.is_empty() {
        let transaction = bases.store.begin().await?;
        share_partner(&transaction, tenant).await?;
        let room = upload::room(bases, &transaction, base).await?;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if documents.len() > room {
            documents.truncate(room);
            refusal = Refusal::Documents;
        }
        if documents.is_empty() {
            break;
        }
        for document in &documents {
            upload::insert_queued(bases, &transaction, tenant, base, document, None).await?;
        }
        let bytes = bytes_of(documents.len());
        let charged = storage::charge_text(bases, &transaction, tenant.partner(), bytes).await;
        match charged {
            Ok(()) => {
                transaction.commit().await?;
                bases.kernel.jobs.wake();
                break;
            }
            // The transaction has rows that were refused: another one inserts those before them.
            Err(ChargeError::Limit(reached)) => {
                let (fitting, reached) = fitting(reached, documents.len());
                documents.truncate(fitting);
                refusal = Refusal::Storage(reached);
            }
            Err(ChargeError::Store(error)) => return Err(error),
        }
    }
    Ok((documents, refusal))
}

/// Bytes that the rows of so many documents count in the storage of their partner.
fn bytes_of(documents: usize) -> usize {
    let each = usize::try_from(rows::DOCUMENT_BYTES).unwrap_or(usize::MAX);
    documents.saturating_mul(each)
}

/// Returns how many of `refused` documents the partner has room for, fewer than all of them, and how its storage stands with these.
fn fitting(reached: StorageLimitReached, refused: usize) -> (usize, StorageLimitReached) {
    let room = reached.limit.saturating_sub(reached.used) / rows::DOCUMENT_BYTES;
    let fitting = usize::try_from(room).unwrap_or(usize::MAX);
    let fitting = fitting.min(refused.saturating_sub(1));
    let used = reached.used.saturating_add(bytes_of(fitting) as u64);
    (fitting, StorageLimitReached { used, ..reached })
}

/// Finds the duplicates of documents that were made of the first of `urls`, in their order.
async fn with_duplicates(
    bases: &Bases,
    base: &KnowledgeBase,
    urls: &[String],
    made: Vec<Document>,
) -> Result<Vec<AddedUrl>, StoreError> {
    let db = bases.store.db();
    // Each address is looked up once. The documents of this piece are among those that are found.
    let most = MOST_DUPLICATES + AT_ONCE;
    let mut found: HashMap<&str, Vec<String>> = HashMap::new();
    let mut ids: Vec<String> = made.into_iter().map(|document| document.id).collect();
    let mut added = Vec::with_capacity(ids.len());
    // From the last one on, so that what is left in `ids` came before.
    for url in urls.iter().take(ids.len()).rev() {
        let Some(document_id) = ids.pop() else {
            break;
        };
        let at_address = match found.entry(url) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                unknown.insert(store::documents_at(db, base, url, most).await?)
            }
        };
        // Neither this document nor, for those before it, one that follows them.
        at_address.retain(|id| *id != document_id);
        let duplicates = at_address.iter().take(MOST_DUPLICATES).cloned().collect();
        added.push(AddedUrl {
            document_id,
            duplicates,
        });
    }
    added.reverse();
    Ok(added)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_fit_are_fewer_than_those_that_were_refused() {
        let reached = |used, limit| StorageLimitReached { used, limit };
        for (used, limit, refused, expected) in [
            (0, 8_191, 20, 0_usize),
            (0, 8_192, 20, 1),
            (100, 3 * 8_192 + 99, 20, 2),
            // Somebody made room meanwhile: the next attempt ends all the same.
            (0, u64::MAX, 20, 19),
            (u64::MAX, 0, 1, 0),
            (0, 8_192, 1, 0),
        ] {
            let (count, now) = fitting(reached(used, limit), refused);
            assert_eq!(count, expected, "{used} {limit} {refused}");
            let stored = used.saturating_add(expected as u64 * 8_192);
            assert_eq!(now, reached(stored, limit));
        }
    }
}
