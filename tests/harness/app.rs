//! A server on an ephemeral port, with the database, the clock and the doubles of its test.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::extract::FromRequestParts as _;
use colloquy::{
    App, Config,
    accounts::quotas::{Quota, QuotaCaller},
    clock::{Clock, ManualClock},
    config::Secret,
    http::ApiError,
    jobs,
    kernel::Base,
    node::DataFolder,
    providers::Providers,
    server,
    store::Executor as _,
};
use futures_util::stream;
use jiff::Timestamp;
use reqwest::{Body, Method, RequestBuilder, StatusCode, multipart::Part};
use serde_json::{Value, json};
use support::clock::WrongClock;
use tokio::task::JoinHandle;

use crate::{TestDatabase, doubles::Doubles, eventually, process::binary};

/// The admin key of test servers.
pub const ADMIN_KEY: &str = "admin-key-of-the-tests";

/// Settings of the worker that make tests quick.
pub fn quick() -> jobs::Settings {
    jobs::Settings {
        poll: Duration::from_millis(20),
        grace: Duration::from_millis(50),
        ..jobs::Settings::default()
    }
}

/// Sets a server up.
pub struct TestAppBuilder {
    database: TestDatabase,
    config: Config,
    manual: Option<Arc<ManualClock>>,
    wrong_by: i64,
    doubles: Doubles,
    providers: Option<Providers>,
    worker: Option<jobs::Settings>,
}

impl TestAppBuilder {
    /// Time stands still until [`TestApp::advance`].
    #[must_use]
    pub fn manual_clock(self) -> Self {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().expect("a time");
        self.clock(Arc::new(ManualClock::new(now)))
    }

    /// Time is what this clock says, which others may share.
    #[must_use]
    pub fn clock(mut self, clock: Arc<ManualClock>) -> Self {
        self.manual = Some(clock);
        self
    }

    /// Makes the clock of this node's machine wrong by so many seconds.
    #[must_use]
    pub fn wrong_by(mut self, seconds: i64) -> Self {
        self.wrong_by = seconds;
        self
    }

    /// Changes the settings.
    #[must_use]
    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Gives the server a data folder of this name; servers of one name share it.
    #[must_use]
    pub fn node(mut self, name: &str) -> Self {
        self.config.store = self.database.node_config(name);
        self
    }

    /// Uses these providers instead of the doubles.
    #[must_use]
    pub fn providers(mut self, providers: Providers) -> Self {
        self.providers = Some(providers);
        self
    }

    /// What is not trusted is decoded by the server's binary, as a server does with its own.
    #[must_use]
    pub fn with_decoder(mut self) -> Self {
        self.config.sandbox.program = Some(binary().clone());
        self
    }

    /// The worker of jobs looks and lets go often, as [`quick`] says.
    #[must_use]
    pub fn quick_worker(mut self) -> Self {
        self.worker = Some(quick());
        self
    }

    /// No worker runs: what is queued stays queued.
    #[must_use]
    pub fn without_worker(mut self) -> Self {
        self.worker = None;
        self
    }

    /// Migrates the database and gives the parts of a server that has joined as a node; nothing runs.
    pub async fn idle(self) -> App {
        server::install_tls_provider();
        let store = self.config.store.open().await.expect("a database");
        store.migrate().await.expect("the migrations run");
        let providers = self
            .providers
            .unwrap_or_else(|| self.doubles.providers(&self.config));
        let clock: Arc<dyn Clock> = match self.manual {
            Some(manual) => manual,
            None => Arc::new(WrongClock::by_seconds(self.wrong_by)),
        };
        let folder = DataFolder::claim(&self.config.store, &*clock);
        let folder = folder.await.expect("the data folder");
        let base = Base::new(self.config, store, clock);
        App::open(base, folder, providers)
            .await
            .expect("a server's parts")
    }

