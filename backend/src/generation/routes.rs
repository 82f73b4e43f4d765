//! The endpoints of text generation: chat completions, responses, models.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Request as HttpRequest, State},
    response::Response,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    answer, limits,
    prepare::{self, Asker},
    stored::{self, Storing},
    wire::{Head, Request},
};
use crate::{
    App,
    accounts::quotas::{Quota, QuotaCaller},
    http::{ApiError, ApiPath, RequestId, extract},
    providers::ModelApi,
};

/// A chat completion, or a stream of its chunks when `stream` is true. The body is that of the public API; what this
/// server adds stands in `fallback_model`, `reasoning` and `metadata.svc`.
#[utoipa::path(
    post, path = "/v3/chat/completions", tag = "text",
    request_body(content = Value, content_type = "application/json"),
    responses(
        (status = 200, body = Value), (status = 400), (status = 401), (status = 403),
        (status = 413), (status = 429), (status = 502), (status = 503), (status = 504)
    )
)]
pub(crate) async fn chat_completions(
    State(app): State<App>,
    QuotaCaller(quota): QuotaCaller,
    Extension(id): Extension<RequestId>,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    generate(&app, &quota, &id, ModelApi::Chat, request).await
}

/// A response, or a stream of its events when `stream` is true. The body is that of the public API; what this server adds
/// stands in `fallback_model`, `reasoning` and `metadata.svc`. A character with knowledge adds items about what it looked
/// up.
#[utoipa::path(
    post, path = "/v3/responses", tag = "text",
    request_body(content = Value, content_type = "application/json"),
    responses(
        (status = 200, body = Value), (status = 400), (status = 401), (status = 403),
        (status = 413), (status = 429), (status = 502), (status = 503), (status = 504)
    )
)]
pub(crate) async fn create_response(
    State(app): State<App>,
    QuotaCaller(quota): QuotaCaller,
    Extension(id): Extension<RequestId>,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    generate(&app, &quota, &id, ModelApi::Responses, request).await
}

async fn generate(
    app: &App,
    quota: &Arc<Quota>,
    id: &RequestId,
    api: ModelApi,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let body = extract::body_up_to(request, app.config.limits.text_body_bytes).await?;
    let request = Request::parse(api, &body)?;
    let asker = Asker {
        quota,
        endpoint: match api {
            ModelApi::Chat => "chat.completions",
            ModelApi::Responses => "responses",
        },
        request_id: &id.0,
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
    let limits = limits::headers(prepared.bill.standing(), app.clock.now_ms());
    let mut response = if prepared.request.stream {
        answer::streamed(app, prepared, head, storing).await
    } else {
        answer::whole(app, prepared, head, storing).await?
    };
    response.headers_mut().extend(limits);
    Ok(response)
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

/// The items that a stored response was asked with.
#[utoipa::path(
    get, path = "/v3/responses/{response}/input_items", tag = "text", params(("response" = String, Path)),
    responses((status = 200, body = Value), (status = 401), (status = 404))
)]
pub(crate) async fn list_input_items(
    State(app): State<App>,
    QuotaCaller(quota): QuotaCaller,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Value>, ApiError> {
    let items = stored::read(&app, &quota, &id).await?.input;
    let id_of = |item: Option<&Value>| item.and_then(|item| item.get("id").cloned());
    Ok(Json(json!({
        "object": "list",
        "first_id": id_of(items.first()),
        "last_id": id_of(items.last()),
        "has_more": false,
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
    /// When it was offered, in seconds since 1970: when this server started to run.
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
