//! Documents.

use std::collections::HashMap;

use colloquy_store::StoreError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Bases,
    base::KnowledgeBase,
    content::{Content, Variant},
    error::BaseError,
    facts::DocumentFacts,
    store::{self, Rewrite},
    stored::stored,
};

/// Where a document comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    /// A file that was uploaded.
    File,
    /// An address.
    Url,
}

/// How much a model may cost that works on a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModelTier {
    /// The good one.
    #[default]
    Standard,
    /// The cheap one.
    Economy,
}

/// The template that a document is rewritten by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContentTypeChoice {
    /// What suits its source.
    #[default]
    Auto,
    /// Anything short.
    Article,
    /// What was said.
    Video,
    /// Anything long.
    Book,
}

/// How far a step of the work on a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// It is not wanted, or cannot be done yet.
    None,
    /// It waits.
    Queued,
    /// It is being done.
    Running,
    /// It is done.
    Done,
    /// It failed; `processing_error` says why.
    Failed,
    /// It waits for room in a budget.
    Blocked,
}

/// A document as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DocumentStatus {
    /// It has no content.
    Empty,
    /// Its text is being got.
    Digitizing,
    /// It has its text.
    Digitized,
    /// It is being rewritten.
    Rewriting,
    /// Its final content is there.
    Rewritten,
    /// Its final content is being embedded.
    Embedding,
    /// It can be searched.
    Ready,
    /// A step waits for room in a budget.
    Blocked,
    /// A step failed.
    Failed,
    /// It is being deleted.
    DeletePending,
}

stored!(Source: File = "file", Url = "url");
stored!(ModelTier: Standard = "standard", Economy = "economy");
stored!(ContentTypeChoice: Auto = "auto", Article = "article", Video = "video", Book = "book");
stored!(Step: None = "none", Queued = "queued", Running = "running", Done = "done", Failed = "failed", Blocked = "blocked");

/// A document.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Document {
    pub(crate) id: String,
    pub(crate) folder_id: String,
    /// The name of its folder.
    pub(crate) folder: String,
    pub(crate) name: String,
    #[sqlx(rename = "type", try_from = "String")]
    pub(crate) source: Source,
    pub(crate) url: Option<String>,
    pub(crate) expert_name: Option<String>,
    pub(crate) user_email: Option<String>,
    pub(crate) person_name: Option<String>,
    #[sqlx(try_from = "String")]
    pub(crate) content_type: ContentTypeChoice,
    #[sqlx(try_from = "String")]
    pub(crate) model_tier: ModelTier,
    pub(crate) auto_rewrite: bool,
    pub(crate) use_original_as_rewritten: bool,
    pub(crate) character_limit: Option<i64>,
    #[sqlx(try_from = "String")]
    pub(crate) digitizing: Step,
    #[sqlx(try_from = "String")]
    pub(crate) rewriting: Step,
    #[sqlx(try_from = "String")]
    pub(crate) embedding: Step,
    pub(crate) processing_error: Option<String>,
    pub(crate) embedding_error: Option<String>,
    #[sqlx(flatten)]
    pub(crate) facts: DocumentFacts,
    pub(crate) revision: i64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) deletion_requested_at: Option<i64>,
}

/// A document with what is known of its contents.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    pub(crate) document: Document,
    pub(crate) contents: Vec<Content>,
    /// The latest rewriting, if there was one.
    pub(crate) rewrite: Option<Rewrite>,
    /// Other documents of the base with the same original, oldest first.
    pub(crate) duplicates: Vec<String>,
}

impl Described {
    /// One of its contents.
    pub(crate) fn content(&self, variant: Variant) -> Option<&Content> {
        self.contents
            .iter()
            .find(|content| content.variant == variant)
    }

    /// How far it is as a whole.
    pub(crate) fn status(&self) -> DocumentStatus {
        use DocumentStatus as Status;
        let document = &self.document;
        let steps = [document.digitizing, document.rewriting, document.embedding];
        if document.deletion_requested_at.is_some() {
            return Status::DeletePending;
        }
        for (step, status) in
            steps
                .into_iter()
                .zip([Status::Digitizing, Status::Rewriting, Status::Embedding])
        {
            match step {
                Step::Queued | Step::Running => return status,
                Step::Failed => return Status::Failed,
                Step::Blocked => return Status::Blocked,
                Step::None | Step::Done => {}
            }
        }
        let has = |variant| self.content(variant).is_some();
        if has(Variant::Rewritten) {
            match document.embedding {
                Step::Done => Status::Ready,
                _ => Status::Rewritten,
            }
        } else if has(Variant::Digitized) {
            Status::Digitized
        } else {
            Status::Empty
        }
    }
}

/// All documents of a base, oldest first.
pub(crate) async fn list(
    bases: &Bases,
    base: &KnowledgeBase,
) -> Result<Vec<Described>, StoreError> {
    let db = bases.store.db();
    let documents = store::list_documents(db, base).await?;
    let contents = store::list_contents(db, base).await?;
    let rewrites = store::list_rewrites(db, base).await?;
    let rewrites = rewrites
        .into_iter()
        .map(|listed| (listed.document_id, listed.rewrite));
    Ok(described(documents, contents, rewrites.collect()))
}

/// One of them.
pub(crate) async fn find(
    bases: &Bases,
    base: &KnowledgeBase,
    id: &str,
) -> Result<Described, BaseError> {
    let db = bases.store.db();
    let document = store::find_document(db, base, id).await?;
    let document = document.ok_or(BaseError::NotFound("Document"))?;
    let contents = store::contents_of(db, id).await?;
    let original = contents
        .iter()
        .find(|content| content.variant == Variant::Original);
    let duplicates = match original {
        Some(original) => store::same_original(db, base, id, &original.sha256).await?,
        None => Vec::new(),
    };
    Ok(Described {
        rewrite: store::rewrite_of(db, id).await?,
        document,
        contents,
        duplicates,
    })
}

/// Puts documents and contents together.
fn described(
    documents: Vec<Document>,
    contents: Vec<Content>,
    mut rewrites: HashMap<String, Rewrite>,
) -> Vec<Described> {
    let mut by_document: HashMap<String, Vec<Content>> = HashMap::new();
    // In the order of the documents, which have the time in their ids.
    let mut by_original: HashMap<String, Vec<String>> = HashMap::new();
    for content in contents {
        if content.variant == Variant::Original {
            let same = by_original.entry(content.sha256.clone()).or_default();
            same.push(content.document_id.clone());
        }
        let of_document = by_document.entry(content.document_id.clone()).or_default();
        of_document.push(content);
    }
    let describe = |document: Document| {
        let contents = by_document.remove(&document.id).unwrap_or_default();
        let original = contents
            .iter()
            .find(|content| content.variant == Variant::Original);
        let same = original.and_then(|original| by_original.get(&original.sha256));
        let others = same.into_iter().flatten().filter(|id| **id != document.id);
        Described {
            duplicates: others.take(MOST_DUPLICATES).cloned().collect(),
            rewrite: rewrites.remove(&document.id),
            document,
            contents,
        }
    };
    documents.into_iter().map(describe).collect()
}

/// How many documents with the same original are told.
pub(crate) const MOST_DUPLICATES: usize = 100;
