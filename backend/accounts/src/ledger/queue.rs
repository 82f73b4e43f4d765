//! What waits for the writer.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use colloquy_base::clock::runtime_now;
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep_until},
};

use super::{
    Amounts, LedgerError, Outcome,
    reservation::{Entry, Held, Reservation},
};

/// How long settlements wait for others to be stored with, while nobody waits for them: an admission has somebody who does.
const PATIENCE: Duration = Duration::from_millis(5);
/// So many settlements wait no longer.
const MANY: usize = 64;

type Reply = oneshot::Sender<Result<Reservation, LedgerError>>;

/// A reservation that is to be made.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) id: String,
    pub(super) quota: String,
    pub(super) bound: Amounts,
    /// What it makes do with when there is no room for its bound.
    pub(super) least: Amounts,
    pub(super) entry: Entry,
}

/// A reservation that somebody waits for.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) wanted: Wanted,
    pub(super) reply: Reply,
    /// Whether it was refused before for want of room, and settlements were stored since.
    pub(super) again: bool,
}

impl Admission {
    /// What is held once it is stored, and who waits for it.
    pub(super) fn into_held(self, bound: Amounts, created_at: i64) -> (Held, Reply) {
        let Wanted {
            id, quota, entry, ..
        } = self.wanted;
        let held = Held {
            id,
            quota,
            bound,
            entry,
            created_at,
        };
        (held, self.reply)
    }
}

/// The end of a reservation.
#[derive(Debug)]
pub(super) struct Settlement {
    pub(super) held: Held,
    /// `None` takes the reservation back as if it had never been.
    pub(super) used: Option<(Amounts, Outcome)>,
    /// Hears when it is stored, and whether it counted: it does not when somebody else had settled the reservation.
    pub(super) done: Option<oneshot::Sender<bool>>,
    /// For reservations of this process.
    pub(super) open: Option<Open>,
}

impl Settlement {
    /// Takes back what nobody holds.
    pub(super) fn unused(held: Held) -> Self {
        Self {
            held,
            used: None,
            done: None,
            open: None,
        }
    }
}

/// What one transaction does: settlements first, since they make room.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) settlements: Vec<Settlement>,
    pub(super) admissions: Vec<Admission>,
}

#[derive(Debug, Default)]
struct State {
    batch: Batch,
    /// When settlements have waited for long enough.
    settle_at: Option<Instant>,
    closed: bool,
}

impl State {
    /// Whether settlements are stored now, rather than together with more of them.
    fn settles(&self) -> bool {
        let due = self.settle_at.is_some_and(|at| at <= runtime_now());
        due || self.closed || self.batch.settlements.len() >= MANY
    }

    /// The admissions that wait, and the settlements when it is time for them.
    fn take(&mut self, most: usize) -> Batch {
        let settlements = if self.settles() {
            let settlements = first(&mut self.batch.settlements, most);
            if self.batch.settlements.is_empty() {
                self.settle_at = None;
            }
            settlements
        } else {
            Vec::new()
        };
        Batch {
            settlements,
            admissions: first(&mut self.batch.admissions, most),
        }
    }
}

/// The queue of a process.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    wake: Notify,
    open: AtomicUsize,
}

impl Queue {
    /// Queues an admission.
    ///
    /// # Errors
    /// [`LedgerError::Stopped`] after [`Self::close`].
    pub(super) fn admit(&self, admission: Admission) -> Result<(), LedgerError> {
        let mut state = self.lock();
        if state.closed {
            return Err(LedgerError::Stopped);
        }
        state.batch.admissions.push(admission);
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Queues a settlement.
    pub(super) fn settle(&self, settlement: Settlement) {
        let mut state = self.lock();
        let now = runtime_now();
        if settlement.done.is_some() {
            state.settle_at = Some(now);
        }
        state.settle_at.get_or_insert(now + PATIENCE);
        state.batch.settlements.push(settlement);
        drop(state);
        self.wake.notify_one();
    }

    /// Queues an admission again that was refused while settlements of its quota waited, with them before it, or that makes
    /// do with less. Gives it back when neither is so, and the second time: on a busy quota there are always settlements.
    pub(super) fn settle_first(&self, mut admission: Admission) -> Option<Admission> {
        let mut state = self.lock();
        let mut waiting = state.batch.settlements.iter();
        let wanted = &admission.wanted;
        let settles = waiting.any(|settlement| settlement.held.quota == wanted.quota);
        if std::mem::replace(&mut admission.again, true) || !settles && wanted.least == wanted.bound
        {
            return Some(admission);
        }
        if settles {
            state.settle_at = Some(runtime_now());
        }
        state.batch.admissions.insert(0, admission);
        drop(state);
        self.wake.notify_one();
        None
    }

    /// Waits for something to do and takes up to so many settlements and so many admissions; `None` when there will never
    /// be any more. Nothing is lost when it is dropped while it waits.
    pub(super) async fn next(&self, most: usize) -> Option<Batch> {
        loop {
            let settle_at = {
                let mut state = self.lock();
                if state.settles() && !state.batch.settlements.is_empty()
                    || !state.batch.admissions.is_empty()
                {
                    return Some(state.take(most));
                }
                if state.closed && self.open() == 0 {
                    return None;
                }
                state.settle_at
            };
            tokio::select! {
                () = self.wake.notified() => {}
                () = wait_until(settle_at) => {}
            }
        }
    }

    /// How much waits.
    pub(super) fn depth(&self) -> usize {
        let state = self.lock();
        state.batch.settlements.len() + state.batch.admissions.len()
    }

    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Takes the first ones out.
fn first<T>(waiting: &mut Vec<T>, most: usize) -> Vec<T> {
    let rest = waiting.split_off(most.min(waiting.len()));
    std::mem::replace(waiting, rest)
}

/// Counts a reservation of this process until its settlement is stored.
#[derive(Debug)]
pub(super) struct Open(Arc<Queue>);

impl Open {
    pub(super) fn new(queue: &Arc<Queue>) -> Self {
        queue.open.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(queue))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.wake.notify_one();
        }
    }
}
