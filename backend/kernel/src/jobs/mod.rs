//! Durable background work: the `work` table, its leases and the worker.
//!
//! A job is a struct with a name, a retry rule and, if it wants, a key that makes it the only one of its sort. It is
//! queued in the transaction that causes it, leased by one worker at a time, renewed while it runs, and safe to run
//! twice: a worker that lost its lease finds out by the fencing token ([`Run::holds`]). Partners share the worker fairly, and
//! a job whose process dies twice is not run any more ([`claim`]). What a job does belongs to the capability that defines it.

mod claim;
mod queues;
mod store;
mod worker;

use std::{future::Future, sync::Arc, time::Duration};

use colloquy_base::identifiers::PartnerId;
use colloquy_store::{Executor, StoreError, Transaction};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{sync::Notify, time::sleep};

pub use queues::{MOST_COUNTED, Queue, QueueFailure, RunningJobs, queues};
pub use store::{JobState, WorkRow};
pub use worker::{Registry, Settings, start};

use crate::Base;

/// A sort of background work.
pub trait Job: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The state of the capability that it belongs to.
    type State: Send + Sync + 'static;

    /// The name of the sort, stable for as long as rows of it may exist.
    const KIND: &'static str;

    /// What happens after an error.
    const RETRY: RetryRule;

    /// The most jobs of this sort that a process works on at once, so that many long ones leave room for the others. A partner
    /// gets another one only while it has fewer than are free: alone half of them, the next one half of what is left, so that
    /// it takes many partners with long jobs to leave nothing for one more.
    const AT_ONCE: usize;

    /// Names the work completely: while a job of this sort with the same key is unfinished, queueing another one only
    /// makes that one run (again). `None`: every job stands for itself.
    fn dedup_key(&self) -> Option<String> {
        None
    }

    /// Does the work. It may run more than once, also after it did everything; it may be dropped at any await.
    fn run(
        self,
        state: Self::State,
        run: Run,
    ) -> impl Future<Output = anyhow::Result<RunResult>> + Send;

    /// Told before the job counts as failed and is not run any more, so that whatever waits for it ends, too. It may be told
    /// more than once; after an error it is told again later.
    fn give_up(
        self,
        state: Self::State,
        run: Run,
        why: GivenUp,
    ) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// Why a job is not run any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// It failed too often.
    Failed,
    /// Its process died while it ran, twice: once it was there, and once it was alone.
    Died,
}

/// What happens after an error.
#[derive(Debug, Clone, Copy)]
pub struct RetryRule {
    /// How often the job is begun before it counts as failed.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles each time, with jitter.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
}

impl RetryRule {
    /// The wait after this many attempts: exponential, with a quarter of jitter to either side.
    #[must_use]
    pub fn wait(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(30);
        let plain = self.first.saturating_mul(1 << doublings).min(self.most);
        plain.mul_f64(rand::random_range(0.75..1.25))
    }
}

/// Why work failed, for whoever waits for it. What is none of these is a failure of this server: its attempt counts as broken off.
pub trait Failure: std::error::Error + Send + Sync + 'static {
    /// Whether another attempt may succeed.
    fn may_pass(&self) -> bool;

    /// How often work is tried, at most, that fails like this, where that is less than for other failures.
    fn most_attempts(&self) -> u32 {
        u32::MAX
    }
}

/// How a run ended, when it was no error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunResult {
    /// The work is done.
    Done,
    /// Run again after this time; the attempts start anew.
    Again(Duration),
    /// Run again after this time as if it had not run: nothing was begun. The job bounds how often by [`Run::put_offs`].
    PutOff(Duration),
    /// The work waits for something, named for people; [`unblock`] lets it go on.
    Blocked(String),
}

impl RunResult {
    /// Run again after an outage, of which it is looked every few seconds whether it has ended; the attempts start anew.
    #[must_use]
    pub fn after_outage() -> Self {
        Self::Again(OUTAGE.wait(1))
    }
}

/// When it is looked whether an outage has ended, with jitter.
const OUTAGE: RetryRule = RetryRule {
    attempts: u32::MAX,
    first: Duration::from_secs(6),
    most: Duration::from_secs(6),
};

/// Whether work failed since the database is away, which says nothing about the work.
#[must_use]
pub fn is_database_away(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| cause.downcast_ref().is_some_and(StoreError::is_unavailable))
}

/// One run of a job.
#[derive(Debug, Clone)]
pub struct Run {
    /// The job's id.
    pub id: String,
    /// The fencing token: larger for every lease of the job.
    pub fence: i64,
    /// Which attempt this is, from 1.
    pub attempt: u32,
}

impl Run {
    /// How many runs there were before this one that count as no attempt: above all those that were [put off](RunResult::PutOff).
    #[must_use]
    pub fn put_offs(&self) -> u32 {
        // Each lease raises both; the attempts alone are put back.
        let put_offs = self.fence - i64::from(self.attempt);
        u32::try_from(put_offs.max(0)).unwrap_or(u32::MAX)
    }

    /// Whether this run still holds the job's lease. Inside of a transaction it also keeps the lease from changing hands
    /// until the transaction ends, so that results are written by the holder alone.
    ///
    /// # Errors
    /// The database's failure.
    pub async fn holds(&self, transaction: &Transaction) -> Result<bool, StoreError> {
        store::touch(transaction, &self.id, self.fence).await
    }

