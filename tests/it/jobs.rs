//! Durable work: leases, fencing, retries, keys, shutdown; partners that share it, and jobs that take their process down.

mod partners;

use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::bail;
use colloquy::{
    App,
    clock::ManualClock,
    jobs::{self, GivenUp, Job, JobState, Registry, RetryRule, Run, RunResult, Settings, WorkRow},
    store::{Dialect, Executor as _, statement},
};
use harness::{TestApp, TestDatabase, app::quick, eventually};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// What a scripted job did, by its name; names are unique in this file.
#[derive(Default)]
struct Record {
    running: AtomicU32,
    most_at_once: AtomicU32,
    runs: Mutex<Vec<Run>>,
    held: Mutex<Vec<bool>>,
    given_up: Mutex<Vec<GivenUp>>,
    go_on: Notify,
}

static RECORDS: LazyLock<Mutex<HashMap<String, Arc<Record>>>> = LazyLock::new(Mutex::default);

fn record(name: &str) -> Arc<Record> {
    let mut records = RECORDS.lock().unwrap();
    records.entry(name.to_owned()).or_default().clone()
}

/// Counts a run as over also when the run is dropped.
struct Running<'a>(&'a Record);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Scripted {
    name: String,
    script: Script,
    keyed: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Script {
    /// Takes this many milliseconds.
    Work(u64),
    /// Waits until the test says so, then asks whether the lease is still held.
    Wait,
    /// Fails every time.
    Fail,
    /// Panics the first time.
    PanicOnce,
    /// Blocks the first time.
    BlockOnce,
    /// Runs three times.
    Thrice,
    /// Fails in the second of six runs, and is put off in all others but the last.
    PutOff,
    /// Ends its process, after so many milliseconds.
    Kill(u64),
}

impl Scripted {
    fn new(name: impl Into<String>, script: Script) -> Self {
        Self {
            name: name.into(),
            script,
            keyed: true,
        }
    }
}

impl Job for Scripted {
    type State = App;

    const KIND: &'static str = "test.scripted";

    const RETRY: RetryRule = RetryRule {
        attempts: 3,
        first: Duration::from_millis(10),
        most: Duration::from_millis(40),
    };

    const AT_ONCE: usize = 4;

    fn dedup_key(&self) -> Option<String> {
        self.keyed.then(|| self.name.clone())
    }

