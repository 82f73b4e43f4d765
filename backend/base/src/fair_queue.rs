//! Slots that many share: a bounded number at once, a bounded number who wait, and a fair order among them.
//!
//! Who is on the line comes before who waits for an answer, and both before work in the background, which also leaves some
//! slots to them, since nobody who has a slot is interrupted. Within a priority the owner with the fewest slots comes next;
//! among equals the one that was served least (start-time fair queueing), so that neither a long queue nor a quick return
//! is an advantage. Among what one owner asks for its calls share in the same way; what one of them asks for, and what belongs to none,
//! is served in its order, what it has begun before what is new.
//!
//! While somebody [keeps room](FairQueue::keep_room), a slot stays free of all but calls.
//!
//! Whoever is on the line, or hears the beginning of something already, is never sent away: there are only so many of them, and
//! they would be left with half of it.
//!
//! Whoever stops to wait, or drops the [`Slot`], makes room for the next.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::oneshot;

/// When to come again to a queue that is full.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// How urgent something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Somebody is on the line.
    Call,
    /// Somebody waits for the answer to a request.
    Request,
    /// Somebody looks for the result later.
    Background,
}

/// Who asks for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// How urgent it is.
    pub priority: Priority,
    /// Among whom slots are shared: a partner.
    pub owner: Arc<str>,
    /// Among what the owner's slots are shared: its call, if it is of one.
    pub call: Option<Arc<str>>,
    /// Whether it is the next part of something that somebody has the beginning of.
    pub is_continued: bool,
}

impl Claim {
    /// A claim of this owner.
    pub fn new(priority: Priority, owner: &str) -> Self {
        Self {
            priority,
            owner: owner.into(),
            call: None,
            is_continued: false,
        }
    }

    /// The same, of this call.
    #[must_use]
    pub fn of_call(self, call: &str) -> Self {
        Self {
            call: Some(call.into()),
            ..self
        }
    }

    /// Whether it may be sent away.
    fn is_refusable(&self) -> bool {
        !self.is_continued && self.priority != Priority::Call
    }

    /// The server's own, such as a health check.
    #[must_use]
    pub fn own(priority: Priority) -> Self {
        Self::new(priority, "")
    }
}

/// How much there is to share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Slots at once, at least 1.
    pub slots: usize,
    /// How many may wait with one priority, of those who may be sent away.
    pub waiting: usize,
    /// How many of them may belong to one owner.
    pub waiting_of_owner: usize,
}

impl Bounds {
    /// The slots that all but calls may have, at least 1.
    fn other_slots(self, keeps_room: bool) -> usize {
        (self.slots - usize::from(keeps_room)).max(1)
    }

    /// Those of them that work in the background may have: all but a quarter, and at least one stays free of it where there are
    /// two.
    fn background_slots(self, keeps_room: bool) -> usize {
        let slots = self.other_slots(keeps_room);
        (slots - slots.div_ceil(4)).max(1)
    }
}

/// The queue has no room for another one who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many wait already")]
pub struct Full {
    /// When to come again.
    pub retry_after: Duration,
}

/// Slots with a fair queue before them; clones share them.
#[derive(Debug, Clone)]
pub struct FairQueue {
    name: &'static str,
    bounds: Bounds,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    taken_by_calls: usize,
    taken_by_background: usize,
    /// How many keep room.
    rooms: usize,
    waiting: Vec<Waiter>,
    owners: HashMap<Arc<str>, Owner>,
    /// Numbers those who wait, in their order.
    next_number: u64,
    /// What the owner that was served last had been served before.
    served: u64,
}

#[derive(Debug, Default)]
struct Owner {
    share: Share,
    /// Those of its calls, and of what belongs to none.
    calls: HashMap<Option<Arc<str>>, Share>,
    /// What the call that was served last had been served before.
    served: u64,
}

/// What somebody has of what is shared; who has the least comes next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Share {
    slots: usize,
    /// How often it was served, counted from where the others were when it came.
    served: u64,
}

