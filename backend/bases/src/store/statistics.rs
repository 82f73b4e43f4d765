//! The SQL of how much there is in a base.

use colloquy_store::{Executor, StoreError, statement};

/// How much there is in a base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Statistics {
    pub(crate) documents: i64,
    /// Documents of which a step failed or waits for a budget.
    pub(crate) errors: i64,
    /// Documents that can be searched.
    pub(crate) embedded: i64,
    /// Documents with text.
    pub(crate) texts: i64,
    pub(crate) text_characters: i64,
    /// Documents with final content.
    pub(crate) finals: i64,
    pub(crate) final_characters: i64,
    /// Documents with a draft.
    pub(crate) drafts: i64,
    pub(crate) draft_characters: i64,
}

/// The drafts of the base `$1`. SQLite joins the tables of a cross join in their order, and so reads the few drafts, not all documents.
pub(super) const DRAFTS: &str = "SELECT COUNT(*) AS drafts, CAST(COALESCE(SUM(c.characters), 0) AS BIGINT) AS draft_characters \
     FROM knowledge_contents c CROSS JOIN knowledge_documents d WHERE c.variant = 'draft' AND d.id = c.document_id AND d.base_id = $1";

/// The fields of [`Statistics`] of the base `$1` that are no drafts', from the index of lists alone.
pub(super) const DOCUMENTS: &str = "SELECT COUNT(*) AS documents, \
     COALESCE(SUM(CASE WHEN 'failed' IN (d.digitizing, d.rewriting, d.embedding) OR 'blocked' IN (d.digitizing, d.rewriting, d.embedding) \
     THEN 1 ELSE 0 END), 0) AS errors, \
     COALESCE(SUM(CASE WHEN d.embedding = 'done' THEN 1 ELSE 0 END), 0) AS embedded, \
     COUNT(d.text_characters) AS texts, CAST(COALESCE(SUM(d.text_characters), 0) AS BIGINT) AS text_characters, \
     COUNT(d.final_characters) AS finals, CAST(COALESCE(SUM(d.final_characters), 0) AS BIGINT) AS final_characters \
     FROM knowledge_documents d WHERE d.base_id = $1";

/// Counts what there is in a base.
pub(crate) async fn statistics(db: &impl Executor, base: &str) -> Result<Statistics, StoreError> {
    let sql = format!("SELECT * FROM ({DOCUMENTS}) AS documents CROSS JOIN ({DRAFTS}) AS drafts");
    let statistics = db.fetch_one(statement(sql, [base.into()])).await?;
    Ok(statistics.unwrap_or_default())
}
