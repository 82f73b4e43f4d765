//! `/v2/calls`: creating a call, its status, what is said in it, its end, its deletion.

use axum::{
    Extension, Json,
    extract::{FromRef, FromRequestParts, State},
    http::{HeaderMap, StatusCode, request::Parts},
};
use colloquy_accounts::{
    Accounts, PartnerId, Scope,
    quotas::{Payer, QuotaKind},
};
use colloquy_http::{
    ApiError, Arrival, Listing, PageQuery,
    extract::{ApiPath, ClientNetwork, key_text},
};
use colloquy_kernel::{node, router::DescribedRouter, routes};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    CallState, create, ending,
    error::call_not_found,
    lines, purge, quality,
    request::CreateCall,
    store::{self, CallFilter, CallRow},
    view::{
        self, CallEnvelope, CallLinesEnvelope, CallList, CallQualityEnvelope, CallVisitorEnvelope,
        TranscriptEnvelope,
    },
};
use crate::Calls;

/// The call resource.
pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Calls: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(create_call, list_calls))
        .routes(routes!(read_call, delete_call))
        .routes(routes!(read_transcript))
        .routes(routes!(read_lines))
        .routes(routes!(read_quality))
        .routes(routes!(read_visitor))
        .routes(routes!(end_call))
}

/// The fields of a new call, for the API document; the three encodings are read in `request.rs`.
#[derive(utoipa::ToSchema)]
#[schema(as = CreateCall)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
struct CreateCallSchema {
    /// `repo:<partner>/<character>`, or a custom object `{description, personality}`; in forms its JSON text.
    #[schema(value_type = Object)]
    character: serde_json::Value,
    /// The longest the call may last, in whole seconds, 1 to 14400; text or number.
    #[schema(value_type = String, example = "600")]
    call_time_limit_seconds: String,
    /// An `https` URL that is told when the call completed. A call that ends in `error` tells nobody.
    on_completion_webhook: Option<String>,
    /// Template parameters: strings, numbers, booleans, null; in forms its JSON text.
    #[schema(value_type = Option<Object>)]
    character_params: Option<serde_json::Value>,
    /// Whose call it is; read from admin keys only, which need it for custom characters.
    partner: Option<String>,
}

/// Whoever places calls and reads them.
pub(crate) struct CallPayer(Payer);

impl<S: Send + Sync> FromRequestParts<S> for CallPayer
where
    Accounts: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let key = key_text(parts);
        let accounts = Accounts::from_ref(state);
        let payer = Payer::with_key(
            parts,
            &accounts,
            key.as_deref(),
            QuotaKind::Call,
            Scope::Calls,
        );
        payer.await.map(Self)
    }
}

/// Creates a call. The `signedUrl` of the answer can be handed to the SDK at once. Unknown fields are ignored. The key is an
/// API key with the scope `calls`, or that of a quota for calls: the time limit is reserved, and the seconds that media
/// flowed are settled. The header `X-Colloquy-Warning` names a knowledge base of the character that is not found.
#[utoipa::path(
    post, path = "/v2/calls", tag = "calls",
    request_body(content(
        (CreateCallSchema = "application/json"),
        (CreateCallSchema = "application/x-www-form-urlencoded"),
        (CreateCallSchema = "multipart/form-data"),
    )),
    responses(
        (status = 200, body = CallEnvelope),
        (status = 400, description = "INVALID_PARAMETERS or INVALID_CHARACTER"),
        (status = 401, description = "INVALID_API_KEY"),
        (status = 403, description = "The key, or the quota, does not allow it"),
        (status = 413, description = "The body is too large, the documents of the character take more memory than there is, or the \
            character and its parameters, which are stored until the call ends, have no room in the partner's storage \
            (STORAGE_LIMIT_REACHED)"),
        (status = 429, description = "RATE_LIMITED, also by calls at a time and, with a publishable key, beyond the part of its rate that one \
            address has, a quarter by default, or QUOTA_EXHAUSTED; Retry-After says when to ask again. The calls of a publishable key \
            that have not begun have 32 MiB of characters and parameters at most, those that were created from one network (an IPv4 address, or a /64 of IPv6) 8 MiB; \
            where that is less, those of all publishable keys of a partner have half of its storage, and from one network an eighth, but room for one \
            call with 64 KiB of parameters in any case. The bounds of one network do not apply where the server cannot tell visitors apart"),
        (status = 503, description = "UNAVAILABLE: no room for the call, or no memory for the documents of its character, now; Retry-After says when to ask again"),
    ),
)]
pub(crate) async fn create_call(
    State(calls): State<Calls>,
    CallPayer(payer): CallPayer,
    Extension(arrival): Extension<Arrival>,
    ClientNetwork(network): ClientNetwork,
    request: CreateCall,
) -> Result<(HeaderMap, Json<CallEnvelope>), ApiError> {
    let (row, headers) = create::create(&calls, &payer, request, &arrival.id, network).await?;
    Ok((headers, Json(view::call(&calls, &row)?)))
}

