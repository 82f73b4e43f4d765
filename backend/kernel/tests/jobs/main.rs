//! Durable work on both databases: leases, fencing, retries, keys, shutdown; partners that share it, and jobs that take their process down.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where; some jobs panic"
)]

mod attempts;
mod leases;
mod partners;
mod queues;

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::bail;
use colloquy_base::clock::{Clock, SystemClock};
use colloquy_config::Config;
use colloquy_kernel::{
    Base, Kernel,
    jobs::{self, GivenUp, Job, JobState, Registry, RetryRule, Run, RunResult, Settings, WorkRow},
    node::DataFolder,
};
use serde::{Deserialize, Serialize};
use support::{TestDatabase, eventually, news};
use tokio::sync::Notify;

/// A server's process that has joined as a node, without capabilities.
#[derive(Debug, Clone)]
struct TestNode {
    kernel: Kernel,
}

impl Deref for TestNode {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        &self.kernel
    }
}

impl AsRef<Kernel> for TestNode {
    fn as_ref(&self) -> &Kernel {
        &self.kernel
    }
}

/// A node on which nothing runs yet.
async fn join(database: &TestDatabase, name: &str) -> TestNode {
    join_by(database, name, Arc::new(SystemClock)).await
}

/// A node on which nothing runs yet, with a clock of its own.
async fn join_by(database: &TestDatabase, name: &str, clock: Arc<dyn Clock>) -> TestNode {
    let config = Config {
        store: database.node_config(name),
        ..Config::default()
    };
    let store = news::follow(config.store.open().await.unwrap());
    let folder = DataFolder::claim(&config.store, &*clock).await.unwrap();
    let kernel = Kernel::open(Base::new(config, store, clock), folder).await;
    TestNode {
        kernel: kernel.unwrap(),
    }
}

async fn stop(node: TestNode) {
    node.kernel.shutdown.cancel();
    node.kernel.tasks.close();
    node.kernel.tasks.wait().await;
}

/// Settings of a worker that looks and lets go often.
fn quick() -> Settings {
    Settings {
        poll: Duration::from_millis(20),
        grace: Duration::from_millis(50),
        ..Settings::default()
    }
}

/// What a scripted job did, by its name; names are unique in this program.
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
    type State = TestNode;

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

    async fn run(self, node: TestNode, run: Run) -> anyhow::Result<RunResult> {
        let record = record(&self.name);
        let running = record.running.fetch_add(1, Ordering::SeqCst) + 1;
        record.most_at_once.fetch_max(running, Ordering::SeqCst);
        let _running = Running(&record);
        let times = {
            let mut runs = record.runs.lock().unwrap();
            runs.push(run.clone());
            runs.len()
        };
        news::tell();
        match self.script {
            Script::Work(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Script::Wait => {
                record.go_on.notified().await;
                let transaction = node.store.begin().await?;
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

    async fn give_up(self, _node: TestNode, _run: Run, why: GivenUp) -> anyhow::Result<()> {
        record(&self.name).given_up.lock().unwrap().push(why);
        Ok(())
    }
}

async fn enqueue(node: &TestNode, job: &impl Job) {
    let transaction = node.store.begin().await.unwrap();
    jobs::enqueue(node, &transaction, None, job).await.unwrap();
    transaction.commit().await.unwrap();
    node.kernel.jobs.wake();
}

async fn start(node: &TestNode, how: Settings) {
    let registry = Registry::default().with::<Scripted>();
    jobs::start(node, registry, how).await.unwrap();
}

async fn row(node: &TestNode, name: &str) -> WorkRow {
    let row = jobs::find::<Scripted>(node.store.db(), name).await.unwrap();
    row.unwrap_or_else(|| panic!("no job {name}"))
}

async fn reaches(node: &TestNode, name: &str, state: JobState) -> WorkRow {
    eventually(&format!("{name} is {}", state.as_str()), || async {
        row(node, name).await.state == state.as_str()
    })
    .await;
    row(node, name).await
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
