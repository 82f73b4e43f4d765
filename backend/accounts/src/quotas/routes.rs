//! The endpoints of quotas.

use axum::{
    Extension, Json,
    extract::{FromRef, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use colloquy_http::{ApiError, ApiJson, ApiPath, DiskLow, Listing, Page, PageQuery, StrictQuery};
use colloquy_kernel::{router::DescribedRouter, routes};
use colloquy_store::Keyset;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    QuotaCaller,
    usage::{self, OwnUsage, UsageQuery, UsageReport},
    view::{QuotaBody, QuotaView, QuotaWithKey},
};
use crate::{AccountError, Accounts, Caller, PartnerTenant, Scope, ledger::UsageScope, quotas};

/// What an application reads of its own quota.
pub(crate) fn text_routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
{
    DescribedRouter::new().routes(routes!(own_usage))
}

/// The quotas of partners.
pub(crate) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(read, update, revoke))
        .routes(routes!(rotate))
        .routes(routes!(quota_usage))
        .routes(routes!(partner_usage))
        .routes(routes!(all_usage))
}

/// The order of a list of quotas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QuotaSort {
    /// The newest first.
    #[default]
    Created,
    /// Those first that are closest to one of their limits, by what is used and reserved of it; revoked ones and those without limits come last.
    Limit,
}

/// The order of a list of quotas that a request asks for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct QuotaQuery {
    /// The order; `created` by default.
    #[param(inline)]
    sort: Option<QuotaSort>,
}

/// The begin of cursors of quotas that are sorted by their limits.
const BY_LIMIT: &str = "limit:";

/// Returns the part of such a list that follows a cursor, `limit:<id>:<key>`, or the first one without a cursor.
fn keyset(page: &Page) -> Result<Keyset, ApiError> {
    let parse = |cursor: &str| {
        let (id, key) = cursor.strip_prefix(BY_LIMIT)?.split_once(':')?;
        let is_id = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric());
        let key = key.parse::<i64>().ok()?;
        is_id.then(|| (key.into(), id.to_owned()))
    };
    let after = page.after().map(|cursor| {
        parse(cursor).ok_or_else(|| ApiError::invalid("cursor", "is not one of this list"))
    });
    Ok(Keyset {
        after: after.transpose()?,
        limit: page.rows(),
    })
}

/// The partner's quotas, newest first unless `sort` says otherwise; revoked ones too.
#[utoipa::path(
    get, path = "/api/quotas/{partner}", operation_id = "list_quotas", tag = "quotas", params(("partner" = String, Path), QuotaQuery, PageQuery),
    responses((status = 200, body = [QuotaView]), (status = 400, description = "`sort`, `limit` or `cursor` is invalid"))
)]
pub(crate) async fn list(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    Listing { filter, page }: Listing<QuotaQuery>,
) -> Result<(HeaderMap, Json<Vec<QuotaView>>), ApiError> {
    caller.principal.require(Scope::Keys)?;
    if filter.sort == Some(QuotaSort::Limit) {
        let quotas = quotas::list_by_limit(&accounts, &caller.tenant, &keyset(&page)?).await?;
        let listed = page.of(quotas, |(state, key)| {
            format!("{BY_LIMIT}{}:{key}", state.quota.id)
        });
        let quotas = listed.entries.into_iter().map(|(state, _)| state.into());
        return Ok((listed.links, Json(quotas.collect())));
    }
    let quotas = quotas::list(&accounts, &caller.tenant, &page.slice()).await?;
    let listed = page.of(quotas, |state| state.quota.id.clone());
    let quotas = listed.entries.into_iter().map(Into::into).collect();
    Ok((listed.links, Json(quotas)))
}