/// Which calls to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CallQuery {
    /// Only calls in this state.
    state: Option<CallState>,
    /// Only calls with this saved character, `repo:<partner>/<character>`.
    character: Option<String>,
    /// Only calls created at this time or later (inclusive); RFC 3339.
    #[param(value_type = Option<String>)]
    created_from: Option<Timestamp>,
    /// Only calls created before this time (exclusive); RFC 3339.
    #[param(value_type = Option<String>)]
    created_before: Option<Timestamp>,
    /// Only calls of this partner; administrator keys reach those of all.
    partner: Option<String>,
}

/// Lists calls, newest first: those of the key's partner, for the key of a quota those that it placed. Transcripts are read
/// one by one.
#[utoipa::path(
    get, path = "/v2/calls", tag = "calls",
    params(CallQuery, PageQuery),
    responses(
        (status = 200, body = CallList),
        (status = 400, description = "INVALID_PARAMETERS"),
        (status = 403, description = "A publishable key, or another partner's calls"),
    ),
)]
pub(crate) async fn list_calls(
    State(calls): State<Calls>,
    CallPayer(payer): CallPayer,
    Listing { filter, page }: Listing<CallQuery>,
) -> Result<(HeaderMap, Json<CallList>), ApiError> {
    let principal = payer.principal();
    if principal.is_publishable() {
        return Err(ApiError::forbidden("A publishable key lists no calls"));
    }
    let partner = match filter.partner {
        Some(name) => Some(principal.tenant(&PartnerId::parse(&name)?)?),
        None => principal.own_tenant(),
    };
    let reference = |text: String| match text.strip_prefix("repo:") {
        Some(reference) => reference.to_owned(),
        None => text,
    };
    let filter = CallFilter {
        partner: partner.map(|tenant| tenant.partner().as_str().to_owned()),
        quota: payer.quota().map(|quota| quota.id.clone()),
        state: filter.state,
        character: filter.character.map(reference),
        created_from: filter.created_from.map(Timestamp::as_millisecond),
        created_before: filter.created_before.map(Timestamp::as_millisecond),
    };
    let lost_before = node::expected_lost_before(&calls.kernel);
    let rows = store::list(calls.store.db(), lost_before, filter, &page.slice()).await?;
    let listed = page.of(rows, |row| row.id.clone());
    let list = view::list(&calls, &listed.entries, listed.next_cursor)?;
    Ok((listed.links, Json(list)))
}

