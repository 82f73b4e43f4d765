//! `/v2/completions`: asking for a completion, and reading it.

use axum::{
    Json,
    extract::{FromRef, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, header::LINK},
    middleware,
    response::Response,
};
use colloquy_accounts::{Accounts, Caller, Scope};
use colloquy_http::{
    ApiError,
    extract::{ApiPath, body_up_to, id_in_path, is_json, unsupported_media_type},
};
use colloquy_kernel::{router::DescribedRouter, routes};

use super::{
    accept, kept_since,
    output::{CompletionState, CompletionView},
    request::{Checked, CompletionBody},
    store,
};
use crate::Messaging;

/// Legacy messaging, whose answers say that it is deprecated.
#[expect(deprecated, reason = "it is its clients who are to leave it")]
pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Messaging: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(create_completion))
        .routes(routes!(read_completion))
        .layer(middleware::map_response(mark_deprecated))
}

/// The largest body, as the interface document says.
const MAX_BODY_BYTES: usize = 5 * 1024 * 1024;

/// RFC 9745.
const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
/// The beginning of 2026: this server has not had the interface without its successor.
const DEPRECATED_SINCE: HeaderValue = HeaderValue::from_static("@1767225600");
/// What replaces the interface (RFC 5829).
const SUCCESSOR: HeaderValue =
    HeaderValue::from_static("</v3/responses>; rel=\"successor-version\"");

/// Says on an answer of this interface that it is deprecated, and what replaces it.
pub(crate) async fn mark_deprecated(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(DEPRECATION, DEPRECATED_SINCE);
    headers.append(LINK, SUCCESSOR);
    response
}

/// Asks for the answer to a conversation of text and voice messages. It is made in the background: read the completion
/// until it is no longer `in-progress`. New applications use `/v3/responses`.
///
/// Past messages stand first, then one or more new ones. The answer comes with its sound unless `generate_audio` is false;
/// an answer of nothing that can be heard comes as text. Unknown fields are ignored. The header `X-Colloquy-Warning` names a knowledge
/// base of the character that is not found.
#[utoipa::path(
    post, path = "/v2/completions", tag = "messaging",
    request_body = CompletionBody,
    responses(
        (status = 200, body = CompletionView, description = "It is `in-progress`"),
        (status = 400, description = "`field` names what is wrong, such as `input.messages[2].audio_file_id`"),
        (status = 401), (status = 403, description = "The key has no scope `messaging`"),
        (status = 413, description = "The body is larger than 5 MB, the documents of the character take more memory than there is, or the partner \
                                     would store more than it may"), (status = 415),
        (status = 429, description = "The key asks too often, or its partner has too many completions in progress"),
        (status = 503, description = "No memory for the documents of the character now; Retry-After says when to ask again"),
    ),
)]
#[deprecated = "clients are to use `/v3/responses`"]
pub(crate) async fn create_completion(
    State(messaging): State<Messaging>,
    Caller(principal): Caller,
    request: Request,
) -> Result<(HeaderMap, Json<CompletionView>), ApiError> {
    principal.require(Scope::Messaging)?;
    if !is_json(request.headers()) {
        return Err(unsupported_media_type());
    }
    let body = Checked::parse(&body_up_to(request, MAX_BODY_BYTES).await?)?;
    let (id, headers) = accept::accept(&messaging, &principal, body).await?;
    let view = CompletionView::new(&id, CompletionState::InProgress);
    Ok((headers, Json(view)))
}

/// Reads a completion. Once it ended, it is kept for 20 minutes, unless that is configured otherwise. If an answer that was to be spoken
/// has no sound, since the voice does not read its script, the header `X-Colloquy-Warning` says why.
#[utoipa::path(
    get, path = "/v2/completions/{id}", tag = "messaging",
    params(("id" = String, Path, description = "The UUID of the completion")),
    responses((status = 200, body = CompletionView), (status = 401), (status = 403), (status = 404), (status = 429)),
)]
#[deprecated = "clients are to use `/v3/responses`"]
pub(crate) async fn read_completion(
    State(messaging): State<Messaging>,
    Caller(principal): Caller,
    ApiPath(id): ApiPath<String>,
) -> Result<(HeaderMap, Json<CompletionView>), ApiError> {
    principal.require(Scope::Messaging)?;
    let unknown = || ApiError::not_found("Completion");
    let id = id_in_path(&id, "/v2/completions/").ok_or_else(unknown)?;
    let tenant = principal.own_tenant();
    let found = store::find(
        messaging.store.db(),
        tenant.as_ref(),
        &id,
        kept_since(&messaging),
    )
    .await?;
    let mut view = found.ok_or_else(unknown)?;
    let warning = view.take_warning();
    Ok((warning.into_iter().collect(), Json(view)))
}