impl Share {
    /// Wants something, while the others are here.
    fn come(&mut self, served: u64) {
        self.served = self.served.max(served);
    }

    /// Takes a slot, and gives where the others are from now on.
    fn take(&mut self, served: u64) -> u64 {
        self.slots += 1;
        let served = served.max(self.served);
        self.served = served + 1;
        served
    }

    /// Whether it can be forgotten without an advantage, once it wants nothing.
    fn is_over(self, served: u64) -> bool {
        self.slots == 0 && self.served <= served
    }
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    claim: Claim,
    grant: oneshot::Sender<Slot>,
}

impl FairQueue {
    /// An empty queue; metrics know it by the name.
    #[must_use]
    pub fn new(name: &'static str, bounds: Bounds) -> Self {
        Self {
            name,
            bounds: Bounds {
                slots: bounds.slots.max(1),
                ..bounds
            },
            state: Arc::default(),
        }
    }

    /// Waits for a slot. Dropping the future gives the place in the queue up.
    ///
    /// # Errors
    /// At once, when too many wait.
    pub async fn enter(&self, claim: &Claim) -> Result<Slot, Full> {
        let (grant, granted) = oneshot::channel();
        let number = self.join(claim, grant)?;
        let place = Place {
            queue: self,
            number,
        };
        self.serve();
        let slot = granted.await;
        drop(place);
        // The sender is only dropped without a slot together with the queue.
        slot.map_err(|_| Full {
            retry_after: RETRY_AFTER,
        })
    }

    /// Keeps a slot free of all but calls, where there are two, for as long as this is held. Who has it now ends in peace.
    #[must_use]
    pub fn keep_room(&self) -> Room {
        self.lock().rooms += 1;
        Room {
            queue: self.clone(),
        }
    }

