//! The SQL of how far the documents of a base are embedded, without those that are being deleted.

use colloquy_store::{Executor, StoreError, statement};

use super::pages::{DocumentPlace, FOLLOWING, SCAN_PAGE, following};
use crate::{document::Step, pages::Placed};

/// Documents of a base, by their embedding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct EmbeddingCounts {
    /// Documents with final content.
    pub(crate) eligible: i64,
    pub(crate) pending: i64,
    pub(crate) failed: i64,
    /// Documents with chunks of the profile that the base is searched by.
    pub(crate) embedded: i64,
    /// The chunks of these; `None` if there are none of these.
    pub(crate) chunks: Option<i64>,
    /// When the newest of these was embedded.
    pub(crate) embedded_at: Option<i64>,
}

/// Counts the documents of a base by their embedding.
pub(crate) async fn embedding_counts(
    db: &impl Executor,
    base: &str,
) -> Result<EmbeddingCounts, StoreError> {
    let sql = "SELECT COUNT(c.document_id) AS eligible, \
               COALESCE(SUM(CASE WHEN d.embedding IN ('queued', 'running', 'blocked') THEN 1 ELSE 0 END), 0) AS pending, \
               COALESCE(SUM(CASE WHEN d.embedding = 'failed' THEN 1 ELSE 0 END), 0) AS failed, \
               COUNT(m.document_id) AS embedded, CAST(SUM(m.chunk_count) AS BIGINT) AS chunks, MAX(m.created_at) AS embedded_at \
               FROM knowledge_documents d \
               LEFT JOIN knowledge_contents c ON c.document_id = d.id AND c.variant = 'rewritten' \
               LEFT JOIN knowledge_manifests m ON m.document_id = d.id AND NOT m.stale \
               AND m.profile_id = (SELECT profile_id FROM knowledge_bases WHERE id = $1) \
               WHERE d.base_id = $1 AND d.deletion_requested_at IS NULL";
    let counts: Option<EmbeddingCounts> = db.fetch_one(statement(sql, [base.into()])).await?;
    Ok(counts.unwrap_or_default())
}

/// The newest change of the embedding of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct EmbeddingUpdate {
    #[sqlx(try_from = "String")]
    pub(crate) embedding: Step,
    pub(crate) embedding_at: i64,
}

/// Returns the newest change in a base, or `None` before the first one.
pub(crate) async fn newest_embedding_update(
    db: &impl Executor,
    base: &str,
) -> Result<Option<EmbeddingUpdate>, StoreError> {
    let sql = "SELECT d.embedding, d.embedding_at FROM knowledge_documents d \
               WHERE d.base_id = $1 AND d.deletion_requested_at IS NULL AND d.embedding_at IS NOT NULL \
               ORDER BY d.embedding_at DESC, d.created_at, d.id LIMIT 1";
    db.fetch_one(statement(sql, [base.into()])).await
}

/// Returns the error of the newest embedding in a base that has one.
pub(crate) async fn newest_embedding_error(
    db: &impl Executor,
    base: &str,
) -> Result<Option<String>, StoreError> {
    let sql = "SELECT d.embedding_error FROM knowledge_documents d WHERE d.base_id = $1 AND d.deletion_requested_at IS NULL \
               AND d.embedding_at IS NOT NULL AND d.embedding_error IS NOT NULL \
               ORDER BY d.embedding_at DESC, d.created_at, d.id LIMIT 1";
    db.fetch_scalar(statement(sql, [base.into()])).await
}

/// A document whose embedding failed.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct UnembeddedDocument {
    pub(crate) id: String,
    created_at: i64,
}

impl Placed for UnembeddedDocument {
    fn place(&self) -> DocumentPlace {
        DocumentPlace {
            created_at: self.created_at,
            id: self.id.clone(),
        }
    }
}

/// Returns at most [`SCAN_PAGE`] documents of a base whose embedding failed, and that follow `after`, oldest first.
pub(crate) async fn unembedded_page(
    db: &impl Executor,
    base: &str,
    after: &DocumentPlace,
) -> Result<Vec<UnembeddedDocument>, StoreError> {
    let sql = format!(
        "SELECT d.id, d.created_at FROM knowledge_documents d \
         WHERE {FOLLOWING} AND d.embedding = 'failed' AND d.deletion_requested_at IS NULL ORDER BY d.created_at, d.id LIMIT $4"
    );
    db.fetch_all(statement(sql, following(base, after, SCAN_PAGE)))
        .await
}
