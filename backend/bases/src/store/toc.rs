//! The SQL of tables of contents, which are read a page at a time.

use colloquy_store::{Executor, StoreError, statement};

use crate::document::Step;

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

/// The last document of a page, which the next page follows.
#[derive(Debug, Clone)]
pub(crate) struct TocPlace {
    pub(crate) created_at: i64,
    pub(crate) id: String,
}

impl TocPlace {
    /// Before all documents.
    pub(crate) fn first() -> Self {
        Self {
            created_at: i64::MIN,
            id: String::new(),
        }
    }
}

/// Returns at most [`TOC_PAGE`] documents of a base that follow `after`, oldest first.
pub(crate) async fn toc_page(
    db: &impl Executor,
    base: &str,
    after: &TocPlace,
) -> Result<Vec<TocRow>, StoreError> {
    let sql = "SELECT d.id, d.name, f.name AS folder, d.created_at, d.embedding, d.embedding_error, \
               m.chunk_count, m.created_at AS embedded_at, m.contents \
               FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id \
               LEFT JOIN knowledge_manifests m ON m.document_id = d.id AND NOT m.stale \
               AND m.profile_id = (SELECT profile_id FROM knowledge_bases WHERE id = $1) \
               WHERE d.base_id = $1 AND d.deletion_requested_at IS NULL \
               AND d.created_at >= $2 AND (d.created_at > $2 OR d.id > $3) \
               ORDER BY d.created_at, d.id LIMIT $4";
    let values = [
        base.into(),
        after.created_at.into(),
        after.id.as_str().into(),
        i64::from(TOC_PAGE).into(),
    ];
    db.fetch_all(statement(sql, values)).await
}