    /// What a job of so many attempts ends with: a result, or a failure that no further attempt is made after.
    ///
    /// # Errors
    /// What another attempt follows.
    pub fn outcome<T, F: Failure>(
        &self,
        result: anyhow::Result<T>,
        attempts: u32,
    ) -> anyhow::Result<Result<T, F>> {
        match result {
            Ok(result) => Ok(Ok(result)),
            Err(error) => match error.downcast::<F>()? {
                failure
                    if failure.may_pass()
                        && self.attempt < attempts.min(failure.most_attempts()) =>
                {
                    Err(failure.into())
                }
                failure => Ok(Err(failure)),
            },
        }
    }

    /// Stores what the run came to: tried again while the database is away, for as long as the worker lets the run go on,
    /// so that what was done is not done again.
    ///
    /// # Errors
    /// What the attempt fails with for another reason.
    pub async fn insist<T, F>(&self, base: &Base, attempt: impl Fn() -> F) -> anyhow::Result<T>
    where
        F: Future<Output = anyhow::Result<T>>,
    {
        loop {
            match attempt().await {
                Err(error) if is_database_away(&error) => {
                    base.store.complain("storing the result of a job", &error);
                    sleep(INSIST_AFTER).await;
                }
                ended => return ended,
            }
        }
    }
}

/// When it is tried again to store a result.
const INSIST_AFTER: Duration = Duration::from_millis(500);

/// Wakes the worker of this process when there is something to do.
#[derive(Debug, Clone, Default)]
pub struct JobSignal(Arc<Notify>);

impl JobSignal {
    /// Says that a job was queued. Call it after the commit.
    pub fn wake(&self) {
        self.0.notify_one();
    }
}

/// Queues a job of a partner, or of the server itself, in the transaction that causes it, to run at once. Call [`JobSignal::wake`] after the commit.
///
/// # Errors
/// The database's failure.
pub async fn enqueue<J: Job>(
    base: &Base,
    transaction: &Transaction,
    partner: Option<&PartnerId>,
    job: &J,
) -> Result<(), StoreError> {
    enqueue_at(base, transaction, partner, job, base.clock.now_ms()).await
}

/// Queues a job to run at a time, in milliseconds since 1970. With a key that is queued already, the earlier time counts.
///
/// # Errors
/// The database's failure.
pub async fn enqueue_at<J: Job>(
    base: &Base,
    transaction: &Transaction,
    partner: Option<&PartnerId>,
    job: &J,
    run_at: i64,
) -> Result<(), StoreError> {
    let payload = serde_json::to_string(job).map_err(StoreError::other)?;
    let new = store::NewWork {
        id: base.clock.new_id().to_string(),
        kind: J::KIND,
        owner: partner.map_or_else(String::new, |partner| partner.as_str().to_owned()),
        dedup_key: job.dedup_key(),
        payload,
        run_at,
        now: base.clock.now_ms(),
    };
    store::insert(transaction, new).await
}

/// Lets a blocked job go on. Whether there was one.
///
/// # Errors
/// The database's failure.
pub async fn unblock<J: Job>(
    base: &Base,
    db: &impl Executor,
    dedup_key: &str,
) -> Result<bool, StoreError> {
    store::unblock(db, J::KIND, dedup_key, base.clock.now_ms()).await
}

/// How many jobs of this sort wait although they are due.
///
/// # Errors
/// The database's failure.
pub async fn count_due<J: Job>(base: &Base) -> Result<u64, StoreError> {
    store::count_due(base.store.db(), J::KIND, base.clock.now_ms()).await
}

/// Returns true if a job of this sort and key is queued, runs or is blocked.
///
/// # Errors
/// The database's failure.
pub async fn is_unfinished<J: Job>(
    db: &impl Executor,
    dedup_key: &str,
) -> Result<bool, StoreError> {
    store::is_unfinished(db, J::KIND, dedup_key).await
}

/// The newest row of this sort and key; for status pages and tests.
///
/// # Errors
/// The database's failure.
pub async fn find<J: Job>(
    db: &impl Executor,
    dedup_key: &str,
) -> Result<Option<WorkRow>, StoreError> {
    store::find(db, J::KIND, dedup_key).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Away {
        #[error("nobody answers")]
        Unreachable,
        #[error("the service failed")]
        Failed,
    }

    impl Failure for Away {
        fn may_pass(&self) -> bool {
            true
        }

        fn most_attempts(&self) -> u32 {
            match self {
                Self::Unreachable => 3,
                Self::Failed => u32::MAX,
            }
        }
    }

    #[test]
    fn a_failure_may_be_tried_less_often_than_others() {
        let is_final = |failure: Away, attempt| {
            let run = Run {
                id: "a".to_owned(),
                fence: 1,
                attempt,
            };
            let outcome = run.outcome::<(), Away>(Err(failure.into()), 10);
            outcome.is_ok()
        };
        assert!(!is_final(Away::Unreachable, 2));
        assert!(is_final(Away::Unreachable, 3));
        assert!(!is_final(Away::Failed, 9));
        assert!(is_final(Away::Failed, 10));
    }

    #[test]
    fn waits_double_with_a_quarter_of_jitter_up_to_the_longest() {
        let rule = RetryRule {
            attempts: 6,
            first: Duration::from_secs(4),
            most: Duration::from_secs(20),
        };
        for (attempts, plain) in [(1, 4.0), (2, 8.0), (3, 16.0), (4, 20.0), (60, 20.0)] {
            let waits: Vec<f64> = (0..200)
                .map(|_| rule.wait(attempts).as_secs_f64())
                .collect();
            assert!(
                waits
                    .iter()
                    .all(|wait| (plain * 0.75..plain * 1.25).contains(wait))
            );
            assert!(
                waits.iter().any(|wait| *wait != waits[0]),
                "there is no jitter"
            );
        }
    }
}
