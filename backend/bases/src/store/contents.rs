//! The SQL of contents.

use colloquy_blobs::BlobKey;
use colloquy_store::{Executor, StoreError, placeholders, statement};

use super::pages::{DOCUMENT_PAGE, DocumentPlace, DocumentSpan, FOLLOWING, UP_TO, following};
use crate::{
    base::KnowledgeBase,
    content::{Content, NewContent, Variant},
    document::{ContentTypeChoice, MOST_DUPLICATES, Source},
    pages::Placed,
};

const COLUMNS: &str = "c.document_id, c.variant, c.blob, c.file_name, c.media_type, c.bytes, c.characters, c.sha256, c.updated_at, c.revision, c.made_of";

/// The contents of the documents of a page.
pub(crate) async fn contents_in(
    db: &impl Executor,
    span: &DocumentSpan<'_>,
) -> Result<Vec<Content>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM knowledge_contents c JOIN knowledge_documents d ON d.id = c.document_id WHERE {FOLLOWING} AND {UP_TO}"
    );
    db.fetch_all(statement(sql, span.values())).await
}

/// Returns the contents of documents.
pub(crate) async fn contents_among(
    db: &impl Executor,
    documents: &[String],
) -> Result<Vec<Content>, StoreError> {
    let mut values = Vec::new();
    let ids = placeholders(&mut values, documents.iter().map(String::as_str));
    let sql = format!("SELECT {COLUMNS} FROM knowledge_contents c WHERE c.document_id IN ({ids})");
    db.fetch_all(statement(sql, values)).await
}

/// A document with its final content.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct BundledDocument {
    pub(crate) id: String,
    created_at: i64,
    pub(crate) name: String,
    /// The name of its folder.
    pub(crate) folder: String,
    #[sqlx(rename = "type", try_from = "String")]
    pub(crate) source: Source,
    pub(crate) url: Option<String>,
    pub(crate) expert_name: Option<String>,
    pub(crate) person_name: Option<String>,
    #[sqlx(try_from = "String")]
    pub(crate) content_type: ContentTypeChoice,
    /// Of its final content, as are the other fields below.
    pub(crate) characters: Option<i64>,
    pub(crate) updated_at: i64,
    pub(crate) blob: BlobKey,
}

impl Placed for BundledDocument {
    fn place(&self) -> DocumentPlace {
        DocumentPlace {
            created_at: self.created_at,
            id: self.id.clone(),
        }
    }
}

/// Returns at most [`DOCUMENT_PAGE`] documents of a base with final content that follow `after`, oldest first.
pub(crate) async fn bundled_page(
    db: &impl Executor,
    base: &str,
    after: &DocumentPlace,
) -> Result<Vec<BundledDocument>, StoreError> {
    let sql = format!(
        "SELECT d.id, d.created_at, d.name, f.name AS folder, d.type, d.url, d.expert_name, d.person_name, d.content_type, \
         c.characters, c.updated_at, c.blob FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id \
         JOIN knowledge_contents c ON c.document_id = d.id AND c.variant = 'rewritten' \
         WHERE {FOLLOWING} ORDER BY d.created_at, d.id LIMIT $4"
    );
    db.fetch_all(statement(sql, following(base, after, DOCUMENT_PAGE)))
        .await
}

pub(crate) async fn contents_of(
    db: &impl Executor,
    document: &str,
) -> Result<Vec<Content>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM knowledge_contents c WHERE c.document_id = $1");
    db.fetch_all(statement(sql, [document.into()])).await
}

#[derive(sqlx::FromRow)]
struct IdRow {
    document_id: String,
}

/// Other documents of a base with this original or this address, oldest first, without those that are being deleted.
pub(crate) async fn duplicates_of(
    db: &impl Executor,
    base: &KnowledgeBase,
    document: &str,
    sha256: Option<&str>,
    url: Option<&str>,
) -> Result<Vec<String>, StoreError> {
    let (base, most) = (base.id.as_str(), MOST_DUPLICATES + 1);
    let mut found: Vec<String> = Vec::new();
    if let Some(sha256) = sha256 {
        found.extend(documents_by(db, WITH_ORIGINAL, base, sha256, most).await?);
    }
    if let Some(url) = url {
        found.extend(documents_by(db, AT_ADDRESS, base, url, most).await?);
    }
    found.retain(|id| id != document);
    found.sort_unstable();
    found.dedup();
    found.truncate(MOST_DUPLICATES);
    Ok(found)
}

/// The documents of the base `$1` whose original has the SHA-256 `$2`, in the order of their index, so that `$3` of them are read.
///
/// The index begins with the base, so copies in other bases are not read. SQLite joins the tables of a cross join in their order, and so reads no
/// other originals.
const WITH_ORIGINAL: &str = "SELECT c.document_id FROM knowledge_contents c CROSS JOIN knowledge_documents d \
     CROSS JOIN knowledge_folders f WHERE d.id = c.document_id AND f.id = d.folder_id AND c.base_id = $1 AND c.sha256 = $2 \
     AND c.variant = 'original' AND d.deletion_requested_at IS NULL AND f.deletion_requested_at IS NULL ORDER BY c.document_id LIMIT $3";

