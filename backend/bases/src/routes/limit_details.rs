//! `/api/knowledgebases/../limits/wake` and `/api/knowledgebases/../limits/unknown`.

use axum::{Json, extract::State, http::HeaderMap};
use colloquy_accounts::PartnerTenant;
use colloquy_base::{clock::rfc3339, money::Usd};
use colloquy_http::{ApiError, ApiPath, Listing, PageQuery, StrictQuery};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    BasePath, base_of,
    bases::{dollars, limit},
};
use crate::{
    Bases,
    admission::{PaidStep, TakenFor, UsageOutcome},
    budget::BudgetChange,
    store::{self, ListedUnknown},
    waking::{self, WakePlan},
};

/// Limits that are considered. An absent parameter keeps the limit, an empty one removes it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WakeQuery {
    /// Characters of accepted text.
    character_limit: Option<String>,
    /// Tokens of rewriting and embedding, for ever.
    token_limit: Option<String>,
    /// Dollars, for ever, with at most 8 decimals.
    dollar_limit_usd: Option<String>,
}

/// What a change of limits would wake at once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WakeView {
    /// Documents that would be queued.
    documents: u64,
    /// Their ids, oldest first, at most 100.
    document_ids: Vec<String>,
    /// Characters of texts that would be accepted.
    characters: u64,
    /// Upper bound of the tokens of the next request of each document, without `unbounded` ones. Later requests are not included.
    tokens: u64,
    /// Upper bound of the dollars of the next request of each document, without `unbounded` ones. Later requests are not included.
    #[schema(value_type = String, example = "0.00125")]
    cost_usd: Usd,
    /// Documents among `documents` whose next request has no known bound, since two steps wait or a model had no price.
    unbounded: u64,
    /// Channels that would be scanned.
    channels: usize,
    /// Documents that would still wait.
    still_blocked: u64,
    /// False if more than 10,000 documents wait, of which the oldest were considered.
    complete: bool,
}

impl From<WakePlan> for WakeView {
    fn from(plan: WakePlan) -> Self {
        Self {
            documents: plan.documents,
            document_ids: plan.document_ids,
            characters: plan.characters,
            tokens: plan.tokens,
            cost_usd: Usd(plan.cost),
            unbounded: plan.unbounded,
            channels: plan.channels,
            still_blocked: plan.still_blocked,
            complete: plan.complete,
        }
    }
}

/// Parses a limit: empty for none.
fn parsed<T>(
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, ApiError>,
) -> Result<Option<Option<T>>, ApiError> {
    text.map(|text| match text.trim() {
        "" => Ok(None),
        text => parse(text).map(Some),
    })
    .transpose()
}

/// Returns what other limits of a knowledge base would wake, without changing them.
#[utoipa::path(
    get, path = "/api/knowledgebases/{partner}/{kb}/limits/wake", operation_id = "plan_limits", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), WakeQuery),
    responses(
        (status = 200, body = WakeView), (status = 400, description = "A limit is invalid, or a parameter unknown"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base was not found"),
    )
)]
pub(super) async fn wake(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    StrictQuery(query): StrictQuery<WakeQuery>,
) -> Result<Json<WakeView>, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let change = BudgetChange {
        characters: parsed(query.character_limit.as_deref(), |text| {
            limit("character_limit", text)
        })?,
        tokens: parsed(query.token_limit.as_deref(), |text| {
            limit("token_limit", text)
        })?,
        dollars: parsed(query.dollar_limit_usd.as_deref(), dollars)?,
    };
    let plan = waking::plan(&bases, &base.id, change).await?;
    let plan = plan.ok_or_else(|| ApiError::not_found("Knowledge base"))?;
    Ok(Json(plan.into()))
}

/// The requests that are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UnknownQuery {
    /// `true`: requests that were decided about; `false`: those that still block.
    #[param(default = false)]
    decided: Option<bool>,
}

/// A request of which the outcome, the tokens or the cost are not known, or were not until somebody decided about it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnknownRequestView {
    /// The id.
    id: String,
    /// The document; for `discover`, the folder of the channel.
    document_id: String,
    /// The name of the document; null for `discover`, and once the document was deleted.
    document_name: Option<String>,
    /// The purpose of the request.
    kind: PaidStep,
    /// The model.
    model: String,
    /// The outcome: `uncertain` until somebody decides, if it is not known.
    outcome: UsageOutcome,
    /// When it was sent. RFC 3339.
    created_at: String,
    /// The most tokens that it may have used; null if that is not known.
    bound_tokens: Option<i64>,
    /// The most dollars that it may have cost; null if that is not known.
    #[schema(value_type = Option<String>, example = "0.00125")]
    bound_cost_usd: Option<Usd>,
    /// Input tokens; null if they are not known.
    input_tokens: Option<i64>,
    /// Output tokens; null if they are not known.
    output_tokens: Option<i64>,
    /// Dollars; null if they are not known.
    #[schema(value_type = Option<String>, example = "0.00125")]
    cost_usd: Option<Usd>,
    /// What the request was taken for; null until somebody decides.
    taken_for: Option<TakenFor>,
    /// When that was decided. RFC 3339.
    decided_at: Option<String>,
}

impl From<ListedUnknown> for UnknownRequestView {
    fn from(row: ListedUnknown) -> Self {
        let usd = |cost: Option<i64>| cost.map(|cost| Usd(cost.unsigned_abs()));
        Self {
            taken_for: row.taken_for(),
            bound_cost_usd: usd(row.bound_cost),
            cost_usd: usd(row.cost),
            id: row.id,
            document_id: row.document_id,
            document_name: row.document_name,
            kind: row.kind,
            model: row.model,
            outcome: row.outcome,
            created_at: rfc3339(row.created_at),
            bound_tokens: row.bound_tokens,
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens,
            decided_at: row.decided_at.map(rfc3339),
        }
    }
}

/// A page of requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnknownRequestPage {
    /// The requests, oldest first.
    requests: Vec<UnknownRequestView>,
    /// The cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

/// Lists the requests of a knowledge base of which something is not known, or those that were decided about.
#[utoipa::path(
    get, path = "/api/knowledgebases/{partner}/{kb}/limits/unknown", operation_id = "list_unknown_requests", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), UnknownQuery, PageQuery),
    responses(
        (status = 200, body = UnknownRequestPage), (status = 400, description = "A parameter is invalid or unknown"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base was not found"),
    )
)]
pub(super) async fn unknown(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    Listing { filter, page }: Listing<UnknownQuery>,
) -> Result<(HeaderMap, Json<UnknownRequestPage>), ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let is_decided = filter.decided.unwrap_or_default();
    let db = bases.store.db();
    let rows = store::list_unknown(db, &base.id, is_decided, &page.slice()).await?;
    let listed = page.of(rows, |row| row.id.clone());
    let view = UnknownRequestPage {
        requests: listed.entries.into_iter().map(Into::into).collect(),
        next_cursor: listed.next_cursor,
    };
    Ok((listed.links, Json(view)))
}