/// Makes a quota and its key, which is shown this once. Quotas count in the partner's storage, 2 KiB each beside their lists.
#[utoipa::path(
    post, path = "/api/quotas/{partner}", operation_id = "create_quota", tag = "quotas", params(("partner" = String, Path)),
    request_body = QuotaBody,
    responses(
        (status = 201, body = QuotaWithKey), (status = 404),
        (status = 413, description = "The body is too large, or the partner would store more than it may (`storage_limit_reached`)"),
    )
)]
pub(crate) async fn create(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    ApiJson(body): ApiJson<QuotaBody>,
) -> Result<(StatusCode, Json<QuotaWithKey>), ApiError> {
    caller.principal.require(Scope::Keys)?;
    let (state, api_key) =
        quotas::create(&accounts, &caller.tenant, body.change(&accounts)?).await?;
    let quota = state.into();
    Ok((StatusCode::CREATED, Json(QuotaWithKey { quota, api_key })))
}

/// A quota, and how much of it is left.
#[utoipa::path(
    get, path = "/api/quotas/{partner}/{quota_id}", operation_id = "read_quota", tag = "quotas",
    params(("partner" = String, Path), ("quota_id" = String, Path)),
    responses((status = 200, body = QuotaView), (status = 404))
)]
pub(crate) async fn read(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    ApiPath((_partner, id)): ApiPath<(String, String)>,
) -> Result<Json<QuotaView>, ApiError> {
    caller.principal.require(Scope::Keys)?;
    let state = quotas::read(&accounts, &caller.tenant, &id).await?;
    Ok(Json(state.into()))
}

/// Changes what the body names. Limits count at once; the rest within 5 s on other nodes. Lists may not become longer while the server's disk is
/// nearly full.
#[utoipa::path(
    put, path = "/api/quotas/{partner}/{quota_id}", operation_id = "update_quota", tag = "quotas",
    params(("partner" = String, Path), ("quota_id" = String, Path)),
    request_body = QuotaBody,
    responses(
        (status = 200, body = QuotaView), (status = 404), (status = 409, description = "It is revoked"),
        (status = 413, description = "The body is too large, or the quota has grown and the partner would store more than it may \
                                      (`storage_limit_reached`)"),
        (status = 507, description = "The server's disk is nearly full, and the lists of the quota would become longer"),
    )
)]
pub(crate) async fn update(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    ApiPath((_partner, id)): ApiPath<(String, String)>,
    disk_low: Option<Extension<DiskLow>>,
    ApiJson(body): ApiJson<QuotaBody>,
) -> Result<Json<QuotaView>, ApiError> {
    caller.principal.require(Scope::Keys)?;
    let disk_low = disk_low.map(|Extension(low)| low);
    let change = body.change(&accounts)?;
    let state = quotas::update(&accounts, &caller.tenant, &id, change, disk_low).await?;
    Ok(Json(state.into()))
}

/// Revokes a quota for good. Its usage stays.
#[utoipa::path(
    delete, path = "/api/quotas/{partner}/{quota_id}", tag = "quotas",
    params(("partner" = String, Path), ("quota_id" = String, Path)),
    responses((status = 204), (status = 404))
)]
pub(crate) async fn revoke(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    ApiPath((_partner, id)): ApiPath<(String, String)>,
) -> Result<StatusCode, ApiError> {
    caller.principal.require(Scope::Keys)?;
    quotas::revoke(&accounts, &caller.tenant, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a quota another key, which is shown this once. The old one ends.
#[utoipa::path(
    post, path = "/api/quotas/{partner}/{quota_id}/rotate", tag = "quotas",
    params(("partner" = String, Path), ("quota_id" = String, Path)),
    responses((status = 200, body = QuotaWithKey), (status = 404), (status = 409, description = "It is revoked"))
)]
pub(crate) async fn rotate(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    ApiPath((_partner, id)): ApiPath<(String, String)>,
) -> Result<Json<QuotaWithKey>, ApiError> {
    caller.principal.require(Scope::Keys)?;
    let (state, api_key) = quotas::rotate(&accounts, &caller.tenant, &id).await?;
    let quota = state.into();
    Ok(Json(QuotaWithKey { quota, api_key }))
}