/// The documents of the base `$1` with the address `$2`, in the order of their index, so that `$3` of them are read.
const AT_ADDRESS: &str = "SELECT d.id AS document_id FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id \
     WHERE d.base_id = $1 AND d.url = $2 AND d.deletion_requested_at IS NULL AND f.deletion_requested_at IS NULL \
     ORDER BY d.id LIMIT $3";

/// Returns at most `most` documents of a base with an address, oldest first, without those that are being deleted.
pub(crate) async fn documents_at(
    db: &impl Executor,
    base: &KnowledgeBase,
    url: &str,
    most: usize,
) -> Result<Vec<String>, StoreError> {
    documents_by(db, AT_ADDRESS, &base.id, url, most).await
}

/// Runs [`WITH_ORIGINAL`] or [`AT_ADDRESS`].
async fn documents_by(
    db: &impl Executor,
    sql: &'static str,
    base: &str,
    key: &str,
    most: usize,
) -> Result<Vec<String>, StoreError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let values = [base.into(), key.into(), most.into()];
    let rows: Vec<IdRow> = db.fetch_all(statement(sql, values)).await?;
    Ok(rows.into_iter().map(|row| row.document_id).collect())
}

#[derive(sqlx::FromRow)]
struct BlobRow {
    blob: BlobKey,
}

/// The file that a document has in a variant.
pub(crate) async fn blob_of(
    db: &impl Executor,
    document: &str,
    variant: Variant,
) -> Result<Option<BlobKey>, StoreError> {
    let sql = "SELECT blob FROM knowledge_contents WHERE document_id = $1 AND variant = $2";
    let values = [document.into(), variant.as_str().into()];
    let row: Option<BlobRow> = db.fetch_one(statement(sql, values)).await?;
    Ok(row.map(|row| row.blob))
}

/// Stores a content in the place of what the document had in its variant. A text that was not read of anything keeps the source of the one
/// that it replaces.
pub(crate) async fn put_content(
    db: &impl Executor,
    document: &str,
    content: &NewContent,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO knowledge_contents (document_id, variant, blob, file_name, media_type, bytes, characters, sha256, updated_at, revision, base_id, made_of) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, (SELECT d.revision FROM knowledge_documents d WHERE d.id = $1), \
               CASE WHEN $2 = 'original' THEN (SELECT d.base_id FROM knowledge_documents d WHERE d.id = $1) END, $10) \
               ON CONFLICT (document_id, variant) DO UPDATE SET \
               blob = excluded.blob, file_name = excluded.file_name, media_type = excluded.media_type, bytes = excluded.bytes, \
               characters = excluded.characters, sha256 = excluded.sha256, updated_at = excluded.updated_at, revision = excluded.revision, \
               base_id = excluded.base_id, \
               made_of = CASE WHEN excluded.variant = 'digitized' THEN COALESCE(excluded.made_of, knowledge_contents.made_of) \
               ELSE excluded.made_of END";
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let values = [
        document.into(),
        content.variant.as_str().into(),
        content.written.key.as_str().into(),
        content.file_name.as_str().into(),
        content.media_type.as_str().into(),
        count(content.written.bytes).into(),
        content.characters.map(count).into(),
        content.written.sha256.as_str().into(),
        now.into(),
        content.made_of.as_deref().into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Removes a content, whose file is given back.
pub(crate) async fn remove_content(
    db: &impl Executor,
    document: &str,
    variant: Variant,
) -> Result<Option<BlobKey>, StoreError> {
    let old = blob_of(db, document, variant).await?;
    if old.is_some() {
        let sql = "DELETE FROM knowledge_contents WHERE document_id = $1 AND variant = $2";
        let values = [document.into(), variant.as_str().into()];
        db.execute(statement(sql, values)).await?;
    }
    Ok(old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{
        documents::DOCUMENT_COUNT,
        plans::{migrated, plan},
    };

    #[tokio::test]
    async fn looking_for_duplicates_reads_no_other_documents() {
        let (store, _folder) = migrated().await;
        for (sql, search) in [
            (
                AT_ADDRESS,
                "SEARCH d USING INDEX knowledge_documents_url (base_id=? AND url=?)",
            ),
            (
                WITH_ORIGINAL,
                "SEARCH c USING COVERING INDEX knowledge_contents_original (base_id=? AND sha256=?)",
            ),
        ] {
            let values = vec!["base".into(), "key".into(), 1_i64.into()];
            let steps = plan(&store, sql, values).await;
            assert_eq!(steps[0], search, "{steps:?}");
            // The index has them in order: those behind the last one that is wanted are not read.
            let sorts = |step: &String| step.contains("TEMP B-TREE");
            assert!(!steps.iter().any(sorts), "{steps:?}");
        }

        let steps = plan(&store, DOCUMENT_COUNT, vec!["base".into()]).await;
        let without_addresses =
            "SEARCH knowledge_documents USING COVERING INDEX knowledge_documents_base (base_id=?)";
        assert_eq!(steps, [without_addresses]);
    }
}
