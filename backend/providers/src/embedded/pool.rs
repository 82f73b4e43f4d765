//! Threads for neural models, apart from those that carry packets: each computes one answer at a time, with less weight for the
//! system's scheduler than everything else here, so that a computation never delays a packet.
//!
//! Who waits for a thread stands in a fair queue. Whoever stops to wait for an answer takes its place in the queue away; a
//! computation that runs already is told, and ends at the next point where it asks.

use std::{
    collections::BTreeMap,
    num::NonZero,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
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
    kept: Arc<Mutex<BTreeMap<&'static str, u64>>>,
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
            kept: Arc::default(),
        })
    }

    /// How many threads there are.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// What waits for the threads.
    pub(crate) fn queue(&self) -> FairQueue {
        self.queue.clone()
    }

    /// Notes that a model was loaded, which keeps so many bytes of weights.
    pub(super) fn keeps(&self, model: &'static str, bytes: usize) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        *kept.entry(model).or_default() += bytes as u64;
    }

    /// How many bytes of weights each model has that was loaded, all of its copies together.
    #[must_use]
    pub fn model_bytes(&self) -> BTreeMap<&'static str, u64> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone()
    }

    /// How long a computation takes at best, in seconds, while each of the threads has one: what they share, such as the way to memory, makes
    /// each of them slower. The first of two rounds warms up.
    pub(super) fn fastest<E>(
        &self,
        compute: impl Fn() -> Result<(), E> + Sync,
    ) -> anyhow::Result<f64>
    where
        E: Into<anyhow::Error> + Send,
    {
        let timed = || {
            let began = SystemClock.instant();
            compute()?;
            Ok(SystemClock.instant().saturating_duration_since(began))
        };
        let round = || {
            thread::scope(|scope| {
                let others = (1..self.threads).map(|_| {
                    let measuring = thread::Builder::new().name("models".to_owned());
                    measuring.spawn_scoped(scope, timed)
                });
                let others = others.collect::<std::io::Result<Vec<_>>>()?;
                let mut slowest = timed().map_err(E::into)?;
                for other in others {
                    let taken = other.join().unwrap_or_else(|panic| resume_unwind(panic));
                    slowest = slowest.max(taken.map_err(E::into)?);
                }
                anyhow::Ok(slowest.as_secs_f64())
            })
        };
        Ok(round()?.min(round()?))
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

/// Loads models on a thread of its own, which ends with it, and so does what the runtime made for it to compute with.
///
/// # Errors
/// When the system gives no thread.
pub(crate) fn load_aside<T: Send>(load: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    thread::scope(|scope| {
        let loading = thread::Builder::new().name("models".to_owned());
        let loading = loading.spawn_scoped(scope, load)?;
        Ok(loading.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Gives this thread little weight. On Linux this is of the thread alone, and of those that it makes from then on. Without it packets would wait a
/// little longer, which is no reason to stop.
fn give_way() {
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::warn!(%error, "inference has the same priority as calls");
    }
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
    give_way();
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

    #[test]
    fn what_all_threads_compute_at_once_is_measured() {
        let pool = Pool::new(3).unwrap();
        // Each round ends once as many have come as there are threads.
        let all = Barrier::new(3);
        let together = || {
            all.wait();
            thread::sleep(Duration::from_millis(30));
            Ok::<_, std::io::Error>(())
        };
        let seconds = pool.fastest(together).unwrap();
        assert!((0.03..5.0).contains(&seconds), "{seconds}");
        let failing = || Err(std::io::Error::other("on purpose"));
        let error = pool.fastest(failing).unwrap_err();
        assert_eq!(error.to_string(), "on purpose");
    }

    #[test]
    fn what_models_keep_is_added_up() {
        let pool = Pool::new(1).unwrap();
        for (model, bytes) in [("one", 5), ("other", 7), ("one", 5)] {
            pool.clone().keeps(model, bytes);
        }
        assert_eq!(
            pool.model_bytes(),
            BTreeMap::from([("one", 10), ("other", 7)])
        );
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
