//! What runs in a server, and in which order it starts and stops.
//!
//! Start, which SIGTERM and SIGINT end at any time: logs, traces, the listening address, the data folder, the database and its lock, migrations,
//! providers, the other parts of the [`App`] (node, media port, keys), background work, then the listener says that it is ready. Stop, after
//! SIGTERM: `/health` says so, and everything goes on for `http.lame_duck_seconds`, which SIGINT and a second signal skip. Then new work is
//! refused, open requests, calls and tasks get `http.drain_seconds`, then calls and answers are ended, the listener closes, and the process ends:
//! five seconds after that time at the latest, whatever still runs then.

use std::{io::Write as _, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use futures_util::future::join_all;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    task::spawn_blocking,
    time::{Instant, sleep, timeout, timeout_at},
};
use url::Url;

use super::{capabilities, equipment, router};
use crate::{
    app::App,
    cli::THREADS_LIMIT,
    clock::{SystemClock, runtime_now},
    config::Config,
    http::front::Front,
    jobs,
    kernel::Base,
    node::{DataFolder, DatabaseLock},
    observability::{Traces, resident_bytes},
    providers::{self, NotUnderstood, Understood, embedded},
    sandbox,
    store::Store,
};

/// What the process gets beyond the time to drain.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// The part of it in which calls and answers are ended and stored. The rest is for what closes after them.
const STORING: Duration = Duration::from_secs(3);
/// How long the connections to the database may take to close.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Runs a server with these settings until it is told to stop.
///
/// # Errors
/// When something does not start; a failure of the listener later on.
pub async fn run(config: Config) -> anyhow::Result<()> {
    // Before there are secrets in memory, and processes that work on what strangers sent.
    sandbox::hide_memory().context("hiding the memory of the server")?;
    warn_of_missing_protection();
    install_tls_provider();
    // Before anything takes time. The first process of a container gets no signal that it does not wait for, and whoever starts this one may have it
    // ignore these.
    let mut signals = Signals::new();
    let traces = Traces::open(&config.traces)?;
    let started = tokio::select! {
        started = open(config) => started.map(Some),
        _ = signals.next() => {
            tracing::info!("told to stop before the start was complete");
            Ok(None)
        }
    };
    let (app, listener, database) = match started {
        Ok(Some(started)) => (started.app, started.listener, started.database),
        not_started => {
            if let Some(traces) = traces {
                let _ = timeout(LAST_WORDS, traces.close()).await;
            }
            return not_started.map(|_| ());
        }
    };
    let store = app.store.clone();
    let end = serve_and_drain(&app, listener, &mut signals).await?;
    let closing = async {
        tokio::join!(release(app), remove_sounds(), close(&store));
        drop(database);
        if let Some(traces) = traces {
            traces.close().await;
        }
    };
    if timeout_at(end, closing).await.is_err() {
        tracing::warn!("the server ends before all of it is closed");
    }
    Ok(())
}

/// What a server has once it has started.
struct Started {
    app: App,
    listener: TcpListener,
    database: DatabaseLock,
}

/// Opens what a server has, and starts its background work.
async fn open(mut config: Config) -> anyhow::Result<Started> {
    let listener = bind(&mut config).await?;
    let clock = Arc::new(SystemClock);
    // Before the database: what another server uses is not migrated.
    let folder = DataFolder::claim(&config.store, &*clock).await?;
    let database = DatabaseLock::claim(&config.store).await?;
    let store = config.store.open().await?;
    store.migrate().await?;
    // Reading models and folders blocks.
    let (mut config, providers) = spawn_blocking(move || {
        // Those of visitors, whichever transcriber the server has now.
        embedded::remove_abandoned_sounds();
        let providers = providers::from_config(&config);
        providers.map(|providers| (config, providers))
    })
    .await??;
    if let Some(max_calls) = providers.max_calls {
        config.media.max_calls = config.media.max_calls.min(max_calls);
    }
    tracing::info!(
        chat = providers.chat.name(),
        transcriber = providers.transcriber.name(),
        synthesizer = providers.synthesizer.name(),
        embedder = providers
            .embedder
            .as_ref()
            .map_or("none", |embedder| embedder.name()),
        voice_activity = providers.turns.voice_activity(),
        end_of_turn = providers.turns.end_of_turn(),
        max_calls = config.media.max_calls,
        "providers"
    );
    if let Some((languages, missing)) = refused_languages(&providers.transcriber.understands()) {
        tracing::warn!(
            ?languages,
            "speech in other languages is refused: {missing}"
        );
    }
    tracing::info!(
        resident_bytes = resident_bytes(),
        models = ?providers.model_bytes,
        "memory, with the weights of models in bytes"
    );
    let base = Base::new(config, store, clock);
    let app = App::open(base, folder, providers).await?;
    start_background(&app).await?;
    start_worker(&app, jobs::Settings::default()).await?;
    // Beside the first requests: programs are started for it.
    let reported = equipment::report(app.clone());
    let shutdown = app.kernel.shutdown.clone();
    app.kernel.tasks.spawn(async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = reported => {}
        }
    });
    Ok(Started {
        app,
        listener,
        database,
    })
}

