//! `/v2/dialog_analyses`: having a conversation analyzed, reading what it tells, trying again.

use axum::{
    Json,
    extract::{FromRef, Request, State},
    http::{HeaderMap, StatusCode, request::Parts},
};
use colloquy_accounts::{
    Accounts, Scope, partners,
    quotas::{Payer, QuotaKind},
};
use colloquy_http::{
    ApiError, ApiQuery, Listing, PageQuery,
    extract::{ApiPath, body_up_to, id_in_path, is_json, unsupported_media_type},
    separated,
};
use colloquy_kernel::{router::DescribedRouter, routes};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    accept,
    error::{AcceptError, analysis_not_found},
    kept_since,
    output::{AnalysisList, AnalysisState, AnalysisView},
    request::{self, AnalysisBody, AnalysisInput, Input},
    retry,
    store::{self, AnalysisFilter, Sought},
};
use crate::Analyses;

pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Analyses: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(create_analysis, list_analyses))
        .routes(routes!(read_analysis))
        .routes(routes!(read_input))
        .routes(routes!(retry_analysis))
}

/// The largest body, in bytes: all characters that an input may have, each of them escaped.
const MAX_BODY_BYTES: usize = 12 * request::MAX_CHARS;

/// Whoever asks. The key is that of a quota for text, or an API key with the scope `analyses`.
async fn payer(parts: &Parts, analyses: &Analyses) -> Result<Payer, ApiError> {
    Payer::of_request(parts, analyses, QuotaKind::Text, Scope::Analyses).await
}

/// The partner whose work a request of an administrator is about.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PartnerQuery {
    /// The partner that the analysis is for; administrator keys have to name one.
    partner: Option<String>,
}

/// Has a conversation analyzed: what it tells of the user, beside what is known already, and the feedback that is asked for. It is
/// done in the background: read the analysis until it is no longer `in-progress`.
///
/// All fields that are wrong are told at once, by their paths. A model is asked again when its answer does not fit the schemas, a few
/// times, and each answer is paid for.
#[utoipa::path(
    post, path = "/v2/dialog_analyses", tag = "dialog analysis",
    params(PartnerQuery),
    request_body = AnalysisBody,
    responses(
        (status = 200, body = AnalysisView, description = "It is `in-progress`"),
        (status = 400, description = "`{message}`: the body did not arrive"),
        (status = 401, description = "`{message}`: no key, or one that is not valid"),
        (status = 403, description = "`{message}`: the key is not for analyses"),
        (status = 404, description = "`{message}`: an administrator names a partner that is not found"),
        (status = 413, description = "`{message}`: the partner would store more than it may; what can be deleted is named"),
        (status = 415, description = "`{message}`: the body is no JSON"),
        (
            status = 422,
            description = "`{message, errors: {path: [text]}}`: fields are wrong; of an input that is too large, `input`",
        ),
        (
            status = 429,
            description = "`{message}`: the key asks too often, or all together do, its partner has too many analyses in \
                progress, or the quota is exhausted",
        ),
    ),
)]
pub(crate) async fn create_analysis(
    State(analyses): State<Analyses>,
    query: Result<ApiQuery<PartnerQuery>, ApiError>,
    request: Request,
) -> Result<Json<AnalysisView>, ApiError> {
    let (parts, body) = request.into_parts();
    let payer = payer(&parts, &analyses).await?;
    let ApiQuery(PartnerQuery { partner }) = query?;
    let tenant = payer.tenant(partner.as_deref())?;
    if payer.principal().own_tenant().is_none() {
        partners::read(&analyses, &tenant).await?;
    }
    if !is_json(&parts.headers) {
        return Err(unsupported_media_type());
    }
    accept::check_rate(&analyses, &payer)?;
    let request = Request::from_parts(parts, body);
    let body = body_up_to(request, MAX_BODY_BYTES).await;
    let body = body.map_err(|error| match error.status {
        StatusCode::PAYLOAD_TOO_LARGE => request::too_large().into(),
        _ => error,
    })?;
    let input = Input::parse(&body).map_err(AcceptError::Invalid)?;
    let taken = accept::accept(&analyses, &payer, &tenant, &input).await?;
    let state = AnalysisState::InProgress;
    Ok(Json(AnalysisView::new(&taken.id, state, taken.created_at)))
}

/// Which analyses to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AnalysisQuery {
    /// Only analyses in these states, separated by commas: `in-progress`, `completed`, `failed`.
    #[param(example = "in-progress,failed")]
    state: Option<String>,
    /// Only analyses created at this time or later (inclusive); RFC 3339.
    #[param(value_type = Option<String>)]
    created_from: Option<Timestamp>,
    /// Only analyses created before this time (exclusive); RFC 3339.
    #[param(value_type = Option<String>)]
    created_before: Option<Timestamp>,
    /// Only analyses of this partner; administrator keys reach those of all.
    partner: Option<String>,
}

