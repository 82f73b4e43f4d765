//! The worker: claims due jobs, runs them side by side up to the bound of each sort, renews their leases, and gives the
//! leases back when the server stops.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow};
use futures_util::future::BoxFuture;
use opentelemetry::trace::SpanKind;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout_at},
};

use super::{
    Job, Next, RetryRule, Run,
    store::{self, Ending, JobState, WorkRow},
};
use crate::{app::App, node, observability::Span};

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

/// How often finished rows are removed.
const PURGE_EVERY: Duration = Duration::from_secs(3600);

/// How often it is counted what waits.
const MEASURE_EVERY: Duration = Duration::from_secs(5);

type RunAny = dyn Fn(String, App, Run) -> BoxFuture<'static, anyhow::Result<Next>> + Send + Sync;

#[derive(Clone)]
struct Handler {
    retry: RetryRule,
    run: Arc<RunAny>,
    room: Arc<Semaphore>,
}

/// The sorts of jobs that a worker runs.
#[derive(Clone, Default)]
pub struct Registry {
    handlers: HashMap<&'static str, Handler>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.handlers.keys()).finish()
    }
}

impl Registry {
    /// Adds a sort.
    #[must_use]
    pub fn with<J: Job>(mut self) -> Self {
        let run = |payload: String, app: App, run: Run| -> BoxFuture<'static, _> {
            Box::pin(async move {
                let job: J = serde_json::from_str(&payload).context("the payload")?;
                job.run(app, run).await
            })
        };
        let handler = Handler {
            retry: J::RETRY,
            run: Arc::new(run),
            room: Arc::new(Semaphore::new(J::AT_ONCE)),
        };
        self.handlers.insert(J::KIND, handler);
        self
    }
}

/// Starts the worker as a task of the app; it ends after `app.shutdown` is cancelled.
///
/// # Errors
/// When the database fails.
pub async fn start(app: &App, registry: Registry, settings: Settings) -> anyhow::Result<()> {
    let released =
        store::release_lost(app.store.db(), node::lost_before(app), app.clock.now_ms()).await?;
    if released > 0 {
        tracing::info!(released, "jobs of nodes that are gone are queued again");
    }
    let worker = Worker {
        app: app.clone(),
        node: app.node.id.clone(),
        registry,
        settings,
    };
    app.tasks.spawn(worker.work());
    Ok(())
}

#[derive(Clone)]
struct Worker {
    app: App,
    node: String,
    registry: Registry,
    settings: Settings,
}

impl Worker {
    async fn work(self) {
        let mut purge_at = Instant::now();
        let mut measure_at = purge_at;
        loop {
            if Instant::now() >= purge_at {
                purge_at = Instant::now() + PURGE_EVERY;
                self.purge().await;
            }
            if Instant::now() >= measure_at {
                measure_at = Instant::now() + MEASURE_EVERY;
                self.measure().await;
            }
            if self.app.shutdown.is_cancelled() {
                return;
            }
            let mut rooms = self.rooms();
            if !rooms.is_empty()
                && let Some(row) = self.claim(&rooms).await
                && let Some((handler, permit)) = rooms.remove(row.kind.as_str())
            {
                self.spawn(row, handler, permit);
                continue;
            }
            drop(rooms);
            tokio::select! {
                () = self.app.shutdown.cancelled() => return,
                () = self.app.jobs.0.notified() => {}
                () = sleep(self.settings.poll) => {}
            }
        }
    }

