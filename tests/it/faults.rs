//! The database fails while the server works: nothing that was answered with success is lost, what is refused is refused
//! soon, with a time to try again, and everything works again by itself.
//!
//! Each fault lasts for `COLLOQUY_TEST_FAULT_SECONDS`, 5 without it.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "helpers of tests are tests too, and the load is no part of a server"
)]

use std::{
    collections::BTreeMap,
    fs::Permissions,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use harness::{
    TestDatabase,
    app::{ADMIN_KEY, TestPartner, TestQuota},
    database::OwnPostgres,
    disk::SmallDisk,
    patience,
    process::Server,
};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _};
use sqlx_sqlite::SqliteConnection;
use tokio::{process::Command, task::JoinSet, time::sleep};

/// How long a request may take that finds the database away: a wait for a connection and a statement, each at its bound.
fn longest() -> Duration {
    Duration::from_secs(15) + patience(Duration::from_secs(5))
}

fn fault() -> Duration {
    let seconds = std::env::var("COLLOQUY_TEST_FAULT_SECONDS").map(|text| text.parse().unwrap());
    Duration::from_secs(seconds.unwrap_or(5))
}

/// Longer than a request waits for an answer of the database, so that some are refused.
const BEYOND_WAITS: Duration = Duration::from_secs(3);

/// What is asked for, over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Sort {
    Call,
    PaidCall,
    Response,
    StreamedResponse,
    Speech,
    Completion,
    Key,
}

const SORTS: [Sort; 7] = [
    Sort::Call,
    Sort::PaidCall,
    Sort::Response,
    Sort::StreamedResponse,
    Sort::Speech,
    Sort::Completion,
    Sort::Key,
];

/// What was answered with success: how it is read again.
#[derive(Debug, Clone)]
struct Accepted {
    key: String,
    path: String,
}

/// How the requests of a sort went.
#[derive(Debug, Default)]
struct Tally {
    accepted: usize,
    refused: usize,
    longest: Duration,
}

#[derive(Debug, Default)]
struct Seen {
    accepted: Vec<Accepted>,
    tallies: BTreeMap<Sort, Tally>,
    wrong: Vec<String>,
}

/// Who asks.
#[derive(Clone)]
struct World {
    partner: TestPartner,
    text: TestQuota,
    calls: TestQuota,
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
}

impl World {
    async fn new(server: &Server) -> Self {
        let partner = server.partner("acme").await;
        let quota = |kind| json!({"kinds": [kind], "period": "lifetime", "limits": {"tokens": 1_000_000_000_000_u64}});
        let calls = json!({"kinds": ["call"], "period": "lifetime"});
        let character = json!({"name": "ada", "personality": "You are Ada."});
        let path = "/api/characters/acme";
        let made = server.request(&partner.key, Method::POST, path);
        made.json(&character)
            .send()
            .await
            .unwrap()
            .error_for_status()
            .unwrap();
        Self {
            text: server.quota(&partner, &quota("text")).await,
            calls: server.quota(&partner, &calls).await,
            partner,
            seen: Arc::default(),
            stop: Arc::default(),
        }
    }

    fn ask(&self, server: &Server, sort: Sort) -> RequestBuilder {
        let post = |key: &str, path: &str, body: Value| {
            server.request(key, Method::POST, path).json(&body)
        };
        let (own, text) = (&self.partner.key, &self.text.key);
        let call = json!({"character": "repo:acme/ada", "call_time_limit_seconds": 60});
        match sort {
            Sort::Call => post(own, "/v2/calls", call),
            Sort::PaidCall => post(&self.calls.key, "/v2/calls", call),
            Sort::Response | Sort::StreamedResponse => {
                let stream = sort == Sort::StreamedResponse;
                let body =
                    json!({"model": "builtin/extractive", "input": "Hello", "stream": stream});
                post(text, "/v3/responses", body)
            }
            Sort::Speech => {
                let body = json!({"model": "colloquy-tts", "voice": "en", "input": "Hello"});
                post(own, "/v2/audio/speech", body)
            }
            Sort::Completion => {
                let message =
                    json!({"id": "m", "type": "text", "text": "Hi", "is_processed": false});
                let input = json!({"messages": [message], "character": "repo:acme/ada", "generate_audio": false});
                post(own, "/v2/completions", json!({"input": input}))
            }
            Sort::Key => post(own, "/api/keys/acme", json!({"name": "one more"})),
        }
    }

