//! Consoles that are open and that nobody uses: a release `colloquy serve` as a process of its own, and as many event streams on loopback, each with a
//! session of its own, as pages of the console hold them.
//!
//! | figure | meaning |
//! |---|---|
//! | `alone_percent` | of one core, used by the server without a console |
//! | `idle_percent` | of one core, used by the server with all of them, less `alone_percent` |
//! | `kilobytes` | resident memory, for each console |
//! | `change_ms` | p50 and p95 over all consoles, from the request that changes a resource to the event |
//! | `change_cpu_ms` | processor time of one change that all consoles hear of |
//!
//! With `--check` the exit code is 1 if `idle_percent` is 1 or more.

use std::{
    fmt,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use clap::Args;
use futures_util::{StreamExt as _, stream};
use harness::client::now;
use reqwest::header::{COOKIE, ORIGIN, SET_COOKIE};
use serde::Serialize;
use serde_json::json;
use tokio::{sync::mpsc, task::JoinSet, time::sleep};

use crate::{
    figures::{percentile, rounded},
    progress::Progress,
    server::{Server, Start},
};

/// The most that idle consoles may take, in percent of a core.
const TARGET_PERCENT: f64 = 1.0;
/// Consoles that sign in and connect at a time.
const AT_ONCE: usize = 16;
/// Consoles that sign in with one key, which may have 100 sessions.
const OF_KEY: usize = 100;
/// Changes that all consoles hear of.
const CHANGES: usize = 10;
/// How long the server is left alone before it is measured.
const SETTLE: Duration = Duration::from_secs(5);
/// How long all consoles may take to open, and a change to reach them.
const PATIENCE: Duration = Duration::from_secs(120);
/// The header of the console's own requests that nobody asked for.
const BACKGROUND: (&str, &str) = ("x-colloquy-console", "http, background");

/// Options of the benchmark.
#[derive(Debug, Args)]
pub(crate) struct ConsolesOptions {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Exit with 1 if idle consoles take 1 % of a core or more.
    #[arg(long)]
    check: bool,
    /// Consoles.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=4_000))]
    consoles: u32,
    /// Seconds that the processor time is measured for, with and without consoles.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Show the server's log and its process id.
    #[arg(long)]
    debug: bool,
    /// The server to measure; the `colloquy` beside this program unless given.
    #[arg(long)]
    server: Option<PathBuf>,
}

/// Figures of the benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    consoles: u32,
    alone_percent: f64,
    idle_percent: f64,
    kilobytes: f64,
    change_p50_ms: Option<f64>,
    change_p95_ms: Option<f64>,
    change_cpu_ms: f64,
    #[serde(skip)]
    json: bool,
    #[serde(skip)]
    check: bool,
}

impl Report {
    /// Returns a failure if consoles were to be checked and take too much.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.check && self.idle_percent >= TARGET_PERCENT {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.json {
            return f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?);
        }
        let ms =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1} ms"));
        writeln!(f, "{} consoles", self.consoles)?;
        writeln!(
            f,
            "the server alone     {:>10.2} % of a core",
            self.alone_percent
        )?;
        writeln!(
            f,
            "idle consoles        {:>10.2} % of a core",
            self.idle_percent
        )?;
        writeln!(f, "memory of a console  {:>10.1} kB", self.kilobytes)?;
        writeln!(f, "a change, p50        {:>10}", ms(self.change_p50_ms))?;
        writeln!(f, "a change, p95        {:>10}", ms(self.change_p95_ms))?;
        write!(f, "a change, processor  {:>10.1} ms", self.change_cpu_ms)
    }
}

/// An event that a console got.
type Heard = (String, Instant);

/// Runs the benchmark.
///
/// # Errors
/// The server does not start, a console cannot sign in, or a stream ends.
pub(crate) async fn run(options: ConsolesOptions) -> anyhow::Result<Report> {
    let progress = Progress::begin();
    let count = options.consoles as usize;
    let server = start(&options).await?;
    let window = Duration::from_secs(options.seconds);
    let limit = window + SETTLE + PATIENCE;
    let alone = progress.measure("the server alone", limit, busy(&server, window));
    let alone = alone.await?;
    let memory = server.resident_bytes()?;
    let (heard, mut events) = mpsc::unbounded_channel();
    let mut streams = JoinSet::new();
    let opening = open(&server, count, &heard, &mut streams);
    progress
        .measure("opening consoles", PATIENCE, opening)
        .await?;
    // Consoles that are open keep senders of their own.
    drop(heard);
    let idle = progress.measure("idle consoles", limit, busy(&server, window));
    let idle = idle.await?;
    let memory = server.resident_bytes()?.saturating_sub(memory);
    while events.try_recv().is_ok() {}
    let begun = server.processor_time()?;
    let mut delays = Vec::new();
    for number in 0..CHANGES {
        let heard = hear(&server, number, count, &mut events);
        delays.extend(progress.measure("a change", PATIENCE, heard).await?);
    }
    let change = (server.processor_time()? - begun) / CHANGES as u32;
    ensure!(streams.try_join_next().is_none(), "a stream has ended");
    streams.shutdown().await;
    server.stop().await?;
    delays.sort();
    Ok(Report {
        consoles: options.consoles,
        alone_percent: rounded(alone, 100.0),
        idle_percent: rounded(idle - alone, 100.0),
        kilobytes: rounded(memory as f64 / 1e3 / count as f64, 10.0),
        change_p50_ms: percentile(&delays, 50),
        change_p95_ms: percentile(&delays, 95),
        change_cpu_ms: rounded(change.as_secs_f64() * 1e3, 10.0),
        json: options.json,
        check: options.check,
    })
}

