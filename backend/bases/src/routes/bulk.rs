//! `/api/bulk/move`, `/api/bulk/delete` and `/api/bulk/retry`: the same with many documents as with one.

use std::collections::HashSet;

use axum::{Json, extract::State};
use colloquy_accounts::{PartnerTenant, Tenant};
use colloquy_base::invalid::InvalidField;
use colloquy_http::{ApiError, ApiJson, ApiPath};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    BasePath, base_of,
    document_actions::{move_in, open_folder, retry_in},
    processing::AT_ONCE,
};
use crate::{
    Bases,
    base::KnowledgeBase,
    budget,
    erase::{self, Deletion},
    error::BaseError,
    store::{self, Whole},
};

/// The most documents of a request.
const MOST: usize = 1_000;

/// Documents to work on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentsBody {
    /// Ids of 1 to 1,000 documents.
    #[schema(min_items = 1, max_items = 1_000)]
    document_ids: Vec<String>,
}

/// Documents to move.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveBody {
    /// Ids of 1 to 1,000 documents.
    #[schema(min_items = 1, max_items = 1_000)]
    document_ids: Vec<String>,
    /// The name of the folder.
    folder: String,
}

/// What became of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BulkStatus {
    /// The document is in the folder.
    Moved,
    /// The document was deleted.
    Deleted,
    /// The document is deleted once nothing works on it.
    DeletePending,
    /// The failed step is queued.
    Queued,
    /// The document is unchanged, for the reason beside it.
    Skipped,
}

/// What became of one document of many.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkResult {
    /// The id.
    document_id: String,
    /// What became of it.
    status: BulkStatus,
    /// Why it was skipped; null otherwise.
    reason: Option<String>,
}

/// What became of many documents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkResults {
    /// Number of documents that were not skipped.
    done: usize,
    /// Number of documents that were skipped.
    skipped: usize,
    /// A result for each document, in the order of the request; an id that stands there twice has one.
    results: Vec<BulkResult>,
}

impl BulkResults {
    fn of(results: Vec<BulkResult>) -> Json<Self> {
        let is_skipped = |result: &&BulkResult| result.status == BulkStatus::Skipped;
        let skipped = results.iter().filter(is_skipped).count();
        Json(Self {
            done: results.len() - skipped,
            skipped,
            results,
        })
    }
}

/// Checks the ids of a request, and leaves out those that stand there before.
fn distinct(mut ids: Vec<String>) -> Result<Vec<String>, InvalidField> {
    if !(1..=MOST).contains(&ids.len()) {
        let message = format!("must have 1 to {MOST} ids");
        return Err(InvalidField::new("document_ids", message));
    }
    // PostgreSQL takes no NUL, and would fail the whole request.
    if ids.iter().any(|id| id.contains('\0')) {
        return Err(InvalidField::new("document_ids", "has a NUL character"));
    }
    let mut known = HashSet::new();
    ids.retain(|id| known.insert(id.clone()));
    Ok(ids)
}

/// Returns what became of a document, or the failure that ends the request.
fn result(
    document_id: &str,
    ended: Result<BulkStatus, BaseError>,
) -> Result<BulkResult, BaseError> {
    let (status, reason) = match ended {
        Ok(status) => (status, None),
        Err(error @ (BaseError::NotFound(_) | BaseError::Conflict(_))) => {
            (BulkStatus::Skipped, Some(error.to_string()))
        }
        Err(error) => return Err(error),
    };
    Ok(BulkResult {
        document_id: document_id.to_owned(),
        status,
        reason,
    })
}

/// Moves documents to a folder of their knowledge base, 100 in a transaction.
///
/// Documents that are not found or are being deleted are skipped. If the request fails, those of earlier transactions stay moved; it can be repeated.
#[utoipa::path(
    post, path = "/api/bulk/move/{partner}/{kb}", operation_id = "move_documents", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)), request_body = MoveBody,
    responses(
        (status = 200, body = BulkResults), (status = 400, description = "A field is missing or invalid"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the folder was not found"),
        (status = 409, description = "The knowledge base or the folder is being deleted"),
        (status = 413, description = "The body is too large"),
    )
)]
pub(super) async fn move_all(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    ApiJson(body): ApiJson<MoveBody>,
) -> Result<Json<BulkResults>, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let ids = distinct(body.document_ids)?;
    let mut results = Vec::with_capacity(ids.len());
    for part in ids.chunks(AT_ONCE) {
        let transaction = budget::begin_patient(&bases, &base.id).await?;
        let folder = open_folder(&transaction, &base, &body.folder).await?;
        for id in part {
            let moved = move_in(&bases, &transaction, &base, id, &folder).await;
            results.push(result(id, moved.map(|()| BulkStatus::Moved))?);
        }
        transaction.commit().await?;
    }
    Ok(BulkResults::of(results))
}

/// Retries the failed step of documents, 100 in a transaction.
///
/// Documents that `POST ../retry` answers with 404 or 409 are skipped. If the request fails, those of earlier transactions stay queued; it can be
/// repeated.
#[utoipa::path(
    post, path = "/api/bulk/retry/{partner}/{kb}", operation_id = "retry_documents", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)), request_body = DocumentsBody,
    responses(
        (status = 200, body = BulkResults), (status = 400, description = "A field is missing or invalid"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base was not found"),
        (status = 409, description = "The knowledge base is being deleted"),
        (status = 413, description = "The body is too large"),
    )
)]
pub(super) async fn retry_all(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    ApiJson(body): ApiJson<DocumentsBody>,
) -> Result<Json<BulkResults>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let ids = distinct(body.document_ids)?;
    let mut results = Vec::with_capacity(ids.len());
    for part in ids.chunks(AT_ONCE) {
        let transaction = budget::begin_patient(&bases, &base.id).await?;
        for id in part {
            let retried = retry_in(&bases, &transaction, &tenant, &base, id).await;
            results.push(result(id, retried.map(|()| BulkStatus::Queued))?);
        }
        transaction.commit().await?;
        bases.kernel.jobs.wake();
    }
    Ok(BulkResults::of(results))
}

/// Deletes documents, each in a transaction of its own.
///
/// Documents that are worked on are deleted once that has ended; those that are not found are skipped. If the request fails, those before stay
/// deleted; it can be repeated.
#[utoipa::path(
    post, path = "/api/bulk/delete/{partner}/{kb}", operation_id = "delete_documents", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)), request_body = DocumentsBody,
    responses(
        (status = 200, body = BulkResults), (status = 400, description = "A field is missing or invalid"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base was not found"),
        (status = 413, description = "The body is too large"),
    )
)]
pub(super) async fn delete_all(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    ApiJson(body): ApiJson<DocumentsBody>,
) -> Result<Json<BulkResults>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let ids = distinct(body.document_ids)?;
    let mut results = Vec::with_capacity(ids.len());
    for id in &ids {
        let deleted = delete(&bases, &tenant, &base, id).await;
        results.push(result(id, deleted)?);
    }
    Ok(BulkResults::of(results))
}

async fn delete(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    id: &str,
) -> Result<BulkStatus, BaseError> {
    let document = store::find_document(bases.store.db(), base, id).await?;
    let document = document.ok_or(BaseError::NotFound("Document"))?;
    let deletion = erase::erase(bases, tenant, Whole::Document, &document.id).await?;
    Ok(match deletion {
        Deletion::Done => BulkStatus::Deleted,
        Deletion::Pending(_) => BulkStatus::DeletePending,
    })
}