    /// How the thing is read that an answer tells of; `Err` when the answer is no success after all.
    fn accepted(&self, sort: Sort, body: &[u8]) -> Result<Option<Accepted>, String> {
        let json = || serde_json::from_slice::<Value>(body).map_err(|error| error.to_string());
        let of = |key: &str, path: String| {
            Some(Accepted {
                key: key.to_owned(),
                path,
            })
        };
        let own = &self.partner.key;
        Ok(match sort {
            Sort::Call => of(own, text(&json()?["data"]["id"])),
            Sort::PaidCall => of(&self.calls.key, text(&json()?["data"]["id"])),
            Sort::Completion => of(own, text(&json()?["id"])),
            Sort::Key => of(&text(&json()?["api_key"]), "/api/auth/me".to_owned()),
            Sort::Response => {
                let id = text(&json()?["id"]);
                of(&self.text.key, format!("/v3/responses/{id}"))
            }
            Sort::StreamedResponse => {
                let events = String::from_utf8_lossy(body);
                let last = events
                    .lines()
                    .rev()
                    .filter_map(|line| line.strip_prefix("data: "))
                    .filter(|data| data.starts_with('{'))
                    .find_map(|data| serde_json::from_str::<Value>(data).ok())
                    .ok_or("a stream without events")?;
                match last["type"].as_str() {
                    Some("response.completed") => {
                        let id = text(&last["response"]["id"]);
                        of(&self.text.key, format!("/v3/responses/{id}"))
                    }
                    Some("response.failed" | "error") => return Err("refused".to_owned()),
                    other => return Err(format!("a stream that ends with {other:?}")),
                }
            }
            Sort::Speech => None,
        })
    }

