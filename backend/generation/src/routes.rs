//! The endpoints of text generation: chat completions, responses, models.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{FromRef, Request as HttpRequest, State},
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::get,
};
use bytes::Bytes;
use colloquy_accounts::{
    Accounts,
    quotas::{Quota, QuotaCaller},
};
use colloquy_base::json;
use colloquy_formats::ModelApi;
use colloquy_http::{
    ApiError, ApiPath, ApiQuery, Arrival, extract,
    memory::{Share, off_thread},
    upgrade::upgrade,
};
use colloquy_kernel::{router::DescribedRouter, routes};
use colloquy_store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{
    answer, embeddings, generate,
    input_items::{self, Page, PageQuery},
    prepare::{self, Requester},
    request::ClientRequest,
    schema::{
        ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, Compaction, CompactionRequest,
        ResponseEvent, ResponseObject, ResponseRequest, TextError,
    },
    socket,
    stored::{self, StoredText},
};
use crate::Generation;

/// Text generation.
pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Generation: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(chat_completions))
        .routes(routes!(create_response, open_socket))
        .routes(routes!(read_response, delete_response))
        .routes(routes!(list_input_items))
        .routes(routes!(count_input_tokens))
        .routes(routes!(compact))
        .routes(routes!(embeddings::create_embeddings))
        .routes(routes!(list_models))
        .routes(routes!(read_model))
        // OpenAPI has no name for a part of a path that holds a slash.
        .route("/v3/models/{owner}/{model}", get(read_model_of))
}

/// A chat completion, or a stream of its chunks when `stream` is true. The body is that of the public API; what this
/// server adds stands in `fallback_model`, `reasoning` and `metadata.svc`. The header `X-Colloquy-Warning` names a knowledge base of
/// the character that is not found.
#[utoipa::path(
    post, path = "/v3/chat/completions", tag = "text",
    request_body = ChatCompletionRequest,
    responses(
        (status = 200, content((ChatCompletion = "application/json"), (ChatCompletionChunk = "text/event-stream"))),
        (status = 400, body = TextError), (status = 401, body = TextError), (status = 403, body = TextError),
        (status = 429, body = TextError), (status = 502, body = TextError),
        (status = 503, body = TextError, description = "The model is full (`upstream_busy`) or rests after failures (`upstream_resting`), or the \
            server has no capacity now; retry after `Retry-After` seconds"),
        (status = 504, body = TextError)
    )
)]
pub(crate) async fn chat_completions(
    State(generation): State<Generation>,
    QuotaCaller(quota): QuotaCaller,
    Extension(arrival): Extension<Arrival>,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    generate(&generation, &quota, &arrival, ModelApi::Chat, request).await
}

/// A response, or a stream of its events when `stream` is true. The body is that of the public API; what this server adds
/// stands in `fallback_model`, `reasoning` and `metadata.svc`. A character with knowledge adds items about what it looked
/// up. Knowledge items are streamed before the model answers, so the status is already 200; a later model failure is an `error` event with
/// `request_id`. Every stream ends with `data: [DONE]`. The header `X-Colloquy-Warning` names a missing knowledge base. An
/// `item_reference` in the input stands for an item of a stored response.
#[utoipa::path(
    post, path = "/v3/responses", tag = "text",
    request_body = ResponseRequest,
    responses(
        (status = 200, content((ResponseObject = "application/json"), (ResponseEvent = "text/event-stream"))),
        (status = 400, body = TextError), (status = 401, body = TextError), (status = 403, body = TextError), (status = 404, body = TextError),
        (status = 413, body = TextError, description = "The body is too large, or the response would be stored and the partner would store more than \
            it may (`storage_limit_reached`): a request with `store: false` is answered then"),
        (status = 429, body = TextError), (status = 502, body = TextError),
        (status = 503, body = TextError, description = "The model is full (`upstream_busy`) or rests after failures (`upstream_resting`), or the \
            server has no capacity now; retry after `Retry-After` seconds"),
        (status = 504, body = TextError)
    )
)]
pub(crate) async fn create_response(
    State(generation): State<Generation>,
    QuotaCaller(quota): QuotaCaller,
    Extension(arrival): Extension<Arrival>,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    generate(&generation, &quota, &arrival, ModelApi::Responses, request).await
}

