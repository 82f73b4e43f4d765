//! `/api/documents` and `/api/document`.

use axum::{
    Extension, Json,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use colloquy_accounts::{PartnerTenant, Tenant};
use colloquy_base::invalid::InvalidField;
use colloquy_http::{ApiError, ApiPath, ApiQuery, form::Fields, memory::Share};
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::{IntoParams, ToSchema};

use super::{
    BasePath, DocumentPath, FIELD_BYTES, base_of,
    channels::FolderDetailsView,
    limits::{BudgetView, QuotaInfoView},
    streamed,
    uploads::folder_of,
    vectorstore::SyncSummaryView,
    views::{DeletionView, DocumentView, EmbeddingInfoView, KnowledgeBaseView, UsageTotalsView},
};
use crate::{
    Bases, accepting,
    base::{self, KnowledgeBase},
    budget, channel,
    content::Variant,
    digitizing,
    document::{self, Described, Source, Step},
    embedding::info,
    erase, folder, names,
    store::{self, Whole},
    upload, vectorstore,
};

/// A knowledge base with its documents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentsView {
    /// The base.
    #[serde(flatten)]
    base: KnowledgeBaseView,
    /// Its documents, oldest first.
    documents: Vec<DocumentView>,
    /// How far they are embedded.
    embedding_info: EmbeddingInfoView,
}

/// A knowledge base with all of its documents.
///
/// The response is streamed and ends abnormally if a later page of documents cannot be read.
#[utoipa::path(
    get, path = "/api/documents/{partner}/{kb}", operation_id = "list_documents", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses(
        (status = 200, body = DocumentsView), (status = 404),
        (status = 413, description = "The answer takes more memory than the server has for one (`limits.body_memory_bytes`)"),
        (status = 503, description = "There is no memory for the answer now; retry after `Retry-After` seconds"),
    )
)]
pub(super) async fn list(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    share: Option<Extension<Share>>,
) -> Result<Response, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let share = share.as_deref();
    streamed::reserve(&bases, &base, document::LIST_MEMORY, share).await?;
    let documents = document::pages(&bases, &base).await?;
    let progress = store::progress_of(bases.store.db(), &base.id).await?;
    let embedding_info = info(&bases, &base).await?.into();
    let spent = base::spent(&bases, &tenant, &base).await?;
    let backup = bases.config.rewriting.backup_model.as_deref();
    let frame = DocumentsView {
        base: KnowledgeBaseView::new(base, progress, &spent, backup),
        documents: Vec::new(),
        embedding_info,
    };
    streamed::documents(&frame, documents, share, |it| {
        Ok(Some(DocumentView::from(it)))
    })
    .await
}

/// A knowledge base with everything that is in it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BaseDataView {
    /// The base.
    #[serde(flatten)]
    base: KnowledgeBaseView,
    /// Its documents, oldest first.
    documents: Vec<DocumentView>,
    /// The names of its folders.
    folders: Vec<String>,
    /// The names of those that are being deleted.
    pending_folder_deletions: Vec<String>,
    /// The channels that its folders follow.
    folder_details: Vec<FolderDetailsView>,
    /// How its budget stands.
    budget: BudgetView,
    /// What it used so far.
    usage_totals: UsageTotalsView,
    /// Its characters, for older clients.
    quota_info: QuotaInfoView,
    /// How far its documents are embedded.
    embedding_info: EmbeddingInfoView,
    /// How far they are brought to a vector store; null where that is switched off.
    vectorstore_sync: Option<SyncSummaryView>,
}

