//! Setting calls up on networks that lose datagrams: a release `colloquy serve` as a process of its own and native clients
//! on loopback, whose networks lose a part of all datagrams each way, those of ICE and DTLS among them. Which ones is
//! decided by numbers from a seed.
//!
//! | figure | what it is, for each percentage of loss |
//! |---|---|
//! | `setups_P` | set-ups that were tried |
//! | `failed_P` | those whose media was not up at the client after 20 s |
//! | `connect_p50_ms_P`, `connect_p95_ms_P` | of the others, from the offer leaving the client to ICE and DTLS being up there |
//!
//! With `--client rtc` the clients are on the core that the server is built on, and repeat the flights of DTLS as it does;
//! browsers do so by themselves. With `--client webrtc` they are on the crate `webrtc`, whose timer of DTLS sends a
//! flight again after a second, and which repeats nothing before.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use clap::Args;
use futures_util::{StreamExt as _, stream};
use harness::{
    client::{ClientOptions, Conditions, NativeClient, Stack},
    upstream::{Api, Script, Upstream},
};
use serde_json::{Map, Value, json};

use crate::{
    figures::percentile,
    server::{Server, Start, call_settings},
};

/// Options of the benchmark.
#[derive(Debug, Args)]
pub(crate) struct SetupOptions {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// What the clients are built on.
    #[arg(long, value_enum, default_value_t)]
    client: Stack,
    /// Percentages of loss each way.
    #[arg(long, value_delimiter = ',', default_value = "0,5,10,20,30", value_parser = clap::value_parser!(u8).range(0..=90))]
    loss: Vec<u8>,
    /// Set-ups with each of them.
    #[arg(long, default_value_t = 1_000)]
    setups: usize,
    /// Set-ups at a time.
    #[arg(long, default_value_t = 8)]
    at_once: usize,
    /// Decides which datagrams are lost.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Show the server's log and its process id.
    #[arg(long)]
    debug: bool,
    /// The server to measure; the `colloquy` beside this program unless given.
    #[arg(long)]
    server: Option<std::path::PathBuf>,
}

/// What the benchmark prints.
#[derive(Debug)]
pub(crate) struct Report {
    client: Stack,
    figures: Vec<Figures>,
    json: bool,
}

/// The figures of one percentage of loss.
#[derive(Debug)]
struct Figures {
    percent: u8,
    failed: usize,
    /// Of those that did not fail, sorted.
    connect: Vec<Duration>,
}

/// Runs the benchmark.
///
/// # Errors
/// When the server does not start, or calls cannot be created.
pub(crate) async fn run(options: SetupOptions) -> anyhow::Result<Report> {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Chat, Script::text("Good morning."));
    upstream.set_default(Api::Transcription, Script::text("good morning"));
    let server = start(&upstream, &options).await?;
    let seeds = AtomicU64::new(options.seed);
    let mut figures = Vec::new();
    for percent in &options.loss {
        let results: Vec<Option<Duration>> = stream::iter(0..options.setups)
            .map(|_| {
                let conditions = Conditions {
                    loss_of_all: f64::from(*percent) / 100.0,
                    ..Conditions::default()
                };
                let client = ClientOptions {
                    stack: options.client,
                    conditions,
                    seed: seeds.fetch_add(1, Ordering::Relaxed),
                    ..ClientOptions::default()
                };
                set_up(&server, client)
            })
            .buffer_unordered(options.at_once.max(1))
            .collect::<Vec<_>>()
            .await
            .into_iter()
            .collect::<anyhow::Result<_>>()?;
        let failed = results.iter().filter(|result| result.is_none()).count();
        let mut connect: Vec<Duration> = results.into_iter().flatten().collect();
        connect.sort();
        figures.push(Figures {
            percent: *percent,
            failed,
            connect,
        });
    }
    server.stop().await?;
    Ok(Report {
        client: options.client,
        figures,
        json: options.json,
    })
}

/// Sets a call up and ends it; returns how long the connection took, `None` when it did not come about.
async fn set_up(server: &Server, options: ClientOptions) -> anyhow::Result<Option<Duration>> {
    let url = server.create_call().await?;
    let client = NativeClient::join(&url, options).await?;
    let before = harness::client::now();
    client.offer().await?;
    let connected = client.connected(before).await;
    let took = connected.ok().and_then(|_| client.connect_time());
    client.hang_up().await?;
    Ok(took)
}

/// Starts a server that lets one machine place all these calls, and gives it a character.
async fn start(upstream: &Upstream, options: &SetupOptions) -> anyhow::Result<Server> {
    let mut settings = call_settings(upstream);
    for limit in [
        "REQUESTS_PER_MINUTE",
        "REQUEST_BURST",
        "ATTEMPTS_PER_MINUTE",
    ] {
        settings.push((format!("COLLOQUY_LIMITS_{limit}"), "1000000".to_owned()));
    }
    let server = Server::start(Start {
        program: options.server.as_deref(),
        debug: options.debug,
        settings,
        ..Start::default()
    })
    .await?;
    server.create_guide().await?;
    Ok(server)
}

impl Figures {
    fn setups(&self) -> usize {
        self.failed + self.connect.len()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.json {
            let mut object = Map::new();
            object.insert("client".to_owned(), json!(self.client));
            for figures in &self.figures {
                let mut set = |name: &str, value: Value| {
                    object.insert(format!("{name}_{}", figures.percent), value);
                };
                set("setups", figures.setups().into());
                set("failed", figures.failed.into());
                set("connect_p50_ms", json!(percentile(&figures.connect, 50)));
                set("connect_p95_ms", json!(percentile(&figures.connect, 95)));
            }
            return write!(f, "{}", Value::Object(object));
        }
        writeln!(f, "clients on {}\n", self.client)?;
        writeln!(
            f,
            "| loss each way | set-ups | failed | connect p50 | connect p95 |"
        )?;
        write!(f, "|---|---|---|---|---|")?;
        for figures in &self.figures {
            let shown = |percent| {
                percentile(&figures.connect, percent)
                    .map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0} ms"))
            };
            write!(
                f,
                "\n| {} % | {} | {} | {} | {} |",
                figures.percent,
                figures.setups(),
                figures.failed,
                shown(50),
                shown(95)
            )?;
        }
        Ok(())
    }
}
