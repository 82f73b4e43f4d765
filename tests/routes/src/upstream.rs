//! A scripted upstream: the public HTTP APIs of chat, transcription and speech, which fail when they are told to.
//!
//! It listens on a port of its own, answers each request by the next script of that API's queue (else by its default),
//! and remembers what it was asked and when the client went away. Without delays in its scripts it adds none.

mod answers;
mod embeddings;
mod script;
mod text;

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Multipart, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use colloquy_base::money::Usd;
use colloquy_config::{
    ChatConfig, Config, EmbedderConfig, ModelConfig, Secret, SynthesizerConfig, TranscriberConfig,
};
use colloquy_providers::ModelApi;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use support::news;
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, timeout},
};
use url::Url;

pub use self::{
    answers::{SPEECH_RATE_HZ, voice_like},
    embeddings::input_tokens,
    script::{Fault, Script},
    text::{CACHED_TOKENS, INPUT_TOKENS, output_tokens},
};

/// Which of the APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/audio/transcriptions`.
    Transcription,
    /// `POST /v1/audio/speech`.
    Speech,
    /// `POST /v1/embeddings`.
    Embeddings,
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Which API was asked.
    pub api: Api,
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// The `traceparent` header.
    pub traceparent: Option<String>,
    /// The body; for a transcription `{model, language, response_format, file_bytes}`.
    pub body: Value,
    /// When it came.
    pub at: Instant,
    /// How many pieces of the answer were handed to the connection; the first one of a stream is no word yet.
    pub pieces: usize,
    /// How it ended; `None` while it runs.
    pub end: Option<(End, Instant)>,
    /// What goes wrong with its answer.
    pub fault: Option<Fault>,
    /// The tokens of the answer that its script has, where it is one of words.
    pub output_tokens: u64,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The answer, or the failure that the script wants, was sent.
    Answered,
    /// The client went away first.
    Disconnected,
}

/// The scripted upstream; it stops when it is dropped.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

/// Holds answers back until it is dropped.
#[derive(Debug)]
#[must_use = "answers are held back only while this lives"]
pub struct HeldAnswers(Arc<Semaphore>);

impl Drop for HeldAnswers {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<Scripts>,
}

#[derive(Debug, Default)]
struct Scripts {
    queued: Vec<(Api, VecDeque<Script>)>,
    defaults: Vec<(Api, Script)>,
    /// The requests of these APIs are answered once the semaphore is closed.
    gates: Vec<(Api, Arc<Semaphore>)>,
    requests: Vec<Recorded>,
}

