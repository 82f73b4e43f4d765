//! The SQL of documents.

use colloquy_accounts::Tenant;
use colloquy_store::{Executor, StoreError, statement};

use super::pages::{DOCUMENT_PAGE, DocumentPlace, FOLLOWING, SCAN_PAGE, following};
use crate::{
    base::KnowledgeBase,
    document::{Document, Fetching, Source, Step},
    facts::DocumentFacts,
    names::sort_name,
    pages::Placed,
};

pub(super) const COLUMNS: &str = "d.id, d.folder_id, f.name AS folder, d.name, d.type, d.url, d.expert_name, d.user_email, d.person_name, \
     d.content_type, d.model_tier, d.auto_rewrite, d.use_original_as_rewritten, d.character_limit, d.digitizing, d.rewriting, \
     d.embedding, d.processing_error, d.embedding_error, d.author, d.language, d.pages, d.missing_pages, d.missing_pictures, d.missing_results, d.assumed_language, d.fetching, d.revision, d.created_at, d.updated_at, d.deletion_requested_at, \
     (SELECT m.headings_left_out FROM knowledge_manifests m JOIN knowledge_bases searched ON searched.id = m.base_id \
     AND searched.profile_id = m.profile_id WHERE m.document_id = d.id AND NOT m.stale) AS headings_left_out, \
     (d.deletion_requested_at IS NOT NULL OR f.deletion_requested_at IS NOT NULL) AS is_going";

pub(crate) async fn insert_document(
    db: &impl Executor,
    base: &str,
    document: &Document,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO knowledge_documents (id, base_id, folder_id, name, type, url, expert_name, user_email, person_name, \
               content_type, model_tier, auto_rewrite, use_original_as_rewritten, character_limit, digitizing, rewriting, embedding, \
               revision, created_at, updated_at, fetching, sort_name) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $19, $20, $21)";
    let values = [
        document.id.as_str().into(),
        base.into(),
        document.folder_id.as_str().into(),
        document.name.as_str().into(),
        document.source.as_str().into(),
        document.url.as_deref().into(),
        document.expert_name.as_deref().into(),
        document.user_email.as_deref().into(),
        document.person_name.as_deref().into(),
        document.content_type.as_str().into(),
        document.model_tier.as_str().into(),
        document.auto_rewrite.into(),
        document.use_original_as_rewritten.into(),
        document.character_limit.into(),
        document.digitizing.as_str().into(),
        document.rewriting.as_str().into(),
        document.embedding.as_str().into(),
        document.revision.into(),
        document.created_at.into(),
        document.fetching.as_str().into(),
        sort_name(&document.name).into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// The number of documents of the base `$1`, from the smallest index that has all of them.
pub(super) const DOCUMENT_COUNT: &str =
    "SELECT COUNT(*) FROM knowledge_documents WHERE base_id = $1";

/// Counts the documents of a base, which takes longer the more they are: once for a transaction, not for each document.
pub(crate) async fn count_documents(db: &impl Executor, base: &str) -> Result<u64, StoreError> {
    db.fetch_count(statement(DOCUMENT_COUNT, [base.into()]))
        .await
}

/// Returns at most [`DOCUMENT_PAGE`] documents of a base that follow `after`, oldest first.
pub(crate) async fn document_page(
    db: &impl Executor,
    base: &str,
    after: &DocumentPlace,
) -> Result<Vec<Document>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id \
         WHERE {FOLLOWING} ORDER BY d.created_at, d.id LIMIT $4"
    );
    db.fetch_all(statement(sql, following(base, after, DOCUMENT_PAGE)))
        .await
}

/// The original and the address of a document, by which documents are the same.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct IdentityRow {
    pub(crate) id: String,
    created_at: i64,
    pub(crate) url: Option<String>,
    /// Of the original.
    pub(crate) sha256: Option<String>,
}

impl Placed for IdentityRow {
    fn place(&self) -> DocumentPlace {
        DocumentPlace {
            created_at: self.created_at,
            id: self.id.clone(),
        }
    }
}

/// Returns at most [`SCAN_PAGE`] documents of a base that follow `after`, oldest first, without those that are being deleted.
pub(crate) async fn identity_page(
    db: &impl Executor,
    base: &str,
    after: &DocumentPlace,
) -> Result<Vec<IdentityRow>, StoreError> {
    let sql = format!(
        "SELECT d.id, d.created_at, d.url, c.sha256 FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id \
         LEFT JOIN knowledge_contents c ON c.document_id = d.id AND c.variant = 'original' \
         WHERE {FOLLOWING} AND d.deletion_requested_at IS NULL AND f.deletion_requested_at IS NULL \
         ORDER BY d.created_at, d.id LIMIT $4"
    );
    db.fetch_all(statement(sql, following(base, after, SCAN_PAGE)))
        .await
}

