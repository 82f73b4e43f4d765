//! The real binary under 200 streams, told to stop and killed: what every client was told, what every row of usage says
//! and what the upstream served agree.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use colloquy::{
    Config,
    store::{Executor as _, FromDbRow, statement},
};
use colloquy_protocol::{CloseCode, ServerMessage};
use harness::{
    TestDatabase,
    app::{Answer, TestPartner, TestQuota, send},
    client::{FromServer, NativeClient, Socket},
    elsewhere, eventually, patience,
    process::Server,
    upstream::{Api, CACHED_TOKENS, End, Fault, INPUT_TOKENS, Recorded, Script, Upstream},
};
use reqwest::{Method, RequestBuilder};
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use crate::text::{CHAT, Event, RESPONSES, chat_text, events, response_text};

const STREAMS: usize = 200;
/// Every tenth client goes away when it has this many words.
const ENOUGH: usize = 3;
const WORD: &str = "word ";
/// The answers of `scripted-chat`, which end before the time to drain is over.
const SHORT: usize = 8;
/// Those of `scripted-responses`, which do not.
const LONG: usize = 120;

/// How long a model takes from one word to the next.
fn between() -> Duration {
    patience(Duration::from_millis(150))
}

/// The time to drain, in whole seconds.
fn drain() -> Duration {
    let seconds = patience(Duration::from_secs(4)).as_secs();
    Duration::from_secs(seconds)
}

/// How a stream ended for its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Complete,
    /// With the event of an error.
    Stopped,
    /// The client went away.
    Left,
    /// The connection broke off.
    Broken,
}

/// What a client got.
#[derive(Debug)]
struct Seen {
    id: String,
    words: usize,
    ending: Ending,
}

/// One of the `amounts` of a row, to select.
fn amount(measure: &str) -> String {
    format!("COALESCE(CAST(jsonb(amounts) ->> '{measure}' AS BIGINT), 0) AS {measure}")
}

/// What selects the rows of requests whose ids begin with this.
fn usage_sql(name: &str) -> String {
    let amounts = ["input_tokens", "cached_tokens", "output_tokens", "cost"].map(amount);
    let amounts = amounts.join(", ");
    format!(
        "SELECT request_id, model, outcome, {amounts} FROM usage_records WHERE request_id LIKE '{name}%'"
    )
}

/// A row of `usage_records`.
#[derive(Debug, sqlx::FromRow)]
struct Row {
    request_id: String,
    model: String,
    outcome: String,
    input_tokens: i64,
    cached_tokens: i64,
    output_tokens: i64,
    cost: i64,
}

/// A row of `reservations`.
#[derive(Debug, sqlx::FromRow)]
struct Reserved {
    request_id: String,
    tokens: i64,
    cost: i64,
}

/// The database, the upstream, and who asks.
struct World {
    database: TestDatabase,
    upstream: Upstream,
    partner: TestPartner,
    quota: TestQuota,
}

impl World {
    /// With a server that has made the partner and the quota.
    async fn new(database: TestDatabase) -> (Self, Server) {
        let upstream = Upstream::start().await;
        for (api, words) in [(Api::Chat, SHORT), (Api::Responses, LONG)] {
            let script = Script::text(WORD.repeat(words)).delayed(Duration::ZERO, between());
            upstream.set_default(api, script);
        }
        let server = Server::start(&database, |config| settings(config, &upstream)).await;
        let partner = server.partner("acme").await;
        let quota = json!({"kinds": ["text"], "period": "lifetime"});
        let world = Self {
            quota: server.quota(&partner, &quota).await,
            database,
            upstream,
            partner,
        };
        (world, server)
    }

    async fn start(&self) -> Server {
        Server::start(&self.database, |config| settings(config, &self.upstream)).await
    }

