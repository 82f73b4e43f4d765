//! The worker: claims due jobs, runs them side by side up to the bound of each sort, renews their leases, and gives the
//! leases back when the server stops. A suspect it runs alone for a while.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use axum::extract::FromRef;
use colloquy_base::clock::runtime_now;
use colloquy_observability::Span;
use colloquy_store::StoreError;
use futures_util::future::BoxFuture;
use opentelemetry::trace::SpanKind;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    GivenUp, Job, RetryRule, Run, RunResult,
    claim::{self, KindLimit, Lease, MOST_DEATHS},
    store::{self, Ending, JobState, WorkRow},
};
use crate::{Kernel, State, node};

/// How the worker works.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How long a lease lasts; it is renewed three times in that time.
    pub lease: Duration,
    /// How often the table is looked at when nothing wakes the worker.
    pub poll: Duration,
    /// How long a running job may take to end when the server stops, before its lease is given back.
    pub grace: Duration,
    /// How long finished rows are kept.
    pub keep: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(2),
            keep: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

/// How far in the future a job may be queued: the clocks of some nodes are a little ahead.
const AHEAD: Duration = Duration::from_secs(3600);
/// How often finished rows are removed.
const PURGE_EVERY: Duration = Duration::from_secs(3600);

/// How long a suspect has the process for itself. What it does to it, it mostly does at once.
const ALONE: Duration = Duration::from_secs(10);

/// When the end of a job that could not be written is tried again.
const GIVE_UP_AGAIN: Duration = Duration::from_secs(10);

/// How often it is looked for jobs of processes that are gone.
const RELEASE_EVERY: Duration = Duration::from_secs(1);

/// When it is tried again to store how a run ended.
const END_AGAIN: Duration = Duration::from_millis(500);

/// How often it is counted what waits.
const MEASURE_EVERY: Duration = Duration::from_secs(5);

type RunAny<S> =
    dyn Fn(String, &S, Run) -> BoxFuture<'static, anyhow::Result<RunResult>> + Send + Sync;

type GiveUpAny<S> =
    dyn Fn(String, &S, Run, GivenUp) -> BoxFuture<'static, anyhow::Result<()>> + Send + Sync;

struct Handler<S> {
    retry: RetryRule,
    run: Arc<RunAny<S>>,
    give_up: Arc<GiveUpAny<S>>,
    room: Arc<Semaphore>,
}

/// The sorts of jobs that a worker runs, of capabilities whose states are in that of the server, `S`.
pub struct Registry<S> {
    handlers: HashMap<&'static str, Arc<Handler<S>>>,
}

impl<S> Default for Registry<S> {
    fn default() -> Self {
        let handlers = HashMap::new();
        Self { handlers }
    }
}

impl<S> fmt::Debug for Registry<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.handlers.keys()).finish()
    }
}

impl<S: State> Registry<S> {
    /// Adds a sort.
    #[must_use]
    pub fn with<J: Job>(mut self) -> Self
    where
        J::State: FromRef<S>,
    {
        let run = |payload: String, server: &S, run: Run| -> BoxFuture<'static, _> {
            let state = J::State::from_ref(server);
            Box::pin(async move {
                let job: J = serde_json::from_str(&payload).context("the payload")?;
                job.run(state, run).await
            })
        };
        let give_up = |payload: String, server: &S, run: Run, why| -> BoxFuture<'static, _> {
            let state = J::State::from_ref(server);
            Box::pin(async move {
                let Ok(job) = serde_json::from_str::<J>(&payload) else {
                    tracing::error!(
                        job = run.id,
                        kind = J::KIND,
                        "nobody is told of a job that cannot be read"
                    );
                    return Ok(());
                };
                job.give_up(state, run, why).await
            })
        };
        let handler = Handler {
            retry: J::RETRY,
            run: Arc::new(run),
            give_up: Arc::new(give_up),
            room: Arc::new(Semaphore::new(J::AT_ONCE)),
        };
        self.handlers.insert(J::KIND, Arc::new(handler));
        self
    }

    /// Returns the names of the sorts, in alphabetical order.
    #[must_use]
    pub fn kinds(&self) -> Vec<&'static str> {
        let mut kinds: Vec<&'static str> = self.handlers.keys().copied().collect();
        kinds.sort_unstable();
        kinds
    }
}

/// Starts the worker as a task of the kernel; it ends after `shutdown` is cancelled.
///
/// # Errors
/// When the database fails.
pub async fn start<S: State>(
    server: &S,
    registry: Registry<S>,
    settings: Settings,
) -> anyhow::Result<()> {
    let worker = Arc::new(Worker {
        server: server.clone(),
        kernel: server.as_ref().clone(),
        registry,
        settings,
        running: Running::default(),
    });
    worker.release().await?;
    worker.kernel.tasks.spawn(Arc::clone(&worker).work());
    Ok(())
}