/// A knowledge base with its folders, its documents, and how far they are.
///
/// The response is streamed and ends abnormally if a later page of documents cannot be read. All fields except `documents` are as of the
/// beginning of the response.
#[utoipa::path(
    get, path = "/api/kb-data/{partner}/{kb}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses(
        (status = 200, body = BaseDataView), (status = 404),
        (status = 413, description = "The answer takes more memory than the server has for one (`limits.body_memory_bytes`)"),
        (status = 503, description = "There is no memory for the answer now; retry after `Retry-After` seconds"),
    )
)]
pub(super) async fn read_all(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    share: Option<Extension<Share>>,
) -> Result<Response, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let share = share.as_deref();
    streamed::reserve(&bases, &base, document::LIST_MEMORY, share).await?;
    let documents = document::pages(&bases, &base).await?;
    let progress = store::progress_of(bases.store.db(), &base.id).await?;
    let embedding_info = info(&bases, &base).await?.into();
    let budget = BudgetView::of(&bases, &base).await?;
    let details = channel::list(&bases, &base).await?;
    let spent = base::spent(&bases, &tenant, &base).await?;
    let sync = vectorstore::summary(&bases, &tenant, &base).await?;
    let backup = bases.config.rewriting.backup_model.as_deref();
    let (open, pending): (Vec<_>, Vec<_>) = folder::list(&bases, &base)
        .await?
        .into_iter()
        .partition(|folder| folder.deletion_requested_at.is_none());
    let names = |folders: Vec<folder::Folder>| {
        let names = folders.into_iter().map(|folder| folder.name);
        names.collect()
    };
    let frame = BaseDataView {
        vectorstore_sync: sync.as_ref().map(SyncSummaryView::from),
        usage_totals: UsageTotalsView::new(&spent),
        quota_info: QuotaInfoView::new(&budget),
        budget,
        base: KnowledgeBaseView::new(base, progress, &spent, backup),
        documents: Vec::new(),
        folders: names(open),
        pending_folder_deletions: names(pending),
        folder_details: details.into_iter().map(Into::into).collect(),
        embedding_info,
    };
    streamed::documents(&frame, documents, share, |it| {
        Ok(Some(DocumentView::from(it)))
    })
    .await
}

/// A document.
#[utoipa::path(
    get, path = "/api/document/{partner}/{kb}/{doc_id}", operation_id = "read_document", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path)),
    responses((status = 200, body = DocumentView), (status = 404))
)]
pub(super) async fn read(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<DocumentPath>,
) -> Result<Json<DocumentView>, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let found = document::find(&bases, &base, &path.doc_id).await?;
    Ok(Json(found.into()))
}

/// The fields of a form that makes an empty document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct EmptyDocumentForm {
    /// The name.
    name: String,
    /// The folder that it goes to.
    folder: String,
    /// Where it comes from.
    r#type: Source,
    /// Its address, when the type is `url`.
    url: Option<String>,
}

/// Makes a document without content, for somebody to write.
#[utoipa::path(
    post, path = "/api/documents/{partner}/{kb}/empty", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    request_body(content = EmptyDocumentForm, content_type = "multipart/form-data"),
    responses((status = 201, body = DocumentView), (status = 400), (status = 404))
)]
pub(super) async fn create_empty(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    request: Request,
) -> Result<(StatusCode, Json<DocumentView>), ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let mut fields = Fields::read(request, FIELD_BYTES).await?;
    let name = names::title("name", &fields.require("name")?)?;
    let folder = folder_of(&bases, &base, &mut fields).await?;
    let source = source(&fields.require("type")?)?;
    let url = match source {
        Source::Url => Some(address(&fields.require("url")?)?),
        Source::File => None,
    };
    fields.finish()?;
    let made = upload::add_empty(&bases, &tenant, &base, &folder, name, source, url).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// Where a document comes from.
pub(super) fn source(text: &str) -> Result<Source, ApiError> {
    Source::try_from(text.to_owned()).map_err(|_| ApiError::invalid("type", "must be file or url"))
}

/// The longest address, in bytes.
const MOST_URL: usize = 2_048;

/// An address with `http` or `https`, without characters that cannot be seen.
pub(super) fn address(text: &str) -> Result<String, InvalidField> {
    let text = text.trim();
    let url = Url::parse(text).ok();
    let is_web = url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let is_visible = !text.contains(char::is_control);
    if is_web && is_visible && text.len() <= MOST_URL {
        Ok(text.to_owned())
    } else {
        let message = format!("must be an address with http or https, of at most {MOST_URL} bytes");
        Err(InvalidField::new("url", message))
    }
}

/// The field of a form that renames.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct NameForm {
    /// The name.
    name: String,
}

/// Renames a document.
#[utoipa::path(
    put, path = "/api/documents/{partner}/{kb}/{doc_id}/name", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path)),
    request_body(content = NameForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = DocumentView), (status = 400), (status = 404))
)]
pub(super) async fn rename(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<DocumentPath>,
    request: Request,
) -> Result<Json<DocumentView>, ApiError> {
    let (tenant, base, found) = document_of(&bases, caller, &path).await?;
    let mut fields = Fields::read(request, FIELD_BYTES).await?;
    let name = names::title("name", &fields.require("name")?)?;
    fields.finish()?;
    let (id, now) = (&found.document.id, bases.clock.now_ms());
    let transaction = budget::begin(&bases, &base.id).await?;
    // Its name is searched with its text.
    if name != found.document.name && found.content(Variant::Rewritten).is_some() {
        accepting::queue_embedding(&bases, &transaction, &tenant, id, false).await?;
    }
    store::set_name(&transaction, id, &name, now).await?;
    transaction.commit().await?;
    bases.kernel.jobs.wake();
    changed(&bases, &base, &path).await
}