    /// Opens all streams; returns when each of them has begun to answer.
    async fn open(&self, server: &Server, name: &str) -> Streams {
        let begun = Arc::new(AtomicUsize::new(0));
        let complete = Arc::new(AtomicUsize::new(0));
        let mut running = JoinSet::new();
        for nth in 0..STREAMS {
            let request = self.request(server, nth, format!("{name}-{nth}"));
            running.spawn(client(
                nth,
                request,
                Arc::clone(&begun),
                Arc::clone(&complete),
            ));
        }
        elsewhere::eventually("all streams have begun", async || {
            begun.load(Ordering::Relaxed) == STREAMS
        })
        .await;
        Streams { running, complete }
    }

    /// Both APIs, over a model of either.
    fn request(&self, server: &Server, nth: usize, id: String) -> (String, RequestBuilder) {
        let model = ["scripted-chat", "scripted-responses"][nth / 2 % 2];
        let mut body = json!({"model": model, "stream": true, "user": id});
        match path(nth) {
            CHAT => {
                body["messages"] = json!([{"role": "user", "content": "Go on."}]);
                body["max_completion_tokens"] = json!(200);
            }
            _ => {
                body["input"] = json!("Go on.");
                body["max_output_tokens"] = json!(200);
            }
        }
        let request = server.request(&self.quota.key, Method::POST, path(nth));
        let request = request.header("x-request-id", &id).json(&body);
        (id, request)
    }

    async fn rows<T: FromDbRow + Named>(&self, sql: String) -> HashMap<String, T> {
        let store = self.database.config().open().await.unwrap();
        let rows: Vec<T> = store.db().fetch_all(statement(sql, [])).await.unwrap();
        let count = rows.len();
        let rows = rows
            .into_iter()
            .map(|row| (row.request_id().to_owned(), row));
        let rows = rows.collect::<HashMap<_, _>>();
        assert_eq!(rows.len(), count, "a request is there twice");
        store.db().close().await;
        rows
    }

    async fn reservations(&self) -> HashMap<String, Reserved> {
        let amounts = ["tokens", "cost"].map(amount).join(", ");
        self.rows(format!("SELECT request_id, {amounts} FROM reservations"))
            .await
    }

    /// Asks for an answer in one piece that never comes; returns when the model has been asked.
    async fn stall(&self, server: &Server) -> JoinSet<Answer> {
        let never = Script::fault(Fault::Stall { after: 0 });
        self.upstream.script(Api::Responses, never);
        let body = json!({"model": "scripted-responses", "input": "Go on.", "user": "whole"});
        let request = server.request(&self.quota.key, Method::POST, RESPONSES);
        let mut waiting = JoinSet::new();
        waiting.spawn(send(request.header("x-request-id", "whole").json(&body)));
        eventually("the model is asked", async || {
            self.upstream.requests(Api::Responses).len() == 1
        })
        .await;
        waiting
    }

    /// The rows of requests whose ids begin with this; there are as many.
    async fn usage(&self, name: &str, count: usize) -> HashMap<String, Row> {
        let rows = self.rows::<Row>(usage_sql(name)).await;
        assert_eq!(rows.len(), count, "rows of usage");
        rows
    }

    /// What the upstream was asked for the stream of this id.
    fn served(&self) -> HashMap<String, Recorded> {
        let all = [Api::Chat, Api::Responses].map(|api| self.upstream.requests(api));
        let all = all.into_iter().flatten();
        let all = all.map(|asked| (asked.body["user"].as_str().unwrap().to_owned(), asked));
        all.collect()
    }

    /// The interface tells the sums of the rows, and nothing is reserved.
    async fn check_sums<'a>(&self, server: &Server, rows: impl Iterator<Item = &'a Row>) {
        let mut sums = [0; 4];
        for row in rows {
            let row = [1, row.input_tokens, row.output_tokens, row.cost];
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
        let [requests, input, output, cost] = sums;
        let total = server
            .get(&self.partner.key, &format!("{}/usage", self.quota.path))
            .await["total"]
            .clone();
        let told = ["requests", "input_tokens", "output_tokens"].map(|field| &total[field]);
        assert_eq!(told, [&json!(requests), &json!(input), &json!(output)]);
        let quota = server.get(&self.partner.key, &self.quota.path).await;
        assert_eq!(quota["used"]["tokens"], input + output);
        assert_eq!(quota["used"]["dollars"], total["dollars"]);
        let dollars = total["dollars"].as_str().unwrap().parse::<f64>().unwrap();
        assert!(
            (dollars * 1e8 - cost as f64).abs() < 0.5,
            "{dollars} {cost}"
        );
        assert_eq!(quota["reserved"]["tokens"], 0);
        assert!(self.reservations().await.is_empty());
    }
}

