//! `/api/embedding` and `/api/toc`.

use axum::{Json, extract::State};
use colloquy_accounts::PartnerTenant;
use colloquy_base::clock::rfc3339;
use colloquy_http::{ApiError, ApiPath, ApiQuery};
use colloquy_index::chunking::TocEntry;
use colloquy_kernel::jobs;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    BasePath, DocumentPath, base_of,
    views::{DocumentView, EmbeddingInfoView},
};
use crate::{
    Bases, accepting, budget,
    content::Variant,
    document::{self, Step},
    embedding::{Embed, info},
    store,
};

/// How far the documents of a knowledge base are embedded. Asking starts nothing.
#[utoipa::path(
    get, path = "/api/embedding/{partner}/{kb}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses((status = 200, body = EmbeddingInfoView), (status = 404))
)]
pub(super) async fn read(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<BasePath>,
    caller: PartnerTenant,
) -> Result<Json<EmbeddingInfoView>, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    Ok(Json(info(&bases, &base).await?.into()))
}

/// What was queued.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RetryView {
    /// How many documents.
    queued: usize,
    /// How far the base is now.
    embedding_info: EmbeddingInfoView,
}

/// Embeds the documents again whose embedding failed.
#[utoipa::path(
    post, path = "/api/embedding/{partner}/{kb}/retry-failed", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses((status = 200, body = RetryView), (status = 404), (status = 409))
)]
pub(super) async fn retry(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<BasePath>,
    caller: PartnerTenant,
) -> Result<Json<RetryView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let documents = store::embedded_documents(bases.store.db(), &base, false).await?;
    let failed = documents
        .iter()
        .filter(|document| document.embedding == Step::Failed);
    let mut queued = 0;
    for document in failed {
        let transaction = budget::begin(&bases, &base.id).await?;
        let id = &document.id;
        accepting::queue_embedding(&bases, &transaction, &tenant, id, false).await?;
        transaction.commit().await?;
        queued += 1;
    }
    bases.kernel.jobs.wake();
    Ok(Json(RetryView {
        queued,
        embedding_info: info(&bases, &base).await?.into(),
    }))
}

/// How a document is embedded.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EmbedQuery {
    /// Whether all of it is embedded anew, also what has not changed since it was embedded last. `false`: a document that is embedded
    /// stays as it is.
    #[param(default = true)]
    force: Option<bool>,
}

/// What was queued.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmbedView {
    /// The job; null where there was nothing to do.
    job_id: Option<String>,
    /// The document.
    document: DocumentView,
    /// How far the base is now.
    embedding_info: EmbeddingInfoView,
}

/// Embeds a document.
#[utoipa::path(
    post, path = "/api/embedding/{partner}/{kb}/documents/{doc_id}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), EmbedQuery),
    responses(
        (status = 200, body = EmbedView), (status = 404),
        (status = 409, description = "it has no final content, or is being digitized or rewritten"),
    )
)]
pub(super) async fn embed(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<DocumentPath>,
    ApiQuery(query): ApiQuery<EmbedQuery>,
    caller: PartnerTenant,
) -> Result<Json<EmbedView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let found = document::find(&bases, &base, &path.doc_id).await?;
    let document = &found.document;
    if found.content(Variant::Rewritten).is_none() {
        return Err(ApiError::conflict("The document has no final content"));
    }
    let active = |step: Step| matches!(step, Step::Queued | Step::Running);
    if active(document.digitizing) || active(document.rewriting) {
        let message = "The document is being digitized or rewritten";
        return Err(ApiError::conflict(message));
    }
    let force = query.force.unwrap_or(true);
    let job_id = if force || document.embedding != Step::Done {
        let id = &document.id;
        let transaction = budget::begin(&bases, &base.id).await?;
        accepting::queue_embedding(&bases, &transaction, &tenant, id, force).await?;
        transaction.commit().await?;
        bases.kernel.jobs.wake();
        let job = jobs::find::<Embed>(bases.store.db(), id).await?;
        job.map(|job| job.id)
    } else {
        None
    };
    let found = document::find(&bases, &base, &path.doc_id).await?;
    Ok(Json(EmbedView {
        job_id,
        document: found.into(),
        embedding_info: info(&bases, &base).await?.into(),
    }))
}

/// How the table of contents is told.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ContentsQuery {
    /// Whether it says how far each document is embedded.
    #[param(default = false)]
    include_status: Option<bool>,
}

/// The table of contents of a base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContentsView {
    /// The name of the base.
    knowledge_base: String,
    /// The documents that can be found, oldest first; with `include_status` the others, too.
    documents: Vec<DocumentContentsView>,
    /// How far the base is embedded; with `include_status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding_info: Option<EmbeddingInfoView>,
}

/// The table of contents of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentContentsView {
    /// The id.
    document_id: String,
    /// The name.
    name: String,
    /// The name of its folder.
    folder: String,
    /// Its highest headings, each with those below it in `children`.
    contents: Vec<ContentsEntry>,
    /// How far it is embedded; with `include_status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<DocumentEmbeddingView>,
}

/// A heading.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContentsEntry {
    /// Its words.
    title: String,
    /// 1 to 6; 1 is the highest.
    level: u8,
    /// The chunk in which it begins, from 0.
    chunk_index: usize,
    /// The headings below it.
    #[schema(no_recursion)]
    children: Vec<ContentsEntry>,
}

/// How far a document is embedded.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentEmbeddingView {
    /// How far it is.
    embedding_status: Step,
    /// Its chunks, once they can be found.
    chunk_count: Option<i64>,
    /// Since when they can be found. RFC 3339.
    embedded_at: Option<String>,
    /// Why it failed.
    error: Option<String>,
}

impl From<TocEntry> for ContentsEntry {
    fn from(entry: TocEntry) -> Self {
        Self {
            title: entry.title,
            level: entry.level,
            chunk_index: entry.chunk_index,
            children: entry.children.into_iter().map(Self::from).collect(),
        }
    }
}

/// The headings of all documents of a knowledge base.
#[utoipa::path(
    get, path = "/api/toc/{partner}/{kb}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ContentsQuery),
    responses((status = 200, body = ContentsView), (status = 404))
)]
pub(super) async fn contents(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<BasePath>,
    ApiQuery(query): ApiQuery<ContentsQuery>,
    caller: PartnerTenant,
) -> Result<Json<ContentsView>, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let with_status = query.include_status.unwrap_or_default();
    let embedded = store::embedded_documents(bases.store.db(), &base, true).await?;
    let mut documents = Vec::new();
    for document in embedded {
        if document.chunk_count.is_none() && !with_status {
            continue;
        }
        let entries: Vec<TocEntry> = match document.contents.as_deref() {
            Some(contents) => serde_json::from_str(contents).map_err(ApiError::internal)?,
            None => Vec::new(),
        };
        documents.push(DocumentContentsView {
            status: with_status.then(|| DocumentEmbeddingView {
                embedding_status: document.embedding,
                chunk_count: document.chunk_count,
                embedded_at: document.embedded_at.map(rfc3339),
                error: document.embedding_error,
            }),
            document_id: document.id,
            name: document.name,
            folder: document.folder,
            contents: entries.into_iter().map(ContentsEntry::from).collect(),
        });
    }
    let embedding_info = match with_status {
        true => Some(info(&bases, &base).await?.into()),
        false => None,
    };
    Ok(Json(ContentsView {
        knowledge_base: base.name,
        documents,
        embedding_info,
    }))
}
