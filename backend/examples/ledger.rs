//! How fast the ledger is on SQLite: `cargo run --release -p colloquy-backend --example ledger [FOLDER]`.
//!
//! Each client reserves and settles in a loop, as a request does: it waits for the reservation, not for the settlement.

use std::{
    io::Write as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use colloquy::{
    App, Config,
    accounts::{
        DataScope, PartnerId, Principal,
        ledger::{self, Amounts, Limits, Measure, Outcome, UsageContext},
        partners::{self, PartnerChange},
        quotas::{self, Quota, QuotaChange, QuotaKind},
    },
    clock::{Clock, SystemClock},
    kernel::Base,
    node::DataFolder,
    providers, server,
};
use tokio::task::JoinSet;

const MEASURED: Duration = Duration::from_secs(5);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let mut config = Config::default();
    config.store.dir = given.unwrap_or_else(|| folder.path().to_owned());
    let app = open(config).await?;
    ledger::start(&app).await?;
    let quota = make_quota(&app).await?;
    run(&app, &quota, 1, Duration::from_secs(1)).await?;
    for clients in [1, 16, 64] {
        report(clients, run(&app, &quota, clients, MEASURED).await?)?;
    }
    app.kernel.shutdown.cancel();
    app.ledger.close();
    app.kernel.tasks.close();
    app.kernel.tasks.wait().await;
    Ok(())
}

async fn open(config: Config) -> anyhow::Result<App> {
    server::install_tls_provider();
    let store = config.store.open().await?;
    store.migrate().await?;
    let providers = providers::from_config(&config)?;
    let clock = Arc::new(SystemClock);
    let folder = DataFolder::claim(&config.store, &*clock).await?;
    App::open(Base::new(config, store, clock), folder, providers).await
}

async fn make_quota(app: &App) -> anyhow::Result<Arc<Quota>> {
    let id = format!("p{}", app.clock.new_id().simple());
    let id = PartnerId::parse(&id)?;
    let admin = Principal {
        key_id: String::new(),
        reach: DataScope::Admin,
        scopes: None,
        allowed_origins: None,
        partner_rate: None,
    };
    let tenant = admin.tenant(&id)?;
    partners::create(app, id, PartnerChange::default()).await?;
    let change = QuotaChange {
        kinds: Some(vec![QuotaKind::Text]),
        limits: Some(
            Limits::default()
                .with(Measure::Tokens, Some(1_000_000_000_000))
                .with(Measure::Cost, Some(1_000_000_000_000)),
        ),
        ..QuotaChange::default()
    };
    let (state, _key) = quotas::create(app, &tenant, change).await?;
    Ok(Arc::new(state.quota))
}

/// What one run measured.
struct Measured {
    /// How long each reservation took.
    waits: Vec<Duration>,
    elapsed: Duration,
}

/// Lets so many clients work for a while, and waits until all they did is stored.
async fn run(
    app: &App,
    quota: &Arc<Quota>,
    clients: usize,
    time: Duration,
) -> anyhow::Result<Measured> {
    let clock = SystemClock;
    let begun = clock.instant();
    let mut working = JoinSet::new();
    for _ in 0..clients {
        let (app, quota) = (app.clone(), Arc::clone(quota));
        working.spawn(async move {
            let mut waits = Vec::new();
            while begun.elapsed() < time {
                waits.push(request(&app, &quota).await?);
            }
            anyhow::Ok(waits)
        });
    }
    let mut waits = Vec::new();
    while let Some(finished) = working.join_next().await {
        waits.extend(finished??);
    }
    while app.ledger.open() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(Measured {
        waits,
        elapsed: begun.elapsed(),
    })
}

async fn request(app: &App, quota: &Arc<Quota>) -> anyhow::Result<Duration> {
    let asked: Instant = SystemClock.instant();
    let bound = Amounts::default()
        .with(Measure::Tokens, 1_000)
        .with(Measure::Cost, 10_000);
    let about = UsageContext {
        endpoint: "chat.completions",
        model: "gpt".to_owned(),
        character: None,
        request_id: app.clock.new_id().to_string(),
    };
    let reservation = app.ledger.reserve(quota, bound, about).await?;
    let wait = asked.elapsed();
    let usage = Amounts::tokens(100, 50).with(Measure::Cost, 1_500);
    reservation.settle(usage, Outcome::Completed);
    Ok(wait)
}

fn report(clients: usize, mut measured: Measured) -> anyhow::Result<()> {
    measured.waits.sort_unstable();
    let count = measured.waits.len();
    let at = |share: f64| {
        let index = ((count as f64 * share) as usize).min(count.saturating_sub(1));
        measured
            .waits
            .get(index)
            .copied()
            .unwrap_or_default()
            .as_micros()
    };
    // A request is two operations: a reservation and a settlement.
    let rate = 2.0 * count as f64 / measured.elapsed.as_secs_f64();
    let (p50, p99, most) = (at(0.5), at(0.99), at(1.0));
    writeln!(
        std::io::stdout().lock(),
        "{clients:>3} clients: reserve p50 {p50} us, p99 {p99} us, longest {most} us; {rate:.0} operations/s"
    )?;
    Ok(())
}
