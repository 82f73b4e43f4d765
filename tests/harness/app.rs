//! A server on an ephemeral port, with its own database, clock and doubles.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use colloquy::{
    App, Config,
    clock::{Clock, ManualClock, SystemClock},
    config::Secret,
    providers::Providers,
    start,
    store::Store,
};
use jiff::Timestamp;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{TestDatabase, doubles::Doubles};

/// The admin key of test servers.
pub const ADMIN_KEY: &str = "test-admin-key";

/// Sets a server up.
pub struct TestAppBuilder {
    database: Arc<TestDatabase>,
    config: Config,
    manual: Option<Arc<ManualClock>>,
    providers: Option<Providers>,
}

impl TestAppBuilder {
    /// Time stands still until [`TestApp::advance`].
    #[must_use]
    pub fn manual_clock(mut self) -> Self {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().expect("a time");
        self.manual = Some(Arc::new(ManualClock::new(now)));
        self
    }

    /// Changes the settings.
    #[must_use]
    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Uses these providers instead of the doubles.
    #[must_use]
    pub fn providers(mut self, providers: Providers) -> Self {
        self.providers = Some(providers);
        self
    }

    /// Migrates the database and serves.
    pub async fn start(mut self) -> TestApp {
        start::install_tls_provider();
        let listener = start::bind(&mut self.config).await.expect("a free port");
        let store = Store::open(&self.config.store).await.expect("a database");
        store.migrate().await.expect("the migrations run");
        let doubles = Doubles::default();
        let providers = self.providers.unwrap_or_else(|| doubles.providers());
        let clock: Arc<dyn Clock> = match &self.manual {
            Some(manual) => manual.clone(),
            None => Arc::new(SystemClock),
        };
        let address = listener.local_addr().expect("an address");
        let app = App::with_clock(self.config, store, providers, clock);
        start::start_background(&app)
            .await
            .expect("background work starts");
        let server = tokio::spawn(start::serve(app.clone(), listener));
        TestApp {
            app,
            address,
            doubles,
            http: reqwest::Client::builder()
                .no_proxy()
                .timeout(Duration::from_secs(30))
                .build()
                .expect("an HTTP client"),
            manual: self.manual,
            database: self.database,
            server: Some(server),
        }
    }
}

/// A running server. Dropping it tells the server to stop; [`TestApp::stop`] waits for it.
pub struct TestApp {
    /// The server's parts.
    pub app: App,
    /// Where it listens.
    pub address: SocketAddr,
    /// The switches of its providers, unless the test gave its own.
    pub doubles: Doubles,
    /// A client without any key.
    pub http: reqwest::Client,
    manual: Option<Arc<ManualClock>>,
    database: Arc<TestDatabase>,
    server: Option<JoinHandle<anyhow::Result<()>>>,
}

/// A partner and its first key.
#[derive(Debug, Clone)]
pub struct TestPartner {
    /// The identifier.
    pub id: String,
    /// The key.
    pub key: String,
}

/// An answer, read in full.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: reqwest::header::HeaderMap,
    /// The body as text.
    pub text: String,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text))
    }

    /// A header as text, empty when it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// The body as JSON, after a look at the status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        if self.text.is_empty() {
            return Value::Null;
        }
        self.json()
    }
}

impl TestApp {
    /// A server on this database, with the settings of tests.
    pub fn builder(database: TestDatabase) -> TestAppBuilder {
        Self::builder_on(Arc::new(database))
    }

    /// The same on a database that another server uses, or used, too.
    pub fn builder_on(database: Arc<TestDatabase>) -> TestAppBuilder {
        let mut config = Config {
            admin_key: Some(Secret::new(ADMIN_KEY)),
            store: database.config(),
            ..Config::default()
        };
        config.http.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.http.drain_seconds = 5;
        TestAppBuilder {
            database,
            config,
            manual: None,
            providers: None,
        }
    }

    /// The database, for a second server on it.
    pub fn database(&self) -> Arc<TestDatabase> {
        Arc::clone(&self.database)
    }

    /// Moves the clock of a server with [`TestAppBuilder::manual_clock`].
    pub fn advance(&self, by: Duration) {
        self.manual
            .as_ref()
            .expect("the test has a manual clock")
            .advance(by);
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A request without a key.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.url(path))
    }

    /// Sends a request with a key and, unless it is null, a JSON body.
    pub async fn call(&self, key: &str, method: Method, path: &str, body: Value) -> Answer {
        let mut request = self.request(method, path).header("x-api-key", key);
        if !body.is_null() {
            request = request.json(&body);
        }
        send(request).await
    }

    /// `GET` with a key.
    pub async fn get(&self, key: &str, path: &str) -> Answer {
        self.call(key, Method::GET, path, Value::Null).await
    }

    /// `POST` of JSON with a key.
    pub async fn post(&self, key: &str, path: &str, body: Value) -> Answer {
        self.call(key, Method::POST, path, body).await
    }

    /// `PUT` of JSON with a key.
    pub async fn put(&self, key: &str, path: &str, body: Value) -> Answer {
        self.call(key, Method::PUT, path, body).await
    }

    /// `DELETE` with a key.
    pub async fn delete(&self, key: &str, path: &str) -> Answer {
        self.call(key, Method::DELETE, path, Value::Null).await
    }

    /// Makes a partner through the API.
    pub async fn partner(&self, id: &str) -> TestPartner {
        let made = self
            .post(ADMIN_KEY, &format!("/api/partners/{id}"), json!({}))
            .await
            .expect(201);
        TestPartner {
            id: id.to_owned(),
            key: made["api_key"].as_str().expect("a key").to_owned(),
        }
    }

    /// Makes a key of a partner through the API; `body` as the interface takes it.
    pub async fn key(&self, partner: &str, body: Value) -> Value {
        self.post(ADMIN_KEY, &format!("/api/keys/{partner}"), body)
            .await
            .expect(201)
    }

    /// Saves a character through the API.
    pub async fn character(
        &self,
        partner: &TestPartner,
        name: &str,
        personality: &str,
        parameters: Value,
    ) -> Value {
        let body = json!({"name": name, "personality": personality, "parameters": parameters});
        self.post(
            &partner.key,
            &format!("/api/characters/{}", partner.id),
            body,
        )
        .await
        .expect(201)
    }

    /// Tells the server to stop and waits until it has.
    pub async fn stop(mut self) {
        self.app.shutdown.cancel();
        if let Some(server) = self.server.take() {
            server
                .await
                .expect("the server ends")
                .expect("the server ends well");
        }
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.app.shutdown.cancel();
    }
}

/// Sends a request and reads the answer.
pub async fn send(request: RequestBuilder) -> Answer {
    let response = request.send().await.expect("an answer");
    Answer {
        status: response.status(),
        headers: response.headers().clone(),
        text: response.text().await.expect("a body"),
    }
}
