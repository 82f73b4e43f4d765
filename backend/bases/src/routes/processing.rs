//! `/api/queue/process` and `/api/bulk/rewrite`.

use axum::{Json, extract::State};
use colloquy_accounts::{Caller, PartnerTenant, Scope, Tenant};
use colloquy_base::money::Usd;
use colloquy_http::{ApiError, ApiJson, ApiPath, ApiQuery};
use colloquy_kernel::jobs;
use colloquy_store::{StoreError, Transaction};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    BasePath, FolderPath, allowed, base_of, named_partner, uploads::wrong_limit,
    views::DocumentView,
};
use crate::{
    Bases,
    base::{self, KnowledgeBase},
    budget,
    content::Variant,
    digitizing::Digitize,
    document::{self, ContentTypeChoice, Described, ModelTier, Step},
    folder, names,
    pages::Pages,
    rewriting::{self, Estimate, Rewrite, RewriteOptions},
    store::{self, RewritableDocument, RewritableState, SCAN_PAGE},
};

/// Why a document with final content is not rewritten.
pub(super) const HAS_FINAL: &str = "The document has final content (skip_rewritten)";
/// How many documents are queued in a transaction.
pub(super) const AT_ONCE: usize = 100;

/// What is done with a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// Its text is read again from what was brought.
    #[default]
    Digitize,
    /// Its text is rewritten.
    Rewrite,
}

/// How a document is processed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ProcessQuery {
    /// What is done.
    #[serde(default)]
    #[param(inline)]
    action: Action,
    /// The partner.
    partner: String,
    /// The name of the base.
    kb: String,
    /// The template, for `rewrite`.
    #[serde(default)]
    #[param(inline)]
    content_type: ContentTypeChoice,
    /// Who is spoken of, for `rewrite`.
    person_name: Option<String>,
    /// The most characters of its text, for `digitize`.
    #[param(minimum = 1)]
    character_limit: Option<u64>,
}

/// A document that is to be processed.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ProcessBody {
    /// The document as the service shows it, of which the id counts.
    document: NamedDocument,
}

/// A document by its id.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct NamedDocument {
    /// The id.
    id: String,
}

/// What was queued.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProcessView {
    /// `queued`.
    status: &'static str,
    /// The job.
    job_id: Option<String>,
    /// The document.
    document: DocumentView,
}

/// Has a document digitized or rewritten, whatever was made of it before.
#[utoipa::path(
    post, path = "/api/queue/process", tag = "knowledge bases", params(ProcessQuery), request_body = ProcessBody,
    responses(
        (status = 200, body = ProcessView), (status = 400), (status = 403), (status = 404),
        (status = 409, description = "it has nothing to be digitized or rewritten, or is being worked on"),
    )
)]
pub(super) async fn process(
    State(bases): State<Bases>,
    Caller(principal): Caller,
    ApiQuery(query): ApiQuery<ProcessQuery>,
    ApiJson(body): ApiJson<ProcessBody>,
) -> Result<Json<ProcessView>, ApiError> {
    principal.require(Scope::Knowledge)?;
    let partner = named_partner(&query.partner)?;
    let tenant = principal.tenant(&partner)?;
    let base = base::find(&bases, &tenant, &query.kb)
        .await?
        .require_open()?;
    let found = document::find(&bases, &base, &body.document.id).await?;
    let id = found.document.id.clone();
    let job = match query.action {
        Action::Digitize => {
            let limit = query.character_limit;
            if limit == Some(0) {
                return Err(wrong_limit());
            }
            if let Some(why) = cannot_digitize(&found) {
                return Err(ApiError::conflict(why));
            }
            let transaction = budget::begin(&bases, &base.id).await?;
            queue_digitizing(&bases, &transaction, &tenant, &id, limit).await?;
            transaction.commit().await?;
            jobs::find::<Digitize>(bases.store.db(), &id).await?
        }
        Action::Rewrite => {
            let options = options(query.content_type, query.person_name.as_deref())?;
            if let Some(why) = cannot_rewrite((&found).into()) {
                return Err(ApiError::conflict(why));
            }
            rewrite(&bases, &tenant, &base, &id, &options).await?;
            jobs::find::<Rewrite>(bases.store.db(), &id).await?
        }
    };
    bases.kernel.jobs.wake();
    let found = document::find(&bases, &base, &id).await?;
    Ok(Json(ProcessView {
        status: "queued",
        job_id: job.map(|job| job.id),
        document: found.into(),
    }))
}

fn options(
    content_type: ContentTypeChoice,
    person_name: Option<&str>,
) -> Result<RewriteOptions, ApiError> {
    let person_name = person_name.filter(|name| !name.trim().is_empty());
    let person_name = person_name.map(|name| names::title("person_name", name));
    Ok(RewriteOptions {
        content_type,
        person_name: person_name.transpose()?,
    })
}

