//! The SQL of rewriting.

use colloquy_store::{Executor, StoreError, placeholders, statement};

use super::pages::{DocumentPlace, DocumentSpan, FOLLOWING, SCAN_PAGE, UP_TO, following};
use crate::{
    admission::Used,
    document::{ContentTypeChoice, Document, ModelTier, Step},
    pages::Placed,
};

/// How far the rewriting of a document is, and what it used.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Rewrite {
    /// Of the document when it began.
    pub(crate) revision: i64,
    /// Tells how the text was cut into sections.
    pub(crate) cut: String,
    /// The model that answered last.
    pub(crate) model: String,
    pub(crate) sections: i64,
    pub(crate) done: i64,
    /// Whether a model is being asked.
    pub(crate) asking: bool,
    pub(crate) input_tokens: i64,
    pub(crate) output_tokens: i64,
    /// In units of 1e-8 dollars.
    pub(crate) cost: i64,
    /// Whether usage and cost of each section are known.
    pub(crate) complete: bool,
}

impl Rewrite {
    /// One that begins.
    pub(crate) fn new(document: &Document, cut: String, sections: usize) -> Self {
        Self {
            revision: document.revision,
            cut,
            model: String::new(),
            sections: i64::try_from(sections).unwrap_or(i64::MAX),
            done: 0,
            asking: false,
            input_tokens: 0,
            output_tokens: 0,
            cost: 0,
            complete: true,
        }
    }

    /// False if usage or cost of a section is not known: also that of a section that is being asked for, or was when its process ended.
    pub(crate) fn is_cost_known(&self) -> bool {
        self.complete && !self.asking
    }

    /// Counts what a section used, where that is known.
    pub(crate) fn count(&mut self, used: Used) {
        self.complete &= used.tokens.is_some() && used.cost.is_some();
        let (tokens, cost) = (
            used.tokens.unwrap_or_default(),
            used.cost.unwrap_or_default(),
        );
        let count = |sum: &mut i64, more: u64| {
            *sum = sum.saturating_add(i64::try_from(more).unwrap_or(i64::MAX));
        };
        count(&mut self.input_tokens, tokens.input);
        count(&mut self.output_tokens, tokens.output);
        count(&mut self.cost, cost);
    }
}

const COLUMNS: &str =
    "revision, cut, model, sections, done, asking, input_tokens, output_tokens, cost, complete";

pub(crate) async fn rewrite_of(
    db: &impl Executor,
    document: &str,
) -> Result<Option<Rewrite>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM knowledge_rewrites WHERE document_id = $1");
    db.fetch_one(statement(sql, [document.into()])).await
}

pub(crate) async fn put_rewrite(
    db: &impl Executor,
    document: &str,
    rewrite: &Rewrite,
    now: i64,
) -> Result<(), StoreError> {
    let sql = format!(
        "INSERT INTO knowledge_rewrites (document_id, {COLUMNS}, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
         ON CONFLICT (document_id) DO UPDATE SET revision = excluded.revision, cut = excluded.cut, model = excluded.model, sections = excluded.sections, \
         done = excluded.done, asking = excluded.asking, input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, \
         cost = excluded.cost, complete = excluded.complete, updated_at = excluded.updated_at"
    );
    let values = [
        document.into(),
        rewrite.revision.into(),
        rewrite.cut.as_str().into(),
        rewrite.model.as_str().into(),
        rewrite.sections.into(),
        rewrite.done.into(),
        rewrite.asking.into(),
        rewrite.input_tokens.into(),
        rewrite.output_tokens.into(),
        rewrite.cost.into(),
        rewrite.complete.into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Whether a model was asked since it was noted last how far rewriting is: without that, nobody can have been paid.
pub(crate) async fn was_asked(db: &impl Executor, document: &str) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) FROM knowledge_usage u JOIN knowledge_rewrites r ON r.document_id = u.document_id \
               WHERE u.document_id = $1 AND u.kind = 'rewrite' AND u.created_at >= r.updated_at";
    let asked = db.fetch_count(statement(sql, [document.into()])).await?;
    Ok(asked > 0)
}

/// Lets the next rewriting go on where the last one failed. A section whose outcome nobody knows is asked for again, and its cost stays
/// unknown.
pub(crate) async fn resume_rewrite(db: &impl Executor, document: &str) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_rewrites SET complete = (complete AND NOT asking), asking = FALSE WHERE document_id = $1";
    db.execute(statement(sql, [document.into()])).await?;
    Ok(())
}

/// Lets the next rewriting begin anew.
pub(crate) async fn forget_rewrite(db: &impl Executor, document: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM knowledge_rewrites WHERE document_id = $1";
    db.execute(statement(sql, [document.into()])).await?;
    Ok(())
}

