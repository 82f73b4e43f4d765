//! Voice calls, end to end: a release `colloquy serve` as a process of its own, a scripted upstream without delay that it
//! asks over HTTP, and native clients, all on loopback of one machine.
//!
//! For each number of calls at once, a fresh server is started and one visitor has one turn in it, so that nothing is
//! paid for the first time later. Then every client makes its turns on the real-time clock; they start one after the
//! other, spread over one turn. A client says "go forward ten meters" (1.66 s, nothing but room tone around it); every
//! second time it does so while the reply to the time before plays.
//!
//! | figure | what it is |
//! |---|---|
//! | `v2v` | from the packet leaving the client whose last sample is the last voiced one, to the arrival of the first packet of the reply that decodes to more than -50 dBFS |
//! | `v2v_floor` | what no server goes below on this machine in this run: the hold, and a packet's way over loopback and back between two bare sockets, every 20 ms while the calls run |
//! | `barge_in` | from the packet leaving the client with the first voiced sample said over a reply, to the end (arrival and 20 ms) of the last packet of that reply that decodes to more than -50 dBFS |
//! | `connect` | from the offer leaving the client to ICE and DTLS being up there |
//! | `connect_floor` | the same of the two stacks with nothing between them but loopback, one connection after the other before the calls: no HTTP, no signalling, no session |
//! | `pacing` | how far packets of a reply came from the pace that their timestamps say: for each two that follow each other, by how much longer or shorter than 20 ms it was between them |
//! | `busy_texts_per_second` | with `--busy`: texts that the server's models made vectors of meanwhile |
//! | `cpu_core_per_call` | user and system time of the server process over wall time and calls, from the last client's connection to the first client's end |
//! | `codec_alone_core_per_call` | what Opus alone takes on this machine in this run, to decode one stream and encode another: the share of `cpu_core_per_call` that no server can save |
//! | `rss_mb_per_call` | the largest resident set of the server process in that time, less the one before the calls (after the first visitor has left), over calls; 1 MB is 1,000,000 bytes |
//! | `missed_turns` | turns without a reply within 5 s |
//! | `early_turns` | turns that were answered before the visitor had ended; they count in no other figure |
//! | `failed_barge_ins` | replies that went on to the end of what was said over them; they count in no other figure |
//!
//! With `--busy` every number of calls is measured twice, the second time while the server's models have all that they can do: `MiniLM` makes
//! vectors for twice as many clients as it has threads.
//!
//! With `--client webrtc` the clients are on the crate `webrtc` instead of its core: a packet leaves such a client when it
//! is given to the stack, whose own task sends it, and one that came has passed through the stack's tasks.
//!
//! The server's voice-activity hold is 200 ms (`COLLOQUY_CALLS_TURN_STOP_MS`), so no `v2v` of an honest end of turn is
//! below that (`v2v_floor`). The clients and the upstream share the machine with the server; their time is part of the latencies
//! and not of `cpu_core_per_call`.

mod busy;
mod codec;
mod floor;
mod report;
mod visitor;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::Args;
use floor::{Echo, Floor};
use futures_util::future::try_join_all;
use harness::{
    client::{Speech, Stack, connect_bare, now},
    upstream::{Api, Script, Upstream},
};
use report::{Figures, Report};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use visitor::Visitor;

use crate::{
    figures::rounded,
    server::{Server, Start, call_settings},
};

/// What the character answers: 3.5 seconds of speech, longer than it takes to speak over it.
const REPLY: &str = "The library opens at nine. You can borrow ten books there.";

/// The server's voice-activity hold, in milliseconds.
const HOLD_MS: u32 = 200;

/// How long a client's turn takes, more or less; the starts are spread over it.
const TURN: Duration = Duration::from_millis(4_500);

/// Connections without a call, before the calls.
const BARE_CONNECTIONS: usize = 20;

/// How often the server's memory is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Options of the benchmark.
#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// What the clients are built on.
    #[arg(long, value_enum, default_value_t)]
    client: Stack,
    /// Calls at once.
    #[arg(long, value_delimiter = ',', default_value = "1,8,32")]
    calls: Vec<usize>,
    /// Turns of every client; 12 with one call and 6 with more unless given.
    #[arg(long)]
    turns: Option<usize>,
    /// Measure once more while the server's neural models have all that they can do; they are in `COLLOQUY_MODELS_DIR`.
    #[arg(long)]
    busy: bool,
    /// Show the server's log, its process id and every turn.
    #[arg(long)]
    debug: bool,
    /// The server to measure; the `colloquy` beside this program unless given.
    #[arg(long)]
    server: Option<std::path::PathBuf>,
}