/// Returns the reason if a document cannot be digitized now.
pub(super) fn cannot_digitize(found: &Described) -> Option<&'static str> {
    let document = &found.document;
    let has = |variant| found.content(variant).is_some();
    if !has(Variant::Original) && !has(Variant::Extracted) && document.url.is_none() {
        Some("The document has nothing to be digitized")
    } else if document.is_going {
        Some("The document is being deleted")
    } else if is_active(document.rewriting) {
        Some("The document is being rewritten")
    } else {
        None
    }
}

/// Has a document digitized, in a transaction that holds the budget of its base.
pub(super) async fn queue_digitizing(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    document: &str,
    limit: Option<u64>,
) -> Result<(), StoreError> {
    let limit = limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
    // Before the document, as the job itself locks them.
    let job = Digitize {
        document: document.to_owned(),
    };
    jobs::enqueue(bases, transaction, Some(tenant.partner()), &job).await?;
    store::queue_digitizing(transaction, document, limit, bases.clock.now_ms()).await
}

async fn rewrite(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    document: &str,
    options: &RewriteOptions,
) -> Result<(), ApiError> {
    let transaction = budget::begin(bases, &base.id).await?;
    rewriting::queue(bases, &transaction, tenant, document, Some(options)).await?;
    transaction.commit().await?;
    Ok(())
}

pub(super) fn is_active(step: Step) -> bool {
    matches!(step, Step::Queued | Step::Running)
}

impl From<&Described> for RewritableState {
    fn from(found: &Described) -> Self {
        Self {
            is_going: found.document.is_going,
            has_text: found.content(Variant::Digitized).is_some(),
            digitizing: found.document.digitizing,
            rewriting: found.document.rewriting,
        }
    }
}

/// Returns the reason if a document cannot be rewritten now.
pub(super) fn cannot_rewrite(state: RewritableState) -> Option<&'static str> {
    if state.is_going {
        Some("The document is being deleted")
    } else if !state.has_text {
        Some("The document has no text to rewrite")
    } else if is_active(state.digitizing) {
        Some("The document is being digitized")
    } else if is_active(state.rewriting) {
        Some("The document is being rewritten")
    } else {
        None
    }
}

/// Returns the reason not to queue a document for whose tier no model is configured.
pub(super) fn no_model(bases: &Bases, tier: ModelTier) -> Option<&'static str> {
    let models = rewriting::models(bases, tier);
    models.is_empty().then_some(rewriting::NO_MODEL)
}

/// Which documents are rewritten, and how.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct BulkQuery {
    /// Whether those that have final content stay as they are.
    #[param(default = true)]
    skip_rewritten: Option<bool>,
    /// The template.
    #[serde(default)]
    #[param(inline)]
    content_type: ContentTypeChoice,
    /// Who is spoken of.
    person_name: Option<String>,
    /// Whether nothing is done, and only told what would be.
    #[serde(default)]
    #[param(default = false)]
    dry_run: bool,
}

/// What rewriting would use, about: a text of a token for every four characters, and an answer as long as the text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EstimateView {
    /// Documents.
    documents: usize,
    /// The tokens that would be read.
    input_tokens: u64,
    /// The tokens that would be written.
    output_tokens: u64,
    /// What they would cost in dollars; null where a model has no price.
    #[schema(value_type = Option<String>, example = "0.00125")]
    cost_usd: Option<Usd>,
}

/// What was queued.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkView {
    /// `queued`, or `dry_run`.
    status: &'static str,
    /// Number of documents that were queued.
    queued: usize,
    /// Number of documents that were skipped.
    skipped: usize,
    /// The documents that were queued.
    document_ids: Vec<String>,
    /// Skipped documents, each with its reason.
    skipped_documents: Vec<SkippedView>,
    /// What that would use, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<EstimateView>,
}

/// A document that is left as it is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkippedView {
    /// Its id.
    document_id: String,
    /// Why it is not rewritten.
    reason: &'static str,
}

/// Has the documents of a folder rewritten.
#[utoipa::path(
    post, path = "/api/bulk/rewrite/folder/{partner}/{kb}/{folder}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("folder" = String, Path), BulkQuery),
    responses((status = 200, body = BulkView), (status = 400), (status = 404), (status = 409, description = "The base or the folder is being deleted"))
)]
pub(super) async fn rewrite_folder(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<FolderPath>,
    ApiQuery(query): ApiQuery<BulkQuery>,
) -> Result<Json<BulkView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let folder = folder::find(&bases, &base, &path.folder).await?;
    let folder = folder.require_open()?;
    bulk(&bases, &tenant, &base, Some(&folder.id), query).await
}

/// Has the documents of a knowledge base rewritten.
#[utoipa::path(
    post, path = "/api/bulk/rewrite/kb/{partner}/{kb}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), BulkQuery),
    responses((status = 200, body = BulkView), (status = 400), (status = 404), (status = 409, description = "The base or the folder is being deleted"))
)]
pub(super) async fn rewrite_base(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    ApiQuery(query): ApiQuery<BulkQuery>,
) -> Result<Json<BulkView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    bulk(&bases, &tenant, &base, None, query).await
}