pub(crate) async fn set_rewrite_options(
    db: &impl Executor,
    document: &str,
    content_type: ContentTypeChoice,
    person_name: Option<&str>,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET content_type = $2, person_name = COALESCE($3, person_name), updated_at = $4 WHERE id = $1";
    let values = [
        document.into(),
        content_type.as_str().into(),
        person_name.into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes how far rewriting is.
pub(crate) async fn set_rewriting(
    db: &impl Executor,
    document: &str,
    step: Step,
    reason: Option<&str>,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET rewriting = $2, processing_error = COALESCE($3, \
               CASE WHEN digitizing = 'blocked' THEN processing_error END), updated_at = $4 WHERE id = $1";
    let values = [
        document.into(),
        step.as_str().into(),
        reason.into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// The same by whoever rewrites, unless somebody has written another content since. Whether it was so.
pub(crate) async fn note_rewriting(
    db: &impl Executor,
    document: &Document,
    step: Step,
    reason: Option<&str>,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE knowledge_documents SET rewriting = $3, processing_error = COALESCE($4, \
               CASE WHEN digitizing = 'blocked' THEN processing_error END), updated_at = $5 \
               WHERE id = $1 AND revision = $2 AND rewriting IN ('running', 'queued')";
    let values = [
        document.id.as_str().into(),
        document.revision.into(),
        step.as_str().into(),
        reason.into(),
        now.into(),
    ];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

/// Notes that rewriting was given up, for this reason or for the one that is there.
pub(crate) async fn fail_rewriting(
    db: &impl Executor,
    document: &str,
    reason: Option<&str>,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET rewriting = 'failed', processing_error = COALESCE($2, processing_error), updated_at = $3 \
               WHERE id = $1 AND rewriting IN ('running', 'queued')";
    db.execute(statement(sql, [document.into(), reason.into(), now.into()]))
        .await?;
    Ok(())
}

/// Notes that its rewriting waits for something.
pub(crate) async fn wait_with_rewriting(
    db: &impl Executor,
    document: &str,
    reason: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET rewriting = 'queued', processing_error = $2 WHERE id = $1 AND rewriting = 'running'";
    db.execute(statement(sql, [document.into(), reason.into()]))
        .await?;
    Ok(())
}

/// Notes that it is not being rewritten, whatever became of that.
pub(crate) async fn stop_rewriting(db: &impl Executor, document: &str) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET rewriting = 'failed' WHERE id = $1 AND rewriting IN ('running', 'queued')";
    db.execute(statement(sql, [document.into()])).await?;
    Ok(())
}

/// Keeps others from writing a content of the document until the transaction ends. Whether nobody has written one since this revision.
pub(crate) async fn touch_revision(
    db: &impl Executor,
    document: &str,
    revision: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE knowledge_documents SET revision = revision WHERE id = $1 AND revision = $2";
    let values = [document.into(), revision.into()];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

/// How far the rewriting of a document of a base is.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct ListedRewrite {
    pub(crate) document_id: String,
    #[sqlx(flatten)]
    pub(crate) rewrite: Rewrite,
}

/// The latest rewriting of each document of a page that has one.
pub(crate) async fn rewrites_in(
    db: &impl Executor,
    span: &DocumentSpan<'_>,
) -> Result<Vec<ListedRewrite>, StoreError> {
    let sql = format!(
        "SELECT r.document_id, r.revision, r.cut, r.model, r.sections, r.done, r.asking, r.input_tokens, r.output_tokens, r.cost, r.complete \
         FROM knowledge_rewrites r JOIN knowledge_documents d ON d.id = r.document_id WHERE {FOLLOWING} AND {UP_TO}"
    );
    db.fetch_all(statement(sql, span.values())).await
}

/// Returns the latest rewriting of each of these documents that has one.
pub(crate) async fn rewrites_among(
    db: &impl Executor,
    documents: &[String],
) -> Result<Vec<ListedRewrite>, StoreError> {
    let mut values = Vec::new();
    let ids = placeholders(&mut values, documents.iter().map(String::as_str));
    let sql = format!(
        "SELECT document_id, {COLUMNS} FROM knowledge_rewrites WHERE document_id IN ({ids})"
    );
    db.fetch_all(statement(sql, values)).await
}

/// The state of a document that decides if it can be rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct RewritableState {
    /// True if the document or its folder is being deleted.
    pub(crate) is_going: bool,
    pub(crate) has_text: bool,
    #[sqlx(try_from = "String")]
    pub(crate) digitizing: Step,
    #[sqlx(try_from = "String")]
    pub(crate) rewriting: Step,
}

/// A document that many requests for rewriting are about.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct RewritableDocument {
    pub(crate) id: String,
    created_at: i64,
    pub(crate) folder_id: String,
    #[sqlx(try_from = "String")]
    pub(crate) model_tier: ModelTier,
    #[sqlx(flatten)]
    pub(crate) state: RewritableState,
    /// Characters of its text.
    pub(crate) characters: Option<i64>,
    /// True if the document has final content.
    pub(crate) is_final: bool,
    /// True if a model was being asked when its latest rewriting was stored.
    is_asking: bool,
}

impl RewritableDocument {
    /// True if its rewriting failed since the process ended while a model was asked.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.state.rewriting == Step::Failed && self.is_asking
    }
}

impl Placed for RewritableDocument {
    fn place(&self) -> DocumentPlace {
        DocumentPlace {
            created_at: self.created_at,
            id: self.id.clone(),
        }
    }
}

/// Returns at most [`SCAN_PAGE`] documents of a base that follow `after`, oldest first.
pub(crate) async fn rewritable_page(
    db: &impl Executor,
    base: &str,
    after: &DocumentPlace,
) -> Result<Vec<RewritableDocument>, StoreError> {
    let sql = format!(
        "SELECT d.id, d.created_at, d.folder_id, d.model_tier, d.digitizing, d.rewriting, \
         (d.deletion_requested_at IS NOT NULL OR f.deletion_requested_at IS NOT NULL) AS is_going, \
         (t.document_id IS NOT NULL) AS has_text, t.characters, (c.document_id IS NOT NULL) AS is_final, \
         COALESCE(r.asking, FALSE) AS is_asking \
         FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id \
         LEFT JOIN knowledge_contents t ON t.document_id = d.id AND t.variant = 'digitized' \
         LEFT JOIN knowledge_contents c ON c.document_id = d.id AND c.variant = 'rewritten' \
         LEFT JOIN knowledge_rewrites r ON r.document_id = d.id \
         WHERE {FOLLOWING} ORDER BY d.created_at, d.id LIMIT $4"
    );
    db.fetch_all(statement(sql, following(base, after, SCAN_PAGE)))
        .await
}