pub(crate) async fn find_document(
    db: &impl Executor,
    base: &KnowledgeBase,
    id: &str,
) -> Result<Option<Document>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id \
         WHERE d.base_id = $1 AND d.id = $2"
    );
    let values = [base.id.as_str().into(), id.into()];
    db.fetch_one(statement(sql, values)).await
}

/// A document, whoever's it is, for work in the background.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct OwnedDocument {
    #[sqlx(flatten)]
    pub(crate) document: Document,
    pub(crate) base_id: String,
    partner: String,
}

impl OwnedDocument {
    pub(crate) fn tenant(&self) -> Tenant {
        Tenant::of_row(&self.partner)
    }
}

pub(crate) async fn load_document(
    db: &impl Executor,
    id: &str,
) -> Result<Option<OwnedDocument>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, d.base_id, b.partner FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id \
         JOIN knowledge_bases b ON b.id = d.base_id \
         WHERE d.id = $1 AND d.deletion_requested_at IS NULL AND f.deletion_requested_at IS NULL AND b.deletion_requested_at IS NULL"
    );
    db.fetch_one(statement(sql, [id.into()])).await
}

/// Renames a document.
pub(crate) async fn set_name(
    db: &impl Executor,
    id: &str,
    name: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET name = $2, updated_at = $3 WHERE id = $1";
    db.execute(statement(sql, [id.into(), name.into(), now.into()]))
        .await?;
    set_sort_name(db, id, name).await
}

