//! `/api/webhooks/{partner}/deliveries`: what was sent, what came back, and sending it again.

use axum::{
    Json,
    extract::{FromRef, State},
    http::{HeaderMap, StatusCode},
};
use colloquy_accounts::{Accounts, PartnerTenant, Scope, Tenant};
use colloquy_base::clock::rfc3339;
use colloquy_http::{ApiError, Listing, PageQuery, extract::ApiPath};
use colloquy_kernel::{jobs, router::DescribedRouter, routes};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{
    deliver::Deliver,
    store::{self, AttemptRow, Delivery, DeliveryFilter},
};
use crate::Webhooks;

/// Deliveries.
pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Webhooks: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(list_deliveries))
        .routes(routes!(read_delivery))
        .routes(routes!(resend_delivery))
}

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
    #[param(inline)]
    state: Option<DeliveryState>,
    /// Only deliveries about this, such as `/v2/calls/<id>`.
    subject: Option<String>,
    /// Only deliveries created at this time or later (inclusive); RFC 3339.
    #[param(value_type = Option<String>)]
    created_from: Option<Timestamp>,
    /// Only deliveries created before this time (exclusive); RFC 3339.
    #[param(value_type = Option<String>)]
    created_before: Option<Timestamp>,
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
    /// The path of what the event is about, such as `/v2/calls/<id>`.
    subject: String,
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
    /// The newest attempts, 100 at most, oldest first.
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
            subject: row.subject,
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
    params(("partner" = String, Path, description = "The partner"), ListQuery, PageQuery),
    responses((status = 200, body = DeliveryPage)),
)]
pub(crate) async fn list_deliveries(
    State(webhooks): State<Webhooks>,
    caller: PartnerTenant,
    Listing { filter, page }: Listing<ListQuery>,
) -> Result<(HeaderMap, Json<DeliveryPage>), ApiError> {
    let tenant = permitted(caller)?;
    let filter = DeliveryFilter {
        state: filter.state.map(DeliveryState::as_str),
        subject: filter.subject,
        created_from: filter.created_from.map(Timestamp::as_millisecond),
        created_before: filter.created_before.map(Timestamp::as_millisecond),
    };
    let rows = store::list(webhooks.store.db(), &tenant, filter, &page.slice()).await?;
    let listed = page.of(rows, |row| row.id.clone());
    let deliveries = DeliveryPage {
        deliveries: listed.entries.into_iter().map(DeliveryView::from).collect(),
        next_cursor: listed.next_cursor,
    };
    Ok((listed.links, Json(deliveries)))
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
    State(webhooks): State<Webhooks>,
    caller: PartnerTenant,
    ApiPath((_partner, id)): ApiPath<(String, String)>,
) -> Result<Json<DeliveryDetails>, ApiError> {
    let tenant = permitted(caller)?;
    let delivery = store::find(webhooks.store.db(), &tenant, &id)
        .await?
        .ok_or_else(|| ApiError::not_found("Delivery"))?;
    let attempts = store::attempts(webhooks.store.db(), &delivery).await?;
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
    State(webhooks): State<Webhooks>,
    caller: PartnerTenant,
    ApiPath((_partner, id)): ApiPath<(String, String)>,
) -> Result<(StatusCode, Json<DeliveryView>), ApiError> {
    let tenant = permitted(caller)?;
    let transaction = webhooks.store.begin().await?;
    let delivery = store::restart(&transaction, &tenant, &id, webhooks.clock.now_ms())
        .await?
        .ok_or_else(|| ApiError::not_found("Delivery"))?;
    let job = Deliver { delivery: id };
    jobs::enqueue(&webhooks, &transaction, Some(tenant.partner()), &job).await?;
    transaction.commit().await?;
    webhooks.kernel.jobs.wake();
    Ok((StatusCode::ACCEPTED, Json(delivery.into())))
}

fn permitted(caller: PartnerTenant) -> Result<Tenant, ApiError> {
    caller.principal.require(Scope::Webhooks)?;
    Ok(caller.tenant)
}