/// Runs the benchmark.
///
/// # Errors
/// When the server does not start, or a call fails.
pub(crate) async fn run(options: CallOptions) -> anyhow::Result<Report> {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Chat, Script::text(REPLY));
    upstream.set_default(Api::Transcription, Script::text("go forward ten meters"));
    let mut figures = Vec::new();
    let loads: &[bool] = if options.busy {
        &[false, true]
    } else {
        &[false]
    };
    let runs = options.calls.iter();
    for (calls, is_busy) in runs.flat_map(|calls| loads.iter().map(move |busy| (calls, *busy))) {
        let turns = options.turns.unwrap_or(if *calls == 1 { 12 } else { 6 });
        // Each turn has patience of its own; this is for what nobody thought of.
        let limit = Duration::from_secs(60) + 4 * TURN * u32::try_from(turns)?;
        let measured =
            tokio::time::timeout(limit, measure(&upstream, *calls, turns, is_busy, &options)).await;
        figures.push(measured.with_context(|| format!("{calls} calls took more than {limit:?}"))??);
    }
    Ok(Report {
        client: options.client,
        codec_alone_core_per_call: rounded(codec::core_per_call()?, 10_000.0),
        figures,
        json: options.json,
    })
}

async fn measure(
    upstream: &Upstream,
    calls: usize,
    turns: usize,
    is_busy: bool,
    options: &CallOptions,
) -> anyhow::Result<Figures> {
    let server = start(upstream, options).await?;
    let key = if options.busy {
        Some(busy::key(&server).await?)
    } else {
        None
    };
    let speech = Speech::go_forward_trimmed()?;
    let visitor = |index| Visitor {
        index,
        stack: options.client,
        speech: speech.clone(),
        debug: options.debug,
    };
    visitor(calls)
        .visit(&server.create_call().await?, 1, || {})
        .await
        .context("the first visitor")?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle_bytes = server.resident_bytes()?;
    let mut floor = Floor::default();
    for _ in 0..BARE_CONNECTIONS {
        floor.connections.push(connect_bare(options.client).await?);
    }
    let mut urls = Vec::new();
    for _ in 0..calls {
        urls.push(server.create_call().await?);
    }
    let observer = Observer {
        server: &server,
        calls,
        connected: Semaphore::new(0),
        first_done: Notify::new(),
        looks: AtomicBool::new(false),
        is_over: CancellationToken::new(),
    };
    let spread = TURN / u32::try_from(calls)?;
    let visits = urls.iter().zip(0..).map(|(url, index)| {
        let (visitor, observer) = (visitor(index as usize), &observer);
        async move {
            tokio::time::sleep(spread * index).await;
            let visit = visitor
                .visit(url, turns, || observer.connected.add_permits(1))
                .await;
            observer.first_done.notify_one();
            visit.with_context(|| format!("visitor {index}"))
        }
    });
    let flood = async {
        match key.filter(|_| is_busy) {
            Some(key) => busy::flood(&server, &key, &observer).await.map(Some),
            None => Ok(None),
        }
    };
    let echo = Echo::open().await?;
    let measured = async { tokio::try_join!(try_join_all(visits), observer.watch(), flood) };
    let (visits, window, texts) = tokio::select! {
        measured = measured => measured?,
        failed = echo.measure(&mut floor.trips) => {
            failed.context("a packet between two bare sockets")?;
            bail!("the bare sockets ended");
        }
    };
    server.stop().await?;
    Ok(Figures::new(&visits, &window, floor, idle_bytes, texts))
}

/// Starts a server that asks the upstream, and gives it a character.
async fn start(upstream: &Upstream, options: &CallOptions) -> anyhow::Result<Server> {
    let mut settings = call_settings(upstream);
    let hold = ("COLLOQUY_CALLS_TURN_STOP_MS", HOLD_MS.to_string());
    settings.push((hold.0.to_owned(), hold.1));
    if options.busy {
        settings.extend(busy::settings()?);
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

/// Looks at the server while all calls are active.
struct Observer<'a> {
    server: &'a Server,
    calls: usize,
    /// A permit for each client that has connected.
    connected: Semaphore,
    first_done: Notify,
    /// Whether it looks.
    looks: AtomicBool,
    /// That time is over.
    is_over: CancellationToken,
}

/// What the server used while all calls were active.
#[derive(Debug, Default)]
struct Window {
    wall: Duration,
    processor: Duration,
    resident_bytes: u64,
}

impl Observer<'_> {
    /// Whether all calls are active.
    fn is_looking(&self) -> bool {
        self.looks.load(Ordering::Relaxed)
    }

    async fn watch(&self) -> anyhow::Result<Window> {
        let all = self
            .connected
            .acquire_many(u32::try_from(self.calls)?)
            .await?;
        all.forget();
        self.looks.store(true, Ordering::Relaxed);
        let (began, processor) = (now(), self.server.processor_time()?);
        let mut window = Window::default();
        loop {
            let over = tokio::time::timeout(LOOK, self.first_done.notified())
                .await
                .is_ok();
            window.resident_bytes = window.resident_bytes.max(self.server.resident_bytes()?);
            if over {
                window.wall = now().duration_since(began);
                window.processor = self.server.processor_time()?.saturating_sub(processor);
                self.is_over.cancel();
                return Ok(window);
            }
        }
    }
}
