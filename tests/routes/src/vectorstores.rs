//! A service with the public API of files and vector stores, which fails when it is told to.
//!
//! It keeps what it is given in memory, refuses what the public API refuses (other purposes, attributes that are too long, pages that are
//! too large, what is not there), and remembers what it was asked.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, FromRequest as _, Multipart, Path, Query, Request, State},
    http::{StatusCode, header::AUTHORIZATION},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::{delete, get, post},
};
use colloquy_config::{Config, Secret};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use support::news;
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Duration, Instant, sleep},
};

/// The keys that it takes: the one of [`VectorStores::offer`], and what is left of it in the settings of a process.
const KEYS: [&str; 2] = ["vector-store-key", "[redacted]"];

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `POST /files`.
    Upload,
    /// `GET /files`.
    ListFiles,
    /// `DELETE /files/{id}`.
    DeleteFile,
    /// `POST /vector_stores`.
    Create,
    /// `GET /vector_stores`.
    ListStores,
    /// `GET /vector_stores/{id}`.
    ReadStore,
    /// `DELETE /vector_stores/{id}`.
    DeleteStore,
    /// `POST /vector_stores/{id}/files`.
    Attach,
    /// `GET /vector_stores/{id}/files/{file}`.
    ReadFile,
    /// `DELETE /vector_stores/{id}/files/{file}`.
    Detach,
}

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// With this status, and nothing is done.
    Status(u16),
    /// With 429 and so many seconds to wait.
    Limited(u32),
    /// It is done, and the answer breaks off.
    Lost,
    /// The answer breaks off, and so many milliseconds later it is done.
    Late(u64),
}

/// A request that came.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// For what.
    pub operation: Operation,
    /// When.
    pub at: Instant,
}

/// A file that is there.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its content.
    pub content: String,
    created_at: i64,
}

/// A vector store that is there.
#[derive(Debug, Clone)]
pub struct Store {
    /// Its name.
    pub name: String,
    metadata: Map<String, Value>,
    created_at: i64,
    /// The files in it, with their attributes.
    pub files: BTreeMap<String, Value>,
}

#[derive(Debug, Default)]
struct Contents {
    files: BTreeMap<String, File>,
    stores: BTreeMap<String, Store>,
    asked: Vec<Asked>,
    failures: Vec<(Operation, VecDeque<Failure>)>,
    made: u64,
    /// What files become that are indexed: `completed`, `in_progress` or `failed`.
    becomes: &'static str,
    /// How long each answer takes.
    delay: Duration,
}