    /// How many wait, whatever their priority.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    fn join(&self, claim: &Claim, grant: oneshot::Sender<Slot>) -> Result<u64, Full> {
        let mut state = self.lock();
        let alike = state.waiting.iter().map(|waiter| &waiter.claim);
        let alike = alike.filter(|other| other.is_refusable() && other.priority == claim.priority);
        let (all, of_owner) = alike.fold((0, 0), |(all, of_owner), other| {
            let same = usize::from(other.owner == claim.owner);
            (all + 1, of_owner + same)
        });
        let is_full = all >= self.bounds.waiting || of_owner >= self.bounds.waiting_of_owner;
        // Whoever can be served at once does not wait.
        if is_full && claim.is_refusable() && !state.is_free(claim.priority, self.bounds) {
            metrics::counter!("colloquy_queue_refused_total", "queue" => self.name).increment(1);
            return Err(Full {
                retry_after: RETRY_AFTER,
            });
        }
        let served = state.served;
        let owner = state.owners.entry(Arc::clone(&claim.owner)).or_default();
        owner.share.come(served);
        let call = owner.calls.entry(claim.call.clone()).or_default();
        call.come(owner.served);
        let number = state.next_number;
        state.next_number += 1;
        state.waiting.push(Waiter {
            number,
            claim: claim.clone(),
            grant,
        });
        Ok(number)
    }

    /// Gives free slots to those who are next.
    fn serve(&self) {
        loop {
            // A slot that nobody takes any more is given back when it is dropped, which needs the lock again.
            let (grant, slot) = {
                let mut state = self.lock();
                let Some(waiter) = state.next(self.bounds) else {
                    self.measure(&state);
                    return;
                };
                let slot = Slot {
                    queue: self.clone(),
                    claim: waiter.claim,
                };
                (waiter.grant, slot)
            };
            drop(grant.send(slot));
        }
    }

    fn leave(&self, number: u64) {
        let mut state = self.lock();
        state.waiting.retain(|waiter| waiter.number != number);
        state.forget();
    }

    fn give_back(&self, claim: &Claim) {
        {
            let mut state = self.lock();
            state.taken -= 1;
            state.taken_by_calls -= usize::from(claim.priority == Priority::Call);
            state.taken_by_background -= usize::from(claim.priority == Priority::Background);
            if let Some(owner) = state.owners.get_mut(&claim.owner) {
                owner.share.slots -= 1;
                if let Some(call) = owner.calls.get_mut(&claim.call) {
                    call.slots -= 1;
                }
            }
            state.forget();
        }
        self.serve();
    }

    fn measure(&self, state: &State) {
        metrics::gauge!("colloquy_queue_waiting", "queue" => self.name)
            .set(state.waiting.len() as f64);
        metrics::gauge!("colloquy_queue_taken", "queue" => self.name).set(state.taken as f64);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether there is a slot for this priority.
    fn is_free(&self, priority: Priority, bounds: Bounds) -> bool {
        let keeps_room = self.rooms > 0;
        let others = self.taken - self.taken_by_calls;
        let is_allowed = match priority {
            Priority::Call => true,
            Priority::Request => others < bounds.other_slots(keeps_room),
            Priority::Background => {
                others < bounds.other_slots(keeps_room)
                    && self.taken_by_background < bounds.background_slots(keeps_room)
            }
        };
        is_allowed && self.taken < bounds.slots
    }

    /// Takes a slot for whoever is next, if there is one.
    fn next(&mut self, bounds: Bounds) -> Option<Waiter> {
        let rank = |waiter: &Waiter| {
            let owner = self.owners.get(&waiter.claim.owner);
            let call = owner.and_then(|owner| owner.calls.get(&waiter.claim.call));
            (
                waiter.claim.priority,
                owner.map(|owner| owner.share),
                call.copied(),
                !waiter.claim.is_continued,
                waiter.number,
            )
        };
        let waiting = self.waiting.iter().enumerate();
        let may = waiting.filter(|(_, waiter)| self.is_free(waiter.claim.priority, bounds));
        let (index, _) = may.min_by_key(|(_, waiter)| rank(waiter))?;
        let waiter = self.waiting.remove(index);
        self.taken += 1;
        self.taken_by_calls += usize::from(waiter.claim.priority == Priority::Call);
        self.taken_by_background += usize::from(waiter.claim.priority == Priority::Background);
        let served = self.served;
        if let Some(owner) = self.owners.get_mut(&waiter.claim.owner) {
            self.served = owner.share.take(served);
            if let Some(call) = owner.calls.get_mut(&waiter.claim.call) {
                owner.served = call.take(owner.served);
            }
        }
        Some(waiter)
    }

    /// Forgets owners and calls that have and want nothing, once that is no advantage to them.
    fn forget(&mut self) {
        if self.taken == 0 && self.waiting.is_empty() {
            self.owners.clear();
            return;
        }
        let (waiting, served) = (&self.waiting, self.served);
        self.owners.retain(|name, owner| {
            let of_owner = |waiter: &&Waiter| waiter.claim.owner == *name;
            let Owner {
                calls,
                served: of_calls,
                share,
            } = owner;
            calls.retain(|call, share| {
                let mut own = waiting.iter().filter(of_owner);
                !share.is_over(*of_calls) || own.any(|waiter| waiter.claim.call == *call)
            });
            !share.is_over(served) || waiting.iter().any(|waiter| of_owner(&waiter))
        });
    }
}

/// A place in the queue, given up when it is dropped.
struct Place<'a> {
    queue: &'a FairQueue,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.queue.leave(self.number);
    }
}

/// A slot, given back when it is dropped.
#[derive(Debug)]
pub struct Slot {
    queue: FairQueue,
    claim: Claim,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.queue.give_back(&self.claim);
    }
}

/// Room that is kept for calls, until this is dropped.
#[derive(Debug)]
pub struct Room {
    queue: FairQueue,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.queue.lock().rooms -= 1;
        self.queue.serve();
    }
}

#[cfg(test)]
#[path = "fair_queue_tests.rs"]
mod tests;
