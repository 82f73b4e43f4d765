//! Text generation, end to end: a release `colloquy serve` on SQLite as a process of its own, an upstream that answers at
//! once, and native clients, all on loopback of one machine. Every request has a quota key with limits, so each is
//! reserved before and settled after, and at the end the stored usage must be all that was asked.
//!
//! What the server adds is measured beside the upstream alone, in turns of a few hundred requests, so that both see the
//! same machine.
//!
//! | figure | what it is |
//! |---|---|
//! | `added_p50_ms`, `added_p99_ms` | one client, whole answers: that percentile through the server, less the upstream's alone |
//! | `rps_c16` | whole answers a second for 16 clients with a connection each |
//! | `stream_ttft_added_p50_ms` | one client, streamed answers: the median until the first content, less the upstream's alone |
//! | `stream_rps` | streamed answers a second for 16 clients |
//! | `rss_mb` | the largest resident set of the server process; 1 MB is 1,000,000 bytes |
//! | `upstream_..` | the same without the server |
//! | `.._of_upstream` | the answers through the server over those of the upstream alone: the figure to compare between machines |

mod wire;

use std::{fmt, path::PathBuf, time::Duration};

use anyhow::{Context as _, ensure};
use clap::Args;
use futures_util::future::try_join_all;
use harness::client::now;
use serde::Serialize;
use serde_json::json;

use self::wire::{Client, Target};
use crate::{
    figures::{exact, megabytes, rounded},
    server::{Server, Start},
};

/// Clients that ask at once where the figure says so.
const CLIENTS: usize = 16;

/// Turns of the measurements with one client.
const ROUNDS: usize = 10;

/// Requests of a turn.
const REQUESTS: usize = 300;

/// How long the last settlements may take.
const SETTLED: Duration = Duration::from_secs(10);

/// Options of the benchmark.
#[derive(Debug, Args)]
pub(crate) struct TextOptions {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// How long each measurement with 16 clients lasts.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Show the server's log and its process id.
    #[arg(long)]
    debug: bool,
    /// The server to measure; the `colloquy` beside this program unless given.
    #[arg(long)]
    server: Option<PathBuf>,
}

/// What was measured. Milliseconds are rounded to thousandths.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    added_p50_ms: f64,
    added_p99_ms: f64,
    rps_c16: f64,
    stream_ttft_added_p50_ms: f64,
    stream_rps: f64,
    rss_mb: f64,
    upstream_p50_ms: f64,
    upstream_p99_ms: f64,
    upstream_rps_c16: f64,
    upstream_stream_ttft_p50_ms: f64,
    upstream_stream_rps: f64,
    rps_c16_of_upstream: f64,
    stream_rps_of_upstream: f64,
    requests: u64,
    usage_recorded: u64,
    #[serde(skip)]
    json: bool,
}

/// What a client asks for.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Whole,
    Streamed,
}

impl Answer {
    async fn get(self, client: &mut Client) -> anyhow::Result<Duration> {
        match self {
            Self::Whole => client.ask().await,
            Self::Streamed => client.listen().await,
        }
    }
}

/// Runs the benchmark.
///
/// # Errors
/// When the server does not start, a request fails, or usage is missing at the end.
pub(crate) async fn run(options: TextOptions) -> anyhow::Result<Report> {
    let upstream = Target {
        address: wire::upstream().await?.to_string(),
        path: "/v1/chat/completions",
        key: "any".to_owned(),
    };
    let config = format!(
        "[models.fast]\nbase_url = \"http://{}/v1\"\ninput_usd = 0.15\noutput_usd = 0.6\n",
        upstream.address
    );
    let server = Server::start(Start {
        program: options.server.as_deref(),
        debug: options.debug,
        config,
        // The rate of a key is not what is measured.
        settings: ["REQUESTS_PER_MINUTE", "REQUEST_BURST"]
            .map(|limit| (format!("COLLOQUY_LIMITS_{limit}"), "100000000".to_owned()))
            .into(),
    })
    .await?;
    let limits = json!({"tokens": 1_000_000_000_000_u64, "dollars": "1000000"});
    let quota = server
        .post(
            "/api/quotas/bench",
            json!({"name": "bench", "kinds": ["text"], "limits": limits}),
        )
        .await?;
    let text = |name: &str| quota[name].as_str().map(str::to_owned);
    let target = Target {
        address: server.address().to_owned(),
        path: "/v3/chat/completions",
        key: text("api_key").context("the quota has no key")?,
    };

    let (alone, through) = in_turns(Answer::Whole, &upstream, &target).await?;
    let (alone_streamed, through_streamed) = in_turns(Answer::Streamed, &upstream, &target).await?;
    let time = Duration::from_secs(options.seconds);
    let upstream_rps_c16 = at_once(Answer::Whole, &upstream, time).await?;
    let (rps_c16, rss) = watched(&server, at_once(Answer::Whole, &target, time)).await?;
    let upstream_stream_rps = at_once(Answer::Streamed, &upstream, time).await?;
    let (stream_rps, streamed_rss) =
        watched(&server, at_once(Answer::Streamed, &target, time)).await?;

    let requests = through.len() + through_streamed.len() + rps_c16 + stream_rps;
    let requests = u64::try_from(requests)?;
    let id = text("id").context("the quota has no id")?;
    let usage_recorded = recorded(&server, &id, requests).await?;
    server.stop().await?;

    let at = |samples: &[Duration], percent| exact(samples, percent).unwrap_or_default();
    let added = |percent| rounded(at(&through, percent) - at(&alone, percent), 1_000.0);
    let first = at(&through_streamed, 50) - at(&alone_streamed, 50);
    let a_second = |count: usize| rounded(count as f64 / time.as_secs_f64(), 1.0);
    let share = |through: usize, alone: usize| rounded(through as f64 / alone as f64, 1_000.0);
    Ok(Report {
        added_p50_ms: added(50),
        added_p99_ms: added(99),
        rps_c16: a_second(rps_c16),
        stream_ttft_added_p50_ms: rounded(first, 1_000.0),
        stream_rps: a_second(stream_rps),
        rss_mb: rounded(megabytes(rss.max(streamed_rss)), 10.0),
        upstream_p50_ms: rounded(at(&alone, 50), 1_000.0),
        upstream_p99_ms: rounded(at(&alone, 99), 1_000.0),
        upstream_rps_c16: a_second(upstream_rps_c16),
        upstream_stream_ttft_p50_ms: rounded(at(&alone_streamed, 50), 1_000.0),
        upstream_stream_rps: a_second(upstream_stream_rps),
        rps_c16_of_upstream: share(rps_c16, upstream_rps_c16),
        stream_rps_of_upstream: share(stream_rps, upstream_stream_rps),
        requests,
        usage_recorded,
        json: options.json,
    })
}