/// The jobs that run in this process.
#[derive(Debug, Default)]
struct Running {
    count: AtomicUsize,
    /// The suspect that runs alone.
    alone: Mutex<Option<SuspectJob>>,
}

#[derive(Debug, Clone)]
struct SuspectJob {
    id: String,
    fence: i64,
    until: Instant,
}

impl Running {
    fn alone(&self) -> MutexGuard<'_, Option<SuspectJob>> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Worker<S> {
    server: S,
    kernel: Kernel,
    registry: Registry<S>,
    settings: Settings,
    running: Running,
}

impl<S: State> Worker<S> {
    async fn work(self: Arc<Self>) {
        let mut purge_at = runtime_now();
        let mut measure_at = purge_at;
        let mut release_at = purge_at + RELEASE_EVERY;
        loop {
            if runtime_now() >= release_at {
                release_at = runtime_now() + RELEASE_EVERY;
                if let Err(error) = self.release().await {
                    tracing::error!(%error, "releasing lost jobs");
                }
                if let Err(error) = self.bring_back().await {
                    self.kernel.store.complain("bringing jobs back", &error);
                }
            }
            if runtime_now() >= purge_at {
                purge_at = runtime_now() + PURGE_EVERY;
                self.purge().await;
            }
            if runtime_now() >= measure_at {
                measure_at = runtime_now() + MEASURE_EVERY;
                self.measure().await;
            }
            if self.kernel.shutdown.is_cancelled() {
                return;
            }
            let mut rooms = self.rooms();
            let is_free = self.is_free().await;
            if is_free
                && !rooms.is_empty()
                && let Some(row) = self.claim(&rooms).await
                && let Some((handler, permit)) = rooms.remove(row.kind.as_str())
            {
                self.spawn(row, handler, permit);
                continue;
            }
            drop(rooms);
            tokio::select! {
                () = self.kernel.shutdown.cancelled() => return,
                () = self.kernel.jobs.0.notified() => {}
                () = sleep(self.settings.poll) => {}
            }
        }
    }