#[derive(Debug, Clone)]
struct Shared(Arc<Mutex<Contents>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The service; it stops when it is dropped.
#[derive(Debug)]
pub struct VectorStores {
    address: SocketAddr,
    shared: Shared,
    _server: JoinSet<()>,
}

impl VectorStores {
    /// Starts one on a free port of this machine.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Shared(Arc::new(Mutex::new(Contents {
            becomes: "completed",
            ..Contents::default()
        })));
        let router = Router::new()
            .route("/v1/files", post(upload).get(list_files))
            .route("/v1/files/{file}", delete(delete_file))
            .route("/v1/vector_stores", post(create).get(list_stores))
            .route(
                "/v1/vector_stores/{store}",
                get(read_store).delete(delete_store),
            )
            .route("/v1/vector_stores/{store}/files", post(attach))
            .route(
                "/v1/vector_stores/{store}/files/{file}",
                get(read_file).delete(detach),
            )
            .layer(from_fn_with_state(shared.clone(), check))
            .layer(DefaultBodyLimit::max(64 * 1024 * 1024))
            .with_state(shared.clone());
        let mut server = JoinSet::new();
        server.spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            address,
            shared,
            _server: server,
        }
    }

    /// Has a server bring documents here, as fast as it can.
    pub fn offer(&self, config: &mut Config) {
        let (url, key) = self.place();
        config.vectorstore.base_url = Some(url.parse().unwrap());
        config.vectorstore.api_key = Some(Secret::new(key));
        config.vectorstore.requests_per_minute = 6_000;
    }

    /// The next requests of a sort fail, in this order.
    pub fn fail(&self, operation: Operation, failures: impl IntoIterator<Item = Failure>) {
        let failures = failures.into_iter().collect();
        self.shared.lock().failures.push((operation, failures));
    }

    /// What becomes of the files of vector stores: `completed`, `in_progress` or `failed`.
    pub fn files_become(&self, status: &'static str) {
        self.shared.lock().becomes = status;
    }

    /// How long each answer takes from now on.
    pub fn delay(&self, delay: Duration) {
        self.shared.lock().delay = delay;
    }

    /// What was asked.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.lock().asked.clone()
    }

    /// How often something was asked for.
    #[must_use]
    pub fn count(&self, operation: Operation) -> usize {
        let asked = self.asked();
        asked.iter().filter(|it| it.operation == operation).count()
    }

    /// The files that are there, by their ids.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, File> {
        self.shared.lock().files.clone()
    }

    /// The vector stores that are there, by their ids.
    #[must_use]
    pub fn stores(&self) -> BTreeMap<String, Store> {
        self.shared.lock().stores.clone()
    }

    /// The contents that are searched, in order.
    #[must_use]
    pub fn searched(&self) -> Vec<String> {
        let contents = self.shared.lock();
        let ids = contents
            .stores
            .values()
            .flat_map(|store| store.files.keys());
        let found = ids.filter_map(|id| contents.files.get(id));
        let mut searched: Vec<String> = found.map(|file| file.content.clone()).collect();
        searched.sort_unstable();
        searched
    }

    /// Where it listens, up to and including `/v1`, and a key that it takes.
    #[must_use]
    pub fn place(&self) -> (String, &'static str) {
        (format!("http://{}/v1", self.address), KEYS[0])
    }

    /// Somebody else has uploaded so many files, which stand before all others in lists that begin with the latest.
    pub fn crowd(&self, files: u64) {
        let mut contents = self.shared.lock();
        for number in 0..files {
            let id = format!("file-of-others-{number:04}");
            let file = File {
                name: "other.md".to_owned(),
                content: "Of somebody else.".to_owned(),
                created_at: now(),
            };
            contents.files.insert(id, file);
        }
    }

    /// Somebody else deletes a file.
    pub fn lose_file(&self, id: &str) {
        let mut contents = self.shared.lock();
        contents.files.remove(id);
        for store in contents.stores.values_mut() {
            store.files.remove(id);
        }
    }

    /// Somebody else deletes all vector stores.
    pub fn lose_stores(&self) {
        self.shared.lock().stores.clear();
    }
}

fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_secs().try_into().unwrap()
}

fn refuse(status: StatusCode, message: &str) -> Response {
    let error =
        json!({"message": message, "type": "invalid_request_error", "param": null, "code": null});
    (status, Json(json!({"error": error}))).into_response()
}

fn missing(what: &str) -> Response {
    refuse(StatusCode::NOT_FOUND, &format!("No {what} found"))
}

fn operation(request: &Request) -> Option<Operation> {
    let path = request.uri().path().trim_start_matches("/v1/");
    let parts: Vec<&str> = path.split('/').collect();
    Some(match (request.method().as_str(), parts.as_slice()) {
        ("POST", ["files"]) => Operation::Upload,
        ("GET", ["files"]) => Operation::ListFiles,
        ("DELETE", ["files", _]) => Operation::DeleteFile,
        ("POST", ["vector_stores"]) => Operation::Create,
        ("GET", ["vector_stores"]) => Operation::ListStores,
        ("GET", ["vector_stores", _]) => Operation::ReadStore,
        ("DELETE", ["vector_stores", _]) => Operation::DeleteStore,
        ("POST", ["vector_stores", _, "files"]) => Operation::Attach,
        ("GET", ["vector_stores", _, "files", _]) => Operation::ReadFile,
        ("DELETE", ["vector_stores", _, "files", _]) => Operation::Detach,
        _ => return None,
    })
}

