//! `/api/embedding`.

use axum::{Json, extract::State};
use colloquy_accounts::PartnerTenant;
use colloquy_http::{ApiError, ApiPath, ApiQuery};
use colloquy_kernel::jobs;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    BasePath, DocumentPath, base_of,
    processing::AT_ONCE,
    views::{DocumentView, EmbeddingInfoView},
};
use crate::{
    Bases, accepting, budget,
    content::Variant,
    document::{self, Step},
    embedding::{Embed, failed, info},
};

/// How far the documents of a knowledge base are embedded. Asking starts nothing.
#[utoipa::path(
    get, path = "/api/embedding/{partner}/{kb}", operation_id = "read_embedding_status", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses((status = 200, body = EmbeddingInfoView), (status = 404))
)]
pub(super) async fn read(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
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
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
) -> Result<Json<RetryView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let (mut documents, mut queued) = (failed(&bases, &base), 0);
    while let Some(page) = documents.next().await? {
        for part in page.chunks(AT_ONCE) {
            let transaction = budget::begin_patient(&bases, &base.id).await?;
            for document in part {
                let id = &document.id;
                accepting::queue_embedding(&bases, &transaction, &tenant, id, false).await?;
            }
            transaction.commit().await?;
            queued += part.len();
        }
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
    caller: PartnerTenant,
    ApiPath(path): ApiPath<DocumentPath>,
    ApiQuery(query): ApiQuery<EmbedQuery>,
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
