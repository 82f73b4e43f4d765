//! How the rows of knowledge bases count in the storage of their partner.
//!
//! Names, addresses and what else partners say of a base, a folder or a document stand in rows of the database, beside the files that count by
//! themselves. A row counts as much as one has at most, with its indexes: so renaming changes no sum, and deleting releases what was
//! charged by the number of rows.

use colloquy_accounts::{
    Tenant,
    storage::{self, Sum},
};
use colloquy_store::{StoreError, Transaction};

use super::{
    Bases,
    error::BaseError,
    store::{self, Whole},
};

/// What a knowledge base counts.
pub(crate) const BASE_BYTES: u64 = 4_096;
/// What a folder counts, with the channel that it follows.
pub(crate) const FOLDER_BYTES: u64 = 4_096;
/// What a document counts: four names of 200 characters, an address of 2,048 bytes that is indexed, an e-mail address, its errors
/// and the newest steps of its history.
pub(crate) const DOCUMENT_BYTES: u64 = 8_192;
/// What a video of a channel counts, from when a scan notes it: its name of 200 characters, its address, and three indexes.
pub(crate) const VIDEO_BYTES: u64 = 1_024;
/// What a saved question counts, beside its texts: its row, its documents, and its results in the evaluations that are kept, each with an id of 36
/// bytes and a rank for each of 20 documents.
pub(crate) const QUESTION_BYTES: u64 = 32_768;
/// What an evaluation counts, beside its results.
pub(crate) const EVALUATION_BYTES: u64 = 2_048;

/// The query of the bytes of all bases, folders, documents, videos of channels, saved questions and evaluations of the partner `$1`, for `storage::recount_texts`.
pub const TEXTS: &str = "SELECT 4096 * COUNT(*) AS bytes FROM knowledge_bases WHERE partner = $1 \
     UNION ALL SELECT 4096 * COUNT(*) FROM knowledge_folders f JOIN knowledge_bases b ON b.id = f.base_id WHERE b.partner = $1 \
     UNION ALL SELECT 8192 * COUNT(*) FROM knowledge_documents d JOIN knowledge_bases b ON b.id = d.base_id WHERE b.partner = $1 \
     UNION ALL SELECT 1024 * COUNT(*) FROM knowledge_channel_videos v JOIN knowledge_channels c ON c.folder_id = v.channel \
     JOIN knowledge_bases b ON b.id = c.base_id WHERE b.partner = $1 \
     UNION ALL SELECT q.bytes FROM knowledge_questions q JOIN knowledge_bases b ON b.id = q.base_id WHERE b.partner = $1 \
     UNION ALL SELECT 2048 * COUNT(*) FROM knowledge_evaluations e JOIN knowledge_bases b ON b.id = e.base_id WHERE b.partner = $1";

/// Rows that were deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    pub(crate) bases: u64,
    pub(crate) folders: u64,
    pub(crate) documents: u64,
    pub(crate) videos: u64,
    pub(crate) evaluations: u64,
    /// What saved questions counted.
    pub(crate) question_bytes: u64,
}

impl Removed {
    /// What they counted.
    fn bytes(self) -> u64 {
        self.bases * BASE_BYTES
            + self.folders * FOLDER_BYTES
            + self.documents * DOCUMENT_BYTES
            + self.videos * VIDEO_BYTES
            + self.evaluations * EVALUATION_BYTES
            + self.question_bytes
    }
}

/// Counts rows that the transaction has inserted. To be called behind all changes of files; the transaction is not to be committed after an
/// error.
///
/// # Errors
/// When the partner would store more than it may, or the database fails.
pub(crate) async fn charge(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    bytes: u64,
) -> Result<(), BaseError> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok(storage::charge_text(bases, transaction, tenant.partner(), bytes).await?)
}

/// Deletes something with all that is in it, and counts its rows no more.
///
/// # Errors
/// The database's failure.
pub(crate) async fn delete(
    transaction: &Transaction,
    whole: Whole,
    id: &str,
) -> Result<(), StoreError> {
    let partner = store::partner_with(transaction, whole, id).await?;
    let removed = store::delete(transaction, whole, id).await?;
    match partner {
        Some(partner) => {
            let bytes = storage::counted(removed.bytes());
            storage::release(transaction, &partner, Sum::Texts, bytes).await
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_counts_what_is_charged() {
        for (bytes, table) in [
            (BASE_BYTES, "knowledge_bases"),
            (FOLDER_BYTES, "knowledge_folders"),
            (DOCUMENT_BYTES, "knowledge_documents"),
            (VIDEO_BYTES, "knowledge_channel_videos"),
            (EVALUATION_BYTES, "knowledge_evaluations"),
        ] {
            assert!(TEXTS.contains(&format!("{bytes} * COUNT(*)")));
            let part = TEXTS
                .split(" UNION ALL ")
                .find(|part| part.contains(&format!("FROM {table} ")));
            assert!(
                part.unwrap().contains(&format!("SELECT {bytes} *")),
                "{table}"
            );
        }
        let removed = Removed {
            bases: 1,
            folders: 2,
            documents: 3,
            videos: 4,
            evaluations: 5,
            question_bytes: 6,
        };
        let bytes = 4_096 + 2 * 4_096 + 3 * 8_192 + 4 * 1_024 + 5 * 2_048 + 6;
        assert_eq!(removed.bytes(), bytes);
    }
}