/// Checks the key, remembers the request and fails as it is told.
async fn check(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let Some(operation) = operation(&request) else {
        return missing("such endpoint");
    };
    let key = request.headers().get(AUTHORIZATION);
    let key = key.and_then(|key| key.to_str().ok()?.strip_prefix("Bearer "));
    if key.is_none_or(|key| !KEYS.contains(&key)) {
        return refuse(StatusCode::UNAUTHORIZED, "Incorrect API key provided");
    }
    let (failure, delay) = {
        let mut contents = shared.lock();
        contents.asked.push(Asked {
            operation,
            at: Instant::now(),
        });
        news::tell();
        let mut queues = contents.failures.iter_mut();
        let queue = queues.find(|(of, queue)| *of == operation && !queue.is_empty());
        let failure = queue.and_then(|(_, queue)| queue.pop_front());
        (failure, contents.delay)
    };
    sleep(delay).await;
    match failure {
        None => run(next, request).await,
        Some(Failure::Status(status)) => {
            take(request).await;
            refuse(StatusCode::from_u16(status).unwrap(), "as it was told")
        }
        Some(Failure::Limited(seconds)) => {
            take(request).await;
            let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, "Rate limit reached");
            let headers = response.headers_mut();
            headers.insert("retry-after", seconds.into());
            response
        }
        Some(Failure::Lost) => {
            run(next, request).await;
            broken()
        }
        Some(Failure::Late(after_ms)) => {
            let (parts, body) = request.into_parts();
            let whole = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            tokio::spawn(async move {
                sleep(Duration::from_millis(after_ms)).await;
                run(next, Request::from_parts(parts, Body::from(whole))).await
            });
            broken()
        }
    }
}

async fn run(next: Next, request: Request) -> Response {
    let response = next.run(request).await;
    news::tell();
    response
}

/// An answer that breaks off.
fn broken() -> Response {
    let error = io::Error::other("the connection breaks");
    let pieces = [Ok(Bytes::from_static(b"{")), Err(error)];
    Response::new(Body::from_stream(stream::iter(pieces)))
}

/// Reads a body to its end: whoever is still writing it might not hear the answer.
async fn take(request: Request) {
    let _ = axum::body::to_bytes(request.into_body(), usize::MAX).await;
}

async fn upload(State(shared): State<Shared>, request: Request) -> Response {
    let mut form = Multipart::from_request(request, &()).await.unwrap();
    let (mut purpose, mut file) = (String::new(), None);
    while let Some(field) = form.next_field().await.unwrap() {
        match field.name() {
            Some("purpose") => purpose = field.text().await.unwrap(),
            Some("file") => {
                let name = field.file_name().unwrap_or_default().to_owned();
                file = Some((name, field.text().await.unwrap()));
            }
            _ => {}
        }
    }
    let Some((name, content)) = file.filter(|(name, _)| !name.is_empty()) else {
        return refuse(StatusCode::BAD_REQUEST, "'file' is a required property");
    };
    if purpose != "assistants" {
        return refuse(StatusCode::BAD_REQUEST, "'purpose' is not one of the known");
    }
    let mut contents = shared.lock();
    contents.made += 1;
    let id = format!("file-{:04}", contents.made);
    let file = File {
        name,
        content,
        created_at: now(),
    };
    let answer = file_object(&id, &file);
    contents.files.insert(id, file);
    Json(answer).into_response()
}

fn file_object(id: &str, file: &File) -> Value {
    json!({
        "id": id, "object": "file", "bytes": file.content.len(), "created_at": file.created_at,
        "filename": file.name, "purpose": "assistants",
    })
}

fn store_object(id: &str, store: &Store) -> Value {
    json!({
        "id": id, "object": "vector_store", "name": store.name, "created_at": store.created_at,
        "metadata": store.metadata, "status": "completed", "usage_bytes": 0,
    })
}

