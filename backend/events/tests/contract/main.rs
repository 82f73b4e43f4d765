//! Streams of changes on both databases, through the routes: what triggers record, and what reaches whom.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should say where"
)]

mod kinds;
mod resume;
mod streams;

use std::time::Duration;

use axum::{
    body::{Body, BodyDataStream},
    extract::FromRef,
    http::Method,
};
use colloquy_accounts::{Accounts, AccountsCapability};
use colloquy_events::{Events, EventsCapability};
use colloquy_http::Edge;
use colloquy_kernel::{Capability, Kernel};
use colloquy_store::{Executor as _, Store};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use support::{TestDatabase, patience};
use test_routes::{TestRequest, TestResponse, TestRoutes, TestRoutesBuilder};
use tokio::time::timeout;

/// The state of the capabilities.
#[derive(Clone)]
struct Place(Events);

impl AsRef<Kernel> for Place {
    fn as_ref(&self) -> &Kernel {
        self.0.as_ref()
    }
}

impl FromRef<Place> for Accounts {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.0)
    }
}

impl FromRef<Place> for Events {
    fn from_ref(place: &Place) -> Self {
        place.0.clone()
    }
}

const CAPABILITIES: [&dyn Capability<Place>; 2] = [&AccountsCapability, &EventsCapability];

type App = TestRoutes<Place>;

async fn start(builder: TestRoutesBuilder) -> App {
    let place = async |accounts: Accounts, _: Edge| Place(Events::new(accounts));
    let app = builder.start(|_| Vec::new(), place, &CAPABILITIES).await;
    app.start_background(&CAPABILITIES).await;
    app
}

fn store(app: &App) -> &Store {
    &app.state.0.store
}

async fn run(app: &App, sql: &str) {
    store(app).db().execute(sql.to_owned()).await.unwrap();
}

/// The SQL that adds a voice.
fn voice(partner: &str, name: &str) -> String {
    format!(
        "INSERT INTO voices (id, partner, name, splitting, max_samples, sample_seconds, window_sample, embeds_next, created_at) \
         VALUES ('{partner}-{name}', '{partner}', '{name}', 'idle', 1, 1, 0, FALSE, 1)"
    )
}

/// The SQL that adds so many voices at once: `{prefix}1`, `{prefix}2` and so on.
fn voices(partner: &str, prefix: &str, count: usize) -> String {
    format!(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) \
         INSERT INTO voices (id, partner, name, splitting, max_samples, sample_seconds, window_sample, embeds_next, created_at) \
         SELECT '{partner}-{prefix}' || n, '{partner}', '{prefix}' || n, 'idle', 1, 1, 0, FALSE, 1 FROM numbers"
    )
}

async fn add_voice(app: &App, partner: &str, name: &str) {
    run(app, &voice(partner, name)).await;
}

/// An event, or a block with an id alone.
#[derive(Debug, Default, Clone, PartialEq)]
struct Event {
    name: String,
    data: Value,
    id: Option<i64>,
}

fn event(name: &str, id: &str, base: Option<&str>, deleted: bool) -> (String, Value) {
    let data = json!({"id": id, "base": base, "deleted": deleted});
    (name.to_owned(), data)
}

/// A stream that a test reads.
struct TestStream {
    body: BodyDataStream,
    text: String,
    /// The last id that came.
    last_id: Option<i64>,
}

impl TestStream {
    fn new(body: Body) -> Self {
        Self {
            body: body.into_data_stream(),
            text: String::new(),
            last_id: None,
        }
    }

    /// The next event or id; `None` at the end of the stream. Comments are skipped.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let mut event = Event::default();
                for line in block.lines() {
                    match line.split_once(": ") {
                        Some(("event", name)) => name.clone_into(&mut event.name),
                        Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                        Some(("id", id)) => event.id = Some(id.parse().unwrap()),
                        _ => {}
                    }
                }
                self.text = rest.to_owned();
                self.last_id = event.id.or(self.last_id);
                if event != Event::default() {
                    return Some(event);
                }
                continue;
            }
            let piece = timeout(patience(Duration::from_secs(40)), self.body.next()).await;
            let piece = piece.expect("the stream goes on")?.unwrap();
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// The next event, which is not an id alone.
    async fn event(&mut self) -> (String, Value) {
        loop {
            let event = self.next().await.expect("the stream goes on");
            if !event.name.is_empty() {
                return (event.name, event.data);
            }
        }
    }

    /// Waits for the next check of the key, before which nothing else comes.
    async fn checked(&mut self) {
        let piece = timeout(patience(Duration::from_secs(40)), self.body.next()).await;
        let piece = piece.expect("the stream goes on").unwrap().unwrap();
        let checks: [&[u8]; 2] = [b":\n\n", b"id: "];
        assert!(checks.iter().any(|check| piece.starts_with(check)));
    }

    /// Reads on until an id of at least this number came.
    async fn reaches(&mut self, id: i64) {
        while self.last_id.is_none_or(|last| last < id) {
            self.next().await.expect("the stream goes on");
        }
    }
}

fn watching(app: &App, key: &str, partner: &str) -> TestRequest {
    app.request(Method::GET, &format!("/api/events/{partner}"))
        .header("x-api-key", key)
}

fn opened(response: TestResponse) -> TestStream {
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.headers()["content-type"],
        "text/event-stream; charset=utf-8"
    );
    TestStream::new(response.into_body())
}

/// Opens a stream that begins now.
async fn watch(app: &App, key: &str, partner: &str) -> TestStream {
    let mut stream = opened(watching(app, key, partner).send().await);
    assert_eq!(stream.event().await.0, "ready");
    stream
}

/// Opens a stream after the id that was received last.
async fn resume(app: &App, key: &str, partner: &str, id: i64) -> TestStream {
    let request = watching(app, key, partner).header("last-event-id", id.to_string());
    opened(request.send().await)
}

/// The number of the newest change.
async fn newest(app: &App) -> i64 {
    let newest = store(app)
        .db()
        .fetch_scalar("SELECT COALESCE(MAX(seq), 0) FROM changes");
    newest.await.unwrap().unwrap()
}

fn builder(database: &TestDatabase) -> TestRoutesBuilder {
    TestRoutesBuilder::new(database)
}