/// Opens a WebSocket. The client sends `{"type": "response.create", ..}` with the fields of `POST /v3/responses`, one after
/// the end of the other, and gets the events of each stream, one in a text frame. Errors are
/// `{"type": "error", "status": .., "error": ..}`. The connection remembers its last response, so that `previous_response_id`
/// may name it also when it was not stored. A client sends nothing before it has the answer 101 (RFC 6455, section 4.1): frames that
/// come before are answered with an error and 1002. Events have no headers: what `X-Colloquy-Warning` tells over HTTP, a missing knowledge
/// base, is told in the server's log only.
#[utoipa::path(
    get, path = "/v3/responses", tag = "text",
    responses(
        (status = 101, description = "The WebSocket is open"),
        (status = 401, body = TextError), (status = 403, body = TextError),
        (status = 426, body = TextError, description = "The request asks for no WebSocket"),
        (status = 429, body = TextError), (status = 503, body = TextError)
    )
)]
pub(crate) async fn open_socket(
    State(generation): State<Generation>,
    QuotaCaller(quota): QuotaCaller,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let (mut parts, _body) = request.into_parts();
    match upgrade(&mut parts).await {
        Ok(upgrade) => socket::open(generation, &quota, parts, upgrade),
        Err(refused) => Ok(refused.into_response()),
    }
}

async fn generate(
    generation: &Generation,
    quota: &Arc<Quota>,
    arrival: &Arrival,
    api: ModelApi,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let memory = request.extensions().get::<Share>().cloned();
    let body = body(generation, request).await?;
    let request = off_thread(body.len(), move || ClientRequest::parse(api, &body)).await??;
    let asker = Requester {
        quota,
        endpoint: match api {
            ModelApi::Chat => "chat.completions",
            ModelApi::Responses => "responses",
        },
        arrival,
        memory: memory.as_ref(),
        recent: None,
    };
    Ok(generate::answer(generation, &asker, request).await?)
}

/// The body of a request. One that is too large is a wrong one, as the interface has it.
pub(super) async fn body(generation: &Generation, request: HttpRequest) -> Result<Bytes, ApiError> {
    let limit = generation.config.limits.text_body_bytes;
    let body = extract::body_up_to(request, limit).await;
    body.map_err(|error| match error.status {
        StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::invalid("body", format!("at most {limit} bytes")).with_code(error.code)
        }
        _ => error,
    })
}

/// How a stored response is read.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadQuery {
    /// Whether it is streamed. The events are those of a stream whose texts come in one piece each, with numbers of their
    /// own: the same each time, but not those of the stream in which the response was made.
    #[serde(default)]
    stream: bool,
    /// The number of the event behind which the stream begins.
    starting_after: Option<u64>,
}

/// A stored response, or a stream of its events when `stream` is true.
#[utoipa::path(
    get, path = "/v3/responses/{response}", tag = "text", params(("response" = String, Path), ReadQuery),
    responses(
        (status = 200, content((ResponseObject = "application/json"), (ResponseEvent = "text/event-stream"))),
        (status = 400, body = TextError), (status = 401, body = TextError), (status = 404, body = TextError),
        (status = 413, body = TextError, description = "Reading the response takes more memory than the server has for one request \
            (`limits.body_memory_bytes`)"),
        (status = 503, body = TextError, description = "There is no memory for the response now; Retry-After says when to ask again")
    )
)]
pub(crate) async fn read_response(
    State(generation): State<Generation>,
    QuotaCaller(quota): QuotaCaller,
    share: Option<Extension<Share>>,
    ApiPath(id): ApiPath<String>,
    ApiQuery(query): ApiQuery<ReadQuery>,
) -> Result<Response, ApiError> {
    if query.starting_after.is_some() && !query.stream {
        return Err(ApiError::invalid("starting_after", "only with stream=true"));
    }
    let memory = share.map(|Extension(share)| share);
    let which = StoredText::Response;
    let text = stored::text(&generation, &quota, &id, which, memory.as_ref()).await?;
    if !query.stream {
        return Ok(json_of(text.into_bytes()));
    }
    let length = text.len();
    let replay = move || -> Result<Response, ApiError> {
        if let Some(memory) = &memory {
            let weight = json::weigh(text.as_bytes()).bytes;
            memory.grow(REPLAYED.saturating_mul(weight))?;
        }
        let response: Value = serde_json::from_str(&text).map_err(StoreError::malformed)?;
        drop(text);
        Ok(answer::replayed(&response, query.starting_after))
    };
    off_thread(length, replay).await?
}

/// How often a part of a stored response is held when its events are made, besides what reading it takes: a text stands in five events.
const REPLAYED: usize = 5;

/// An answer that is JSON already.
fn json_of(mut text: Vec<u8>) -> Response {
    // It may wait for its client for a while.
    text.shrink_to_fit();
    let json = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, json)], text).into_response()
}