impl Upstream {
    /// Starts one on a free port of this machine.
    ///
    /// # Panics
    /// When there is no port.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test without its upstream has failed")]
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("the port's address");
        let shared = Arc::new(Shared::default());
        let router = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/chat/completions", post(chat))
            .route("/v1/responses", post(responses))
            .route("/v1/responses/compact", post(compact))
            .route("/v1/audio/transcriptions", post(transcription))
            .route("/v1/audio/speech", post(speech))
            .route("/v1/embeddings", post(embeddings))
            .layer(DefaultBodyLimit::max(64 * 1024 * 1024))
            .with_state(Arc::clone(&shared));
        let mut server = JoinSet::new();
        server.spawn(async move {
            use axum::serve::ListenerExt as _;
            let listener = listener.tap_io(|stream| {
                let _ = stream.set_nodelay(true);
            });
            let _ = axum::serve(listener, router).await;
        });
        Self {
            address,
            shared,
            _server: server,
        }
    }

    /// The base URL for clients.
    ///
    /// # Panics
    /// Never; the address is one.
    #[must_use]
    #[expect(clippy::expect_used, reason = "an address and a path are a URL")]
    pub fn base_url(&self) -> Url {
        Url::parse(&format!("http://{}/v1", self.address)).expect("a URL")
    }

    /// Makes all three providers of a configuration this upstream's.
    pub fn configure(&self, config: &mut Config) {
        let (base_url, api_key) = (Some(self.base_url()), Some(Secret::new("upstream-key")));
        config.chat = ChatConfig {
            base_url: base_url.clone(),
            api_key: api_key.clone(),
            model: Some("scripted-chat".to_owned()),
        };
        self.listen(config);
        config.synthesizer = SynthesizerConfig {
            base_url,
            api_key,
            model: Some("scripted-voice".to_owned()),
            ..SynthesizerConfig::default()
        };
    }

    /// Has recordings heard here.
    pub fn listen(&self, config: &mut Config) {
        config.transcriber = TranscriberConfig {
            base_url: Some(self.base_url()),
            api_key: Some(Secret::new("upstream-key")),
            model: Some("scripted-transcriber".to_owned()),
            ..TranscriberConfig::default()
        };
    }

    /// Makes the embedder of a configuration this upstream's, under this name.
    pub fn embed(&self, config: &mut Config, model: &str) {
        config.embedder = EmbedderConfig {
            base_url: Some(self.base_url()),
            api_key: Some(Secret::new("upstream-key")),
            model: Some(model.to_owned()),
            ..EmbedderConfig::default()
        };
    }

    /// Adds this upstream's models to a configuration: `scripted-chat` and `scripted-responses`, with prices.
    ///
    /// # Panics
    /// Never; the prices are numbers.
    #[expect(clippy::expect_used, reason = "the prices are numbers")]
    pub fn offer(&self, config: &mut Config) {
        let price = |usd: &str| usd.parse::<Usd>().expect("a price");
        for (name, api) in [
            ("scripted-chat", ModelApi::Chat),
            ("scripted-responses", ModelApi::Responses),
        ] {
            let model = ModelConfig {
                api,
                base_url: Some(self.base_url()),
                api_key: Some(Secret::new("upstream-key")),
                input_usd: Some(price("2.50")),
                cached_input_usd: Some(price("1.25")),
                output_usd: Some(price("10")),
                ..ModelConfig::default()
            };
            config.models.insert(name.to_owned(), model);
        }
    }

    /// The next request of this API gets this script; further ones queue.
    pub fn script(&self, api: Api, script: Script) {
        let mut state = self.shared.lock();
        match state.queued.iter_mut().find(|(of, _)| *of == api) {
            Some((_, queue)) => queue.push_back(script),
            None => state.queued.push((api, VecDeque::from([script]))),
        }
    }

    /// No request has a script of its own any more.
    pub fn forget_scripts(&self) {
        self.shared.lock().queued.clear();
    }

    /// Holds the answers to further requests of this API back, heads and all, until the result is dropped.
    pub fn hold(&self, api: Api) -> HeldAnswers {
        let gate = Arc::new(Semaphore::new(0));
        self.shared.lock().gates.push((api, Arc::clone(&gate)));
        HeldAnswers(gate)
    }

    /// Requests of this API without a script of their own get this one.
    pub fn set_default(&self, api: Api, script: Script) {
        let mut state = self.shared.lock();
        state.defaults.retain(|(of, _)| *of != api);
        state.defaults.push((api, script));
    }

    /// The requests of this API so far.
    #[must_use]
    pub fn requests(&self, api: Api) -> Vec<Recorded> {
        let state = self.shared.lock();
        let requests = state.requests.iter().filter(|request| request.api == api);
        requests.cloned().collect()
    }

    /// How many requests there were so far, of all APIs.
    #[must_use]
    pub fn all_requests(&self) -> usize {
        self.shared.lock().requests.len()
    }

    /// Waits until a request of this API has ended.
    ///
    /// # Errors
    /// When it runs on for the time given.
    pub async fn ended(
        &self,
        api: Api,
        nth: usize,
        within: Duration,
    ) -> anyhow::Result<(End, Instant)> {
        let end = news::some(|| self.requests(api).get(nth)?.end);
        timeout(within, end).await.context("the request runs on")
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Scripts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a request and gives its script.
    fn begin(self: &Arc<Self>, api: Api, headers: &HeaderMap, body: Value) -> (Script, Watch) {
        let mut state = self.lock();
        let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        let queued = state
            .queued
            .iter_mut()
            .find(|(of, _)| *of == api)
            .and_then(|(_, queue)| queue.pop_front());
        let script = queued.unwrap_or_else(|| {
            let default = state.defaults.iter().find(|(of, _)| *of == api);
            default
                .map(|(_, script)| script.clone())
                .unwrap_or_default()
        });
        state.requests.push(Recorded {
            api,
            authorization: header("authorization"),
            traceparent: header("traceparent"),
            body,
            at: Instant::now(),
            pieces: 0,
            end: None,
            fault: script.fault.clone(),
            output_tokens: output_tokens(&script),
        });
        news::tell();
        let index = state.requests.len() - 1;
        let gates = state.gates.iter().filter(|(of, _)| *of == api);
        let gates = gates.map(|(_, gate)| Arc::clone(gate)).collect();
        let shared = Arc::clone(self);
        (
            script,
            Watch {
                shared,
                index,
                gates,
                answered: false,
            },
        )
    }
}

