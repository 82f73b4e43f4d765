//! What waits for the writer.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, oneshot};

use super::{
    Amounts, Outcome, Usage,
    reservation::{Entry, Granted, Held},
};
use crate::http::ApiError;

type Reply = oneshot::Sender<Result<Granted, ApiError>>;

/// A reservation that somebody waits for.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) id: String,
    pub(super) quota: String,
    pub(super) bound: Amounts,
    pub(super) entry: Entry,
    pub(super) reply: Reply,
}

impl Admission {
    /// What is held once it is stored, and who waits for it.
    pub(super) fn into_held(self, created_at: i64) -> (Held, Reply) {
        let held = Held {
            id: self.id,
            quota: self.quota,
            bound: self.bound,
            entry: self.entry,
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
    pub(super) used: Option<(Usage, Outcome)>,
    /// Hears when it is stored, and whether it counted: it does not when somebody else had settled the reservation.
    pub(super) done: Option<oneshot::Sender<bool>>,
    /// For reservations of this process.
    pub(super) _open: Option<Open>,
}

impl Settlement {
    /// Takes back what nobody holds.
    pub(super) fn unused(held: Held) -> Self {
        Self {
            held,
            used: None,
            done: None,
            _open: None,
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
    closed: bool,
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
    /// 503 after [`Self::close`].
    pub(super) fn admit(&self, admission: Admission) -> Result<(), ApiError> {
        let mut state = self.lock();
        if state.closed {
            return Err(stopped());
        }
        state.batch.admissions.push(admission);
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Queues a settlement.
    pub(super) fn settle(&self, settlement: Settlement) {
        self.lock().batch.settlements.push(settlement);
        self.wake.notify_one();
    }

    /// Waits for something to do and takes up to so many settlements and so many admissions; `None` when there will never
    /// be any more. Nothing is lost when it is dropped while it waits.
    pub(super) async fn next(&self, most: usize) -> Option<Batch> {
        loop {
            {
                let mut state = self.lock();
                let Batch {
                    settlements,
                    admissions,
                } = &mut state.batch;
                if !settlements.is_empty() || !admissions.is_empty() {
                    return Some(Batch {
                        settlements: first(settlements, most),
                        admissions: first(admissions, most),
                    });
                }
                if state.closed && self.open() == 0 {
                    return None;
                }
            }
            self.wake.notified().await;
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

/// 503: the server has stopped.
pub(super) fn stopped() -> ApiError {
    ApiError::unavailable("The server is stopping", Duration::from_secs(1))
}
