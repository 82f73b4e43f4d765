//! Documents.

use std::{collections::HashMap, sync::Arc};

use colloquy_store::{Executor, StoreError, stored};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Bases,
    base::KnowledgeBase,
    content::{self, Content, Variant},
    error::BaseError,
    facts::DocumentFacts,
    pages::{ListMemory, Pages, Placed},
    same::{self, Same},
    spend::DocumentSpend,
    store::{
        self, DOCUMENT_PAGE, DocumentPlace, DocumentSpan, ListedRewrite, ReadingCost, Rewrite,
    },
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

/// A step that makes a content of a document, or makes it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepKind {
    /// The text is read.
    Digitize,
    /// The final content is written.
    Rewrite,
    /// The final content is embedded.
    Embed,
}

/// What is unfinished about a document, as lists of folders and bases count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// A step is queued or running.
    Active,
    /// A step waits for room in a budget.
    Blocked,
    /// A step failed.
    Failed,
}

/// A document as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DocumentStatus {
    /// It has no text.
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

stored!(pub(crate) DocumentStatus: Empty = "empty", Digitizing = "digitizing", Digitized = "digitized", Rewriting = "rewriting", 
    Rewritten = "rewritten", Embedding = "embedding", Ready = "ready", Blocked = "blocked", Failed = "failed", 
    DeletePending = "delete_pending");
stored!(pub(crate) Unfinished: Active = "active", Blocked = "blocked", Failed = "failed");
stored!(pub(crate) StepKind: Digitize = "digitize", Rewrite = "rewrite", Embed = "embed");
stored!(pub(crate) Source: File = "file", Url = "url");
stored!(pub(crate) ModelTier: Standard = "standard", Economy = "economy");
stored!(pub(crate) ContentTypeChoice: Auto = "auto", Article = "article", Video = "video", Book = "book");
stored!(pub(crate) Step: None = "none", Queued = "queued", Running = "running", Done = "done", Failed = "failed", Blocked = "blocked");

/// Whose a document's original is that has an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetching {
    /// People's, or there is none.
    None,
    /// What is at the address is to become the original, or the text.
    Wanted,
    /// It is what the address gave.
    Done,
}

stored!(pub(crate) Fetching: None = "none", Wanted = "wanted", Done = "done");

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
    #[sqlx(try_from = "String")]
    pub(crate) fetching: Fetching,
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
    /// Headings that the table of contents by which the base is searched has no room for.
    pub(crate) headings_left_out: Option<i64>,
    #[sqlx(flatten)]
    pub(crate) facts: DocumentFacts,
    pub(crate) revision: i64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) deletion_requested_at: Option<i64>,
    /// Whether it or its folder is being deleted.
    pub(crate) is_going: bool,
}

/// A document with what is known of its contents.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    pub(crate) document: Document,
    pub(crate) contents: Vec<Content>,
    /// The latest rewriting, if there was one.
    pub(crate) rewrite: Option<Rewrite>,
    /// What reading it did cost, where a service was asked.
    pub(crate) reading: Option<ReadingCost>,
    /// Other documents of the base with the same original or the same address, oldest first.
    pub(crate) duplicates: Vec<String>,
}

impl Described {
    /// One of its contents.
    pub(crate) fn content(&self, variant: Variant) -> Option<&Content> {
        content::of_variant(&self.contents, variant)
    }

    /// What its latest rewriting and reading it did cost.
    pub(crate) fn spend(&self) -> DocumentSpend {
        let rewrite = self.rewrite.as_ref();
        let rewriting = rewrite.map(|it| (it.cost.unsigned_abs(), it.is_cost_known()));
        let reading = self.reading.as_ref();
        let reading = reading.map(|it| (it.cost.unsigned_abs(), it.priced == it.events));
        DocumentSpend::of([rewriting, reading])
    }

    /// Why a step failed or waits.
    pub(crate) fn error(&self) -> Option<&str> {
        let document = &self.document;
        let embedding = document.embedding_error.as_deref();
        match document.embedding {
            Step::Blocked => embedding,
            _ => document.processing_error.as_deref().or(embedding),
        }
    }