/// How many tokens the input of a request has, as [`count_input_tokens`] tells it.
#[derive(Debug, Serialize, ToSchema)]
pub struct InputTokens {
    /// `response.input_tokens`.
    object: &'static str,
    /// About so many: a quarter of the input's bytes, which is also what is counted where a model tells no usage.
    input_tokens: u64,
}

/// About how many tokens the input of a response has, with its character and the conversation that it goes on from. The body is
/// that of a response. Nothing is asked of a model, nothing is looked up and nothing is paid.
#[utoipa::path(
    post, path = "/v3/responses/input_tokens", tag = "text",
    request_body = ResponseRequest,
    responses(
        (status = 200, body = InputTokens), (status = 400, body = TextError), (status = 401, body = TextError),
        (status = 403, body = TextError), (status = 404, body = TextError)
    )
)]
pub(crate) async fn count_input_tokens(
    State(generation): State<Generation>,
    QuotaCaller(quota): QuotaCaller,
    request: HttpRequest,
) -> Result<Json<InputTokens>, ApiError> {
    let memory = request.extensions().get::<Share>().cloned();
    let body = body(&generation, request).await?;
    let length = body.len();
    let parse = move || ClientRequest::parse(ModelApi::Responses, &body);
    let request = off_thread(length, parse).await??;
    let counted = prepare::input_tokens(&generation, &quota, memory.as_ref(), request).await?;
    Ok(Json(InputTokens {
        object: "response.input_tokens",
        input_tokens: counted,
    }))
}

/// Compacts a conversation: what comes back as `output` is the input that a later response goes on from, with the user's
/// messages as they were and one item in place of everything else. A model that has responses compacts by itself; for
/// another one the conversation is summarized, and only this server reads the summary, for requests of the same partner.
#[utoipa::path(
    post, path = "/v3/responses/compact", tag = "text",
    request_body = CompactionRequest,
    responses(
        (status = 200, body = Compaction),
        (status = 400, body = TextError), (status = 401, body = TextError), (status = 403, body = TextError), (status = 404, body = TextError),
        (status = 429, body = TextError), (status = 502, body = TextError),
        (status = 503, body = TextError, description = "The model is full (`upstream_busy`) or rests after failures (`upstream_resting`), or the \
            server has no capacity now; retry after `Retry-After` seconds"),
        (status = 504, body = TextError)
    )
)]
pub(crate) async fn compact(
    State(generation): State<Generation>,
    QuotaCaller(quota): QuotaCaller,
    Extension(arrival): Extension<Arrival>,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let memory = request.extensions().get::<Share>().cloned();
    let body = body(&generation, request).await?;
    let parse = move |body: &[u8]| ClientRequest::parse_compaction(body);
    let request = off_thread(body.len(), move || parse(&body)).await??;
    let asker = Requester {
        quota: &quota,
        endpoint: "responses.compact",
        arrival: &arrival,
        memory: memory.as_ref(),
        recent: None,
    };
    Ok(generate::answer(&generation, &asker, request).await?)
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
    #[param(inline)]
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

/// Items of a stored response.
#[derive(Debug, Serialize, ToSchema)]
pub struct ItemList {
    /// `list`.
    object: &'static str,
    /// The id of the first item of this page.
    first_id: Option<String>,
    /// The id of the last one: `after` for the next page.
    last_id: Option<String>,
    /// Whether there is another page.
    has_more: bool,
    /// The items, such as `{id, type: message, role, content}`.
    #[schema(value_type = Vec<Object>)]
    data: Vec<Value>,
}

/// The items that a stored response was asked with.
#[utoipa::path(
    get, path = "/v3/responses/{response}/input_items", tag = "text",
    params(("response" = String, Path), ItemsQuery),
    responses(
        (status = 200, body = ItemList), (status = 400, body = TextError), (status = 401, body = TextError),
        (status = 404, body = TextError),
        (status = 413, body = TextError, description = "Reading the items takes more memory than the server has for one request \
            (`limits.body_memory_bytes`)"),
        (status = 503, body = TextError, description = "There is no memory for the items now; Retry-After says when to ask again")
    )
)]
pub(crate) async fn list_input_items(
    State(generation): State<Generation>,
    QuotaCaller(quota): QuotaCaller,
    share: Option<Extension<Share>>,
    ApiPath(id): ApiPath<String>,
    ApiQuery(query): ApiQuery<ItemsQuery>,
) -> Result<Response, ApiError> {
    let limit = query.limit.unwrap_or(20);
    if !(1..=100).contains(&limit) {
        return Err(ApiError::invalid("limit", "must be 1 to 100"));
    }
    let query = PageQuery {
        limit,
        after: query.after,
        order: query.order,
    };
    let memory = share.map(|Extension(share)| share);
    let which = StoredText::Input;
    let input = stored::text(&generation, &quota, &id, which, memory.as_ref()).await?;
    let length = input.len();
    let list = move || -> Result<Response, ApiError> {
        // Reading counts for the text, its items and the answer. Items of many small values take more.
        if let Some(memory) = &memory {
            let weight = json::weigh(input.as_bytes()).bytes;
            memory.grow(weight.saturating_sub(length))?;
        }
        let page = input_items::page(&id, &input, &query)?;
        drop(input);
        let page = page.ok_or_else(|| ApiError::invalid("after", "there is no such item"))?;
        let text = serde_json::to_vec(&ItemList::from(page)).map_err(ApiError::internal)?;
        Ok(json_of(text))
    };
    off_thread(length, list).await?
}