/// Reads the status of a call. A publishable key reads none: it is everybody's, and calls are their visitors'. A call that is
/// over is kept for `calls.kept_days` (365 unless set), one in which media never flowed for 7 days at most, unless it is deleted. Its
/// transcript and metadata count in the partner's storage meanwhile. The calls of a publishable key that ended without media have 64 MiB of
/// metadata at most, counted with 1 KiB each at least, and all ended calls of publishable keys half of the partner's storage: beyond that, the
/// oldest of them are deleted.
#[utoipa::path(
    get, path = "/v2/calls/{call_id}", tag = "calls",
    params(("call_id" = String, Path, description = "The UUID of the call")),
    responses(
        (status = 200, body = CallEnvelope),
        (status = 403, description = "ACCESS_DENIED: the key is publishable, or lacks the scope"),
        (status = 404, description = "CALL_NOT_FOUND"),
    ),
)]
pub(crate) async fn read_call(
    State(calls): State<Calls>,
    CallPayer(payer): CallPayer,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<CallEnvelope>, ApiError> {
    let row = find(&calls, &payer, &id).await?;
    Ok(Json(view::call(&calls, &row)?))
}

/// Reads the transcript of a call that completed, which is kept as long as the call. A publishable key reads none.
#[utoipa::path(
    get, path = "/v2/calls/{call_id}/transcript", operation_id = "read_call_transcript", tag = "calls",
    params(("call_id" = String, Path, description = "The UUID of the call")),
    responses(
        (status = 200, body = TranscriptEnvelope),
        (status = 403, description = "ACCESS_DENIED: the key is publishable, or lacks the scope"),
        (status = 404, description = "CALL_NOT_FOUND"),
    ),
)]
pub(crate) async fn read_transcript(
    State(calls): State<Calls>,
    CallPayer(payer): CallPayer,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<TranscriptEnvelope>, ApiError> {
    let row = find(&calls, &payer, &id).await?;
    Ok(Json(view::transcript(&row)?))
}

/// Reads what was said in a call, also while it runs. `call_lines` events tell of new lines. A line appears once it does not change any more; the
/// transcript of the ended call may have lines that were missing until then, since lines are not waited for where the database is slow or away.
/// A publishable key reads none.
#[utoipa::path(
    get, path = "/v2/calls/{call_id}/lines", operation_id = "read_call_lines", tag = "calls",
    params(("call_id" = String, Path, description = "The UUID of the call")),
    responses(
        (status = 200, body = CallLinesEnvelope),
        (status = 403, description = "ACCESS_DENIED: the key is publishable, or lacks the scope"),
        (status = 404, description = "CALL_NOT_FOUND"),
    ),
)]
pub(crate) async fn read_lines(
    State(calls): State<Calls>,
    CallPayer(payer): CallPayer,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<CallLinesEnvelope>, ApiError> {
    let row = find(&calls, &payer, &id).await?;
    let said = lines::of(calls.store.db(), &row.id).await?;
    // The end of a call removes its lines, so whether it is over is read after them.
    let row = find(&calls, &payer, &row.id).await?;
    Ok(Json(view::lines(&row, said)?))
}

/// Reads the quality of the connection of a call, also while it runs: round trip, jitter and losses over its time. `call_quality` events tell of new
/// points. Points are not waited for where the database is slow or away. They are kept as long as the call, and do not count in the partner's storage. A
/// publishable key reads none.
#[utoipa::path(
    get, path = "/v2/calls/{call_id}/quality", operation_id = "read_call_quality", tag = "calls",
    params(("call_id" = String, Path, description = "The UUID of the call")),
    responses(
        (status = 200, body = CallQualityEnvelope),
        (status = 403, description = "ACCESS_DENIED: the key is publishable, or lacks the scope"),
        (status = 404, description = "CALL_NOT_FOUND"),
    ),
)]
pub(crate) async fn read_quality(
    State(calls): State<Calls>,
    CallPayer(payer): CallPayer,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<CallQualityEnvelope>, ApiError> {
    let row = find(&calls, &payer, &id).await?;
    let points = quality::of(calls.store.db(), &row.id).await?;
    Ok(Json(view::quality(&row, points)?))
}

/// Reads what the visitor of a call that completed told of themselves, as the page was told it (`user_info`). A call whose page does not listen to
/// that finds nothing out. The fields are kept as long as the call, and count in the partner's storage. A publishable key reads none.
#[utoipa::path(
    get, path = "/v2/calls/{call_id}/visitor", operation_id = "read_call_visitor", tag = "calls",
    params(("call_id" = String, Path, description = "The UUID of the call")),
    responses(
        (status = 200, body = CallVisitorEnvelope),
        (status = 403, description = "ACCESS_DENIED: the key is publishable, or lacks the scope"),
        (status = 404, description = "CALL_NOT_FOUND"),
    ),
)]
pub(crate) async fn read_visitor(
    State(calls): State<Calls>,
    CallPayer(payer): CallPayer,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<CallVisitorEnvelope>, ApiError> {
    let row = find(&calls, &payer, &id).await?;
    Ok(Json(view::visitor(&row)?))
}

/// Ends a call. One that nobody has joined ends with the error `CANCELLED`; one that runs ends as if the visitor had hung up, within 5 seconds,
/// which the status tells. A call that is over stays as it is. The key is that of the partner, or of the quota that placed the call.
#[utoipa::path(
    post, path = "/v2/calls/{call_id}/end", tag = "calls",
    params(("call_id" = String, Path, description = "The UUID of the call")),
    responses(
        (status = 200, body = CallEnvelope, description = "The status now"),
        (status = 403, description = "ACCESS_DENIED: the key is publishable, or lacks the scope"),
        (status = 404, description = "CALL_NOT_FOUND"),
    ),
)]
pub(crate) async fn end_call(
    State(calls): State<Calls>,
    CallPayer(payer): CallPayer,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<CallEnvelope>, ApiError> {
    let row = find(&calls, &payer, &id).await?;
    ending::request(&calls, &row.id).await?;
    let row = find(&calls, &payer, &id).await?;
    Ok(Json(view::call(&calls, &row)?))
}

/// Deletes a call that is over, with its transcript and metadata, and releases their bytes in the partner's storage. The key is an API key
/// with the scope `calls`, not that of a quota. Webhook deliveries of the call go on, and have its status and count in the storage until they
/// are deleted for their age; usage stays as it is.
#[utoipa::path(
    delete, path = "/v2/calls/{call_id}", tag = "calls",
    params(("call_id" = String, Path, description = "The UUID of the call")),
    responses(
        (status = 204, description = "The call is deleted"),
        (status = 403, description = "ACCESS_DENIED: the key is publishable or that of a quota, or lacks the scope"),
        (status = 404, description = "CALL_NOT_FOUND"),
        (status = 409, description = "CALL_NOT_ENDED: the call is starting or ongoing, or NODE_LOST for less than 10 minutes"),
    ),
)]
pub(crate) async fn delete_call(
    State(calls): State<Calls>,
    CallPayer(payer): CallPayer,
    ApiPath(id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    let principal = payer.principal();
    if principal.is_publishable() {
        return Err(ApiError::forbidden("A publishable key deletes no calls"));
    }
    if payer.quota().is_some() {
        let message = "The key of a quota deletes no calls; use a secret key of the partner";
        return Err(ApiError::forbidden(message));
    }
    let tenant = principal.own_tenant();
    purge::delete(&calls.kernel, tenant.as_ref(), bare(&id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The UUID of a path-style id, which is understood, too, when it is percent-encoded into the path.
fn bare(id: &str) -> &str {
    id.strip_prefix("/v2/calls/").unwrap_or(id)
}

/// A call that the key reaches; another partner's call, or for the key of a quota one that it did not place, is as unknown
/// as none.
async fn find(calls: &Calls, payer: &Payer, id: &str) -> Result<CallRow, ApiError> {
    if payer.principal().is_publishable() {
        return Err(ApiError::forbidden("A publishable key reads no calls"));
    }
    let id = bare(id);
    let db = calls.store.db();
    let lost_before = node::expected_lost_before(&calls.kernel);
    let quota = payer.quota().map(|quota| quota.id.as_str());
    let row = match payer.principal().own_tenant() {
        Some(tenant) => store::find(db, lost_before, &tenant, quota, id).await?,
        None => store::load(db, lost_before, id).await?,
    };
    row.ok_or_else(call_not_found)
}