/// The documents of a base, oldest first.
fn rewritable(bases: &Bases, base: &KnowledgeBase) -> Pages<RewritableDocument> {
    Pages::of_base(bases, base, SCAN_PAGE, |bases, base, after| async move {
        store::rewritable_page(bases.store.db(), &base, &after).await
    })
}

async fn bulk(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    folder: Option<&str>,
    query: BulkQuery,
) -> Result<Json<BulkView>, ApiError> {
    let options = options(query.content_type, query.person_name.as_deref())?;
    let skips = query.skip_rewritten.unwrap_or(true);
    let of_folder =
        |document: &RewritableDocument| folder.is_none_or(|it| document.folder_id == it);
    let (mut queued, mut skipped) = (Vec::new(), Vec::new());
    let mut estimate = Estimate::default();
    let mut documents = rewritable(bases, base);
    while let Some(page) = documents.next().await? {
        for document in page.into_iter().filter(of_folder) {
            let is_final = skips && document.is_final;
            let why = cannot_rewrite(document.state)
                .or(is_final.then_some(HAS_FINAL))
                .or_else(|| no_model(bases, document.model_tier));
            if let Some(reason) = why {
                skipped.push(SkippedView {
                    document_id: document.id,
                    reason,
                });
            } else {
                let characters = document.characters.unwrap_or_default();
                estimate.add(bases, document.model_tier, characters);
                queued.push(document.id);
            }
        }
    }
    if query.dry_run {
        return Ok(Json(BulkView {
            status: "dry_run",
            queued: 0,
            skipped: skipped.len(),
            skipped_documents: skipped,
            estimate: Some(EstimateView {
                documents: queued.len(),
                input_tokens: estimate.tokens.input,
                output_tokens: estimate.tokens.output,
                cost_usd: estimate.cost.map(Usd),
            }),
            document_ids: queued,
        }));
    }
    for part in queued.chunks(AT_ONCE) {
        let transaction = budget::begin_patient(bases, &base.id).await?;
        for id in part {
            rewriting::queue(bases, &transaction, tenant, id, Some(&options)).await?;
        }
        transaction.commit().await?;
    }
    bases.kernel.jobs.wake();
    Ok(Json(BulkView {
        status: "queued",
        queued: queued.len(),
        skipped: skipped.len(),
        skipped_documents: skipped,
        document_ids: queued,
        estimate: None,
    }))
}

/// Rewritings to retry.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RetryQuery {
    /// Name of a knowledge base. Default: all bases of the partner.
    kb: Option<String>,
    /// If true, retries only rewritings that were interrupted because a server process ended.
    #[serde(default)]
    #[param(default = false)]
    interrupted: bool,
}

/// Retries failed rewritings from the section that failed. A section whose request was in flight when a server process ended is requested
/// again and may be billed twice.
#[utoipa::path(
    post, path = "/api/rewriting/{partner}/retry-failed", operation_id = "retry_failed_rewritings", tag = "knowledge bases",
    params(("partner" = String, Path), RetryQuery),
    responses((status = 200, body = BulkView), (status = 404), (status = 409, description = "The base is being deleted"))
)]
pub(super) async fn retry_failed(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiQuery(query): ApiQuery<RetryQuery>,
) -> Result<Json<BulkView>, ApiError> {
    let tenant = allowed(caller)?;
    let open = match &query.kb {
        Some(name) => vec![base::find(&bases, &tenant, name).await?.require_open()?],
        None => {
            let listed = store::list_bases(bases.store.db(), &tenant).await?;
            let listed = listed.into_iter().map(|(base, _)| base);
            listed
                .filter(|base| base.deletion_requested_at.is_none())
                .collect()
        }
    };
    let (mut queued, mut skipped) = (Vec::new(), Vec::new());
    for base in &open {
        let mut failed = Vec::new();
        let mut documents = rewritable(&bases, base);
        while let Some(page) = documents.next().await? {
            for document in page {
                let is_meant = match query.interrupted {
                    true => document.is_interrupted(),
                    false => document.state.rewriting == Step::Failed,
                };
                match cannot_rewrite(document.state)
                    .or_else(|| no_model(&bases, document.model_tier))
                {
                    _ if !is_meant => {}
                    Some(reason) => skipped.push(SkippedView {
                        document_id: document.id,
                        reason,
                    }),
                    None => failed.push(document.id),
                }
            }
        }
        for part in failed.chunks(AT_ONCE) {
            let transaction = budget::begin_patient(&bases, &base.id).await?;
            for id in part {
                rewriting::resume(&bases, &transaction, &tenant, id).await?;
            }
            transaction.commit().await?;
        }
        queued.append(&mut failed);
    }
    bases.kernel.jobs.wake();
    Ok(Json(BulkView {
        status: "queued",
        queued: queued.len(),
        skipped: skipped.len(),
        skipped_documents: skipped,
        document_ids: queued,
        estimate: None,
    }))
}