/// Starts a server that takes so many streams and sign-ins of one client.
async fn start(options: &ConsolesOptions) -> anyhow::Result<Server> {
    let many = "1000000";
    // Half of the connections may be streams, and a partner holds no more of these than are free.
    let connections = (5 * options.consoles + 100).to_string();
    let settings = [
        ("COLLOQUY_LIMITS_EVENT_STREAMS", connections.as_str()),
        ("COLLOQUY_LIMITS_EVENT_STREAMS_PER_PARTNER", &connections),
        ("COLLOQUY_HTTP_MAX_CONNECTIONS", &connections),
        ("COLLOQUY_HTTP_MAX_CONNECTIONS_PER_ADDRESS", &connections),
        ("COLLOQUY_LIMITS_REQUESTS_PER_MINUTE", many),
        ("COLLOQUY_LIMITS_REQUEST_BURST", many),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    Server::start(Start {
        program: options.server.as_deref(),
        debug: options.debug,
        settings: settings.into(),
        ..Start::default()
    })
    .await
}

/// Returns the processor time of the server in a window, in percent of a core.
async fn busy(server: &Server, window: Duration) -> anyhow::Result<f64> {
    sleep(SETTLE).await;
    let (begun, used) = (now(), server.processor_time()?);
    sleep(window).await;
    let used = server.processor_time()? - used;
    Ok(100.0 * used.as_secs_f64() / begun.elapsed().as_secs_f64())
}

/// Opens consoles. Their streams are tasks that end only when a stream does.
async fn open(
    server: &Server,
    count: usize,
    heard: &mpsc::UnboundedSender<Heard>,
    streams: &mut JoinSet<()>,
) -> anyhow::Result<()> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(AT_ONCE)
        .build()?;
    let origin: Arc<str> = format!("http://{}", server.address()).into();
    let mut keys = Vec::new();
    for _ in 0..count.div_ceil(OF_KEY) {
        let key = server.post("/api/keys/bench", json!({"name": "console"}));
        let key: Arc<str> = key.await?["api_key"].as_str().context("no key")?.into();
        keys.push(key);
    }
    let opened = stream::iter(0..count).map(|number| {
        let key = Arc::clone(&keys[number / OF_KEY]);
        let (client, origin, heard) = (client.clone(), origin.clone(), heard.clone());
        async move {
            let response = connect(&client, &origin, &key).await?;
            anyhow::Ok(listen(response, heard))
        }
    });
    let mut opened = opened.buffer_unordered(AT_ONCE);
    while let Some(listening) = opened.next().await {
        streams.spawn(listening?);
    }
    Ok(())
}

/// Signs in as a page of the console does, and opens its event stream.
async fn connect(
    client: &reqwest::Client,
    origin: &str,
    key: &str,
) -> anyhow::Result<reqwest::Response> {
    let sign_in = client
        .post(format!("{origin}/api/console/session"))
        .header(ORIGIN, origin)
        .header(BACKGROUND.0, "http")
        .json(&json!({"api_key": key}));
    let signed_in = sign_in.send().await?.error_for_status()?;
    let cookie = signed_in.headers().get(SET_COOKIE);
    let cookie = cookie.context("no cookie")?.to_str()?.to_owned();
    let (cookie, _) = cookie
        .split_once(';')
        .context("a cookie without attributes")?;
    // Read to its end, so that the next console gets the connection.
    signed_in.bytes().await?;
    let stream = client
        .get(format!("{origin}/api/events/bench"))
        .header(COOKIE, cookie)
        .header(BACKGROUND.0, BACKGROUND.1);
    Ok(stream.send().await?.error_for_status()?)
}

/// Reads a stream and tells of each character that changed.
async fn listen(mut response: reqwest::Response, heard: mpsc::UnboundedSender<Heard>) {
    let mut text = String::new();
    while let Ok(Some(piece)) = response.chunk().await {
        text.push_str(&String::from_utf8_lossy(&piece));
        while let Some((block, rest)) = text.split_once("\n\n") {
            if block.contains("event: character") {
                // An error says that the benchmark has ended.
                let _ = heard.send((block.to_owned(), now()));
            }
            text = rest.to_owned();
        }
    }
}

/// Creates a character and returns how long each console took to hear of it.
async fn hear(
    server: &Server,
    number: usize,
    count: usize,
    events: &mut mpsc::UnboundedReceiver<Heard>,
) -> anyhow::Result<Vec<Duration>> {
    let name = format!("guide-{number}");
    let character = json!({"name": name, "personality": "You are a guide.", "parameters": {}});
    let begun = now();
    server.post("/api/characters/bench", character).await?;
    let mut delays = Vec::with_capacity(count);
    while delays.len() < count {
        let (block, at) = events.recv().await.context("all streams have ended")?;
        if block.contains(&name) {
            delays.push(at.duration_since(begun));
        }
    }
    Ok(delays)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consoles_that_take_too_much_fail_a_check() {
        for (idle_percent, check, expected) in [
            (1.0, true, ExitCode::FAILURE),
            (1.0, false, ExitCode::SUCCESS),
            (0.99, true, ExitCode::SUCCESS),
        ] {
            let report = Report {
                consoles: 1_000,
                alone_percent: 0.1,
                idle_percent,
                kilobytes: 20.0,
                change_p50_ms: Some(300.0),
                change_p95_ms: None,
                change_cpu_ms: 12.0,
                json: false,
                check,
            };
            assert_eq!(report.exit_code(), expected);
        }
    }
}
