//! The SQL of estimates of rewriting.

use colloquy_store::{Executor, StoreError, statement};

use super::{lists::DocumentFilter, rewriting::RewritableState};
use crate::document::ModelTier;

/// Documents of one tier and one state.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct RewritableSum {
    #[sqlx(try_from = "String")]
    pub(crate) model_tier: ModelTier,
    #[sqlx(flatten)]
    pub(crate) state: RewritableState,
    /// True if they have final content.
    pub(crate) is_final: bool,
    pub(crate) documents: i64,
    /// Tokens of their texts, each rounded up.
    pub(crate) tokens: i64,
    /// Sections that their texts are cut into.
    pub(crate) sections: i64,
}

/// Sums the documents that pass a filter by what decides if they can be rewritten. A token has `characters` characters of a text, and a section
/// `tokens` tokens.
pub(crate) async fn rewritable_sums(
    db: &impl Executor,
    filter: &DocumentFilter,
    characters: u64,
    tokens: u64,
) -> Result<Vec<RewritableSum>, StoreError> {
    let texts = format!("((COALESCE(d.text_characters, 0) + {characters} - 1) / {characters})");
    let sections = format!("(({texts} + {tokens} - 1) / {tokens})");
    let columns = format!(
        "d.model_tier, (d.deletion_requested_at IS NOT NULL OR d.folder_id IN (SELECT f.id FROM knowledge_folders f \
         WHERE f.base_id = $1 AND f.deletion_requested_at IS NOT NULL)) AS is_going, \
         (d.text_characters IS NOT NULL) AS has_text, d.digitizing, d.rewriting, (d.final_characters IS NOT NULL) AS is_final, \
         COUNT(*) AS documents, CAST(SUM({texts}) AS BIGINT) AS tokens, \
         CAST(SUM(CASE WHEN {sections} > 1 THEN {sections} ELSE 1 END) AS BIGINT) AS sections"
    );
    let mut query = filter.query(db.dialect(), &columns);
    query.sql.push_str(
        " GROUP BY d.model_tier, is_going, has_text, d.digitizing, d.rewriting, is_final",
    );
    db.fetch_all(statement(query.sql, query.values)).await
}