    /// Asks once, and notes how it went.
    async fn once(&self, server: &Server, sort: Sort) -> bool {
        let begun = Instant::now();
        let answer = async {
            let answer = self.ask(server, sort).send().await?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            Ok::<_, reqwest::Error>((status, headers, answer.bytes().await?))
        };
        let answer = answer.await;
        let took = begun.elapsed();
        let mut seen = self.seen.lock().unwrap();
        let tally = seen.tallies.entry(sort).or_default();
        tally.longest = tally.longest.max(took);
        let (status, headers, body) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                seen.wrong.push(format!("{sort:?}: {error:?}"));
                return false;
            }
        };
        if status.is_success() {
            match self.accepted(sort, &body) {
                Ok(accepted) => {
                    tally.accepted += 1;
                    seen.accepted.extend(accepted);
                    return true;
                }
                Err(refused) if refused == "refused" => tally.refused += 1,
                Err(wrong) => seen.wrong.push(format!("{sort:?}: {wrong}")),
            }
            return false;
        }
        tally.refused += 1;
        // The second where the server knows that the disk is full.
        let expected = [
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::INSUFFICIENT_STORAGE,
        ];
        if !expected.contains(&status) || !headers.contains_key("retry-after") {
            let body = String::from_utf8_lossy(&body).into_owned();
            seen.wrong.push(format!("{sort:?}: {status} {body}"));
        }
        false
    }

    /// Asks for everything, over and over, until it is told to stop.
    fn load(&self, server: &Arc<Server>) -> JoinSet<()> {
        let mut load = JoinSet::new();
        for sort in SORTS {
            let (world, server) = (self.clone(), Arc::clone(server));
            load.spawn(async move {
                while !world.stop.load(Ordering::Relaxed) {
                    world.once(&server, sort).await;
                    sleep(Duration::from_millis(40)).await;
                }
            });
        }
        load
    }

    /// How many requests were refused so far.
    fn refused(&self) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.tallies.values().map(|tally| tally.refused).sum()
    }

    /// How many of the things that were answered with success are not there.
    async fn lost(&self, server: &Server) -> Vec<String> {
        let accepted = self.seen.lock().unwrap().accepted.clone();
        let mut lost = Vec::new();
        for Accepted { key, path } in accepted {
            let read = async || {
                let answer = server.request(&key, Method::GET, &path).send().await;
                answer.unwrap().status()
            };
            let begun = Instant::now();
            let mut status = read().await;
            // What is in the journal alone is not there yet, and says so.
            while status == StatusCode::SERVICE_UNAVAILABLE && begun.elapsed() < longest() {
                sleep(Duration::from_millis(100)).await;
                status = read().await;
            }
            if status != StatusCode::OK {
                lost.push(format!("{path}: {status}"));
            }
        }
        lost
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn settings(config: &mut colloquy::Config) {
    config.limits.request_burst = 1_000_000;
    config.limits.requests_per_minute = 1_000_000;
    config.limits.completions_in_progress = 100_000;
    config.http.drain_seconds = 2;
}

async fn deep(server: &Server) -> StatusCode {
    let request = server.request(ADMIN_KEY, Method::GET, "/health/deep");
    request.send().await.unwrap().status()
}

/// Works, lets the database fail, and looks at everything.
async fn survive(database: TestDatabase, begin: impl AsyncFn(&Server), end: impl AsyncFn(&Server)) {
    let start = async || Server::start(&database, settings).await;
    survive_as(start, begin, end).await;
}

/// The same with a server that is started so.
async fn survive_as(
    start: impl AsyncFn() -> Server,
    begin: impl AsyncFn(&Server),
    end: impl AsyncFn(&Server),
) {
    let server = Arc::new(start().await);
    let world = World::new(&server).await;
    for sort in SORTS {
        assert!(world.once(&server, sort).await, "{sort:?} works");
    }
    let mut load = world.load(&server);
    sleep(Duration::from_millis(500)).await;
    begin(&server).await;
    let begun = Instant::now();
    let mut down = false;
    // It lasts until requests and the health check have noticed it.
    let has_passed = |down: bool| {
        let is_noticed = down && world.refused() > 0;
        begun.elapsed() >= fault() && (is_noticed || begun.elapsed() >= fault() + longest())
    };
    while !has_passed(down) {
        down |= deep(&server).await == StatusCode::SERVICE_UNAVAILABLE;
        sleep(Duration::from_millis(200)).await;
    }
    end(&server).await;
    // All of it works again by itself.
    let recovered = Instant::now();
    for sort in SORTS {
        while !world.once(&server, sort).await {
            let waited = recovered.elapsed();
            assert!(waited < longest(), "{sort:?} does not work again");
            sleep(Duration::from_millis(100)).await;
        }
    }
    world.stop.store(true, Ordering::Relaxed);
    while let Some(done) = load.join_next().await {
        done.unwrap();
    }
    for _ in 0..60 {
        assert!(world.once(&server, Sort::Call).await);
    }
    while deep(&server).await != StatusCode::OK {
        assert!(recovered.elapsed() < 2 * longest(), "the server stays down");
        sleep(Duration::from_millis(200)).await;
    }
    {
        let seen = world.seen.lock().unwrap();
        println!("{} s: {:?}", fault().as_secs(), seen.tallies);
        assert!(seen.wrong.is_empty(), "{:#?}", seen.wrong);
        for (sort, tally) in &seen.tallies {
            assert!(tally.longest < longest(), "{sort:?}: {tally:?}");
        }
    }
    assert!(world.refused() > 0, "there was no fault");
    assert!(down, "the health check noticed nothing");
    let lost = world.lost(&server).await;
    assert!(lost.is_empty(), "{} lost: {lost:#?}", lost.len());
    // Not in a transaction that nobody commits either.
    Arc::into_inner(server).unwrap().kill().await;
    let server = start().await;
    let lost = world.lost(&server).await;
    assert!(lost.is_empty(), "{} lost: {lost:#?}", lost.len());
}

/// Limits how large the files may be that the server writes; `None` for no limit.
async fn limit_files(server: &Server, bytes: Option<u64>) {
    let limit = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    let done = Command::from(server.command("prlimit"))
        .args(["--pid", &server.pid().to_string()])
        .arg(format!("--fsize={limit}:unlimited"))
        .status()
        .await;
    assert!(done.unwrap().success());
}

/// The first write that reaches the limit is cut short, as on a full disk; then every write fails.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_that_cannot_write() {
    let database = TestDatabase::sqlite();
    let log: PathBuf = database.config().dir.join("colloquy.db-wal");
    survive(
        database,
        async |server| {
            let bytes = std::fs::metadata(&log).unwrap().len();
            limit_files(server, Some(bytes + 10_000)).await;
            sleep(Duration::from_millis(300)).await;
            limit_files(server, Some(4_096)).await;
        },
        async |server| limit_files(server, None).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_on_a_full_disk() {
    let Some(disk) = SmallDisk::mount("24m") else {
        return;
    };
    let ballast = disk.path("ballast");
    survive(
        TestDatabase::sqlite_in(disk.path("data")),
        async |_| {
            let mut file = std::fs::File::create(&ballast).unwrap();
            while file.write_all(&[7; 4_096]).is_ok() {}
        },
        async |_| std::fs::remove_file(&ballast).unwrap(),
    )
    .await;
}

/// The folder and its files may only be read, and the connections that were open before are gone: whoever connects anew may
/// read and not write, as long as that connection lasts.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_in_a_folder_that_may_only_be_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    let data = folder.path().join("data");
    let database = TestDatabase::sqlite_in(data.clone());
    let permit = |dir: u32, file: u32| {
        for entry in std::fs::read_dir(&data).unwrap() {
            let path = entry.unwrap().path();
            let mode = if path.is_dir() { dir } else { file };
            // SQLite takes away its own files when the last connection ends.
            let _ = std::fs::set_permissions(&path, Permissions::from_mode(mode));
        }
        std::fs::set_permissions(&data, Permissions::from_mode(dir)).unwrap();
    };
    survive_as(
        async || Server::start_unprivileged(&database, settings).await,
        async |server| {
            permit(0o555, 0o444);
            limit_files(server, Some(4_096)).await;
            sleep(Duration::from_millis(500)).await;
            limit_files(server, None).await;
        },
        async |_| permit(0o755, 0o644),
    )
    .await;
}

/// Another process holds the lock.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_locked() {
    let database = TestDatabase::sqlite();
    let file = database.config().dir.join("colloquy.db");
    let lock = tokio::sync::Mutex::new(None);
    survive(
        database,
        async |_| {
            let url = format!("sqlite://{}", file.display());
            let mut connection = SqliteConnection::connect(&url).await.unwrap();
            while connection.execute("BEGIN IMMEDIATE").await.is_err() {}
            *lock.lock().await = Some(connection);
            sleep(BEYOND_WAITS).await;
        },
        async |_| {
            let mut connection = lock.lock().await.take().unwrap();
            connection.execute("ROLLBACK").await.unwrap();
            connection.close().await.unwrap();
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_lost() {
    let postgres = OwnPostgres::start();
    survive(
        postgres.database().await,
        async |_| postgres.kill(),
        async |_| postgres.run(),
    )
    .await;
}

/// It answers no more, but its connections stand.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_silent() {
    let postgres = OwnPostgres::start();
    survive(
        postgres.database().await,
        async |_| {
            postgres.signal("STOP");
            sleep(BEYOND_WAITS).await;
        },
        async |_| postgres.signal("CONT"),
    )
    .await;
}
