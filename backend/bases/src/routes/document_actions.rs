//! `/api/documents/../folder` and `/api/documents/../retry`: what people do with one document of a list.

use axum::{
    Json,
    extract::{Request, State},
};
use colloquy_accounts::{PartnerTenant, Tenant};
use colloquy_http::{ApiError, ApiPath, form::Fields};
use colloquy_store::Transaction;
use utoipa::ToSchema;

use super::{
    DocumentPath, FIELD_BYTES,
    documents::{changed, document_of},
    processing::{cannot_digitize, cannot_rewrite, is_active, no_model, queue_digitizing},
    views::DocumentView,
};
use crate::{
    Bases, accepting,
    base::KnowledgeBase,
    budget,
    document::{self, Step},
    error::BaseError,
    folder::Folder,
    rewriting, store,
};

/// The field of a form that moves a document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct FolderForm {
    /// The name of the folder.
    folder: String,
}

/// Moves a document to another folder of its knowledge base.
///
/// Its contents and vectors stay as they are. A video that is moved out of the folder of its channel is not imported again.
#[utoipa::path(
    put, path = "/api/documents/{partner}/{kb}/{doc_id}/folder", operation_id = "move_document", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path)),
    request_body(content = FolderForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, body = DocumentView), (status = 400, description = "`folder` is missing"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base, the document or the folder was not found"),
        (status = 409, description = "The knowledge base, the document or a folder of the two is being deleted"),
    )
)]
pub(super) async fn move_to(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<DocumentPath>,
    request: Request,
) -> Result<Json<DocumentView>, ApiError> {
    let (_, base, _) = document_of(&bases, caller, &path).await?;
    let mut fields = Fields::read(request, FIELD_BYTES).await?;
    let name = fields.require("folder")?;
    fields.finish()?;
    let transaction = budget::begin(&bases, &base.id).await?;
    let folder = open_folder(&transaction, &base, &name).await?;
    move_in(&bases, &transaction, &base, &path.doc_id, &folder).await?;
    transaction.commit().await?;
    changed(&bases, &base, &path).await
}

/// Returns a folder that is not being deleted, for a transaction that holds the budget of its base: deletions hold it too, so the folder stays until
/// the transaction ends.
pub(super) async fn open_folder(
    transaction: &Transaction,
    base: &KnowledgeBase,
    name: &str,
) -> Result<Folder, BaseError> {
    let folder = store::find_folder(transaction, base, name).await?;
    folder.ok_or(BaseError::NotFound("Folder"))?.require_open()
}

/// Moves a document to a folder, in a transaction that holds the budget of their base.
pub(super) async fn move_in(
    bases: &Bases,
    transaction: &Transaction,
    base: &KnowledgeBase,
    id: &str,
    folder: &Folder,
) -> Result<(), BaseError> {
    let document = store::find_document(transaction, base, id).await?;
    let document = document.ok_or(BaseError::NotFound("Document"))?;
    if document.is_going {
        return Err(BaseError::Conflict("The document is being deleted"));
    }
    let now = bases.clock.now_ms();
    Ok(store::set_folder(transaction, id, &folder.id, now).await?)
}

/// Retries the step of a document that failed.
///
/// A failed rewriting goes on from the section that failed; a section whose request was in flight when a server process ended is requested again and
/// may be billed twice.
#[utoipa::path(
    post, path = "/api/documents/{partner}/{kb}/{doc_id}/retry", operation_id = "retry_document", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path)),
    responses(
        (status = 200, body = DocumentView),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the document was not found"),
        (status = 409, description = "No step failed, any step is queued or running, nothing is there to be digitized, no model is configured, or the document or its knowledge base is being deleted"),
    )
)]
pub(super) async fn retry(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<DocumentPath>,
) -> Result<Json<DocumentView>, ApiError> {
    let (tenant, base, _) = document_of(&bases, caller, &path).await?;
    let transaction = budget::begin(&bases, &base.id).await?;
    retry_in(&bases, &transaction, &tenant, &base, &path.doc_id).await?;
    transaction.commit().await?;
    bases.kernel.jobs.wake();
    changed(&bases, &base, &path).await
}

/// Queues the failed step of a document, in a transaction that holds the budget of its base. Whoever else queues a step holds it too, so the steps are
/// those that the transaction reads.
pub(super) async fn retry_in(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    base: &KnowledgeBase,
    id: &str,
) -> Result<(), BaseError> {
    let found = document::find_in(transaction, base, id).await?;
    let document = &found.document;
    let steps = [document.digitizing, document.rewriting, document.embedding];
    let has_failed = |step| step == Step::Failed;
    let why = if document.is_going {
        Some("The document is being deleted")
    } else if steps.into_iter().any(is_active) {
        Some("The document is being worked on")
    } else if !steps.into_iter().any(has_failed) {
        Some("No step of the document failed")
    } else if has_failed(document.digitizing) {
        cannot_digitize(&found)
    } else if has_failed(document.rewriting) {
        cannot_rewrite((&found).into()).or_else(|| no_model(bases, document.model_tier))
    } else {
        None
    };
    if let Some(why) = why {
        return Err(BaseError::Conflict(why));
    }
    match steps {
        [Step::Failed, ..] => queue_digitizing(bases, transaction, tenant, id, None).await?,
        [_, Step::Failed, _] => rewriting::resume(bases, transaction, tenant, id).await?,
        _ => accepting::queue_embedding(bases, transaction, tenant, id, false).await?,
    }
    Ok(())
}
