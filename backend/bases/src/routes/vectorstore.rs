//! `/api/vectorstore-sync`.

use axum::{Json, extract::State, http::HeaderMap};
use colloquy_accounts::{PartnerTenant, Tenant};
use colloquy_base::clock::rfc3339;
use colloquy_http::{ApiError, ApiPath, Listing, PageQuery};
use serde::Serialize;
use utoipa::ToSchema;

use super::{BasePath, base_of};
use crate::{
    Bases,
    base::KnowledgeBase,
    store::{self, SyncStanding},
    vectorstore::{self, SyncCounts, SyncInfo, SyncStatus, Wanted},
};

/// How far the documents of a knowledge base are brought to a vector store, for everybody who may see the base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SyncSummaryView {
    /// `disabled`: nothing is brought there; `syncing`: something is on its way; `incomplete`: documents failed, or are not there; `synced`:
    /// all documents with final content are searched there.
    status: SyncStatus,
    /// How many documents with final content are how far.
    counts: SyncCounts,
    /// When something was brought up to date last. RFC 3339.
    last_synced_at: Option<String>,
}

impl From<&SyncInfo> for SyncSummaryView {
    fn from(info: &SyncInfo) -> Self {
        Self {
            status: info.status,
            counts: info.counts,
            last_synced_at: info.last_synced_at.map(rfc3339),
        }
    }
}

/// How far the documents of a knowledge base are brought to a vector store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SyncView {
    /// The name of the base.
    knowledge_base: String,
    /// Whether the sync is switched on for the partner.
    enabled: bool,
    /// Whether the server has a vector store (`vectorstore.base_url`).
    configured: bool,
    /// What the service calls the vector store of this base; null until it was made.
    vector_store_id: Option<String>,
    /// Why nothing goes on now, where that is so.
    last_error: Option<String>,
    #[serde(flatten)]
    summary: SyncSummaryView,
    /// Documents with final content, by their ids; `limit` of them.
    documents: Vec<SyncedDocumentView>,
}

/// How far a document is brought to a vector store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SyncedDocumentView {
    /// The id.
    document_id: String,
    /// The name.
    name: String,
    /// The name of its folder.
    folder: String,
    /// `missing`: nothing of it is there; `outdated`: what is there is of an earlier content; `queued`; `uploaded`: it is at the service, and
    /// in no vector store; `indexing`: it is not searched yet, or is being looked for; `synced`; `failed`.
    status: String,
    /// What the service calls its file.
    file_id: Option<String>,
    /// How often a step failed since it was queued.
    attempts: i64,
    /// When it is tried again, after a failure. RFC 3339.
    next_attempt_at: Option<String>,
    /// What failed last.
    error: Option<String>,
    /// When its file could be searched first. RFC 3339.
    synced_at: Option<String>,
}

impl From<SyncStanding> for SyncedDocumentView {
    fn from(row: SyncStanding) -> Self {
        let attempts = row.attempts.unwrap_or_default();
        let is_tried = attempts > 0 && row.standing != "failed";
        Self {
            document_id: row.document_id,
            name: row.name,
            folder: row.folder,
            status: row.standing,
            file_id: row.file_id,
            attempts,
            next_attempt_at: row.next_at.filter(|_| is_tried).map(rfc3339),
            error: row.error,
            synced_at: row.synced_at.map(rfc3339),
        }
    }
}

/// How far the final content of a knowledge base's documents is brought to a vector store; administrators only. Documents come in pages,
/// with the next one in the header `Link`.
#[utoipa::path(
    get, path = "/api/vectorstore-sync/{partner}/{kb}", operation_id = "read_vectorstore_sync", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), PageQuery),
    responses((status = 200, body = SyncView), (status = 403), (status = 404))
)]
pub(super) async fn read(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    Listing { page, .. }: Listing,
) -> Result<(HeaderMap, Json<SyncView>), ApiError> {
    caller.principal.require_admin()?;
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let info = vectorstore::info(&bases, &tenant, &base).await?;
    let rows = store::sync_standings(bases.store.db(), &base, &page.slice()).await?;
    let listed = page.of(rows, |row| row.document_id.clone());
    let summary = SyncSummaryView::from(&info);
    let view = SyncView {
        knowledge_base: base.name,
        enabled: info.enabled,
        configured: bases.vectorstore.is_some(),
        vector_store_id: info.store_id,
        last_error: info.last_error,
        summary,
        documents: listed.entries.into_iter().map(Into::into).collect(),
    };
    Ok((listed.links, Json(view)))
}

/// A base whose documents an administrator may have brought to the vector store.
async fn synced_base(
    bases: &Bases,
    caller: PartnerTenant,
    name: &str,
) -> Result<(Tenant, KnowledgeBase), ApiError> {
    caller.principal.require_admin()?;
    let (tenant, base) = base_of(bases, caller, name).await?;
    let base = base.require_open()?;
    vectorstore::require_on(bases, &tenant).await?;
    Ok((tenant, base))
}

/// What was queued.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueuedView {
    /// `queued`.
    #[schema(value_type = String)]
    status: &'static str,
    /// How many documents.
    queued: u64,
}

impl QueuedView {
    fn of(queued: u64) -> Json<Self> {
        let status = "queued";
        Json(Self { status, queued })
    }
}

/// Brings all documents with final content to the vector store; those that are there are looked for, and brought again where they are not.
/// Administrators only.
#[utoipa::path(
    post, path = "/api/vectorstore-sync/{partner}/{kb}/backfill", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses(
        (status = 200, body = QueuedView), (status = 403), (status = 404),
        (status = 409, description = "the sync is off, or the knowledge base is being deleted"),
    )
)]
pub(super) async fn backfill(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
) -> Result<Json<QueuedView>, ApiError> {
    let (tenant, base) = synced_base(&bases, caller, &path.kb).await?;
    let queued = vectorstore::queue(&bases, &tenant, &base, Wanted::All).await?;
    Ok(QueuedView::of(queued))
}

/// Brings those documents to the vector store again whose sync failed. Administrators only.
#[utoipa::path(
    post, path = "/api/vectorstore-sync/{partner}/{kb}/retry-failed", operation_id = "retry_failed_vectorstore_sync", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses(
        (status = 200, body = QueuedView), (status = 403), (status = 404),
        (status = 409, description = "the sync is off, or the knowledge base is being deleted"),
    )
)]
pub(super) async fn retry_failed(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
) -> Result<Json<QueuedView>, ApiError> {
    let (tenant, base) = synced_base(&bases, caller, &path.kb).await?;
    let queued = vectorstore::queue(&bases, &tenant, &base, Wanted::Failed).await?;
    Ok(QueuedView::of(queued))
}