/// What belongs to a request.
trait Named {
    fn request_id(&self) -> &str;
}

impl Named for Row {
    fn request_id(&self) -> &str {
        &self.request_id
    }
}

impl Named for Reserved {
    fn request_id(&self) -> &str {
        &self.request_id
    }
}

fn settings(config: &mut Config, upstream: &Upstream) {
    upstream.offer(config);
    config.http.drain_seconds = drain().as_secs();
    config.limits.request_burst = 100_000;
    // Hundreds of lines that nobody asked for.
    config.log.filter = "error".to_owned();
}

fn path(nth: usize) -> &'static str {
    [CHAT, RESPONSES][nth % 2]
}

fn leaves(nth: usize) -> bool {
    nth % 10 == 9
}

/// Streams that run.
struct Streams {
    running: JoinSet<Seen>,
    complete: Arc<AtomicUsize>,
}

impl Streams {
    async fn seen(self) -> Vec<Seen> {
        self.running.join_all().await
    }
}

/// Reads a stream.
async fn client(
    nth: usize,
    (id, request): (String, RequestBuilder),
    begun: Arc<AtomicUsize>,
    complete: Arc<AtomicUsize>,
) -> Seen {
    let mut response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let (mut text, mut words, mut last) = (String::new(), 0, None);
    let broken = loop {
        match response.chunk().await {
            Ok(Some(bytes)) => text.push_str(std::str::from_utf8(&bytes).unwrap()),
            Ok(None) => break false,
            Err(_) => break true,
        }
        // The events that are complete.
        let Some(end) = text.rfind("\n\n") else {
            continue;
        };
        let events = events(&text[..end + 2]);
        text.drain(..end + 2);
        let before = words;
        words += match path(nth) {
            CHAT => chat_text(&events),
            _ => response_text(&events),
        }
        .len()
            / WORD.len();
        if before == 0 && words > 0 {
            begun.fetch_add(1, Ordering::Relaxed);
        }
        if leaves(nth) && words >= ENOUGH {
            let ending = Ending::Left;
            return Seen { id, words, ending };
        }
        // What ends the stream of a response says nothing about its end.
        let done = |event: &Event| path(nth) == RESPONSES && event.data == "[DONE]";
        last = events.into_iter().rfind(|event| !done(event)).or(last);
    };
    let last = last.unwrap();
    let ending = if last.data == "[DONE]" || last.name == "response.completed" {
        complete.fetch_add(1, Ordering::Relaxed);
        Ending::Complete
    } else if broken {
        Ending::Broken
    } else {
        let error = last.json()["error"].clone();
        assert_eq!(error["code"], "server_stopped", "{last:?}");
        Ending::Stopped
    };
    Seen { id, words, ending }
}

