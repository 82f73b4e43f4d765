//! A bounded number of permits, of which no owner holds more than a share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::counts::Counts;

/// Permits for connections or work of many owners.
///
/// An owner holds at most a fixed number, and never more than are still free, so that no owner takes the last ones from all others.
#[derive(Debug)]
pub struct Permits {
    most: usize,
    most_of_owner: usize,
    held: Arc<Mutex<Counts<String>>>,
}

impl Permits {
    /// Creates `most` permits, of which an owner holds `most_of_owner` at most.
    #[must_use]
    pub fn new(most: usize, most_of_owner: usize) -> Self {
        Self {
            most,
            most_of_owner,
            held: Arc::default(),
        }
    }

    /// Acquires a permit without waiting; returns `None` if the owner may hold no more.
    #[must_use]
    pub fn try_acquire(&self, owner: &str) -> Option<Permit> {
        let mut held = lock(&self.held);
        let own = held.of(owner);
        if own >= self.most_of_owner || own >= self.most.saturating_sub(held.all()) {
            return None;
        }
        held.add(owner, 1);
        Some(Permit {
            held: Arc::clone(&self.held),
            owner: owner.to_owned(),
        })
    }
}

fn lock(held: &Mutex<Counts<String>>) -> MutexGuard<'_, Counts<String>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A permit, released when it is dropped.
#[derive(Debug)]
pub struct Permit {
    held: Arc<Mutex<Counts<String>>>,
    owner: String,
}

impl Drop for Permit {
    fn drop(&mut self) {
        lock(&self.held).remove(&self.owner, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_owner_holds_more_permits_than_are_free() {
        let permits = Permits::new(10, 4);
        let take =
            |owner: &str| -> Vec<_> { std::iter::from_fn(|| permits.try_acquire(owner)).collect() };
        let first = take("a");
        let second = take("b");
        let third = take("c");
        assert_eq!((first.len(), second.len(), third.len()), (4, 3, 2));
        let rest = permits.try_acquire("d").unwrap();
        assert!(permits.try_acquire("e").is_none());
        drop(first);
        assert!(permits.try_acquire("e").is_some());
        drop((second, third, rest));
        assert_eq!(*lock(&permits.held), Counts::default());
    }
}