    async fn run(self, app: App, run: Run) -> anyhow::Result<RunResult> {
        let record = record(&self.name);
        let running = record.running.fetch_add(1, Ordering::SeqCst) + 1;
        record.most_at_once.fetch_max(running, Ordering::SeqCst);
        let _running = Running(&record);
        let times = {
            let mut runs = record.runs.lock().unwrap();
            runs.push(run.clone());
            runs.len()
        };
        match self.script {
            Script::Work(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Script::Wait => {
                record.go_on.notified().await;
                let transaction = app.store.begin().await?;
                let held = run.holds(&transaction).await?;
                transaction.commit().await?;
                record.held.lock().unwrap().push(held);
            }
            Script::Fail => bail!("as told"),
            Script::PutOff if times == 2 => bail!("as told"),
            Script::PutOff if times < 6 => return Ok(RunResult::PutOff(Duration::from_millis(5))),
            Script::PanicOnce if times == 1 => panic!("as told"),
            Script::BlockOnce if times == 1 => {
                return Ok(RunResult::Blocked("a reason".to_owned()));
            }
            Script::Kill(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                std::process::abort();
            }
            Script::Thrice if times < 3 => return Ok(RunResult::Again(Duration::from_millis(5))),
            _ => {}
        }
        Ok(RunResult::Done)
    }

    async fn give_up(self, _app: App, _run: Run, why: GivenUp) -> anyhow::Result<()> {
        record(&self.name).given_up.lock().unwrap().push(why);
        Ok(())
    }
}

async fn enqueue(app: &App, job: &impl Job) {
    let transaction = app.store.begin().await.unwrap();
    jobs::enqueue(app, &transaction, None, job).await.unwrap();
    transaction.commit().await.unwrap();
    app.kernel.jobs.wake();
}

async fn start(app: &App, how: Settings) {
    let registry = Registry::default().with::<Scripted>();
    jobs::start(app, registry, how).await.unwrap();
}

async fn row(app: &App, name: &str) -> WorkRow {
    let row = jobs::find::<Scripted>(app.store.db(), name).await.unwrap();
    row.unwrap_or_else(|| panic!("no job {name}"))
}

async fn reaches(app: &App, name: &str, state: JobState) -> WorkRow {
    eventually(&format!("{name} is {}", state.as_str()), || async {
        row(app, name).await.state == state.as_str()
    })
    .await;
    row(app, name).await
}

fn runs(name: &str) -> usize {
    record(name).runs.lock().unwrap().len()
}

/// Which attempt each run was, and how many before it were none.
fn counts(name: &str) -> Vec<(u32, u32)> {
    let record = record(name);
    let runs = record.runs.lock().unwrap();
    runs.iter()
        .map(|run| (run.attempt, run.put_offs()))
        .collect()
}

/// A node on which nothing runs yet.
async fn node(database: &TestDatabase, name: &str) -> App {
    TestApp::builder(database).node(name).idle().await
}

async fn stop(app: App) {
    app.kernel.shutdown.cancel();
    app.kernel.tasks.close();
    app.kernel.tasks.wait().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_never_run_a_job_twice_and_miss_none() {
    for database in TestDatabase::both().await {
        let nodes = [node(&database, "a").await, node(&database, "b").await];
        for node in &nodes {
            start(node, quick()).await;
        }
        let names: Vec<_> = (0..40)
            .map(|n| format!("{}-two-{n}", database.kind()))
            .collect();
        for (n, name) in names.iter().enumerate() {
            enqueue(&nodes[n % 2], &Scripted::new(name, Script::Work(15))).await;
        }
        for name in &names {
            reaches(&nodes[0], name, JobState::Done).await;
        }
        for name in &names {
            assert_eq!(runs(name), 1, "{name}");
            assert_eq!(record(name).most_at_once.load(Ordering::SeqCst), 1);
        }
        for node in nodes {
            stop(node).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bound_on_jobs_at_once_is_kept() {
    for database in TestDatabase::both().await {
        let app = node(&database, "a").await;
        start(&app, quick()).await;
        let name = format!("{}-bound", database.kind());
        let job = Scripted {
            keyed: false,
            ..Scripted::new(&name, Script::Work(30))
        };
        for _ in 0..8 {
            enqueue(&app, &job).await;
        }
        eventually("all ran", || async { runs(&name) == 8 }).await;
        assert_eq!(record(&name).most_at_once.load(Ordering::SeqCst), 2);
        stop(app).await;
    }
}

/// Another sort of job.
#[derive(Debug, Serialize, Deserialize)]
struct Other(Scripted);

impl Job for Other {
    type State = App;

    const KIND: &'static str = "test.other";
    const RETRY: RetryRule = Scripted::RETRY;
    const AT_ONCE: usize = 1;

    fn dedup_key(&self) -> Option<String> {
        self.0.dedup_key()
    }

    async fn run(self, app: App, run: Run) -> anyhow::Result<RunResult> {
        self.0.run(app, run).await
    }

    async fn give_up(self, app: App, run: Run, why: GivenUp) -> anyhow::Result<()> {
        self.0.give_up(app, run, why).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_jobs_of_one_sort_leave_room_for_another() {
    for database in TestDatabase::both().await {
        let app = node(&database, "a").await;
        let registry = Registry::default().with::<Scripted>().with::<Other>();
        jobs::start(&app, registry, quick()).await.unwrap();
        let names = [1, 2, 3].map(|n| format!("{}-full-{n}", database.kind()));
        for name in &names {
            enqueue(&app, &Scripted::new(name, Script::Wait)).await;
        }
        reaches(&app, &names[1], JobState::Running).await;
        eventually("the depth of the queues is told", || async {
            let metrics = app.metrics.render();
            ["test.scripted", "test.other"]
                .map(|kind| format!("colloquy_job_queue_depth{{kind=\"{kind}\"}} "))
                .iter()
                .all(|depth| metrics.contains(depth))
        })
        .await;
        let other = Scripted::new(format!("{}-other", database.kind()), Script::Work(1));
        enqueue(&app, &Other(other.clone())).await;
        eventually("the other one is done", || async {
            let row = jobs::find::<Other>(app.store.db(), &other.name).await;
            row.unwrap().unwrap().state == JobState::Done.as_str()
        })
        .await;
        assert_eq!(row(&app, &names[2]).await.state, "queued");
        record(&names[0]).go_on.notify_one();
        reaches(&app, &names[2], JobState::Running).await;
        stop(app).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_job_keeps_its_lease_while_others_look_for_work() {
    for database in TestDatabase::both().await {
        let short = Settings {
            lease: Duration::from_millis(300),
            ..quick()
        };
        let a = node(&database, "a").await;
        let b = node(&database, "b").await;
        let name = format!("{}-long", database.kind());
        start(&a, short).await;
        enqueue(&a, &Scripted::new(&name, Script::Work(1200))).await;
        reaches(&a, &name, JobState::Running).await;
        start(&b, short).await;
        let done = reaches(&a, &name, JobState::Done).await;
        assert_eq!((runs(&name), done.fence), (1, 1));
        stop(a).await;
        stop(b).await;
    }
}

/// Nodes compare leases by the database's clock, so a machine whose own is wrong neither loses its jobs nor takes those of others.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_wrong_clocks_keep_their_jobs() {
    for database in TestDatabase::both().await {
        let short = Settings {
            lease: Duration::from_secs(5),
            ..quick()
        };
        let builder = |name: &str| TestApp::builder(&database).node(name);
        let behind = builder("a").wrong_by(-45).idle().await;
        let ahead = builder("b").wrong_by(45).idle().await;
        let names = ["behind", "ahead"].map(|name| format!("{}-{name}", database.kind()));
        for (node, name) in [&behind, &ahead].into_iter().zip(&names) {
            start(node, short).await;
            enqueue(node, &Scripted::new(name, Script::Work(2_500))).await;
            reaches(node, name, JobState::Running).await;
        }
        for name in &names {
            let done = reaches(&behind, name, JobState::Done).await;
            assert_eq!((runs(name), done.fence), (1, 1), "{name}");
        }
        stop(behind).await;
        stop(ahead).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_were_queued_by_a_clock_ahead_do_not_wait_for_its_day() {
    for database in TestDatabase::both().await {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let clock = Arc::new(ManualClock::new(now));
        let builder = TestApp::builder(&database).node("a");
        let app = builder.clock(Arc::clone(&clock)).idle().await;
        let names = ["due", "later"].map(|name| format!("{}-{name}", database.kind()));
        clock.advance(Duration::from_secs(40 * 24 * 3_600));
        enqueue(&app, &Scripted::new(&names[0], Script::Work(0))).await;
        let transaction = app.store.begin().await.unwrap();
        let later = Scripted::new(&names[1], Script::Work(0));
        let at = app.clock.now_ms() + 60_000;
        let queued = jobs::enqueue_at(&app, &transaction, None, &later, at).await;
        queued.unwrap();
        transaction.commit().await.unwrap();
        clock.set(now);
        start(&app, quick()).await;
        reaches(&app, &names[0], JobState::Done).await;
        // Only as much later as it was to be.
        let waiting = row(&app, &names[1]).await;
        assert_eq!(waiting.run_at, app.clock.now_ms() + 60_000);
        stop(app).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lost_its_lease_cannot_write_and_the_job_runs_elsewhere() {
    for database in TestDatabase::both().await {
        let a = node(&database, "a").await;
        let name = format!("{}-fence", database.kind());
        start(&a, quick()).await;
        // What leaves it room for one: while the first run waits, it cannot claim the job itself.
        let other = format!("{name}-other");
        enqueue(&a, &Scripted::new(&other, Script::Wait)).await;
        reaches(&a, &other, JobState::Running).await;
        enqueue(&a, &Scripted::new(&name, Script::Wait)).await;
        reaches(&a, &name, JobState::Running).await;
        eventually("it waits", || async { runs(&name) == 1 }).await;
        // As if the process had been suspended for longer than its lease.
        let db = a.store.db();
        let sql = "UPDATE work SET lease_until = 0 WHERE dedup_key = $1";
        let expire = statement(sql, [name.clone().into()]);
        db.execute(expire).await.unwrap();
        // The other worker of this database takes it over.
        let b = node(&database, "b").await;
        start(&b, quick()).await;
        eventually("the second run waits", || async { runs(&name) == 2 }).await;
        // Waiters are woken in order: the first run finds that it holds nothing any more.
        record(&name).go_on.notify_one();
        eventually("the first asked", || async {
            record(&name).held.lock().unwrap().len() == 1
        })
        .await;
        assert_eq!(row(&b, &name).await.state, "running");
        record(&name).go_on.notify_one();
        let done = reaches(&b, &name, JobState::Done).await;
        assert_eq!(*record(&name).held.lock().unwrap(), [false, true]);
        assert_eq!(done.fence, 2);
        record(&other).go_on.notify_one();
        reaches(&a, &other, JobState::Done).await;
        stop(a).await;
        stop(b).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_gives_its_leases_back() {
    for database in TestDatabase::both().await {
        let a = node(&database, "a").await;
        let name = format!("{}-stop", database.kind());
        start(&a, quick()).await;
        enqueue(&a, &Scripted::new(&name, Script::Wait)).await;
        eventually("it runs", || async { runs(&name) == 1 }).await;
        stop(a.clone()).await;
        let given_back = row(&a, &name).await;
        assert_eq!(
            (given_back.state.as_str(), given_back.attempts),
            ("queued", 0)
        );
        assert_eq!(record(&name).running.load(Ordering::SeqCst), 0);

        let b = node(&database, "b").await;
        start(&b, quick()).await;
        eventually("it runs elsewhere", || async { runs(&name) == 2 }).await;
        record(&name).go_on.notify_one();
        reaches(&b, &name, JobState::Done).await;
        stop(b).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_tried_again_and_then_count_as_failed() {
    for database in TestDatabase::both().await {
        let app = node(&database, "a").await;
        start(&app, quick()).await;
        let [fails, panics, thrice, put_off] = ["fails", "panics", "thrice", "put-off"]
            .map(|name| format!("{}-{name}", database.kind()));
        enqueue(&app, &Scripted::new(&fails, Script::Fail)).await;
        enqueue(&app, &Scripted::new(&panics, Script::PanicOnce)).await;
        enqueue(&app, &Scripted::new(&thrice, Script::Thrice)).await;
        enqueue(&app, &Scripted::new(&put_off, Script::PutOff)).await;
        let failed = reaches(&app, &fails, JobState::Failed).await;
        assert_eq!(
            (runs(&fails), failed.last_error.as_deref()),
            (3, Some("as told"))
        );
        let given_up = record(&fails).given_up.lock().unwrap().clone();
        assert_eq!(given_up, [GivenUp::Failed]);
        reaches(&app, &panics, JobState::Done).await;
        assert_eq!(runs(&panics), 2);
        reaches(&app, &thrice, JobState::Done).await;
        assert_eq!(runs(&thrice), 3);
        assert_eq!(counts(&thrice), [(1, 0), (1, 1), (1, 2)]);
        // Those that are put off are no attempts, however many there are, and leave the others as they were.
        reaches(&app, &put_off, JobState::Done).await;
        let expected = [(1, 0), (1, 1), (2, 1), (2, 2), (2, 3), (2, 4)];
        assert_eq!(counts(&put_off), expected);
        stop(app).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_a_job_the_only_one_and_loses_no_request() {
    for database in TestDatabase::both().await {
        let app = node(&database, "a").await;
        let name = format!("{}-key", database.kind());
        let job = Scripted::new(&name, Script::Wait);
        for _ in 0..3 {
            enqueue(&app, &job).await;
        }
        start(&app, quick()).await;
        eventually("it runs", || async { runs(&name) == 1 }).await;
        // Asked for in the middle of a run: there is one more run, not none and not two.
        enqueue(&app, &job).await;
        enqueue(&app, &job).await;
        record(&name).go_on.notify_one();
        eventually("it runs again", || async { runs(&name) == 2 }).await;
        record(&name).go_on.notify_one();
        reaches(&app, &name, JobState::Done).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert_eq!(runs(&name), 2);
        assert_eq!(record(&name).most_at_once.load(Ordering::SeqCst), 1);
        // A finished one does not stand in the way.
        enqueue(&app, &job).await;
        eventually("it runs anew", || async { runs(&name) == 3 }).await;
        stop(app).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_rolled_back_with_its_cause_never_runs() {
    for database in TestDatabase::both().await {
        let app = node(&database, "a").await;
        let name = format!("{}-rollback", database.kind());
        let transaction = app.store.begin().await.unwrap();
        let job = Scripted::new(&name, Script::Work(0));
        jobs::enqueue(&app, &transaction, None, &job).await.unwrap();
        drop(transaction);
        let found = jobs::find::<Scripted>(app.store.db(), &name).await.unwrap();
        assert_eq!(found, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_work_waits_until_it_is_let_go() {
    for database in TestDatabase::both().await {
        let app = node(&database, "a").await;
        start(&app, quick()).await;
        let name = format!("{}-block", database.kind());
        let job = Scripted::new(&name, Script::BlockOnce);
        enqueue(&app, &job).await;
        let blocked = reaches(&app, &name, JobState::Blocked).await;
        assert_eq!(blocked.last_error.as_deref(), Some("a reason"));
        enqueue(&app, &job).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert_eq!(runs(&name), 1);
        let db = app.store.db();
        assert!(jobs::unblock::<Scripted>(&app, db, &name).await.unwrap());
        assert!(!jobs::unblock::<Scripted>(&app, db, "nobody").await.unwrap());
        reaches(&app, &name, JobState::Done).await;
        stop(app).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_for_its_time_and_finished_rows_go_after_theirs() {
    for database in TestDatabase::both().await {
        let a = node(&database, "a").await;
        start(&a, quick()).await;
        let name = format!("{}-later", database.kind());
        let transaction = a.store.begin().await.unwrap();
        let at = a.clock.now_ms() + 250;
        let job = Scripted::new(&name, Script::Work(0));
        jobs::enqueue_at(&a, &transaction, None, &job, at)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        a.kernel.jobs.wake();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(runs(&name), 0);
        reaches(&a, &name, JobState::Done).await;
        assert!(a.clock.now_ms() >= at);
        stop(a).await;

        // The worker removes old rows when it starts.
        let b = node(&database, "b").await;
        start(&b, quick()).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        row(&b, &name).await;
        stop(b).await;
        let c = node(&database, "c").await;
        start(
            &c,
            Settings {
                keep: Duration::ZERO,
                ..quick()
            },
        )
        .await;
        eventually("the row is gone", || async {
            jobs::find::<Scripted>(c.store.db(), &name)
                .await
                .unwrap()
                .is_none()
        })
        .await;
        stop(c).await;
    }
}
