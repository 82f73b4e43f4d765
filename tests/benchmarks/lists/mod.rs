//! The lists of the console over a large database: a release `colloquy serve` as a process of its own with a database that is seeded by SQL, and one
//! client that keeps its connection, on loopback.
//!
//! The partner has 1,000 knowledge bases, one of them with 100,000 documents in 50 folders, 10,000 calls with a webhook delivery each, as many transcripts
//! and analyses, 500 saved questions, and 20 quotas that were used every day of a year.
//!
//! | figure | what it is, for each request |
//! |---|---|
//! | `p50_ms`, `p95_ms` | from the request to the last byte of its answer |
//! | `bytes` | the body of the answer |
//! | `is_slow` | true if `p95_ms` is over 200 |
//!
//! With `--check` the exit code is 1 if any request is slow.

mod report;
mod requests;
mod seed;

use std::{path::PathBuf, time::Duration};

use anyhow::ensure;
use clap::Args;
use colloquy::clock::{Clock as _, SystemClock};
use harness::{TestDatabase, client::now};

use self::{
    report::{Figures, Report},
    requests::Request,
    seed::{BASE, PARTNER, Seeded},
};
use crate::{
    figures::rounded,
    progress::Progress,
    server::{Server, Start},
};

/// Requests that are not measured, of each.
const WARM_UP: usize = 3;

/// How long seeding may take.
const SEEDED: Duration = Duration::from_secs(1_800);

/// Options of the benchmark.
#[derive(Debug, Args)]
pub(crate) struct ListsOptions {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Exit with 1 if the p95 of a request is over 200 ms.
    #[arg(long)]
    check: bool,
    /// Use PostgreSQL: that of `COLLOQUY_TEST_POSTGRES_URL`, else one that is started.
    #[arg(long)]
    postgres: bool,
    /// Knowledge bases.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(2..))]
    bases: u32,
    /// Documents of the largest knowledge base.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    documents: u32,
    /// Calls, each with a delivery.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    calls: u32,
    /// How often each request is measured.
    #[arg(long, default_value_t = 30)]
    requests: usize,
    /// Measure only requests whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Show the server's log and its process id.
    #[arg(long)]
    debug: bool,
    /// The server to measure; the `colloquy` beside this program unless given.
    #[arg(long)]
    server: Option<PathBuf>,
}

/// Runs the benchmark.
///
/// # Errors
/// The server does not start, the database cannot be seeded, or a request fails.
pub(crate) async fn run(options: ListsOptions) -> anyhow::Result<Report> {
    let database = match options.postgres {
        true => TestDatabase::empty_postgres().await,
        false => TestDatabase::empty_sqlite(),
    };
    let progress = Progress::begin();
    let mut server = start(&database, &options).await?;
    let seeded = Seeded {
        bases: options.bases,
        documents: options.documents,
        calls: options.calls,
        now: SystemClock.now_ms(),
    };
    let begun = now();
    let seeding = server.while_stopped(seed(&database, &seeded));
    progress.measure("seeding", SEEDED, seeding).await?;
    let seed_seconds = rounded(begun.elapsed().as_secs_f64(), 10.0);
    check_totals(&server, &seeded).await?;
    let mut figures = Vec::new();
    for request in requests::all(&server, &seeded).await? {
        let is_wanted = |only: &String| request.name.contains(only.as_str());
        if options.only.as_ref().is_none_or(is_wanted) {
            figures.push(measure(&server, request, options.requests).await?);
        }
    }
    server.stop().await?;
    Ok(Report {
        database: database.kind(),
        documents: options.documents,
        seed_seconds,
        requests: figures,
        json: options.json,
        check: options.check,
    })
}

/// Starts a server that takes all these rows and requests; it makes the schema.
async fn start(database: &TestDatabase, options: &ListsOptions) -> anyhow::Result<Server> {
    let config = database.config();
    let mut settings = vec![
        ("COLLOQUY_STORE_DIR", config.dir.display().to_string()),
        ("COLLOQUY_KNOWLEDGE_MAX_BASES", options.bases.to_string()),
        (
            "COLLOQUY_KNOWLEDGE_MAX_DOCUMENTS",
            options.documents.to_string(),
        ),
        ("COLLOQUY_LIMITS_REQUESTS_PER_MINUTE", "1000000".to_owned()),
        ("COLLOQUY_LIMITS_REQUEST_BURST", "1000000".to_owned()),
    ];
    if let Some(url) = database.postgres_url() {
        settings.push(("COLLOQUY_STORE_DATABASE_URL", url.to_string()));
    }
    let settings = settings
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    Server::start(Start {
        program: options.server.as_deref(),
        debug: options.debug,
        settings: settings.collect(),
        ..Start::default()
    })
    .await
}

async fn seed(database: &TestDatabase, seeded: &Seeded) -> anyhow::Result<()> {
    let store = database.config().open().await?;
    let written = seed::write(&store.patient(), seeded).await;
    store.db().close().await;
    written
}

/// Passes if the server lists what was seeded.
async fn check_totals(server: &Server, seeded: &Seeded) -> anyhow::Result<()> {
    for (path, expected) in [
        (format!("/api/kb-list/{PARTNER}"), seeded.bases),
        (
            format!("/api/document-list/{PARTNER}/{BASE}"),
            seeded.documents,
        ),
    ] {
        let total = server.get(&path).await?["total"].as_u64();
        ensure!(total == Some(expected.into()), "{path}: total {total:?}");
    }
    Ok(())
}

async fn measure(server: &Server, request: Request, requests: usize) -> anyhow::Result<Figures> {
    let Request { name, path } = request;
    let (mut samples, mut bytes) = (Vec::new(), 0);
    for number in 0..WARM_UP + requests {
        let begun = now();
        bytes = server.read(&path).await?.len();
        if number >= WARM_UP {
            samples.push(begun.elapsed());
        }
    }
    Ok(Figures::new(name, path, samples, bytes))
}
