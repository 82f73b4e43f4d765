//! `/v2/dialog_analyses`: having a conversation analyzed, and reading what it tells.

use axum::{
    Json,
    extract::{FromRef, Request, State},
    http::{StatusCode, request::Parts},
};
use colloquy_accounts::{
    Accounts, Scope, Tenant,
    quotas::{Payer, QuotaKind},
};
use colloquy_http::{
    ApiError,
    extract::{ApiPath, body_up_to, id_in_path, is_json, unsupported_media_type},
};
use colloquy_kernel::{router::DescribedRouter, routes};

use super::{
    accept,
    error::AcceptError,
    kept_since,
    output::{AnalysisState, AnalysisView},
    request::{self, AnalysisBody, Input},
    store,
};
use crate::Analyses;

pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Analyses: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(create_analysis))
        .routes(routes!(read_analysis))
}

/// The largest body, in bytes: all characters that an input may have, each of them escaped.
const MAX_BODY_BYTES: usize = 12 * request::MAX_CHARS;

/// Whoever asks. The key is that of a quota for text, or an API key with the scope `analyses`.
async fn payer(parts: &Parts, analyses: &Analyses) -> Result<(Payer, Tenant), ApiError> {
    let payer = Payer::of_request(parts, analyses, QuotaKind::Text, Scope::Analyses).await?;
    let tenant = payer.tenant(None)?;
    Ok((payer, tenant))
}

/// Has a conversation analyzed: what it tells of the user, beside what is known already, and the feedback that is asked for. It is
/// done in the background: read the analysis until it is no longer `in-progress`.
///
/// All fields that are wrong are told at once, by their paths. A model is asked again when its answer does not fit the schemas, a few
/// times, and each answer is paid for.
#[utoipa::path(
    post, path = "/v2/dialog_analyses", tag = "dialog analysis",
    request_body = AnalysisBody,
    responses(
        (status = 200, body = AnalysisView, description = "It is `in-progress`"),
        (status = 400, description = "`{message}`: the body did not arrive"),
        (status = 401, description = "`{message}`: no key, or one that is not valid"),
        (status = 403, description = "`{message}`: the key is not for analyses"),
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
    request: Request,
) -> Result<Json<AnalysisView>, ApiError> {
    let (parts, body) = request.into_parts();
    let (payer, tenant) = payer(&parts, &analyses).await?;
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
    let (payer, tenant) = payer(&parts, &analyses).await?;
    let quota = payer.quota().map(|quota| quota.id.as_str());
    let unknown = || ApiError::not_found("Analysis");
    let ApiPath(id) = path?;
    let id = id_in_path(&id, "/v2/dialog_analyses/").ok_or_else(unknown)?;
    let found = store::find(
        analyses.store.db(),
        &tenant,
        quota,
        &id,
        kept_since(&analyses),
    );
    found.await?.map(Json).ok_or_else(unknown)
}