/// A row that was settled as it is told here agrees with what the client saw and the upstream served.
fn check(row: &Row, seen: &Seen, served: &Recorded, reserved: Option<&Reserved>) {
    let context = format!("{row:?} {seen:?}, {} pieces", served.pieces);
    let words = match row.model.as_str() {
        "scripted-chat" => SHORT,
        _ => LONG,
    };
    let tokens = |count: usize| i64::try_from((count * WORD.len()).div_ceil(4)).unwrap();
    match row.outcome.as_str() {
        "completed" => {
            let output = words as i64;
            let told = [row.input_tokens, row.cached_tokens, row.output_tokens];
            assert_eq!(
                told,
                [INPUT_TOKENS as i64, CACHED_TOKENS as i64, output],
                "{context}"
            );
            // 8 at 2.50, 4 at 1.25, the answer at 10 USD for a million.
            assert_eq!(row.cost, 8 * 250 + 4 * 125 + output * 1_000, "{context}");
            assert_eq!(served.end.map(|(end, _)| end), Some(End::Answered));
            assert!(seen.words <= words, "{context}");
        }
        "cancelled" | "failed" => {
            // At least what the client has, at most what the upstream served, whose first piece is no word.
            let most = served.pieces.saturating_sub(1).min(words);
            let made = tokens(seen.words)..=tokens(most);
            assert!(made.contains(&row.output_tokens), "{context}");
            assert!(row.input_tokens > 0, "{context}");
            assert_eq!(
                row.cost,
                row.input_tokens * 250 + row.output_tokens * 1_000,
                "{context}"
            );
            assert_eq!(served.end.map(|(end, _)| end), Some(End::Disconnected));
        }
        "bound" => {
            let reserved = reserved.unwrap();
            let bound = (row.input_tokens + row.output_tokens, row.cost);
            assert_eq!(bound, (reserved.tokens, reserved.cost), "{context}");
            // It covers what was made.
            assert!(bound.0 > INPUT_TOKENS as i64 + words as i64, "{context}");
        }
        outcome => panic!("{outcome}: {context}"),
    }
}