    /// Migrates the database and serves.
    pub async fn start(mut self) -> TestApp {
        let listener = server::bind(&mut self.config).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (database, doubles) = (self.database.clone(), self.doubles.clone());
        let (manual, worker) = (self.manual.clone(), self.worker);
        let app = self.idle().await;
        server::start_background(&app)
            .await
            .expect("background work starts");
        if let Some(settings) = worker {
            server::start_worker(&app, settings)
                .await
                .expect("the worker starts");
        }
        let server = tokio::spawn(server::serve(app.clone(), listener));
        TestApp {
            app,
            address,
            doubles,
            http: client(),
            manual,
            _database: database,
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
    _database: TestDatabase,
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

/// A quota and its key.
#[derive(Debug, Clone)]
pub struct TestQuota {
    /// Where the API has it.
    pub path: String,
    /// The key.
    pub key: String,
}

impl TestQuota {
    /// The quota as this server's handlers get it.
    pub async fn caller(&self, app: &App) -> Result<Arc<Quota>, ApiError> {
        let request = axum::http::Request::get("/").header("x-api-key", &self.key);
        let (mut parts, ()) = request.body(()).expect("a request").into_parts();
        let caller = QuotaCaller::from_request_parts(&mut parts, app).await;
        caller.map(|QuotaCaller(quota)| quota)
    }
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
    /// A server on this database, which others may use too, with the settings of tests.
    pub fn builder(database: &TestDatabase) -> TestAppBuilder {
        let mut config = Config {
            admin_key: Some(Secret::new(ADMIN_KEY)),
            store: database.config(),
            ..Config::default()
        };
        config.http.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.http.drain_seconds = 5;
        // Tests ask for a state far more often than a partner would.
        config.limits.request_burst = 100_000;
        TestAppBuilder {
            database: database.clone(),
            config,
            manual: None,
            wrong_by: 0,
            doubles: Doubles::default(),
            providers: None,
            worker: Some(jobs::Settings::default()),
        }
    }

    /// Moves the clock of a server with [`TestAppBuilder::manual_clock`]. Its worker looks at once for what is due then.
    pub fn advance(&self, by: Duration) {
        self.manual
            .as_ref()
            .expect("the test has a manual clock")
            .advance(by);
        self.app.kernel.jobs.wake();
    }

    /// Waits until no job of this kind is queued or runs: nothing more comes of what was asked for.
    pub async fn works_off(&self, kind: &str) {
        let db = self.app.store.db();
        let open = format!(
            "SELECT COUNT(*) FROM work WHERE kind = '{kind}' AND state IN ('queued', 'running')"
        );
        eventually("no job is left", async || {
            db.fetch_count(open.clone()).await.expect("a number") == 0
        })
        .await;
    }

    /// Waits for the end of the only job of this kind, and moves the clock of a server with [`TestAppBuilder::manual_clock`] to each of its
    /// attempts. Returns how many there were, and for how long they were waited for.
    pub async fn attempts(&self, kind: &str) -> (u64, Duration) {
        let db = self.app.store.db();
        let find = async |column: &str, states: &str| {
            let sql =
                format!("SELECT {column} FROM work WHERE kind = '{kind}' AND state IN ({states})");
            db.fetch_count(sql).await.expect("a number")
        };
        let mut waited = Duration::ZERO;
        for _ in 0..3_000 {
            let attempts = find("fence", "'done', 'failed'").await;
            if attempts > 0 {
                return (attempts, waited);
            }
            let now = self.app.clock.now_ms().unsigned_abs();
            let wait = find("run_at", "'queued'").await.saturating_sub(now);
            let wait = Duration::from_millis(wait);
            waited += wait;
            self.advance(wait);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it did not end: {kind}");
    }

    /// Sets the time of day of a server with [`TestAppBuilder::manual_clock`].
    pub fn set_clock(&self, now: &str) {
        let clock = self.manual.as_ref().expect("the test has a manual clock");
        clock.set(now.parse().expect("a time"));
        self.app.kernel.jobs.wake();
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

    /// Makes the partners `acme` and `other`, each with the character `ada`.
    pub async fn acme_and_other(&self) -> (TestPartner, TestPartner) {
        let (acme, other) = (self.partner("acme").await, self.partner("other").await);
        for partner in [&acme, &other] {
            let parameters = json!({"ship": "a boat"});
            self.character(
                partner,
                "ada",
                "You are Ada, a pilot of {{ ship }}.",
                parameters,
            )
            .await;
        }
        (acme, other)
    }

    /// Makes a key of a partner through the API; `body` as the interface takes it.
    pub async fn key(&self, partner: &str, body: Value) -> Value {
        self.post(ADMIN_KEY, &format!("/api/keys/{partner}"), body)
            .await
            .expect(201)
    }

    /// Makes a quota of a partner through the API; `body` as the interface takes it.
    pub async fn quota(&self, partner: &TestPartner, body: Value) -> TestQuota {
        let path = format!("/api/quotas/{}", partner.id);
        let made = self.post(&partner.key, &path, body).await.expect(201);
        let id = made["id"].as_str().expect("an id");
        TestQuota {
            path: format!("{path}/{id}"),
            key: made["api_key"].as_str().expect("a key").to_owned(),
        }
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
        self.app.kernel.shutdown.cancel();
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
        self.app.kernel.shutdown.cancel();
    }
}

/// The bytes of the texts of `acme`, after a comparison with its rows.
pub async fn counted(server: &TestApp) -> u64 {
    let corrected = server::recount_texts(&server.app.store).await;
    assert_eq!(corrected.expect("the sums of texts"), 0);
    let sql = "SELECT texts FROM partner_storage WHERE partner = 'acme'";
    let counted = server.app.store.db().fetch_count(sql).await;
    counted.expect("the sum of texts")
}

/// A file of so many mebibytes of nothing behind its beginning, which is made while it is sent.
pub fn streamed(name: &str, beginning: &'static [u8], mebibytes: usize) -> Part {
    let piece = move |at: usize| {
        let mut piece = vec![b'x'; 1024 * 1024];
        if at == 0 {
            piece[..beginning.len()].copy_from_slice(beginning);
        }
        Ok::<_, std::io::Error>(piece)
    };
    let body = Body::wrap_stream(stream::iter((0..mebibytes).map(piece)));
    Part::stream(body).file_name(name.to_owned())
}

/// A client without connections.
pub fn client() -> reqwest::Client {
    server::install_tls_provider();
    reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(30))
        .build()
        .expect("an HTTP client")
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