/// Drops what a server has. The last one that has the search index waits until what is being written of it is there, which may take longer than the
/// server has: whoever stops waiting loses nothing, since the index goes on from its last commit.
async fn release<T: Send + 'static>(held: T) {
    if let Err(error) = spawn_blocking(move || drop(held)).await {
        tracing::debug!(%error, "something was not released");
    }
}

async fn remove_sounds() {
    if let Err(error) = spawn_blocking(embedded::remove_own_sounds).await {
        tracing::debug!(%error, "sounds of visitors were left behind");
    }
}

/// Closes the connections to the database. SQLite puts its log into the database when the last one ends.
async fn close(store: &Store) {
    if timeout(CLOSE_LIMIT, store.db().close()).await.is_err() {
        tracing::debug!("connections to the database were open at the end");
    }
}

/// Tells what decoding processes and helper programs lack here for being confined.
fn warn_of_missing_protection() {
    match sandbox::missing() {
        Ok(missing) => {
            for protection in missing {
                let consequence = protection.consequence();
                tracing::warn!(%protection, consequence, "this kernel lacks a protection");
            }
        }
        Err(error) => {
            tracing::error!(%error, "no process can be confined, so that nothing will be decoded");
        }
    }
}

/// Takes the listening address, so that port 0 becomes a real one, and settles how clients reach the server.
///
/// # Errors
/// When the address is taken or not ours.
pub async fn bind(config: &mut Config) -> anyhow::Result<TcpListener> {
    let listen = config.http.listen;
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("http.listen: cannot listen on {listen}"))?;
    config.http.listen = listener.local_addr()?;
    if config.http.public_url.is_none() {
        let url = Url::parse(&format!("http://{}", config.http.listen))?;
        config.http.public_url = Some(url);
    }
    Ok(listener)
}

/// The one cryptography for outgoing TLS. A second call changes nothing.
pub fn install_tls_provider() {
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        tracing::debug!("a TLS provider was installed before");
    }
}

/// Starts the work beside requests. Each piece runs on `app.kernel.tasks` and ends when `app.kernel.shutdown` is cancelled.
///
/// # Errors
/// When the calls and reservations that an earlier process left behind cannot be ended.
pub async fn start_background(app: &App) -> anyhow::Result<()> {
    for capability in capabilities::ALL {
        let name = capability.name();
        let started = capability.start(app).await;
        started.with_context(|| format!("starting {name}"))?;
    }
    Ok(())
}

/// Starts the worker that runs every kind of job of the server, after [`start_background`].
///
/// # Errors
/// When the database fails.
pub async fn start_worker(app: &App, settings: jobs::Settings) -> anyhow::Result<()> {
    let registry = capabilities::ALL
        .iter()
        .fold(jobs::Registry::default(), |registry, capability| {
            capability.jobs(registry)
        });
    jobs::start(app, registry, settings).await
}

/// Serves until `app.kernel.shutdown` or `app.kernel.leaving` is cancelled, or the process gets SIGTERM or SIGINT, then drains.
///
/// # Errors
/// When the listener has no address.
pub async fn serve(app: App, listener: TcpListener) -> anyhow::Result<()> {
    serve_and_drain(&app, listener, &mut Signals::new()).await?;
    Ok(())
}