#[derive(Deserialize)]
struct ListQuery {
    order: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

/// A page of a list; newest first, since ids count up.
fn page(entries: Vec<(String, Value)>, query: &ListQuery) -> Response {
    let limit = query.limit.unwrap_or(20);
    if !(1..=100).contains(&limit) || query.order.as_deref().unwrap_or("desc") != "desc" {
        return refuse(StatusCode::BAD_REQUEST, "a page that is not offered");
    }
    let rest = entries.into_iter().rev();
    let rest: Vec<Value> = match &query.after {
        Some(after) => rest
            .skip_while(|(id, _)| id != after)
            .skip(1)
            .map(|(_, value)| value)
            .collect(),
        None => rest.map(|(_, value)| value).collect(),
    };
    let data: Vec<&Value> = rest.iter().take(limit).collect();
    let has_more = rest.len() > data.len();
    let first = data.first().map(|it| &it["id"]);
    let last = data.last().map(|it| &it["id"]);
    let list = json!({
        "object": "list", "data": data, "first_id": first, "last_id": last, "has_more": has_more,
    });
    Json(list).into_response()
}

async fn list_files(State(shared): State<Shared>, Query(query): Query<ListQuery>) -> Response {
    let contents = shared.lock();
    let entries = contents.files.iter();
    let entries = entries.map(|(id, file)| (id.clone(), file_object(id, file)));
    page(entries.collect(), &query)
}

async fn list_stores(State(shared): State<Shared>, Query(query): Query<ListQuery>) -> Response {
    let contents = shared.lock();
    let entries = contents.stores.iter();
    let entries = entries.map(|(id, store)| (id.clone(), store_object(id, store)));
    page(entries.collect(), &query)
}

async fn delete_file(State(shared): State<Shared>, Path(id): Path<String>) -> Response {
    let mut contents = shared.lock();
    if contents.files.remove(&id).is_none() {
        return missing("such File object");
    }
    for store in contents.stores.values_mut() {
        store.files.remove(&id);
    }
    Json(json!({"id": id, "object": "file", "deleted": true})).into_response()
}

#[derive(Deserialize)]
struct CreateBody {
    name: String,
    metadata: Map<String, Value>,
}

async fn create(State(shared): State<Shared>, Json(body): Json<CreateBody>) -> Response {
    let mut contents = shared.lock();
    contents.made += 1;
    let id = format!("vs_{:04}", contents.made);
    let store = Store {
        name: body.name,
        metadata: body.metadata,
        created_at: now(),
        files: BTreeMap::new(),
    };
    let answer = store_object(&id, &store);
    contents.stores.insert(id, store);
    Json(answer).into_response()
}

async fn read_store(State(shared): State<Shared>, Path(id): Path<String>) -> Response {
    match shared.lock().stores.get(&id) {
        Some(store) => Json(store_object(&id, store)).into_response(),
        None => missing("vector store"),
    }
}

async fn delete_store(State(shared): State<Shared>, Path(id): Path<String>) -> Response {
    match shared.lock().stores.remove(&id) {
        Some(_) => Json(json!({"id": id, "object": "vector_store.deleted", "deleted": true}))
            .into_response(),
        None => missing("vector store"),
    }
}

#[derive(Deserialize)]
struct AttachBody {
    file_id: String,
    attributes: Map<String, Value>,
}

fn attached(contents: &Contents, store: &str, file: &str) -> Response {
    let attributes = contents.stores.get(store).and_then(|it| it.files.get(file));
    let Some(attributes) = attributes else {
        return missing("file in the vector store");
    };
    let error = match contents.becomes {
        "failed" => json!({"code": "invalid_file", "message": "The file could not be read"}),
        _ => Value::Null,
    };
    Json(json!({
        "id": file, "object": "vector_store.file", "vector_store_id": store, "status": contents.becomes,
        "last_error": error, "attributes": attributes,
    }))
    .into_response()
}

async fn attach(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    Json(body): Json<AttachBody>,
) -> Response {
    let mut contents = shared.lock();
    let texts = body.attributes.values().map(|value| value.as_str());
    let is_short = |text: Option<&str>| text.is_some_and(|text| text.chars().count() <= 512);
    if body.attributes.len() > 16 || !texts.into_iter().all(is_short) {
        return refuse(StatusCode::BAD_REQUEST, "'attributes' has too much");
    }
    if !contents.files.contains_key(&body.file_id) {
        return missing("such File object");
    }
    let Some(store) = contents.stores.get_mut(&id) else {
        return missing("vector store");
    };
    let attributes = Value::Object(body.attributes);
    store.files.insert(body.file_id.clone(), attributes);
    attached(&contents, &id, &body.file_id)
}

async fn read_file(
    State(shared): State<Shared>,
    Path((store, file)): Path<(String, String)>,
) -> Response {
    attached(&shared.lock(), &store, &file)
}

async fn detach(
    State(shared): State<Shared>,
    Path((store, file)): Path<(String, String)>,
) -> Response {
    let mut contents = shared.lock();
    let found = contents.stores.get_mut(&store);
    match found.and_then(|store| store.files.remove(&file)) {
        Some(_) => {
            Json(json!({"id": file, "object": "vector_store.file.deleted", "deleted": true}))
                .into_response()
        }
        None => missing("file in the vector store"),
    }
}
