//! `/api/events`: the changes of a partner as they happen.

use axum::{
    extract::{FromRef, State},
    http::{HeaderMap, StatusCode, request::Parts},
    response::Response,
};
use colloquy_accounts::{Accounts, LastingKey, PartnerTenant, partners};
use colloquy_http::{ApiError, event_stream};
use colloquy_kernel::{router::DescribedRouter, routes};
use std::time::Duration;

use crate::{Events, kind::ChangedResource, watch::Watch};

/// Delay before a refused client retries.
const RETRY: Duration = Duration::from_secs(10);

pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Events: FromRef<S>,
{
    DescribedRouter::new().routes(routes!(watch))
}

/// Streams the changes of a partner's resources as server-sent events.
///
/// The name of an event is the kind of the resource; a key gets the kinds that its scopes allow: `base`, `folder`, `document`, `budget`, `question` and
/// `evaluation` (scope `knowledge`), `call`, `call_lines` and `call_quality` (`calls`; the latter two, with the id of a call, tell that something was said in
/// it and that its quality was measured), `delivery` (`webhooks`), `transcript` (`transcripts`), `analysis` (`analyses`), `completion` (`messaging`),
/// `character` (`characters`), `key` (`keys`) and `voice` (`voices`). An event says that the resource changed, not how: read the resource again. After `base`,
/// read its folders and documents again, too; after `document` and `folder`, the counts and the budget of their base may have changed. When a key was last
/// used is not told. Changes come within about half a second, from all nodes; several changes of one resource may come as one, and a change may come
/// twice.
///
/// `ready` and `reset`, with the data `{}`, are about the stream. `ready` follows once at the beginning, behind the changes that a client which resumes
/// has missed. `reset` takes its place if changes may have been missed, and may come at any time: read everything again then.
///
/// Ids come with `ready` and `reset` and in blocks of their own without data, never with a change: an id says that all changes up to it were sent. To
/// resume, send the last one as `Last-Event-ID`, within a day and 1,000 changes. Ids are comparable only within one database, and gaps between them mean
/// nothing. `retry` is 2 seconds, and a silent stream has a comment or an id every 15 seconds. `EventSource` of browsers sends no key; use `fetch`.
///
/// The stream ends when the server stops, and within 20 seconds after its key or session has ended, or a minute while the database is unavailable.
#[utoipa::path(
    get, path = "/api/events/{partner}", operation_id = "watch_events", tag = "events",
    params(
        ("partner" = String, Path),
        ("Last-Event-ID" = Option<String>, Header, description = "The last id that was received"),
    ),
    responses(
        (status = 200, description = "The events; the schema is that of the data of a change", content((ChangedResource = "text/event-stream"))),
        (status = 404, description = "Partner not found"),
        (status = 400, description = "`Last-Event-ID` is not an id of this stream"),
        (status = 429, description = "`too_many_streams`: the partner has too many open streams, or the node has no free one for it; `rate_limited`: the key has used up its rate. Retry after `Retry-After` seconds"),
        (status = 503, description = "The server stops or its database is unavailable; retry after `Retry-After` seconds"),
    ),
)]
pub(crate) async fn watch(
    State(events): State<Events>,
    caller: PartnerTenant,
    parts: Parts,
) -> Result<Response, ApiError> {
    if events.kernel.shutdown.is_cancelled() {
        return Err(ApiError::unavailable("The server is stopping", RETRY));
    }
    let last_id = last_id(&parts.headers)?;
    partners::read(&events, &caller.tenant).await?;
    let partner = caller.tenant.partner().as_str();
    let permit = events.hub.admit(partner).ok_or_else(full)?;
    let key = LastingKey::of(&parts, &events, &caller.principal).await?;
    let PartnerTenant { principal, tenant } = caller;
    let watch = Watch::begin(events, tenant, key, principal, permit, last_id).await?;
    Ok(event_stream(watch.into_body()))
}

fn last_id(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    let Some(value) = headers
        .get("last-event-id")
        .filter(|value| !value.is_empty())
    else {
        return Ok(None);
    };
    let id = value.to_str().ok().and_then(|text| text.parse().ok());
    match id.filter(|id| *id >= 0) {
        Some(id) => Ok(Some(id)),
        None => Err(ApiError::invalid(
            "Last-Event-ID",
            "not an id of this stream",
        )),
    }
}

fn full() -> ApiError {
    let error = ApiError::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_streams",
        "No event stream is free for the partner; close one or try again later",
    );
    ApiError {
        retry_after: Some(RETRY),
        ..error
    }
}
