//! `/api/webhooks/{partner}/deliveries`: what was sent, what came back, and sending it again.

use axum::{Json, extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{
    deliver::Deliver,
    store::{self, AttemptRow, Delivery},
};
use crate::{
    accounts::{Scope, Tenant},
    app::App,
    clock::rfc3339,
    http::{
        ApiError,
        extract::{ApiPath, ApiQuery, PartnerTenant},
    },
    jobs,
};

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It will be tried, or tried again.
    Pending,
    /// The receiver answered 200.
    Succeeded,
    /// All attempts failed.
    Failed,
}

impl DeliveryState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }
}

/// Which deliveries to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only deliveries in this state.
    state: Option<DeliveryState>,
    /// How many, 1 to 100; 20 without it.
    limit: Option<u64>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// A page of deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveryPage {
    /// Newest first.
    deliveries: Vec<DeliveryView>,
    /// Leads to the next page; null on the last.
    next_cursor: Option<String>,
}

/// A delivery.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveryView {
    /// The delivery's id; `webhook-id` of every attempt.
    id: String,
    /// The event, `call.completed`.
    event: String,
    /// The call, path-style.
    call_id: String,
    /// The receiver.
    url: String,
    /// `pending`, `succeeded` or `failed`.
    state: String,
    /// The attempts so far, over all rounds.
    attempt_count: i64,
    /// When it is tried next; null when it is not.
    next_attempt_at: Option<String>,
    /// When the event happened.
    created_at: String,
    /// When the last attempt ended.
    updated_at: String,
}

/// A delivery with everything that was tried.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveryDetails {
    /// The delivery.
    #[serde(flatten)]
    delivery: DeliveryView,
    /// What is sent.
    payload: Value,
    /// The attempts, oldest first.
    attempts: Vec<AttemptView>,
}

/// An attempt.
#[derive(Debug, Serialize, ToSchema)]
pub struct AttemptView {
    /// The number of the attempt, from 1.
    number: i64,
    /// When it began.
    started_at: String,
    /// How long it took, in milliseconds.
    duration_ms: i64,
    /// The receiver's status; null when there was no answer.
    status: Option<i64>,
    /// Why there was no answer.
    error: Option<String>,
}

impl From<Delivery> for DeliveryView {
    fn from(row: Delivery) -> Self {
        Self {
            id: row.id,
            event: row.event,
            call_id: format!("/v2/calls/{}", row.call_id),
            url: row.url,
            state: row.state,
            attempt_count: row.attempts,
            next_attempt_at: row.next_attempt_at.map(rfc3339),
            created_at: rfc3339(row.created_at),
            updated_at: rfc3339(row.updated_at),
        }
    }
}

impl From<AttemptRow> for AttemptView {
    fn from(row: AttemptRow) -> Self {
        Self {
            number: row.number,
            started_at: rfc3339(row.started_at),
            duration_ms: row.duration_ms,
            status: row.status,
            error: row.error,
        }
    }
}

/// Lists a partner's webhook deliveries, newest first.
#[utoipa::path(
    get, path = "/api/webhooks/{partner}/deliveries", tag = "webhooks",
    params(("partner" = String, Path, description = "The partner"), ListQuery),
    responses((status = 200, body = DeliveryPage)),
)]
pub(crate) async fn list_deliveries(
    State(app): State<App>,
    caller: PartnerTenant,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<DeliveryPage>, ApiError> {
    let tenant = permitted(caller)?;
    let limit = query.limit.unwrap_or(20);
    if !(1..=100).contains(&limit) {
        return Err(ApiError::invalid("limit", "limit is 1 to 100"));
    }
    let state = query.state.map(DeliveryState::as_str);
    let cursor = query.cursor.as_deref();
    // One more than asked for tells whether there is another page.
    let mut rows = store::list(app.store.db(), &tenant, state, cursor, limit + 1).await?;
    let more = rows.len() as u64 > limit;
    rows.truncate(limit as usize);
    let next_cursor = rows.last().filter(|_| more).map(|row| row.id.clone());
    Ok(Json(DeliveryPage {
        deliveries: rows.into_iter().map(DeliveryView::from).collect(),
        next_cursor,
    }))
}

/// Reads a delivery with its payload and its attempts.
#[utoipa::path(
    get, path = "/api/webhooks/{partner}/deliveries/{id}", tag = "webhooks",
    params(
        ("partner" = String, Path, description = "The partner"),
        ("id" = String, Path, description = "The delivery"),
    ),
    responses((status = 200, body = DeliveryDetails), (status = 404, description = "No such delivery")),
)]
pub(crate) async fn read_delivery(
    State(app): State<App>,
    caller: PartnerTenant,
    ApiPath((_partner, id)): ApiPath<(String, String)>,
) -> Result<Json<DeliveryDetails>, ApiError> {
    let tenant = permitted(caller)?;
    let delivery = store::find(app.store.db(), &tenant, &id)
        .await?
        .ok_or_else(|| ApiError::not_found("Delivery"))?;
    let attempts = store::attempts(app.store.db(), &delivery).await?;
    let payload = serde_json::from_str(&delivery.payload).map_err(ApiError::internal)?;
    Ok(Json(DeliveryDetails {
        payload,
        attempts: attempts.into_iter().map(AttemptView::from).collect(),
        delivery: delivery.into(),
    }))
}

/// Sends a delivery again: a new round of attempts begins at once, whatever became of the last.
#[utoipa::path(
    post, path = "/api/webhooks/{partner}/deliveries/{id}/resend", tag = "webhooks",
    params(
        ("partner" = String, Path, description = "The partner"),
        ("id" = String, Path, description = "The delivery"),
    ),
    responses((status = 202, body = DeliveryView), (status = 404, description = "No such delivery")),
)]
pub(crate) async fn resend_delivery(
    State(app): State<App>,
    caller: PartnerTenant,
    ApiPath((_partner, id)): ApiPath<(String, String)>,
) -> Result<(StatusCode, Json<DeliveryView>), ApiError> {
    let tenant = permitted(caller)?;
    let transaction = app.store.begin().await?;
    let delivery = store::restart(&transaction, &tenant, &id, app.clock.now_ms())
        .await?
        .ok_or_else(|| ApiError::not_found("Delivery"))?;
    jobs::enqueue(&app, &transaction, &Deliver { delivery: id }).await?;
    transaction.commit().await?;
    app.jobs.wake();
    Ok((StatusCode::ACCEPTED, Json(delivery.into())))
}

fn permitted(caller: PartnerTenant) -> Result<Tenant, ApiError> {
    caller.principal.require(Scope::Webhooks)?;
    Ok(caller.tenant)
}
