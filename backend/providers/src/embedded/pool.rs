//! Threads for neural models, apart from those that carry packets: each computes one answer at a time, with less weight for the
//! system's scheduler than everything else here, so that a computation never delays a packet.
//!
//! Who waits for a thread stands in a fair queue. Whoever stops to wait for an answer takes its place in the queue away; a
//! computation that runs already is told, and ends at the next point where it asks.

use std::{
    num::NonZero,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use colloquy_base::{
    clock::{Clock as _, SystemClock},
    fair_queue::{Claim, FairQueue, Slot},
};
use colloquy_config::InferenceConfig;
use tokio::sync::oneshot;

use super::{
    super::{ProviderError, ProviderErrorKind},
    busy, queue,
};

/// How much less weight the threads have (`nice`): a tenth of that of the others.
const NICENESS: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

/// The threads; clones share them. They end with the last clone.
#[derive(Debug, Clone)]
pub struct Pool {
    queue: FairQueue,
    jobs: mpsc::Sender<Job>,
    threads: usize,
}

/// Whether somebody still waits for the answer.
#[derive(Debug, Clone)]
pub struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Whether somebody still waits.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Says that nobody waits any more, when it is dropped.
struct Waiting(Wanted);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

impl Pool {
    /// As many threads as the settings say: by default one a core.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn from_config(config: &InferenceConfig) -> std::io::Result<Self> {
        let cores = || thread::available_parallelism().map_or(1, NonZero::get);
        Self::new(
            config
                .threads
                .map_or_else(cores, |threads| threads as usize),
        )
    }

    /// This many threads.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let threads = threads.max(1);
        let (jobs, waiting) = mpsc::channel::<Job>();
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..threads {
            let waiting = Arc::clone(&waiting);
            thread::Builder::new()
                .name(format!("inference-{number}"))
                .spawn(move || work(&waiting))?;
        }
        Ok(Self {
            queue: queue("inference", threads),
            jobs,
            threads,
        })
    }

    /// How many threads there are.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Computes something when its turn comes. Dropping the future cancels it.
    ///
    /// # Errors
    /// When too many wait, or the computation panics.
    pub async fn run<T: Send + 'static>(
        &self,
        provider: &str,
        claim: &Claim,
        compute: impl FnOnce(&Wanted) -> T + Send + 'static,
    ) -> Result<T, ProviderError> {
        let entered = self.queue.enter(claim).await;
        let slot = entered.map_err(|full| busy(provider, full))?;
        let wanted = Wanted(Arc::new(AtomicBool::new(true)));
        let _waiting = Waiting(wanted.clone());
        let (answer, answered) = oneshot::channel();
        // There are as many threads as slots, so one of them is free, or will be in a moment.
        let sent = self.jobs.send(Box::new(move || {
            let slot: Slot = slot;
            // What a model computes with is not changed by it, so nothing is left half done.
            let result = catch_unwind(AssertUnwindSafe(|| compute(&wanted)));
            drop(slot);
            drop(answer.send(result));
        }));
        let failed = |message| ProviderError::new(provider, ProviderErrorKind::Failed, message);
        sent.map_err(|_| failed("its threads have ended"))?;
        match answered.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) | Err(_) => Err(failed("the computation ended without an answer")),
        }
    }
}

/// How long a computation takes on this thread at best, in seconds. The first of three warms up.
pub(super) fn fastest<E>(mut compute: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut best = f64::MAX;
    for _ in 0..3 {
        best = best.min(seconds_of(&mut compute)?);
    }
    Ok(best)
}

/// How long a computation takes on this thread, in seconds.
pub(super) fn seconds_of<E>(compute: impl FnOnce() -> Result<(), E>) -> Result<f64, E> {
    let began = SystemClock.instant();
    compute()?;
    let taken = SystemClock.instant().saturating_duration_since(began);
    Ok(taken.as_secs_f64())
}

/// What a thread does until the pool is gone.
fn work(jobs: &Mutex<mpsc::Receiver<Job>>) {
    // On Linux this is of the thread alone. Without it packets would wait a little longer, which is no reason to stop.
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::warn!(%error, "inference has the same priority as calls");
    }
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        job();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, time::Duration};

    use colloquy_base::fair_queue::Priority;

    use super::*;

    fn claim() -> Claim {
        Claim::new(Priority::Request, "acme")
    }

    #[tokio::test]
    async fn computations_run_side_by_side_and_give_their_answers() {
        let pool = Pool::new(2).unwrap();
        let both = Arc::new(Barrier::new(2));
        let meet = |value: u32| {
            let both = Arc::clone(&both);
            let pool = pool.clone();
            async move {
                let compute = move |_: &Wanted| {
                    both.wait();
                    value
                };
                pool.run("test", &claim(), compute).await.unwrap()
            }
        };
        assert_eq!(tokio::join!(meet(1), meet(2)), (1, 2));
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_told_so_and_makes_room() {
        let pool = Pool::new(1).unwrap();
        let (begun, has_begun) = oneshot::channel();
        let (ended, has_ended) = oneshot::channel();
        let claimed = claim();
        let endless = pool.run("test", &claimed, move |wanted| {
            begun.send(()).unwrap();
            while wanted.is_wanted() {
                thread::sleep(Duration::from_millis(1));
            }
            ended.send(()).unwrap();
        });
        tokio::select! {
            _ = endless => panic!("it has no end"),
            started = has_begun => started.unwrap(),
        }
        has_ended.await.unwrap();
        assert_eq!(pool.run("test", &claim(), |_| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_costs_no_thread() {
        let pool = Pool::new(1).unwrap();
        let error = pool.run("test", &claim(), |_| panic!("on purpose")).await;
        let error: ProviderError = error.map(|(): ()| ()).unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::Failed);
        assert_eq!(pool.run("test", &claim(), |_| 7).await.unwrap(), 7);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn threads_have_less_weight_than_those_of_packets() {
        let niceness = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            fields.split(' ').nth(16).unwrap().parse::<i32>().unwrap()
        };
        let pool = Pool::new(1).unwrap();
        let here = niceness();
        let there = pool
            .run("test", &claim(), move |_| niceness())
            .await
            .unwrap();
        assert_eq!(there, (here + NICENESS).min(19));
        assert_eq!(niceness(), here);
    }
}