impl From<Page> for ItemList {
    fn from(page: Page) -> Self {
        let id_of = |item: &Value| Some(item.get("id")?.as_str()?.to_owned());
        Self {
            object: "list",
            first_id: page.items.first().and_then(id_of),
            last_id: page.items.last().and_then(id_of),
            has_more: page.has_more,
            data: page.items,
        }
    }
}

/// A response that is not there any more.
#[derive(Debug, Serialize, ToSchema)]
pub struct Deleted {
    /// The response's id.
    id: String,
    /// `response`.
    object: &'static str,
    /// True.
    deleted: bool,
}

/// Deletes a stored response.
#[utoipa::path(
    delete, path = "/v3/responses/{response}", tag = "text", params(("response" = String, Path)),
    responses(
        (status = 200, body = Deleted), (status = 401, body = TextError), (status = 404, body = TextError)
    )
)]
pub(crate) async fn delete_response(
    State(generation): State<Generation>,
    QuotaCaller(quota): QuotaCaller,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Deleted>, ApiError> {
    stored::delete(&generation, &quota, &id).await?;
    Ok(Json(Deleted {
        id,
        object: "response",
        deleted: true,
    }))
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
    /// Those of text generation by name, and then the one of embeddings: many clients take the first.
    data: Vec<ModelView>,
}

/// The models that the key may use: those of text generation, and the one of `POST /v3/embeddings`.
#[utoipa::path(get, path = "/v3/models", tag = "text", responses((status = 200, body = ModelList), (status = 401)))]
pub(crate) async fn list_models(
    State(generation): State<Generation>,
    QuotaCaller(quota): QuotaCaller,
) -> Json<ModelList> {
    let names = model_names(&generation).into_iter();
    let allowed = names.filter(|name| quota.require_model(name).is_ok());
    Json(ModelList {
        object: "list",
        data: allowed.map(ModelView::new).collect(),
    })
}

/// The models of text generation by name, and then the one of embeddings.
fn model_names(generation: &Generation) -> Vec<&str> {
    let providers = &generation.providers;
    let mut names: Vec<&str> = providers.models.all().map(|model| model.name()).collect();
    names.sort_unstable();
    names.dedup();
    let embedder = providers.embedder.as_ref().map(|embedder| embedder.name());
    if let Some(embedder) = embedder.filter(|name| !names.contains(name)) {
        names.push(embedder);
    }
    names
}

/// A model that the key may use. The name may have a `/`, also an encoded one.
#[utoipa::path(
    get, path = "/v3/models/{model}", tag = "text", params(("model" = String, Path)),
    responses((status = 200, body = ModelView), (status = 401), (status = 404))
)]
pub(crate) async fn read_model(
    State(generation): State<Generation>,
    QuotaCaller(quota): QuotaCaller,
    ApiPath(name): ApiPath<String>,
) -> Result<Json<ModelView>, ApiError> {
    let is_known = model_names(&generation).contains(&name.as_str());
    if !is_known || quota.require_model(&name).is_err() {
        return Err(ApiError::not_found("Model").with_code("model_not_found"));
    }
    Ok(Json(ModelView::new(&name)))
}

/// The same, of a model with a `/` in its name.
pub(crate) async fn read_model_of(
    generation: State<Generation>,
    quota: QuotaCaller,
    ApiPath((owner, name)): ApiPath<(String, String)>,
) -> Result<Json<ModelView>, ApiError> {
    read_model(generation, quota, ApiPath(format!("{owner}/{name}"))).await
}

impl ModelView {
    fn new(name: &str) -> Self {
        Self {
            id: name.to_owned(),
            object: "model",
            created: 0,
            owned_by: "colloquy",
        }
    }
}