/// One client, the upstream alone and through the server in turns; the times, sorted.
async fn in_turns(
    answer: Answer,
    upstream: &Target,
    server: &Target,
) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let mut clients = [
        Client::connect(upstream).await?,
        Client::connect(server).await?,
    ];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (client, times) in clients.iter_mut().zip(&mut times) {
            for _ in 0..REQUESTS {
                times.push(answer.get(client).await?);
            }
        }
    }
    let [mut alone, mut through] = times;
    alone.sort();
    through.sort();
    Ok((alone, through))
}

/// Several clients for that long: how many answers they got.
async fn at_once(answer: Answer, target: &Target, time: Duration) -> anyhow::Result<usize> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(Client::connect(target).await?);
    }
    let end = now() + time;
    let counts = clients.into_iter().map(|mut client| async move {
        let mut count = 0;
        while now() < end {
            answer.get(&mut client).await?;
            count += 1;
        }
        anyhow::Ok(count)
    });
    Ok(try_join_all(counts).await?.iter().sum())
}

/// What comes of it, and the largest resident set meanwhile.
async fn watched(
    server: &Server,
    work: impl Future<Output = anyhow::Result<usize>>,
) -> anyhow::Result<(usize, u64)> {
    let mut most = 0;
    let mut look = tokio::time::interval(Duration::from_millis(250));
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok((done?, most)),
            _ = look.tick() => most = most.max(server.resident_bytes()?),
        }
    }
}

/// The requests in the stored usage, once all are settled.
async fn recorded(server: &Server, quota: &str, requests: u64) -> anyhow::Result<u64> {
    let end = now() + SETTLED;
    loop {
        let usage = server
            .get(&format!("/api/quotas/bench/{quota}/usage"))
            .await?;
        let count = usage["total"]["requests"]
            .as_u64()
            .context("usage has no total")?;
        if count == requests {
            return Ok(count);
        }
        ensure!(
            now() < end,
            "{requests} requests were answered, {count} are recorded"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.json {
            return f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?);
        }
        let milliseconds = |value: f64| format!("{value:.3} ms");
        let count = |value: f64| format!("{value:.0}");
        let rows = [
            (
                "added latency, p50",
                milliseconds(self.added_p50_ms),
                milliseconds(self.upstream_p50_ms),
            ),
            (
                "added latency, p99",
                milliseconds(self.added_p99_ms),
                milliseconds(self.upstream_p99_ms),
            ),
            (
                "answers a second, 16 clients",
                count(self.rps_c16),
                count(self.upstream_rps_c16),
            ),
            (
                "added time to first token, p50",
                milliseconds(self.stream_ttft_added_p50_ms),
                milliseconds(self.upstream_stream_ttft_p50_ms),
            ),
            (
                "streams a second, 16 clients",
                count(self.stream_rps),
                count(self.upstream_stream_rps),
            ),
            ("memory", format!("{:.1} MB", self.rss_mb), String::new()),
            (
                "answers, share of the upstream's",
                format!("{:.3}", self.rps_c16_of_upstream),
                "1".to_owned(),
            ),
            (
                "streams, share of the upstream's",
                format!("{:.3}", self.stream_rps_of_upstream),
                "1".to_owned(),
            ),
            (
                "requests, all recorded",
                self.usage_recorded.to_string(),
                String::new(),
            ),
        ];
        writeln!(f, "{:34}{:>12}{:>18}", "", "the server", "upstream alone")?;
        let lines: Vec<String> = rows
            .iter()
            .map(|(name, value, alone)| format!("{name:34}{value:>12}{alone:>18}"))
            .collect();
        f.write_str(&lines.join("\n"))
    }
}