    /// The sorts that have room for another job, with that room.
    fn rooms(&self) -> HashMap<&'static str, (Handler, OwnedSemaphorePermit)> {
        let handlers = self.registry.handlers.iter();
        let room = |(kind, handler): (&&'static str, &Handler)| {
            let permit = Arc::clone(&handler.room).try_acquire_owned().ok()?;
            Some((*kind, (handler.clone(), permit)))
        };
        handlers.filter_map(room).collect()
    }

    /// The next due job of these sorts. A claim is never cancelled half-way: a lease that nobody knows of would have to run
    /// out.
    async fn claim<T>(&self, sorts: &HashMap<&'static str, T>) -> Option<WorkRow> {
        let kinds = sorts.keys().copied().collect::<Vec<_>>();
        let now = self.app.clock.now_ms();
        let until = now + self.settings.lease.as_millis() as i64;
        store::claim(self.app.store.db(), &kinds, &self.node, now, until)
            .await
            .unwrap_or_else(|error| {
                tracing::error!(%error, "claiming a job");
                None
            })
    }

    async fn purge(&self) {
        let before = self.app.clock.now_ms() - self.settings.keep.as_millis() as i64;
        if let Err(error) = store::purge(self.app.store.db(), before).await {
            tracing::error!(%error, "removing finished jobs");
        }
    }

    /// Says how many jobs of each sort are due and wait, on all nodes together.
    async fn measure(&self) {
        let now = self.app.clock.now_ms();
        for kind in self.registry.handlers.keys().copied() {
            match store::count_due(self.app.store.db(), kind, now).await {
                Ok(due) => {
                    metrics::gauge!("colloquy_job_queue_depth", "kind" => kind).set(due as f64);
                }
                Err(error) => tracing::error!(%error, "counting the jobs that wait"),
            }
        }
    }

    fn spawn(&self, row: WorkRow, handler: Handler, permit: OwnedSemaphorePermit) {
        let worker = self.clone();
        self.app.tasks.spawn(async move {
            worker.run(row, handler).await;
            drop(permit);
            // There is room for another one.
            worker.app.jobs.wake();
        });
    }

    async fn run(&self, row: WorkRow, handler: Handler) {
        let attempts = u32::try_from(row.attempts).unwrap_or(u32::MAX);
        let result = if attempts > handler.retry.attempts {
            // Only processes that died in the middle get here.
            Some(Err(anyhow!(
                "it ended the process, or its process died, too often"
            )))
        } else {
            let run = Run {
                id: row.id.clone(),
                fence: row.fence,
                attempt: attempts,
            };
            // A task of its own, so that a panic is an error of this job and nothing else.
            let trace = Span::begin(SpanKind::Consumer, || format!("job {}", row.kind));
            let job = trace.around((handler.run)(row.payload.clone(), self.app.clone(), run));
            let job = tokio_util::task::AbortOnDropHandle::new(self.app.tasks.spawn(job));
            trace.set("colloquy.job.id", row.id.clone());
            let result = tokio::select! {
                result = job => Some(result.unwrap_or_else(|error| Err(error.into()))),
                () = self.lose_lease(&row) => {
                    tracing::warn!(job = row.id, kind = row.kind, "the lease was lost; the run is given up");
                    return;
                }
                () = self.stop() => None,
            };
            if let Some(Err(_)) = &result {
                trace.fail("error");
            }
            result
        };
        self.end(&row, handler.retry, result).await;
    }

    /// Renews the lease; returns when it is lost.
    async fn lose_lease(&self, row: &WorkRow) {
        let mut ends = Instant::now() + self.settings.lease;
        loop {
            sleep(self.settings.lease / 3).await;
            let until = self.app.clock.now_ms() + self.settings.lease.as_millis() as i64;
            let begun = Instant::now();
            let renewal = store::renew(self.app.store.db(), &row.id, row.fence, until);
            match timeout_at(ends, renewal).await {
                Ok(Ok(true)) => ends = begun + self.settings.lease,
                Ok(Ok(false)) => return,
                Ok(Err(error)) => tracing::error!(%error, job = row.id, "renewing a lease"),
                Err(_) => return,
            }
            if Instant::now() >= ends {
                return;
            }
        }
    }

    /// Returns when the server stops and the grace is over.
    async fn stop(&self) {
        self.app.shutdown.cancelled().await;
        sleep(self.settings.grace).await;
    }

    /// Writes how a run ended; `None`: it was cut off by the server's end.
    async fn end(&self, row: &WorkRow, retry: RetryRule, result: Option<anyhow::Result<Next>>) {
        let now = self.app.clock.now_ms();
        let later = |wait: Duration| now + i64::try_from(wait.as_millis()).unwrap_or(i64::MAX / 2);
        let text;
        let (state, run_at, attempts, last_error) = match result {
            None => (
                JobState::Queued,
                now,
                row.attempts - 1,
                row.last_error.as_deref(),
            ),
            Some(Ok(Next::Done)) => (JobState::Done, row.run_at, row.attempts, None),
            Some(Ok(Next::Again(wait))) => (JobState::Queued, later(wait), 0, None),
            Some(Ok(Next::Blocked(reason))) => {
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
                if attempts >= retry.attempts {
                    (
                        JobState::Failed,
                        row.run_at,
                        row.attempts,
                        Some(text.as_str()),
                    )
                } else {
                    let wait = retry.wait(attempts);
                    (
                        JobState::Queued,
                        later(wait),
                        row.attempts,
                        Some(text.as_str()),
                    )
                }
            }
        };
        metrics::counter!("colloquy_job_runs_total", "kind" => row.kind.clone(), "to" => state.as_str())
            .increment(1);
        let ending = Ending {
            state,
            run_at,
            attempts,
            last_error,
            now,
        };
        match store::end(self.app.store.db(), &row.id, row.fence, ending).await {
            Ok(true) => {}
            Ok(false) => tracing::warn!(job = row.id, "the lease was lost before the run ended"),
            Err(error) => {
                tracing::error!(%error, job = row.id, "ending a job; its lease will run out")
            }
        }
    }
}