/// Sees how a request ends: it is dropped with the answer, finished or not.
#[derive(Debug)]
struct Watch {
    shared: Arc<Shared>,
    index: usize,
    gates: Vec<Arc<Semaphore>>,
    answered: bool,
}

impl Watch {
    /// Waits until nobody holds the answer back.
    async fn released(&self) {
        for gate in &self.gates {
            // No permit is ever added, so this waits for the end of the semaphore.
            let _ = gate.acquire().await;
        }
    }

    fn handed_out(&self) {
        if let Some(request) = self.shared.lock().requests.get_mut(self.index) {
            request.pieces += 1;
        }
        news::tell();
    }

    fn answered(&mut self) {
        self.answered = true;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let end = if self.answered {
            End::Answered
        } else {
            End::Disconnected
        };
        if let Some(request) = self.shared.lock().requests.get_mut(self.index) {
            request.end = Some((end, Instant::now()));
        }
        news::tell();
    }
}

async fn models() -> Json<Value> {
    Json(json!({"object": "list", "data": []}))
}

async fn chat(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let kind = kind(&body);
    let (script, watch) = shared.begin(Api::Chat, &headers, body.clone());
    let answer = text::chat(&script, &body);
    answers::send(script, kind, answer, watch).await
}

async fn responses(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let kind = kind(&body);
    let (script, watch) = shared.begin(Api::Responses, &headers, body.clone());
    let answer = text::responses(&script, &body);
    answers::send(script, kind, answer, watch).await
}

/// Its requests are those of responses, with `compact` in them.
async fn compact(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(mut body): Json<Value>,
) -> Response {
    body["compact"] = json!(true);
    let (script, watch) = shared.begin(Api::Responses, &headers, body.clone());
    let answer = text::compaction(&script, &body);
    answers::send(script, "application/json", answer, watch).await
}

/// The content type of a text answer.
fn kind(request: &Value) -> &'static str {
    match request["stream"] == true {
        true => "text/event-stream",
        false => "application/json",
    }
}

async fn transcription(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    mut form: Multipart,
) -> Response {
    let mut body = json!({});
    loop {
        match form.next_field().await {
            Ok(Some(field)) => {
                let name = field.name().unwrap_or_default().to_owned();
                let Ok(bytes) = field.bytes().await else {
                    return StatusCode::BAD_REQUEST.into_response();
                };
                if name == "file" {
                    body["file_bytes"] = json!(bytes.len());
                    body["file_begins"] =
                        json!(String::from_utf8_lossy(&bytes[..bytes.len().min(4)]));
                } else {
                    body[name] = json!(String::from_utf8_lossy(&bytes));
                }
            }
            Ok(None) => break,
            Err(_) => return StatusCode::BAD_REQUEST.into_response(),
        }
    }
    let (script, watch) = shared.begin(Api::Transcription, &headers, body);
    let answer = answers::transcription(&script);
    answers::send(script, "application/json", answer, watch).await
}

async fn speech(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let input = body["input"].as_str().unwrap_or_default().to_owned();
    let (script, watch) = shared.begin(Api::Speech, &headers, body);
    let answer = answers::speech(&script, &input);
    let kind = if script.wav { "audio/wav" } else { "audio/pcm" };
    answers::send(script, kind, answer, watch).await
}

async fn embeddings(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let (script, watch) = shared.begin(Api::Embeddings, &headers, body.clone());
    let answer = embeddings::answer(&script, &body);
    answers::send(script, "application/json", answer, watch).await
}