/// The field of a form that says where a document comes from.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct TypeForm {
    /// Where it comes from.
    r#type: Source,
}

/// Says where a document comes from. A file that becomes an address is fetched when the document is digitized next; until then
/// `processing_warning` reports that the text is that of the file. What an address gave is the original of a document that becomes a file.
#[utoipa::path(
    put, path = "/api/documents/{partner}/{kb}/{doc_id}/type", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path)),
    request_body(content = TypeForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = DocumentView), (status = 400), (status = 404))
)]
pub(super) async fn set_type(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<DocumentPath>,
    request: Request,
) -> Result<Json<DocumentView>, ApiError> {
    let (_, base, found) = document_of(&bases, caller, &path).await?;
    let mut fields = Fields::read(request, FIELD_BYTES).await?;
    let source = source(&fields.require("type")?)?;
    fields.finish()?;
    let (id, now) = (&found.document.id, bases.clock.now_ms());
    if found.document.source != source {
        let transaction = bases.store.begin().await?;
        store::set_source(&transaction, id, source, now).await?;
        digitizing::forget(&bases, &transaction, id).await?;
        transaction.commit().await?;
    }
    changed(&bases, &base, &path).await
}

/// The field of a form that gives an address.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct UrlForm {
    /// The address.
    url: String,
}

/// Gives a document another address, which is fetched when the document is digitized next. What is there of its content stays until then.
#[utoipa::path(
    put, path = "/api/documents/{partner}/{kb}/{doc_id}/url", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path)),
    request_body(content = UrlForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = DocumentView), (status = 400), (status = 404))
)]
pub(super) async fn set_url(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<DocumentPath>,
    request: Request,
) -> Result<Json<DocumentView>, ApiError> {
    let (_, base, found) = document_of(&bases, caller, &path).await?;
    let mut fields = Fields::read(request, FIELD_BYTES).await?;
    let url = address(&fields.require("url")?)?;
    fields.finish()?;
    let (id, now) = (&found.document.id, bases.clock.now_ms());
    if found.document.url.as_ref() != Some(&url) {
        let transaction = bases.store.begin().await?;
        store::set_url(&transaction, id, &url, now).await?;
        if found.document.source == Source::Url || found.reads_address() {
            digitizing::forget(&bases, &transaction, id).await?;
        }
        transaction.commit().await?;
    }
    changed(&bases, &base, &path).await
}

/// A document of a base that is not being deleted.
pub(super) async fn document_of(
    bases: &Bases,
    caller: PartnerTenant,
    path: &DocumentPath,
) -> Result<(Tenant, KnowledgeBase, Described), ApiError> {
    let (tenant, base) = base_of(bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let found = document::find(bases, &base, &path.doc_id).await?;
    Ok((tenant, base, found))
}

/// The document after a change.
pub(super) async fn changed(
    bases: &Bases,
    base: &KnowledgeBase,
    path: &DocumentPath,
) -> Result<Json<DocumentView>, ApiError> {
    let found = document::find(bases, base, &path.doc_id).await?;
    Ok(Json(found.into()))
}

/// How a document is deleted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DeleteQuery {
    /// `false`: not while it is being worked on.
    #[param(default = true)]
    force: Option<bool>,
}

/// Deletes a document.
#[utoipa::path(
    delete, path = "/api/documents/{partner}/{kb}/{doc_id}", operation_id = "delete_document", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), DeleteQuery),
    responses(
        (status = 200, body = DeletionView), (status = 404),
        (status = 409, description = "`force=false`, and it is being worked on"),
    )
)]
pub(super) async fn delete(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<DocumentPath>,
    ApiQuery(query): ApiQuery<DeleteQuery>,
) -> Result<Json<DeletionView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let found = document::find(&bases, &base, &path.doc_id).await?;
    let id = &found.document.id;
    if query.force == Some(false) {
        let steps = [
            found.document.digitizing,
            found.document.rewriting,
            found.document.embedding,
        ];
        let active = |step: &Step| matches!(step, Step::Queued | Step::Running);
        if steps.iter().any(active) {
            return Err(ApiError::conflict("The document is being worked on"));
        }
    }
    let deletion = erase::erase(&bases, &tenant, Whole::Document, id).await?;
    Ok(Json(deletion.into()))
}