/// Usage of a quota by the day of the request, as JSON, or as CSV with `Accept: text/csv`.
///
/// JSON has at most 10,000 rows. CSV has all of them, without a total, and is streamed: it ends abnormally if later rows cannot be read. A `'` stands before
/// names that spreadsheets would run as formulas.
#[utoipa::path(
    get, path = "/api/quotas/{partner}/{quota_id}/usage", operation_id = "usage", tag = "quotas",
    params(("partner" = String, Path), ("quota_id" = String, Path), UsageQuery),
    responses((status = 200, content((UsageReport = "application/json"), (String = "text/csv"))), (status = 404))
)]
pub(crate) async fn quota_usage(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    ApiPath((_partner, id)): ApiPath<(String, String)>,
    StrictQuery(query): StrictQuery<UsageQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.principal.require(Scope::Keys)?;
    let state = quotas::read(&accounts, &caller.tenant, &id).await?;
    let scope = UsageScope::Quota(state.quota.id);
    usage::answer(&accounts, scope, query, &headers, &id).await
}

/// Usage of a partner, summed over all of its quotas, revoked ones too, by the day of the request, as JSON, or as CSV with `Accept: text/csv`. Replies of
/// drafts count, under the id `drafts:<partner>` where rows are made for keys. Budgets of knowledge bases do not, except with
/// `include`; other requests with API keys do not.
///
/// JSON has at most 10,000 rows. CSV has all of them, without a total, and is streamed: it ends abnormally if later rows cannot be read. A `'` stands before
/// names that spreadsheets would run as formulas.
#[utoipa::path(
    get, path = "/api/usage/{partner}", tag = "quotas", params(("partner" = String, Path), UsageQuery),
    responses((status = 200, content((UsageReport = "application/json"), (String = "text/csv"))), (status = 404))
)]
pub(crate) async fn partner_usage(
    State(accounts): State<Accounts>,
    caller: PartnerTenant,
    StrictQuery(query): StrictQuery<UsageQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.principal.require(Scope::Keys)?;
    if !crate::partner_exists(accounts.store.db(), &caller.tenant).await? {
        return Err(AccountError::NotFound("Partner").into());
    }
    let partner = caller.tenant.partner().as_str().to_owned();
    let scope = UsageScope::Partner(caller.tenant);
    usage::answer(&accounts, scope, query, &headers, &partner).await
}

/// Usage of all partners, summed over all of their quotas, revoked ones too, by the day of the request, as JSON, or as CSV with `Accept: text/csv`. Replies of
/// drafts count. Budgets of knowledge bases do not, except with
/// `include`; other requests with API keys do not. For administrators.
///
/// JSON has at most 10,000 rows. CSV has all of them, without a total, and is streamed: it ends abnormally if later rows cannot be read. A `'` stands before
/// names that spreadsheets would run as formulas.
#[utoipa::path(
    get, path = "/api/usage", tag = "quotas", params(UsageQuery),
    responses(
        (status = 200, content((UsageReport = "application/json"), (String = "text/csv"))),
        (status = 403, description = "The key is not an administrator's"),
    )
)]
pub(crate) async fn all_usage(
    State(accounts): State<Accounts>,
    Caller(principal): Caller,
    StrictQuery(query): StrictQuery<UsageQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    principal.require_admin()?;
    usage::answer(&accounts, UsageScope::All, query, &headers, "all").await
}

/// What the key's own quota allows, and what was used of it.
#[utoipa::path(
    get, path = "/v3/usage", tag = "text", params(UsageQuery),
    responses((status = 200, body = OwnUsage), (status = 401))
)]
pub(crate) async fn own_usage(
    State(accounts): State<Accounts>,
    QuotaCaller(quota): QuotaCaller,
    StrictQuery(query): StrictQuery<UsageQuery>,
) -> Result<Json<OwnUsage>, ApiError> {
    let scope = UsageScope::Quota(quota.id.clone());
    let usage = usage::report(&accounts, &scope, query).await?;
    let state = quotas::read(&accounts, &quota.tenant, &quota.id).await?;
    Ok(Json(OwnUsage {
        quota: state.into(),
        usage,
    }))
}