/// Lists analyses without their outputs, newest first: those of the key's partner, for the key of a quota those that it asked for.
#[utoipa::path(
    get, path = "/v2/dialog_analyses", tag = "dialog analysis",
    params(AnalysisQuery, PageQuery),
    responses(
        (status = 200, body = AnalysisList),
        (status = 401, description = "`{message}`"),
        (status = 403, description = "`{message}`: the key is not for analyses, or the partner is another"),
        (status = 422, description = "`{message, errors: {parameter: [text]}}`"),
        (status = 429, description = "`{message}`: the key asks too often"),
    ),
)]
pub(crate) async fn list_analyses(
    State(analyses): State<Analyses>,
    listing: Result<Listing<AnalysisQuery>, ApiError>,
    parts: Parts,
) -> Result<(HeaderMap, Json<AnalysisList>), ApiError> {
    let payer = payer(&parts, &analyses).await?;
    let Listing { filter, page } = listing?;
    let tenant = payer.reach(filter.partner.as_deref())?;
    let states = separated("state", filter.state.as_deref(), "states of analyses")?;
    let filter = AnalysisFilter {
        tenant: tenant.as_ref(),
        quota: payer.quota().map(|quota| quota.id.as_str()),
        states: &states,
        created_from: filter.created_from.map(Timestamp::as_millisecond),
        created_before: filter.created_before.map(Timestamp::as_millisecond),
        kept_since: kept_since(&analyses),
    };
    let rows = store::list(analyses.store.db(), &filter, &page.slice()).await?;
    let listed = page.of(rows, |row| row.id.clone());
    let data = listed.entries.into_iter().map(store::view);
    let list = AnalysisList {
        data: data.collect::<Result<_, _>>()?,
        next_cursor: listed.next_cursor,
    };
    Ok((listed.links, Json(list)))
}

/// The id in a path.
fn id_of(path: Result<ApiPath<String>, ApiError>) -> Result<String, ApiError> {
    let ApiPath(id) = path?;
    id_in_path(&id, "/v2/dialog_analyses/").ok_or_else(analysis_not_found)
}

/// Reads an analysis. Once it ended, it is kept for 24 hours, unless that is configured otherwise.
#[utoipa::path(
    get, path = "/v2/dialog_analyses/{id}", tag = "dialog analysis",
    params(("id" = String, Path, description = "The UUID of the analysis")),
    responses(
        (status = 200, body = AnalysisView),
        (status = 401, description = "`{message}`"),
        (status = 403, description = "`{message}`: the key is not for analyses"),
        (status = 404, description = "`{message}`: also for the key of a quota that did not ask for it"),
        (status = 429, description = "`{message}`: the key asks too often"),
    ),
)]
pub(crate) async fn read_analysis(
    State(analyses): State<Analyses>,
    path: Result<ApiPath<String>, ApiError>,
    parts: Parts,
) -> Result<Json<AnalysisView>, ApiError> {
    let payer = payer(&parts, &analyses).await?;
    let tenant = payer.reach(None)?;
    let sought = Sought {
        id: &id_of(path)?,
        tenant: tenant.as_ref(),
        quota: payer.quota().map(|quota| quota.id.as_str()),
        kept_since: kept_since(&analyses),
    };
    let found = store::find(analyses.store.db(), sought).await?;
    found.map(Json).ok_or_else(analysis_not_found)
}

/// Reads what an analysis was asked. It is kept until the analysis is `completed`; that of one that is `failed`, as long as the analysis.
#[utoipa::path(
    get, path = "/v2/dialog_analyses/{id}/input", operation_id = "read_analysis_input", tag = "dialog analysis",
    params(("id" = String, Path, description = "The UUID of the analysis")),
    responses(
        (status = 200, body = AnalysisInput),
        (status = 401, description = "`{message}`"),
        (status = 403, description = "`{message}`: the key is not for analyses"),
        (
            status = 404,
            description = "`{message}`: the analysis was not found, also for the key of a quota that did not ask for it, or its \
                input is not kept",
        ),
        (status = 429, description = "`{message}`: the key asks too often"),
    ),
)]
pub(crate) async fn read_input(
    State(analyses): State<Analyses>,
    path: Result<ApiPath<String>, ApiError>,
    parts: Parts,
) -> Result<Json<AnalysisInput>, ApiError> {
    let payer = payer(&parts, &analyses).await?;
    let tenant = payer.reach(None)?;
    let sought = Sought {
        id: &id_of(path)?,
        tenant: tenant.as_ref(),
        quota: payer.quota().map(|quota| quota.id.as_str()),
        kept_since: kept_since(&analyses),
    };
    let found = store::input(analyses.store.db(), sought).await?;
    let input = found.ok_or_else(analysis_not_found)?;
    let input = input.ok_or_else(|| ApiError::not_found("Input"))?;
    Ok(Json(input.into()))
}

/// Begins an analysis again that is `failed`, with the input that it was created with. What was asked of a model before is not taken back; for the
/// new questions, the quota pays that paid before.
///
/// Idempotent: while the analysis is in progress after a retry, another one changes nothing.
#[utoipa::path(
    post, path = "/v2/dialog_analyses/{id}/retry", tag = "dialog analysis",
    params(("id" = String, Path, description = "The UUID of the analysis")),
    responses(
        (status = 200, body = AnalysisView, description = "It is `in-progress` again"),
        (status = 401, description = "`{message}`"),
        (status = 403, description = "`{message}`: the key is not for analyses"),
        (status = 404, description = "`{message}`: also for the key of a quota that did not ask for it"),
        (status = 409, description = "`{message}`: the analysis has not failed, or its input is not kept"),
        (
            status = 429,
            description = "`{message}`: the key asks too often, or all together do, its partner has too many analyses in \
                progress, or the quota is exhausted",
        ),
    ),
)]
pub(crate) async fn retry_analysis(
    State(analyses): State<Analyses>,
    path: Result<ApiPath<String>, ApiError>,
    parts: Parts,
) -> Result<Json<AnalysisView>, ApiError> {
    let payer = payer(&parts, &analyses).await?;
    let tenant = payer.reach(None)?;
    accept::check_rate(&analyses, &payer)?;
    let sought = Sought {
        id: &id_of(path)?,
        tenant: tenant.as_ref(),
        quota: payer.quota().map(|quota| quota.id.as_str()),
        kept_since: kept_since(&analyses),
    };
    retry::retry(&analyses, sought).await?;
    let found = store::find(analyses.store.db(), sought).await?;
    found.map(Json).ok_or_else(analysis_not_found)
}