    /// What is wrong with its contents although no step failed: parts that could not be read, contents that are older than what they are
    /// made of, and headings that the table of contents has no room for.
    pub(crate) fn warning(&self) -> Option<String> {
        let document = &self.document;
        let revision = |variant| self.content(variant).map(|content| content.revision);
        let is_older = |made, source| {
            revision(made)
                .zip(revision(source))
                .is_some_and(|(made, source)| made < source)
        };
        let waits = |step| matches!(step, Step::Queued | Step::Running | Step::Blocked);
        let mut warnings = document.facts.warnings();
        let outdated = match document.digitizing {
            step if waits(step) => None,
            _ if self.content(Variant::Digitized).is_some() => self.outdated_text(),
            Step::None if self.reads_address() => Some(UNREAD_ADDRESS),
            Step::None => self
                .content(Variant::Original)
                .is_some()
                .then_some(UNREAD_ORIGINAL),
            _ => None,
        };
        warnings.extend(outdated.map(str::to_owned));
        let is_final_old = is_older(Variant::Rewritten, Variant::Digitized);
        if is_final_old
            && ![document.digitizing, document.rewriting]
                .into_iter()
                .any(waits)
        {
            warnings.push(OLDER_TEXT.to_owned());
        }
        warnings.extend(self.headings_left_out());
        (!warnings.is_empty()).then(|| warnings.join("; "))
    }

