//! A server on an ephemeral port, with the database, the clock and the doubles of its test.

use std::{net::SocketAddr, ops::Deref, sync::Arc, time::Duration};

use colloquy::{
    App, Config,
    clock::{Clock, ManualClock, SystemClock},
    jobs,
    kernel::Base,
    node::DataFolder,
    providers::Providers,
    server,
    store::Executor as _,
};
use futures_util::{FutureExt as _, future::BoxFuture, stream};
use reqwest::{Body, Method, RequestBuilder, multipart::Part};
use serde_json::Value;
use support::clock::manual;
pub use test_routes::{ADMIN_KEY, Answer, TestPartner, TestQuota, quick};
use test_routes::{Answers, TestClient, settings, works_off};
use tokio::task::JoinHandle;

use crate::{TestDatabase, doubles::Doubles, process::binary};

/// Sets a server up.
pub struct TestAppBuilder {
    database: TestDatabase,
    config: Config,
    manual: Option<Arc<ManualClock>>,
    doubles: Doubles,
    providers: Option<Providers>,
    worker: Option<jobs::Settings>,
}

impl TestAppBuilder {
    /// Time stands still until [`TestApp::advance`].
    #[must_use]
    pub fn manual_clock(self) -> Self {
        self.clock(manual())
    }

    /// Time is what this clock says, which others may share.
    #[must_use]
    pub fn clock(mut self, clock: Arc<ManualClock>) -> Self {
        self.manual = Some(clock);
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
            None => Arc::new(SystemClock),
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
        let http = client();
        TestApp {
            app,
            address,
            doubles,
            client: TestClient::new(Listener {
                http: http.clone(),
                address,
            }),
            http,
            manual,
            _database: database,
            server: Some(server),
        }
    }
}

/// A running server, which is asked by way of the [`TestClient`] that this derefs to. Dropping it tells the server to stop; [`TestApp::stop`] waits
/// for it.
pub struct TestApp {
    /// The server's parts.
    pub app: App,
    /// Where it listens.
    pub address: SocketAddr,
    /// The switches of its providers, unless the test gave its own.
    pub doubles: Doubles,
    /// A client without any key.
    pub http: reqwest::Client,
    client: TestClient,
    manual: Option<Arc<ManualClock>>,
    _database: TestDatabase,
    server: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Deref for TestApp {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.client
    }
}

/// A server that listens.
struct Listener {
    http: reqwest::Client,
    address: SocketAddr,
}

impl Answers for Listener {
    fn answer(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Value,
    ) -> BoxFuture<'static, Answer> {
        let url = format!("http://{}{path}", self.address);
        let mut request = self.http.request(method, url).header("x-api-key", key);
        if !body.is_null() {
            request = request.json(&body);
        }
        send(request).boxed()
    }
}

impl TestApp {
    /// A server on this database, which others may use too, with the settings of tests.
    pub fn builder(database: &TestDatabase) -> TestAppBuilder {
        let mut config = settings(database);
        config.http.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.http.drain_seconds = 5;
        TestAppBuilder {
            database: database.clone(),
            config,
            manual: None,
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
        works_off(&self.app.store, kind).await;
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
