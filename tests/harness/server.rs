//! The parts of a server that calls, jobs and webhooks need, on a port of its own.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use colloquy::{
    App, calls,
    clock::{Clock, SystemClock},
    config::{Config, Secret},
    jobs::{self, Registry, Settings},
    node,
    providers::{
        ChatModel, ChatRequest, ProviderError, ProviderErrorKind, Providers, SpeechRequest,
        SpeechStream, Synthesizer, TextStream, Transcriber, Utterance,
    },
    store::Store,
    webhooks,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{app::ADMIN_KEY, database::TestDatabase};

/// A running server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its parts.
    pub app: App,
    /// Its origin.
    pub base: String,
    client: reqwest::Client,
    /// `admin`, and `partner:<partner>` for `acme` and `other`.
    keys: HashMap<String, String>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// The body; null when it is not JSON.
    pub body: Value,
}

/// Settings of the worker that make tests quick.
#[must_use]
pub fn quick() -> Settings {
    Settings {
        poll: Duration::from_millis(20),
        grace: Duration::from_millis(50),
        ..Settings::default()
    }
}

async fn bind(config: &mut Config) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    config.http.listen = listener.local_addr().unwrap();
    listener
}

/// The settings of a node on a database. Servers of the same `node` share a data folder.
#[must_use]
pub fn settings(database: &TestDatabase, node: &str) -> Config {
    let mut config = Config {
        store: database.config(),
        ..Config::default()
    };
    let file = config.store.dir.join("colloquy.db");
    config
        .store
        .database_url
        .get_or_insert_with(|| Secret::new(format!("sqlite://{}", file.display())));
    config.store.dir = config.store.dir.join(node);
    config.admin_key = Some(Secret::new(ADMIN_KEY));
    // Tests poll.
    config.limits.request_burst = 100_000;
    config
}

/// The kind of a database, for messages and names.
#[must_use]
pub fn kind(database: &TestDatabase) -> &'static str {
    if database.is_postgres() {
        "postgres"
    } else {
        "sqlite"
    }
}

/// An app on a migrated database, joined as a node; nothing runs yet.
pub async fn app(config: Config, clock: Arc<dyn Clock>) -> App {
    let store = Store::open(&config.store).await.unwrap();
    store.migrate().await.unwrap();
    let silent = Arc::new(Silent);
    let providers = Providers {
        chat: silent.clone(),
        transcriber: silent.clone(),
        synthesizer: silent,
    };
    let app = App::with_clock(config, store, providers, clock);
    node::join(&app).await.unwrap();
    app
}

impl Server {
    /// A server with the machine's clock and a quick worker for webhooks.
    pub async fn start(mut config: Config) -> Self {
        let listener = bind(&mut config).await;
        let app = app(config, Arc::new(SystemClock)).await;
        let registry = Registry::default().with::<webhooks::Deliver>();
        jobs::start(&app, registry, quick()).await.unwrap();
        Self::serve(app, listener).await
    }

    /// A server without a worker: what is queued stays queued.
    pub async fn without_worker(mut config: Config, clock: Arc<dyn Clock>) -> Self {
        let listener = bind(&mut config).await;
        Self::serve(app(config, clock).await, listener).await
    }

    async fn serve(app: App, listener: TcpListener) -> Self {
        calls::start(&app).await.unwrap();
        webhooks::start(&app).unwrap();
        let router =
            colloquy::http::router(app.clone()).into_make_service_with_connect_info::<SocketAddr>();
        let address = app.config.http.listen;
        let shutdown = app.shutdown.clone();
        app.tasks.spawn(async move {
            axum::serve(listener, router)
                .with_graceful_shutdown(async move { shutdown.cancelled().await })
                .await
                .unwrap();
        });
        let mut server = Self {
            app,
            base: format!("http://{address}"),
            client: client(),
            keys: HashMap::from([("admin".to_owned(), ADMIN_KEY.to_owned())]),
        };
        for partner in ["acme", "other"] {
            server.settle(partner).await;
        }
        server
    }

    /// Makes a partner, unless another server on the database did, a key for it and its character `ada`.
    async fn settle(&mut self, partner: &str) {
        let path = format!("/api/partners/{partner}");
        let mut made = self.post("admin", &path, &json!({})).await;
        if made.status == 409 {
            let path = format!("/api/keys/{partner}");
            made = self.post("admin", &path, &json!({"name": "another"})).await;
        }
        let key = made.body["api_key"].as_str().expect("a key").to_owned();
        self.keys.insert(format!("partner:{partner}"), key);
        let ada = json!({
            "name": "ada",
            "personality": "You are Ada, a pilot of {{ ship }}.",
            "parameters": {"ship": "a boat"},
        });
        let path = format!("/api/characters/{partner}");
        let saved = self.post("admin", &path, &ada).await;
        assert!(matches!(saved.status, 201 | 409), "{saved:?}");
    }

    /// The key behind a name that the requests below take.
    #[must_use]
    pub fn key(&self, name: &str) -> &str {
        &self.keys[name]
    }

    /// A GET.
    pub async fn get(&self, key: &str, path: &str) -> Answer {
        let request = self.client.get(format!("{}{path}", self.base));
        send(request.header("x-api-key", &self.keys[key])).await
    }

    /// A POST with a JSON body.
    pub async fn post(&self, key: &str, path: &str, body: &Value) -> Answer {
        self.post_with(key, path, |request| request.json(body))
            .await
    }

    /// A POST with a body of any kind.
    pub async fn post_with(
        &self,
        key: &str,
        path: &str,
        body: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Answer {
        let request = self.client.post(format!("{}{path}", self.base));
        send(body(request.header("x-api-key", &self.keys[key]))).await
    }

    /// Stops the server as SIGTERM does, and waits until all of its tasks ended.
    pub async fn stop(self) {
        drop(self.client);
        self.app.shutdown.cancel();
        self.app.tasks.close();
        self.app.tasks.wait().await;
    }
}

/// A client for plain HTTP.
#[must_use]
pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Sends a request.
pub async fn send(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let header = response.headers().get("retry-after");
    Answer {
        status: response.status().as_u16(),
        retry_after: header.map(|value| value.to_str().unwrap().to_owned()),
        body: response.json().await.unwrap_or(Value::Null),
    }
}

/// Waits until something holds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    for _ in 0..1000 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not come to pass: {what}");
}

/// Providers that never answer.
struct Silent;

impl Silent {
    fn refuse<T>() -> Result<T, ProviderError> {
        Err(ProviderError {
            provider: "silent".to_owned(),
            kind: ProviderErrorKind::Rejected,
            message: "no provider in this test".to_owned(),
            retry_after: None,
        })
    }
}

#[async_trait]
impl ChatModel for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    async fn stream(&self, _: ChatRequest) -> Result<TextStream, ProviderError> {
        Self::refuse()
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Self::refuse()
    }
}

#[async_trait]
impl Transcriber for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    async fn transcribe(&self, _: Utterance) -> Result<String, ProviderError> {
        Self::refuse()
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Self::refuse()
    }
}

#[async_trait]
impl Synthesizer for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    async fn speak(&self, _: SpeechRequest) -> Result<SpeechStream, ProviderError> {
        Self::refuse()
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Self::refuse()
    }
}
