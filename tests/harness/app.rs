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
};
use futures_util::{FutureExt as _, future::BoxFuture, stream};
use reqwest::{Body, Method, RequestBuilder, header::CONTENT_TYPE, multipart::Part};
use support::{clock::manual, news};
pub use test_routes::{ADMIN_KEY, Answer, TestPartner, TestQuota, quick};
use test_routes::{Answers, TestBody, TestClient, TestWork, binary, settings};
use tokio::task::JoinHandle;

use crate::{TestDatabase, doubles::Doubles, patience};

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
    /// Time goes on by itself, for tests of media, of sockets and of other programs. Otherwise it stands still until [`TestWork::advance`].
    #[must_use]
    pub fn real_time(mut self) -> Self {
        self.manual = None;
        self
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
        let store = news::follow(self.config.store.open().await.expect("a database"));
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
        let client = TestClient::new(Listener {
            http: http.clone(),
            address,
        });
        TestApp {
            work: TestWork::new(client, app.kernel.clone(), manual),
            app,
            address,
            doubles,
            http,
            _database: database,
            server: Some(server),
        }
    }
}

/// A running server, which is asked by way of the [`TestWork`] that this derefs to. Dropping it tells the server to stop; [`TestApp::stop`] waits
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
    work: TestWork,
    _database: TestDatabase,
    server: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Deref for TestApp {
    type Target = TestWork;

    fn deref(&self) -> &TestWork {
        &self.work
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
        body: TestBody,
    ) -> BoxFuture<'static, Answer> {
        let url = format!("http://{}{path}", self.address);
        let request = self.http.request(method, url).header("x-api-key", key);
        let request = match body {
            TestBody::Empty => request,
            TestBody::Json(body) => request.json(&body),
            TestBody::Form(form) => request.multipart(form),
            TestBody::Fields(fields) => {
                let kind = "application/x-www-form-urlencoded";
                request.header(CONTENT_TYPE, kind).body(fields)
            }
        };
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
            manual: Some(manual()),
            doubles: Doubles::default(),
            providers: None,
            worker: Some(jobs::Settings::default()),
        }
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
        .timeout(patience(Duration::from_secs(30)))
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
