//! `/api/document-history`.

use axum::{Json, extract::State, http::HeaderMap};
use colloquy_accounts::PartnerTenant;
use colloquy_base::{clock::rfc3339, money::Usd};
use colloquy_http::{ApiError, ApiPath, Listing, PageQuery};
use serde::Serialize;
use utoipa::ToSchema;

use super::{DocumentPath, base_of};
use crate::{
    Bases,
    admission::{PaidStep, UsageOutcome},
    document::{self, Step, StepKind},
    lists::{Key, SortKey, Sorting},
    store::{self, DocumentRequest, KeyedId, StepChange},
};

/// The history of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryPage {
    /// The newest begins and ends of its steps, newest first, 16 at most; null on later pages. Steps that ended before the server kept
    /// them are missing.
    steps: Option<Vec<HistoryStepView>>,
    /// Requests to services for the document, newest first.
    requests: Vec<HistoryRequestView>,
    /// The cursor of the next page of requests; null on the last one.
    next_cursor: Option<String>,
}

/// The begin or end of a step. Turns between `queued` and `running` are left out.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryStepView {
    /// The step.
    step: StepKind,
    /// The state that the step took.
    state: Step,
    /// Why the step failed or waits, cut to 100 characters; null otherwise.
    reason: Option<String>,
    /// When. RFC 3339.
    at: String,
}

impl From<StepChange> for HistoryStepView {
    fn from(change: StepChange) -> Self {
        Self {
            step: change.step,
            state: change.state,
            reason: change.reason,
            at: rfc3339(change.at),
        }
    }
}

/// A request to a service.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryRequestView {
    /// The id.
    id: String,
    /// The purpose.
    kind: PaidStep,
    /// The model.
    model: String,
    /// The outcome; null while the request is pending.
    outcome: Option<UsageOutcome>,
    /// Input tokens; null if they are not known.
    input_tokens: Option<i64>,
    /// Output tokens; null if they are not known.
    output_tokens: Option<i64>,
    /// Seconds of sound, for `transcribe`; null if they are not known.
    seconds: Option<i64>,
    /// Dollars; null if they are not known.
    #[schema(value_type = Option<String>, example = "0.00125")]
    cost_usd: Option<Usd>,
    /// True if its tokens or its cost are not known, and nobody decided about it.
    unknown: bool,
    /// When it was sent. RFC 3339.
    created_at: String,
    /// When its outcome was stored. RFC 3339; null while it is pending.
    settled_at: Option<String>,
}

impl From<DocumentRequest> for HistoryRequestView {
    fn from(request: DocumentRequest) -> Self {
        Self {
            id: request.id,
            kind: request.kind,
            model: request.model,
            outcome: request.outcome.0,
            input_tokens: request.input_tokens,
            output_tokens: request.output_tokens,
            seconds: request.seconds,
            cost_usd: request.cost.map(|cost| Usd(cost.unsigned_abs())),
            unknown: request.unknown,
            created_at: rfc3339(request.created_at),
            settled_at: request.settled_at.map(rfc3339),
        }
    }
}

/// Returns what happened to a document: the steps that made its contents, and the requests to services with their cost.
#[utoipa::path(
    get, path = "/api/document-history/{partner}/{kb}/{doc_id}", operation_id = "page_document_history", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("doc_id" = String, Path), PageQuery),
    responses(
        (status = 200, body = HistoryPage),
        (status = 400, description = "A parameter is invalid or unknown"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the document was not found"),
    )
)]
pub(super) async fn list(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<DocumentPath>,
    Listing { page, .. }: Listing,
) -> Result<(HeaderMap, Json<HistoryPage>), ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let sorting = Sorting::new(SortKey::Changed, None);
    let keyset = sorting.keyset(page.after(), page.rows())?;
    let id = document::find(&bases, &base, &path.doc_id)
        .await?
        .document
        .id;
    let db = bases.store.db();
    let steps = match page.after() {
        None => Some(store::steps_of(db, &id).await?),
        Some(_) => None,
    };
    let requests = store::requests_of(db, &base.id, &id, &keyset).await?;
    let listed = page.of(requests, |request| {
        let (id, key) = (request.id.clone(), Key::Number(request.created_at));
        sorting.cursor(&KeyedId { id, key })
    });
    let view = HistoryPage {
        steps: steps.map(|steps| steps.into_iter().map(Into::into).collect()),
        requests: listed.entries.into_iter().map(Into::into).collect(),
        next_cursor: listed.next_cursor,
    };
    Ok((listed.links, Json(view)))
}