    /// Returns the warning of a text that was read of something else than what is there now. One that somebody wrote in its place is no
    /// reading of that either.
    fn outdated_text(&self) -> Option<&'static str> {
        let text = self.content(Variant::Digitized)?;
        let read = text.made_of.as_deref()?;
        let of_original = self
            .content(Variant::Original)
            .is_none_or(|original| original.sha256 == read);
        let of_address = self.document.url.as_deref() == Some(read);
        match self.document.fetching {
            Fetching::Wanted => (!of_address).then_some(OTHER_ADDRESS),
            Fetching::Done | Fetching::None => (!of_original).then_some(OLDER_ORIGINAL),
        }
    }

    /// Says how many headings are not in the table of contents.
    fn headings_left_out(&self) -> Option<String> {
        let headings = match self.document.headings_left_out.unwrap_or_default() {
            0 => return None,
            1 => "one heading".to_owned(),
            count => format!("{count} headings"),
        };
        Some(format!(
            "the table of contents leaves out {headings}, since it has 64 KiB at most"
        ))
    }

    /// True if digitizing it next fetches its address: there is one, and no original that was uploaded.
    pub(crate) fn reads_address(&self) -> bool {
        let document = &self.document;
        let is_uploaded = document.fetching == Fetching::None;
        let has_original = self.content(Variant::Original).is_some();
        document.url.is_some() && !(is_uploaded && has_original)
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

/// The memory of an answer with [`pages`]: a page as JSON, and which documents are the same.
pub(crate) const LIST_MEMORY: ListMemory = ListMemory {
    fixed: 0,
    page: DOCUMENT_PAGE,
    per_paged: 32 * 1024,
    per_document: same::DOCUMENT_BYTES,
};

/// The documents of a base, oldest first. Which ones are the same is read before.
///
/// # Errors
/// The database's failure, or the base was deleted meanwhile.
pub(crate) async fn pages(
    bases: &Bases,
    base: &KnowledgeBase,
) -> Result<Pages<Described>, BaseError> {
    let same = Arc::new(Same::of_base(bases, base).await?);
    let pages = Pages::of_base(bases, base, DOCUMENT_PAGE, move |bases, base, after| {
        let same = Arc::clone(&same);
        async move { page(&bases, &base, &after, &same).await }
    });
    Ok(pages)
}

async fn page(
    bases: &Bases,
    base: &str,
    after: &DocumentPlace,
    same: &Same,
) -> Result<Vec<Described>, StoreError> {
    let db = bases.store.db();
    let documents = store::document_page(db, base, after).await?;
    let Some(last) = documents.last().map(Document::place) else {
        return Ok(Vec::new());
    };
    let span = DocumentSpan {
        base,
        after,
        last: &last,
    };
    let contents = store::contents_in(db, &span).await?;
    let rewrites = store::rewrites_in(db, &span).await?;
    let readings = store::reading_costs_in(db, &span).await?;
    Ok(described(
        documents,
        contents,
        by_document(rewrites),
        readings,
        same,
    ))
}

fn by_document(rewrites: Vec<ListedRewrite>) -> HashMap<String, Rewrite> {
    let rewrites = rewrites.into_iter();
    let rewrites = rewrites.map(|listed| (listed.document_id, listed.rewrite));
    rewrites.collect()
}

/// Describes documents that were read with the cost of reading them, without their duplicates.
pub(crate) async fn describe(
    db: &impl Executor,
    documents: Vec<Document>,
    readings: HashMap<String, ReadingCost>,
) -> Result<Vec<Described>, StoreError> {
    if documents.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<String> = documents.iter().map(|it| it.id.clone()).collect();
    let contents = store::contents_among(db, &ids).await?;
    let rewrites = by_document(store::rewrites_among(db, &ids).await?);
    let same = Same::default();
    Ok(described(documents, contents, rewrites, readings, &same))
}

impl Document {
    fn place(&self) -> DocumentPlace {
        DocumentPlace {
            created_at: self.created_at,
            id: self.id.clone(),
        }
    }
}

impl Placed for Described {
    fn place(&self) -> DocumentPlace {
        self.document.place()
    }
}

/// One of them.
pub(crate) async fn find(
    bases: &Bases,
    base: &KnowledgeBase,
    id: &str,
) -> Result<Described, BaseError> {
    find_in(bases.store.db(), base, id).await
}

/// One of them, as a transaction has it.
pub(crate) async fn find_in(
    db: &impl Executor,
    base: &KnowledgeBase,
    id: &str,
) -> Result<Described, BaseError> {
    let document = store::find_document(db, base, id).await?;
    let document = document.ok_or(BaseError::NotFound("Document"))?;
    let contents = store::contents_of(db, id).await?;
    let sha256 = original(&contents).map(|original| original.sha256.as_str());
    let url = document.url.as_deref();
    let duplicates = store::duplicates_of(db, base, id, sha256, url).await?;
    Ok(Described {
        rewrite: store::rewrite_of(db, id).await?,
        reading: store::reading_cost_of(db, id).await?,
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
    mut readings: HashMap<String, ReadingCost>,
    same: &Same,
) -> Vec<Described> {
    let mut by_document: HashMap<String, Vec<Content>> = HashMap::new();
    for content in contents {
        let of_document = by_document.entry(content.document_id.clone()).or_default();
        of_document.push(content);
    }
    let describe = |document: Document| {
        let contents = by_document.remove(&document.id).unwrap_or_default();
        let sha256 = original(&contents).map(|original| original.sha256.as_str());
        Described {
            duplicates: same.others(&document.id, sha256, document.url.as_deref()),
            rewrite: rewrites.remove(&document.id),
            reading: readings.remove(&document.id),
            document,
            contents,
        }
    };
    documents.into_iter().map(describe).collect()
}

fn original(contents: &[Content]) -> Option<&Content> {
    content::of_variant(contents, Variant::Original)
}

/// The warnings of contents that are older than what they are made of, or are not there yet.
const OTHER_ADDRESS: &str = "the text, or the one that it was written over, is that of an earlier address, an earlier visit or a file; digitize the document to fetch its address";
const OLDER_ORIGINAL: &str = "the text, or the one that it was written over, is that of an earlier original; digitize the document to read the one that it has now";
const UNREAD_ADDRESS: &str = "the address has not been fetched; digitize the document to fetch it";
const UNREAD_ORIGINAL: &str = "the original has not been read; digitize the document to read it";
const OLDER_TEXT: &str = "the final content was made of an earlier text; rewrite the document, or write its final content";

/// How many documents with the same original are told.
pub(crate) const MOST_DUPLICATES: usize = 100;