/// Writes the lower case of the name that a statement has written. It is a statement of its own, since the trigger behind a new name cannot tell
/// whether that one wrote the lower case too.
async fn set_sort_name(db: &impl Executor, id: &str, name: &str) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET sort_name = $3 WHERE id = $1 AND name = $2 AND sort_name <> $3";
    let values = [id.into(), name.into(), sort_name(name).into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Gives a document a name in the place of the one that it had, unless somebody has renamed it since.
pub(crate) async fn replace_name(
    db: &impl Executor,
    id: &str,
    (old, new): (&str, &str),
    now: i64,
) -> Result<(), StoreError> {
    let sql =
        "UPDATE knowledge_documents SET name = $3, updated_at = $4 WHERE id = $1 AND name = $2";
    let values = [id.into(), old.into(), new.into(), now.into()];
    db.execute(statement(sql, values)).await?;
    set_sort_name(db, id, new).await
}

/// Moves a document to another folder of its base.
pub(crate) async fn set_folder(
    db: &impl Executor,
    id: &str,
    folder: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET folder_id = $2, updated_at = $3 WHERE id = $1 AND folder_id <> $2";
    db.execute(statement(sql, [id.into(), folder.into(), now.into()]))
        .await?;
    Ok(())
}

/// SQL of the [`Fetching`] of the document `$1` that has this address now: done if its original is what the address gave.
fn fetching_from(address: &str) -> String {
    format!(
        "CASE WHEN (SELECT c.made_of FROM knowledge_contents c WHERE c.document_id = $1 AND c.variant = 'original') = {address} \
         THEN 'done' ELSE 'wanted' END"
    )
}

/// Gives it another address, which is fetched when it is digitized next, unless the document is a file.
pub(crate) async fn set_url(
    db: &impl Executor,
    id: &str,
    url: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = format!(
        "UPDATE knowledge_documents SET url = $2, updated_at = $3, revision = revision + 1, \
         fetching = CASE WHEN type = 'file' AND fetching = 'none' THEN 'none' ELSE {} END WHERE id = $1",
        fetching_from("$2")
    );
    db.execute(statement(sql, [id.into(), url.into(), now.into()]))
        .await?;
    Ok(())
}

/// Notes whose its original is.
pub(crate) async fn set_fetching(
    db: &impl Executor,
    id: &str,
    fetching: Fetching,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET fetching = $2 WHERE id = $1";
    db.execute(statement(sql, [id.into(), fetching.as_str().into()]))
        .await?;
    Ok(())
}

/// Has it come from somewhere else. The address of one that was a file is fetched when it is digitized next; what an address gave is the
/// original of one that becomes a file.
pub(crate) async fn set_source(
    db: &impl Executor,
    id: &str,
    source: Source,
    now: i64,
) -> Result<(), StoreError> {
    let sql = format!(
        "UPDATE knowledge_documents SET type = $2, updated_at = $3, revision = revision + 1, \
         fetching = CASE WHEN $2 = 'file' OR url IS NULL THEN 'none' ELSE {} END WHERE id = $1",
        fetching_from("url")
    );
    let values = [id.into(), source.as_str().into(), now.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes how far its text is, unless somebody has written another content since. Whether it was so.
pub(crate) async fn set_digitizing(
    db: &impl Executor,
    id: &str,
    revision: i64,
    step: Step,
    error: Option<&str>,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE knowledge_documents SET digitizing = $3, processing_error = $4, updated_at = $5 WHERE id = $1 AND revision = $2";
    let values = [
        id.into(),
        revision.into(),
        step.as_str().into(),
        error.into(),
        now.into(),
    ];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

/// Sets the most characters that the texts of its base may have with its own.
pub(crate) async fn set_document_limit(
    db: &impl Executor,
    id: &str,
    limit: Option<u64>,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET character_limit = $2 WHERE id = $1";
    let limit = limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
    db.execute(statement(sql, [id.into(), limit.into()]))
        .await?;
    Ok(())
}

/// Counts a content that somebody wrote.
pub(crate) async fn raise_revision(
    db: &impl Executor,
    id: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let sql =
        "UPDATE knowledge_documents SET revision = revision + 1, updated_at = $2 WHERE id = $1";
    Ok(db.execute(statement(sql, [id.into(), now.into()])).await? == 1)
}

/// Notes that its text is not being read, whatever became of that.
pub(crate) async fn stop_digitizing(db: &impl Executor, id: &str) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET digitizing = 'failed' WHERE id = $1 AND digitizing IN ('running', 'queued')";
    db.execute(statement(sql, [id.into()])).await?;
    Ok(())
}

/// Drops the failure to read an original or an address that the document does not have any more.
pub(crate) async fn forget_failed_digitizing(
    db: &impl Executor,
    id: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET digitizing = 'none', processing_error = NULL WHERE id = $1 AND digitizing = 'failed'";
    db.execute(statement(sql, [id.into()])).await?;
    Ok(())
}

/// Notes that reading its text waits for something.
pub(crate) async fn wait_with_digitizing(
    db: &impl Executor,
    id: &str,
    reason: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET digitizing = 'queued', processing_error = $2 WHERE id = $1 AND digitizing = 'running'";
    db.execute(statement(sql, [id.into(), reason.into()]))
        .await?;
    Ok(())
}

/// Notes that its text is there, whoever brought it; what was known of the one before is known of it no more.
pub(crate) async fn accept_text(
    db: &impl Executor,
    id: &str,
    step: Step,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET digitizing = $2, processing_error = NULL, language = NULL, missing_pages = NULL, \
               missing_pictures = NULL, missing_results = NULL, assumed_language = NULL, updated_at = $3 WHERE id = $1";
    let values = [id.into(), step.as_str().into(), now.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes what reading it told.
pub(crate) async fn set_facts(
    db: &impl Executor,
    id: &str,
    facts: &DocumentFacts,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET author = $2, language = $3, pages = $4, missing_pages = $5, missing_pictures = $6, \
               assumed_language = $7, missing_results = $8 WHERE id = $1";
    let values = [
        id.into(),
        facts.author.as_deref().into(),
        facts.language.as_deref().into(),
        facts.pages.into(),
        facts.stored_missing_pages().into(),
        facts.missing_pictures().into(),
        facts.assumed_language().into(),
        facts.missing_results().into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes that its final content is there, which is another than what is being embedded.
pub(crate) async fn accept_final(db: &impl Executor, id: &str, now: i64) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET rewriting = 'done', revision = revision + 1, \
               processing_error = CASE WHEN digitizing = 'blocked' THEN processing_error END, updated_at = $2 WHERE id = $1";
    db.execute(statement(sql, [id.into(), now.into()])).await?;
    Ok(())
}

/// Has its text read again, also what is being read now, with another limit where one is given; what an address gave is fetched again, unless its text waits for room.
pub(crate) async fn queue_digitizing(
    db: &impl Executor,
    id: &str,
    character_limit: Option<i64>,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET digitizing = 'queued', processing_error = NULL, \
               fetching = CASE WHEN fetching = 'done' AND NOT EXISTS (SELECT 1 FROM knowledge_contents c \
               WHERE c.document_id = $1 AND c.variant = 'extracted') THEN 'wanted' ELSE fetching END, \
               character_limit = COALESCE($2, character_limit), \
               revision = revision + CASE WHEN digitizing IN ('running', 'queued') THEN 1 ELSE 0 END, updated_at = $3 WHERE id = $1";
    let values = [id.into(), character_limit.into(), now.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}
