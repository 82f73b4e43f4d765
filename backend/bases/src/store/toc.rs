//! The SQL of tables of contents, which are read a page at a time.

use colloquy_store::{Executor, StoreError, statement};

use super::pages::{DocumentPlace, FOLLOWING, following};
use crate::{document::Step, pages::Placed};

/// The most documents of a page. The table of each has up to 64 KiB.
pub(crate) const TOC_PAGE: u8 = 16;

/// A document and its table of contents.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct TocRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) folder: String,
    pub(crate) created_at: i64,
    #[sqlx(try_from = "String")]
    pub(crate) embedding: Step,
    pub(crate) embedding_error: Option<String>,
    /// Of the profile that the base is searched by.
    pub(crate) chunk_count: Option<i64>,
    pub(crate) embedded_at: Option<i64>,
    /// The headings, JSON.
    pub(crate) contents: Option<String>,
}

impl Placed for TocRow {
    fn place(&self) -> DocumentPlace {
        DocumentPlace {
            created_at: self.created_at,
            id: self.id.clone(),
        }
    }
}

/// Returns at most [`TOC_PAGE`] documents of a base that follow `after`, oldest first.
pub(crate) async fn toc_page(
    db: &impl Executor,
    base: &str,
    after: &DocumentPlace,
) -> Result<Vec<TocRow>, StoreError> {
    let sql = format!(
        "SELECT d.id, d.name, f.name AS folder, d.created_at, d.embedding, d.embedding_error, \
         m.chunk_count, m.created_at AS embedded_at, m.contents \
         FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id \
         LEFT JOIN knowledge_manifests m ON m.document_id = d.id AND NOT m.stale \
         AND m.profile_id = (SELECT profile_id FROM knowledge_bases WHERE id = $1) \
         WHERE {FOLLOWING} AND d.deletion_requested_at IS NULL ORDER BY d.created_at, d.id LIMIT $4"
    );
    db.fetch_all(statement(sql, following(base, after, TOC_PAGE)))
        .await
}
