//! What runs in a server, and in which order it starts and stops.
//!
//! Start: logs, traces, the listening address, database, migrations, providers, the other parts of the [`App`] (node, media port,
//! keys), background work, then the listener says that it is ready. Stop, after SIGTERM or SIGINT: no new work, open
//! requests and tasks get `http.drain_seconds`, then calls and answers are ended, and the process ends.

use std::{io::Write as _, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{
    App, Config, accounts::ledger, app::Base, calls, clock::SystemClock, generation, http, jobs,
    media, messaging, observability::Traces, providers, store::Store, webhooks,
};

/// What calls and answers get beyond the time to drain, to be ended and stored.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Runs a server with these settings until it is told to stop.
///
/// # Errors
/// When something does not start; a failure of the listener later on.
pub async fn run(mut config: Config) -> anyhow::Result<()> {
    install_tls_provider();
    let traces = Traces::open(&config.traces)?;
    let listener = bind(&mut config).await?;
    let store = Store::open(&config.store).await?;
    store.migrate().await?;
    let providers = providers::from_config(&config)?;
    let base = Base::new(config, store, Arc::new(SystemClock));
    let app = App::open(base, providers).await?;
    start_background(&app).await?;
    start_worker(&app, jobs::Settings::default()).await?;
    let served = serve(app, listener).await;
    if let Some(traces) = traces {
        traces.close().await;
    }
    served
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

/// Starts the work beside requests. Each piece runs on `app.tasks` and ends when `app.shutdown` is cancelled.
///
/// # Errors
/// When the calls and reservations that an earlier process left behind cannot be ended.
pub async fn start_background(app: &App) -> anyhow::Result<()> {
    ledger::start(app).await?;
    media::start(app);
    calls::start(app).await?;
    webhooks::start(app);
    generation::stored::start(app);
    messaging::start(app);
    Ok(())
}

/// Starts the worker that runs every sort of job of the server, after [`start_background`].
///
/// # Errors
/// When the database fails.
pub async fn start_worker(app: &App, settings: jobs::Settings) -> anyhow::Result<()> {
    let registry = jobs::Registry::default()
        .with::<webhooks::Deliver>()
        .with::<messaging::Complete>();
    jobs::start(app, registry, settings).await
}

/// Serves until `app.shutdown` is cancelled or the process gets SIGTERM or SIGINT, then drains.
///
/// # Errors
/// When the listener fails.
pub async fn serve(app: App, listener: TcpListener) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let service = http::router(app.clone()).into_make_service_with_connect_info::<SocketAddr>();
    // Each piece of an answer goes out when it is there, not when the client has acknowledged the one before.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "a connection that is gone already");
        }
    });
    let server = axum::serve(listener, service)
        .with_graceful_shutdown(app.shutdown.clone().cancelled_owned());
    let mut server = std::pin::pin!(server.into_future());
    announce(address);
    let ended = tokio::select! {
        ended = &mut server => Some(ended),
        () = stop_signal(&app.shutdown) => None,
    };
    app.shutdown.cancel();
    app.tasks.close();
    tracing::info!("draining");
    let answered = async {
        match ended {
            Some(ended) => ended,
            None => server.await,
        }
    };
    let patience = Duration::from_secs(app.config.http.drain_seconds);
    // Calls and answers are ended when the time is over; storing how they ended takes a moment more.
    let drained = async {
        let mut work = std::pin::pin!(async { tokio::join!(answered, media::drained(&app)) });
        let early = tokio::time::timeout(patience, &mut work).await.ok();
        app.drain_over.cancel();
        let (ended, ()) = match early {
            Some(done) => done,
            None => work.await,
        };
        // What still runs settles what it has reserved; the ledger ends with the last of it.
        app.ledger.close();
        app.tasks.wait().await;
        ended
    };
    match tokio::time::timeout(patience + LAST_WORDS, drained).await {
        Ok(ended) => ended.context("the listener failed"),
        Err(_) => {
            let seconds = (patience + LAST_WORDS).as_secs();
            tracing::warn!(seconds, "work was left when the time to drain was over");
            Ok(())
        }
    }
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

/// Waits for SIGTERM, SIGINT, or a shutdown from inside.
async fn stop_signal(shutdown: &CancellationToken) {
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(error) => {
                tracing::error!(%error, "cannot wait for SIGTERM");
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        () = terminate => {}
        interrupted = tokio::signal::ctrl_c() => {
            if let Err(error) = interrupted {
                tracing::error!(%error, "cannot wait for SIGINT");
            }
        }
        () = shutdown.cancelled() => {}
    }
}
