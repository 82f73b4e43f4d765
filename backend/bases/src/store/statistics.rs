//! The SQL of how much there is in a base.

use colloquy_store::{Executor, StoreError, statement};

use crate::content::Variant;

/// Documents of a base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct DocumentCounts {
    pub(crate) documents: i64,
    /// Documents of which a step failed or waits for a budget.
    pub(crate) errors: i64,
    /// Documents that can be searched.
    pub(crate) embedded: i64,
}

/// Counts the documents of a base.
pub(crate) async fn document_counts(
    db: &impl Executor,
    base: &str,
) -> Result<DocumentCounts, StoreError> {
    let sql = "SELECT COUNT(*) AS documents, \
               COALESCE(SUM(CASE WHEN embedding_error IS NOT NULL OR (embedding <> 'blocked' AND processing_error IS NOT NULL) \
               THEN 1 ELSE 0 END), 0) AS errors, \
               COALESCE(SUM(CASE WHEN embedding = 'done' THEN 1 ELSE 0 END), 0) AS embedded \
               FROM knowledge_documents WHERE base_id = $1";
    let counts: Option<DocumentCounts> = db.fetch_one(statement(sql, [base.into()])).await?;
    Ok(counts.unwrap_or_default())
}

/// The texts of a base in one variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct VariantSum {
    #[sqlx(try_from = "String")]
    pub(crate) variant: Variant,
    pub(crate) contents: i64,
    pub(crate) characters: i64,
}

/// Sums up the texts of a base by variant.
pub(crate) async fn variant_sums(
    db: &impl Executor,
    base: &str,
) -> Result<Vec<VariantSum>, StoreError> {
    let sql = "SELECT c.variant, COUNT(*) AS contents, CAST(COALESCE(SUM(c.characters), 0) AS BIGINT) AS characters \
               FROM knowledge_documents d JOIN knowledge_contents c ON c.document_id = d.id WHERE d.base_id = $1 \
               AND c.variant IN ('digitized', 'draft', 'rewritten') GROUP BY c.variant";
    db.fetch_all(statement(sql, [base.into()])).await
}
