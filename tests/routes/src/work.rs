//! What a node does beside requests: its jobs, and what comes at its time.

use std::{ops::Deref, sync::Arc, time::Duration};

use colloquy_base::clock::ManualClock;
use colloquy_kernel::{Kernel, jobs};
use colloquy_store::{Executor as _, Store};
use support::{eventually, until};

use crate::TestClient;

/// Settings of the worker that make tests quick.
pub fn quick() -> jobs::Settings {
    jobs::Settings {
        poll: Duration::from_millis(20),
        grace: Duration::from_millis(50),
        ..jobs::Settings::default()
    }
}

/// A node with its clock and its jobs, which is asked by way of the [`TestClient`] that this derefs to.
pub struct TestWork {
    client: TestClient,
    kernel: Kernel,
    manual: Option<Arc<ManualClock>>,
}

impl Deref for TestWork {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.client
    }
}

impl TestWork {
    /// A node, and its clock if the test moves that.
    pub fn new(client: TestClient, kernel: Kernel, manual: Option<Arc<ManualClock>>) -> Self {
        Self {
            client,
            kernel,
            manual,
        }
    }

    /// The database of the node.
    pub(crate) fn store(&self) -> &Store {
        &self.kernel.store
    }

    fn manual(&self) -> &ManualClock {
        let clock = self.manual.as_ref();
        clock.expect("the test has a manual clock")
    }

    /// Moves the manual clock of the test. A worker looks at once for what is due then.
    pub fn advance(&self, by: Duration) {
        self.manual().advance(by);
        self.kernel.jobs.wake();
    }

    /// Sets the time of day of the manual clock of the test.
    pub fn set_clock(&self, now: &str) {
        self.manual().set(now.parse().expect("a time"));
        self.kernel.jobs.wake();
    }

    /// Waits until no job of this kind is queued or runs: nothing more comes of what was asked for.
    pub async fn works_off(&self, kind: &str) {
        let db = self.kernel.store.db();
        let open = format!(
            "SELECT COUNT(*) FROM work WHERE kind = '{kind}' AND state IN ('queued', 'running')"
        );
        eventually("no job is left", async || {
            db.fetch_count(open.clone()).await.expect("a number") == 0
        })
        .await;
    }

    /// Waits until no job is due or runs: what is so then stays so until somebody asks for something, or time passes.
    pub async fn run_due_jobs(&self) {
        let db = self.kernel.store.db();
        eventually("no job is due", async || {
            let now = self.kernel.clock.now_ms();
            let due = format!(
                "SELECT COUNT(*) FROM work WHERE state = 'running' OR (state = 'queued' AND run_at <= {now})"
            );
            db.fetch_count(due).await.expect("a number") == 0
        })
        .await;
    }

    /// Waits until no job is left whose kind is like this pattern of SQL, and moves the manual clock of the test to the next attempt whenever all
    /// that are left wait.
    pub async fn advance_through(&self, kinds: &str) {
        let db = self.kernel.store.db();
        let left =
            format!("FROM work WHERE kind LIKE '{kinds}' AND state IN ('queued', 'running')");
        loop {
            let now = self.kernel.clock.now_ms();
            let busy = format!("SELECT COUNT(*) {left} AND (state = 'running' OR run_at <= {now})");
            eventually("all jobs that are left wait", async || {
                db.fetch_count(busy.clone()).await.expect("a number") == 0
            })
            .await;
            let next = format!("SELECT run_at {left} ORDER BY run_at LIMIT 1");
            let next: Option<i64> = db.fetch_scalar(next).await.expect("a time");
            let Some(next) = next else {
                return;
            };
            self.advance(Duration::from_millis(next.abs_diff(now)));
        }
    }

    /// Waits for the end of the only job of this kind, and moves the manual clock of the test to each of its attempts. Returns how many there were,
    /// and the waits between them.
    pub async fn attempts(&self, kind: &str) -> (u64, Vec<Duration>) {
        let sql = format!("SELECT state, fence, run_at FROM work WHERE kind = '{kind}'");
        let read = async || -> OnlyJob {
            let job = self.store().db().fetch_one(sql.clone()).await;
            job.expect("a database").expect("a job")
        };
        let mut waits = Vec::new();
        loop {
            let now = self.kernel.clock.now_ms();
            let is_idle =
                |job: &OnlyJob| job.is_over() || (job.state == "queued" && job.run_at > now);
            let job = until("the job waits or is over", is_idle, read).await;
            if job.is_over() {
                return (job.fence.unsigned_abs(), waits);
            }
            let wait = Duration::from_millis(job.run_at.abs_diff(now));
            waits.push(wait);
            self.advance(wait);
        }
    }
}

/// The only job of its kind.
#[derive(Debug, sqlx::FromRow)]
struct OnlyJob {
    state: String,
    /// How often it was begun.
    fence: i64,
    run_at: i64,
}

impl OnlyJob {
    fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "done" | "failed")
    }
}
