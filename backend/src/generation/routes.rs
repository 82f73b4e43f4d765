//! The endpoints of text generation: chat completions, responses, models.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Request as HttpRequest, State},
    http::StatusCode,
    response::Response,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::{
    answer,
    prepare::{self, Asker},
    stored::{self, Storing},
    wire::{Head, Request},
};
use crate::{
    App,
    accounts::quotas::{Quota, QuotaCaller},
    http::{ApiError, ApiPath, ApiQuery, Arrival, extract},
    providers::ModelApi,
};

/// A chat completion, or a stream of its chunks when `stream` is true. The body is that of the public API; what this
/// server adds stands in `fallback_model`, `reasoning` and `metadata.svc`.
#[utoipa::path(
    post, path = "/v3/chat/completions", tag = "text",
    request_body(content = Value, content_type = "application/json"),
    responses(
        (status = 200, body = Value), (status = 400), (status = 401), (status = 403),
        (status = 429), (status = 502), (status = 503), (status = 504)
    )
)]
pub(crate) async fn chat_completions(
    State(app): State<App>,
    QuotaCaller(quota): QuotaCaller,
    Extension(arrival): Extension<Arrival>,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    generate(&app, &quota, &arrival, ModelApi::Chat, request).await
}

/// A response, or a stream of its events when `stream` is true. The body is that of the public API; what this server adds
/// stands in `fallback_model`, `reasoning` and `metadata.svc`. A character with knowledge adds items about what it looked
/// up.
#[utoipa::path(
    post, path = "/v3/responses", tag = "text",
    request_body(content = Value, content_type = "application/json"),
    responses(
        (status = 200, body = Value), (status = 400), (status = 401), (status = 403),
        (status = 429), (status = 502), (status = 503), (status = 504)
    )
)]
pub(crate) async fn create_response(
    State(app): State<App>,
    QuotaCaller(quota): QuotaCaller,
    Extension(arrival): Extension<Arrival>,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    generate(&app, &quota, &arrival, ModelApi::Responses, request).await
}

async fn generate(
    app: &App,
    quota: &Arc<Quota>,
    arrival: &Arrival,
    api: ModelApi,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let body = body(app, request).await?;
    let request = Request::parse(api, &body)?;
    let asker = Asker {
        quota,
        endpoint: match api {
            ModelApi::Chat => "chat.completions",
            ModelApi::Responses => "responses",
        },
        arrival,
    };
    let mut prepared = prepare::prepare(app, &asker, request).await?;
    let fresh = app.clock.new_id().simple();
    let head = Head {
        id: match api {
            ModelApi::Chat => format!("chatcmpl-{fresh}"),
            ModelApi::Responses => format!("resp_{fresh}"),
        },
        created_at: app.clock.now_ms() / 1_000,
        model: prepared.model.name().to_owned(),
    };
    let storing = (api == ModelApi::Responses && prepared.request.store).then(|| Storing {
        quota: Arc::clone(quota),
        previous_id: prepared.request.previous_response_id.clone(),
        input: std::mem::take(&mut prepared.own_items),
    });
    let limits = prepared.bill.standing().headers(app.clock.now_ms());
    let mut response = if prepared.request.stream {
        answer::streamed(app, prepared, head, storing).await
    } else {
        answer::whole(app, prepared, head, storing).await?
    };
    response.headers_mut().extend(limits);
    Ok(response)
}

/// The body of a request. One that is too large is a wrong one, as the interface has it.
async fn body(app: &App, request: HttpRequest) -> Result<Bytes, ApiError> {
    let limit = app.config.limits.text_body_bytes;
    let body = extract::body_up_to(request, limit).await;
    body.map_err(|error| match error.status {
        StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::invalid("body", format!("at most {limit} bytes")).with_code(error.code)
        }
        _ => error,
    })
}

/// A stored response.
#[utoipa::path(
    get, path = "/v3/responses/{response}", tag = "text", params(("response" = String, Path)),
    responses((status = 200, body = Value), (status = 401), (status = 404))
)]
pub(crate) async fn read_response(
    State(app): State<App>,
    QuotaCaller(quota): QuotaCaller,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(stored::read(&app, &quota, &id).await?.response))
}

/// Which items to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ItemsQuery {
    /// How many, 1 to 100; 20 without it.
    limit: Option<usize>,
    /// The id of the item before the first one.
    after: Option<String>,
    /// `desc`, the last item first, without it.
    #[serde(default)]
    order: Order,
}

/// An order of items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    /// The first item first.
    Asc,
    /// The last item first.
    #[default]
    Desc,
}

/// The items that a stored response was asked with.
#[utoipa::path(
    get, path = "/v3/responses/{response}/input_items", tag = "text",
    params(("response" = String, Path), ItemsQuery),
    responses((status = 200, body = Value), (status = 400), (status = 401), (status = 404))
)]
pub(crate) async fn list_input_items(
    State(app): State<App>,
    QuotaCaller(quota): QuotaCaller,
    ApiPath(id): ApiPath<String>,
    ApiQuery(query): ApiQuery<ItemsQuery>,
) -> Result<Json<Value>, ApiError> {
    let limit = query.limit.unwrap_or(20);
    if !(1..=100).contains(&limit) {
        return Err(ApiError::invalid("limit", "1 to 100"));
    }
    let mut items = stored::read(&app, &quota, &id).await?.identified_input();
    if query.order == Order::Desc {
        items.reverse();
    }
    let id_of = |item: &Value| item.get("id").cloned();
    if let Some(after) = query.after {
        let before = items.iter().position(|item| item["id"] == after);
        let before = before.ok_or_else(|| ApiError::invalid("after", "there is no such item"))?;
        items.drain(..=before);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    Ok(Json(json!({
        "object": "list",
        "first_id": items.first().and_then(id_of),
        "last_id": items.last().and_then(id_of),
        "has_more": has_more,
        "data": items,
    })))
}

/// Deletes a stored response.
#[utoipa::path(
    delete, path = "/v3/responses/{response}", tag = "text", params(("response" = String, Path)),
    responses((status = 200, body = Value), (status = 401), (status = 404))
)]
pub(crate) async fn delete_response(
    State(app): State<App>,
    QuotaCaller(quota): QuotaCaller,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Value>, ApiError> {
    stored::delete(&app, &quota, &id).await?;
    Ok(Json(
        json!({"id": id, "object": "response", "deleted": true}),
    ))
}

/// A model that the key may use.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelView {
    /// The name that requests use.
    id: String,
    /// `model`.
    object: &'static str,
    /// 0: the settings do not say since when it is offered.
    created: i64,
    /// `colloquy`.
    owned_by: &'static str,
}

/// The models that the key may use.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// `list`.
    object: &'static str,
    /// By name.
    data: Vec<ModelView>,
}

/// The models that the key may use.
#[utoipa::path(get, path = "/v3/models", tag = "text", responses((status = 200, body = ModelList), (status = 401)))]
pub(crate) async fn list_models(
    State(app): State<App>,
    QuotaCaller(quota): QuotaCaller,
) -> Json<ModelList> {
    let allowed = app
        .providers
        .models
        .all()
        .filter(|model| quota.require_model(model.name()).is_ok());
    let data = allowed.map(|model| ModelView {
        id: model.name().to_owned(),
        object: "model",
        created: 0,
        owned_by: "colloquy",
    });
    Json(ModelList {
        object: "list",
        data: data.collect(),
    })
}