/// Like [`serve`]; returns until when what closes after it may take.
async fn serve_and_drain(
    app: &App,
    listener: TcpListener,
    signals: &mut Signals,
) -> anyhow::Result<Instant> {
    let address = listener.local_addr()?;
    let front = Front::open(
        &app.config.http,
        listener,
        router(app.clone()),
        app.kernel.leaving.clone(),
    );
    announce(address);
    let kernel = &app.kernel;
    let may_wait = tokio::select! {
        biased;
        () = kernel.shutdown.cancelled() => false,
        () = kernel.leaving.cancelled() => true,
        stop = signals.next() => stop == Stop::Terminated,
    };
    kernel.leaving.cancel();
    let lame_duck = Duration::from_secs(app.config.http.lame_duck_seconds);
    if may_wait && !lame_duck.is_zero() {
        tracing::info!(
            seconds = lame_duck.as_secs(),
            "told to stop; /health says so, and requests are served meanwhile"
        );
        tokio::select! {
            () = sleep(lame_duck) => {}
            _ = signals.next() => {}
            () = kernel.shutdown.cancelled() => {}
        }
    }
    kernel.shutdown.cancel();
    app.kernel.tasks.close();
    tracing::info!("draining");
    let patience = Duration::from_secs(app.config.http.drain_seconds);
    let end = runtime_now() + patience + LAST_WORDS - THREADS_LIMIT;
    // Calls and answers are ended when the time is over; storing how they ended takes a moment more.
    let drained = async {
        // The address goes on answering, so that a call that loses its connection comes back.
        let calls = join_all(capabilities::ALL.map(|capability| capability.drained(app)));
        let work = async { tokio::join!(front.answered(), calls) };
        let mut work = std::pin::pin!(work);
        let early = tokio::time::timeout(patience, &mut work).await;
        app.kernel.drain_over.cancel();
        if early.is_err() {
            work.await;
        }
        // What still runs settles what it has reserved; the ledger ends with the last of it.
        app.ledger.close();
        app.kernel.tasks.wait().await;
    };
    let in_time = tokio::time::timeout(patience + STORING, drained).await;
    if in_time.is_err() {
        let seconds = (patience + STORING).as_secs();
        tracing::warn!(seconds, "work was left when the time to drain was over");
    }
    front.close().await;
    Ok(end)
}

/// One line on standard output, for people and for scripts that wait for it. A closed output is no reason to stop.
fn announce(address: SocketAddr) {
    let mut output = std::io::stdout().lock();
    let written =
        writeln!(output, "colloquy listening on http://{address}").and_then(|()| output.flush());
    if written.is_err() {
        tracing::info!(%address, "listening");
    }
}

/// A signal that ends the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// SIGTERM: a supervisor may have told a load balancer, too.
    Terminated,
    /// SIGINT: somebody waits at a terminal.
    Interrupted,
}

/// The signals of the process; `None` where the system gives none.
struct Signals {
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
}

impl Signals {
    fn new() -> Self {
        let listen = |kind, name| match signal(kind) {
            Ok(signal) => Some(signal),
            Err(error) => {
                tracing::error!(%error, "cannot wait for {name}");
                None
            }
        };
        Self {
            terminate: listen(SignalKind::terminate(), "SIGTERM"),
            interrupt: listen(SignalKind::interrupt(), "SIGINT"),
        }
    }

    /// Waits for the next one.
    async fn next(&mut self) -> Stop {
        tokio::select! {
            () = received(&mut self.terminate) => Stop::Terminated,
            () = received(&mut self.interrupt) => Stop::Interrupted,
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    let received = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    // No more will come.
    if received.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Returns the languages that are understood and what to install for the others; `None` where every language is.
fn refused_languages(understood: &Understood) -> Option<(Vec<&'static str>, NotUnderstood)> {
    Some((understood.codes()?, understood.check_detection().err()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks whoever drops it, as an index that is being written does, until the other end of the channel goes.
    struct Busy(std::sync::mpsc::Receiver<()>);

    impl Drop for Busy {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    #[tokio::test]
    async fn what_takes_long_to_release_is_not_waited_for_beyond_the_end() {
        let (_held, busy) = std::sync::mpsc::channel();
        let end = runtime_now() + Duration::from_millis(10);
        let released = timeout_at(end, release(Busy(busy))).await;
        released.unwrap_err();
        let (held, idle) = std::sync::mpsc::channel();
        drop(held);
        release(Busy(idle)).await;
    }

    #[test]
    fn languages_that_no_model_understands_are_told_with_what_to_install() {
        assert_eq!(refused_languages(&Understood::Any), None);
        let only = Understood::Only(["en", "de"].into());
        let (languages, missing) = refused_languages(&only).unwrap();
        assert_eq!(languages, ["de", "en"]);
        let told = missing.to_string();
        assert!(told.contains("colloquy models pull whisper-base"), "{told}");
    }
}