/// SIGTERM: short answers end well within the time to drain, long ones are cut with an error, one that has not begun is
/// refused, and all are settled before the process ends. SIGKILL: what was settled stays, everything else is settled at its bound by the next process.
async fn every_row_agrees_with_what_was_served(database: TestDatabase) {
    let (world, server) = World::new(database).await;

    let waiting = world.stall(&server).await;
    let bound = world.reservations().await;
    let streams = world.open(&server, "term").await;
    let told = Instant::now();
    server.terminate();
    let seen = streams.seen().await;
    let [refused] = waiting.join_all().await.try_into().unwrap();
    assert_eq!(refused.expect(503)["detail"]["code"], "unavailable");
    assert!(server.ended().await.success());
    let took = told.elapsed();
    // The long answers take more than four times as long as it may.
    assert!(
        took < drain() + patience(Duration::from_secs(5)),
        "{took:?}"
    );
    assert!(world.reservations().await.is_empty());
    let whole = world.usage("whole", 1).await;
    let row = &whole["whole"];
    assert_eq!(
        (row.outcome.as_str(), row.output_tokens),
        ("bound", bound["whole"].tokens)
    );
    let stopped = world.usage("term", STREAMS).await;
    let served = world.served();
    for seen in &seen {
        let row = &stopped[&seen.id];
        let expected = match (seen.ending, row.model.as_str()) {
            (Ending::Left, _) => "cancelled",
            (Ending::Complete, "scripted-chat") => "completed",
            (Ending::Stopped, "scripted-responses") => "failed",
            other => panic!("{other:?}: {seen:?}"),
        };
        assert_eq!(row.outcome, expected, "{seen:?}");
        check(row, seen, &served[&seen.id], None);
    }

    let server = world.start().await;
    let stopped = stopped.into_values().chain(whole.into_values());
    let stopped = stopped.collect::<Vec<_>>();
    world.check_sums(&server, stopped.iter()).await;
    let streams = world.open(&server, "kill").await;
    let reserved = world.reservations().await;
    assert!(reserved.len() > STREAMS / 3, "{}", reserved.len());
    let some = || streams.complete.load(Ordering::Relaxed) >= 20;
    elsewhere::eventually("some are complete", async || some()).await;
    // Settlements are stored in groups, a moment after the client has its answer.
    elsewhere::eventually("some of either kind are settled", async || {
        let settled = world.rows::<Row>(usage_sql("kill")).await;
        let any = |outcome: &str| settled.values().any(|row| row.outcome == outcome);
        any("completed") && any("cancelled")
    })
    .await;
    server.kill().await;
    let seen = streams.seen().await;

    let server = world.start().await;
    let killed = world.usage("kill", STREAMS).await;
    let served = world.served();
    for seen in &seen {
        let row = &killed[&seen.id];
        let expected: &[&str] = match seen.ending {
            // Settlements are stored in groups; one that was still waiting is lost with its process.
            Ending::Complete => &["completed", "bound"],
            Ending::Left => &["cancelled", "bound"],
            // It may have been settled while its last words were on the way.
            Ending::Broken => &["bound", "completed"],
            Ending::Stopped => &[],
        };
        assert!(expected.contains(&row.outcome.as_str()), "{row:?} {seen:?}");
        check(row, seen, &served[&seen.id], reserved.get(&seen.id));
    }
    let of = |outcome: &str| killed.values().filter(|row| row.outcome == outcome).count();
    let (completed, cancelled, bound) = (of("completed"), of("cancelled"), of("bound"));
    let counts = format!("{completed} completed, {cancelled} cancelled, {bound} at their bound");
    assert!(completed > 0 && cancelled > 0, "{counts}");
    assert!(bound >= STREAMS / 3, "{counts}");
    world
        .check_sums(&server, stopped.iter().chain(killed.values()))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_agrees_with_what_was_served_sqlite() {
    every_row_agrees_with_what_was_served(TestDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_agrees_with_what_was_served_postgres() {
    every_row_agrees_with_what_was_served(TestDatabase::postgres().await).await;
}

/// SIGTERM in the middle of a call: its client may lose its connection and come back, whoever wants something new is told when
/// to ask again, and the process ends with the call, long before the time to drain is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_outlives_sigterm_and_comes_back_to_its_server() {
    let upstream = Upstream::start().await;
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |config| {
        upstream.configure(config);
        config.http.drain_seconds = 600;
    })
    .await;
    let partner = server.partner("acme").await;
    let character = json!({"name": "ada", "personality": "You are Ada."});
    let made = server.request(&partner.key, Method::POST, "/api/characters/acme");
    send(made.json(&character)).await.expect(201);
    let body = json!({"character": "repo:acme/ada", "call_time_limit_seconds": "60"});
    let call = || {
        server
            .request(&partner.key, Method::POST, "/v2/calls")
            .json(&body)
    };
    let url = |made: &serde_json::Value| made["data"]["signedUrl"].as_str().unwrap().to_owned();
    let (made, unused) = (
        send(call()).await.expect(200),
        send(call()).await.expect(200),
    );
    let client = NativeClient::connect(&url(&made)).await.unwrap();
    let told = Instant::now();
    server.terminate();
    elsewhere::eventually("the server drains", async || {
        let health = server.request(&partner.key, Method::GET, "/health");
        send(health).await.json()["status"] == "draining"
    })
    .await;
    let refused = send(call()).await;
    assert_eq!(refused.expect(503)["error"]["code"], "UNAVAILABLE");
    assert!(refused.header("retry-after").parse::<u32>().unwrap() >= 1);
    assert_eq!(refused.header("connection"), "close");
    let mut new = Socket::open(&url(&unused)).await.unwrap();
    new.begin(false).await.unwrap();
    let FromServer::Message(ServerMessage::Error { code, message, .. }) = new.next().await else {
        panic!("a stopping server let a new client in");
    };
    assert_eq!(code, "CAPACITY");
    assert!(message.contains("is stopping"), "{message}");
    let close = CloseCode::Capacity.number();
    assert_eq!(new.next().await, FromServer::Closed(Some(close)));
    for _ in 0..2 {
        client.drop_socket().await.unwrap();
        client.resume().await.unwrap();
    }
    let path = made["data"]["id"].as_str().unwrap();
    assert_eq!(
        server.get(&partner.key, path).await["data"]["state"],
        "ongoing"
    );
    client.hang_up().await.unwrap();
    assert!(server.ended().await.success());
    assert!(
        told.elapsed() < patience(Duration::from_secs(50)),
        "{:?}",
        told.elapsed()
    );
}