    /// The sorts that have room for another job, with that room.
    fn rooms(&self) -> HashMap<&'static str, (Arc<Handler<S>>, OwnedSemaphorePermit)> {
        let handlers = self.registry.handlers.iter();
        let room = |(kind, handler): (&&'static str, &Arc<Handler<S>>)| {
            let permit = Arc::clone(&handler.room).try_acquire_owned().ok()?;
            Some((*kind, (Arc::clone(handler), permit)))
        };
        handlers.filter_map(room).collect()
    }

    /// Whether there may be another job. The time of a suspect that runs alone may be over.
    async fn is_free(&self) -> bool {
        let Some(alone) = self.running.alone().clone() else {
            return true;
        };
        if runtime_now() < alone.until {
            return false;
        }
        match claim::join(self.kernel.store.db(), &alone.id, alone.fence).await {
            Ok(()) => {
                *self.running.alone() = None;
                true
            }
            Err(error) => {
                tracing::error!(%error, "letting others run beside a job");
                false
            }
        }
    }

    /// The next due job of these sorts; a suspect, if nothing runs yet. A claim is never cancelled half-way: a lease that
    /// nobody knows of would have to run out.
    async fn claim<T>(
        &self,
        rooms: &HashMap<&'static str, (Arc<Handler<S>>, T)>,
    ) -> Option<WorkRow> {
        let limits = rooms.iter().map(|(kind, (handler, _))| KindLimit {
            kind,
            // What is free, with the place that is held for the next job.
            of_partner: handler.room.available_permits() + 1,
        });
        let limits = limits.collect::<Vec<_>>();
        let lease = Lease {
            node: &self.kernel.node.id,
            now: self.kernel.clock.now_ms(),
            lasts_ms: self.lease_ms(),
            database_now: self.kernel.clock.database_now_ms(),
        };
        let db = self.kernel.store.db();
        let claimed = async {
            if self.running.count.load(Ordering::SeqCst) == 0
                && let Some(suspect) = claim::suspect(db, &limits, lease).await?
            {
                return Ok(Some(suspect));
            }
            claim::next(db, &limits, lease).await
        };
        claimed.await.unwrap_or_else(|error: StoreError| {
            self.kernel.store.complain("claiming a job", &error);
            None
        })
    }

    /// Queues the jobs of processes that are gone.
    async fn release(&self) -> Result<(), StoreError> {
        let (db, now) = (self.kernel.store.db(), self.kernel.clock.now_ms());
        let lost_before = node::lost_before(&self.kernel).await?;
        let released = claim::release(db, &self.kernel.node.id, lost_before, now).await?;
        if released > 0 {
            tracing::warn!(released, "jobs of processes that are gone are queued again");
        }
        Ok(())
    }

    /// Brings jobs back that were queued while a clock was ahead: they would wait until the day that it showed. What is ahead of this
    /// node's clock alone, or of the database's, may be right.
    async fn bring_back(&self) -> Result<(), StoreError> {
        let of_database = self.kernel.database_now_ms().await?;
        let now = of_database.max(self.kernel.clock.now_ms());
        let after = now + AHEAD.as_millis() as i64;
        let brought_back = store::bring_back(self.kernel.store.db(), after, now).await?;
        if brought_back > 0 {
            tracing::warn!(
                brought_back,
                "jobs that were queued in the future are due; a clock was wrong"
            );
        }
        Ok(())
    }

    async fn purge(&self) {
        let before = self.kernel.clock.now_ms() - self.settings.keep.as_millis() as i64;
        if let Err(error) = store::purge(&self.kernel.store.patient(), before).await {
            self.kernel.store.complain("removing finished jobs", &error);
        }
    }

    /// Says how many jobs of each sort are due and wait, on all nodes together.
    async fn measure(&self) {
        let now = self.kernel.clock.now_ms();
        for kind in self.registry.handlers.keys().copied() {
            match store::count_due(self.kernel.store.db(), kind, now).await {
                Ok(due) => {
                    metrics::gauge!("colloquy_job_queue_depth", "kind" => kind).set(due as f64);
                }
                Err(error) => self
                    .kernel
                    .store
                    .complain("counting the jobs that wait", &error),
            }
        }
    }

    fn spawn(
        self: &Arc<Self>,
        row: WorkRow,
        handler: Arc<Handler<S>>,
        permit: OwnedSemaphorePermit,
    ) {
        let worker = Arc::clone(self);
        let running = &self.running;
        running.count.fetch_add(1, Ordering::SeqCst);
        *running.alone() = row.alone.then(|| SuspectJob {
            id: row.id.clone(),
            fence: row.fence,
            until: runtime_now() + ALONE,
        });
        self.kernel.tasks.spawn(async move {
            let is_alone = row.alone;
            worker.run(row, handler).await;
            drop(permit);
            // Before the next suspect can be claimed, which sets it.
            if is_alone {
                *worker.running.alone() = None;
            }
            worker.running.count.fetch_sub(1, Ordering::SeqCst);
            // There is room for another one.
            worker.kernel.jobs.wake();
        });
    }

    async fn run(&self, row: WorkRow, handler: Arc<Handler<S>>) {
        let attempts = u32::try_from(row.attempts).unwrap_or(u32::MAX);
        let run = Run {
            id: row.id.clone(),
            fence: row.fence,
            attempt: attempts,
        };
        if row.deaths >= MOST_DEATHS {
            let why = "its process died while it ran, and died again when it ran alone";
            return self.give_up(&row, &handler, run, GivenUp::Died, why).await;
        }
        if attempts > handler.retry.attempts {
            let why = "it was begun too often without an end";
            return self.give_up(&row, &handler, run, GivenUp::Died, why).await;
        }
        // A task of its own, so that a panic is an error of this job and nothing else.
        let trace = Span::begin(SpanKind::Consumer, || format!("job {}", row.kind));
        let job = trace.around((handler.run)(
            row.payload.clone(),
            &self.server,
            run.clone(),
        ));
        let job = AbortOnDropHandle::new(self.kernel.tasks.spawn(job));
        trace.set("colloquy.job.id", row.id.clone());
        let result = tokio::select! {
            result = job => Some(result.unwrap_or_else(|error| Err(error.into()))),
            () = self.lose_lease(&row) => {
                tracing::warn!(job = row.id, kind = row.kind, "the lease was lost; the run is given up");
                return;
            }
            () = self.stop() => None,
        };
        if let Some(Err(error)) = &result {
            trace.fail("error");
            if attempts >= handler.retry.attempts {
                let why = format!("{error:#}");
                return self
                    .give_up(&row, &handler, run, GivenUp::Failed, &why)
                    .await;
            }
        }
        self.end(&row, handler.retry, result).await;
    }

    /// Tells the job that it is not run any more, and writes so.
    async fn give_up(
        &self,
        row: &WorkRow,
        handler: &Handler<S>,
        run: Run,
        why: GivenUp,
        reason: &str,
    ) {
        tracing::warn!(
            job = row.id,
            kind = row.kind,
            attempts = row.attempts,
            deaths = row.deaths,
            error = reason,
            "a job is given up"
        );
        let told = (handler.give_up)(row.payload.clone(), &self.server, run, why);
        let told = AbortOnDropHandle::new(self.kernel.tasks.spawn(told)).await;
        let now = self.kernel.clock.now_ms();
        let mut ending = Ending {
            state: JobState::Failed,
            run_at: row.run_at,
            attempts: row.attempts,
            deaths: row.deaths,
            last_error: Some(reason),
            now,
        };
        if let Err(error) = told.unwrap_or_else(|error| Err(error.into())) {
            tracing::error!(
                job = row.id,
                error = format!("{error:#}"),
                "giving up a job"
            );
            ending.state = JobState::Queued;
            ending.run_at = now + GIVE_UP_AGAIN.as_millis() as i64;
        }
        self.write(row, ending).await;
    }

    /// How long a lease lasts. When it ends is in the database's time, with which all nodes compare it.
    fn lease_ms(&self) -> i64 {
        self.settings.lease.as_millis() as i64
    }

    /// Renews the lease; returns when it is lost.
    async fn lose_lease(&self, row: &WorkRow) {
        let mut ends = runtime_now() + self.settings.lease;
        loop {
            sleep(self.settings.lease / 3).await;
            let begun = runtime_now();
            let (db, database_now) = (self.kernel.store.db(), self.kernel.clock.database_now_ms());
            let renewal = store::renew(db, &row.id, row.fence, self.lease_ms(), database_now);
            match timeout_at(ends, renewal).await {
                Ok(Ok(true)) => ends = begun + self.settings.lease,
                Ok(Ok(false)) => return,
                Ok(Err(error)) => self.kernel.store.complain("renewing a lease", &error),
                Err(_) => return,
            }
            if runtime_now() >= ends {
                return;
            }
        }
    }

    /// Returns when the server stops and the grace is over.
    async fn stop(&self) {
        self.kernel.shutdown.cancelled().await;
        sleep(self.settings.grace).await;
    }

    /// Writes how a run ended; `None`: it was cut off by the server's end.
    async fn end(
        &self,
        row: &WorkRow,
        retry: RetryRule,
        result: Option<anyhow::Result<RunResult>>,
    ) {
        let now = self.kernel.clock.now_ms();
        let later = |wait: Duration| now + i64::try_from(wait.as_millis()).unwrap_or(i64::MAX / 2);
        let text;
        // Whatever came of it, its process lives.
        let deaths = match &result {
            None | Some(Ok(RunResult::PutOff(_))) => row.deaths,
            Some(_) => 0,
        };
        let (state, run_at, attempts, last_error) = match result {
            None => (
                JobState::Queued,
                now,
                row.attempts - 1,
                row.last_error.as_deref(),
            ),
            Some(Ok(RunResult::Done)) => (JobState::Done, row.run_at, row.attempts, None),
            Some(Ok(RunResult::PutOff(wait))) => (
                JobState::Queued,
                later(wait),
                row.attempts - 1,
                row.last_error.as_deref(),
            ),
            Some(Ok(RunResult::Again(wait))) => (JobState::Queued, later(wait), 0, None),
            Some(Ok(RunResult::Blocked(reason))) => {
                text = reason;
                (JobState::Blocked, row.run_at, 0, Some(text.as_str()))
            }
            Some(Err(error)) => {
                text = format!("{error:#}");
                let attempts = u32::try_from(row.attempts).unwrap_or(u32::MAX);
                tracing::warn!(
                    job = row.id,
                    kind = row.kind,
                    attempts,
                    error = text,
                    "a job failed"
                );
                let wait = retry.wait(attempts);
                (
                    JobState::Queued,
                    later(wait),
                    row.attempts,
                    Some(text.as_str()),
                )
            }
        };
        let ending = Ending {
            state,
            run_at,
            attempts,
            deaths,
            last_error,
            now,
        };
        self.write(row, ending).await;
    }

    async fn write(&self, row: &WorkRow, ending: Ending<'_>) {
        metrics::counter!(
            "colloquy_job_runs_total", "kind" => row.kind.clone(), "to" => ending.state.as_str()
        )
        .increment(1);
        // Once the lease has run out, somebody else runs the job again.
        let until = runtime_now() + self.settings.lease;
        loop {
            match store::end(self.kernel.store.db(), &row.id, row.fence, &ending).await {
                Ok(true) => return,
                Ok(false) => {
                    tracing::warn!(job = row.id, "the lease was lost before the run ended");
                    return;
                }
                Err(error) => self.kernel.store.complain("ending a job", &error),
            }
            if runtime_now() + END_AGAIN >= until {
                tracing::error!(job = row.id, "a job could not be ended; its lease runs out");
                return;
            }
            sleep(END_AGAIN).await;
        }
    }
}
