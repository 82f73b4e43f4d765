//! Memory of this process that owners share, reserved before it is used.
//!
//! No owner may hold more than what is still free: one alone gets half of a pool, the next one half of what is left, and a small
//! reservation of somebody else always fits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::counts::Counts;

/// A bounded amount of memory, in bytes.
#[derive(Debug)]
pub struct MemoryPool {
    most: usize,
    /// By owner, in bytes.
    in_use: Mutex<Counts<String>>,
}

/// Memory cannot be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// Others hold it.
    #[error("there is no memory for this now")]
    Now,
    /// It is more than one owner may hold.
    #[error("this takes more memory than this server has for one")]
    Ever,
}

impl MemoryPool {
    /// A pool of so many bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most,
            in_use: Mutex::default(),
        }
    }

    /// Returns true if one owner may hold so many bytes while nobody else holds any.
    #[must_use]
    pub fn fits(&self, bytes: usize) -> bool {
        bytes <= self.most / 2
    }

    /// Returns true if an owner could take so many bytes once `given_back` is free, by owner.
    #[must_use]
    pub fn fits_after(&self, owner: &str, bytes: usize, given_back: &Counts<String>) -> bool {
        let in_use = self.lock();
        let own = in_use.of(owner).saturating_sub(given_back.of(owner));
        let all = in_use.all().saturating_sub(given_back.all());
        self.allows(own, all, bytes)
    }

    /// Takes memory for an owner, who has to give it back. Returns false if it is not free.
    #[must_use]
    pub fn take(&self, owner: &str, bytes: usize) -> bool {
        let mut in_use = self.lock();
        let is_free = self.allows(in_use.of(owner), in_use.all(), bytes);
        if is_free {
            in_use.add(owner, bytes);
        }
        is_free
    }

    /// Gives back what an owner took.
    pub fn give_back(&self, owner: &str, bytes: usize) {
        self.lock().remove(owner, bytes);
    }

    /// Takes memory for an owner until the reservation is dropped.
    ///
    /// # Errors
    /// [`NoRoom`] if it is not free.
    pub fn reserve(self: &Arc<Self>, owner: &str, bytes: usize) -> Result<MemoryHold, NoRoom> {
        if self.take(owner, bytes) {
            return Ok(MemoryHold {
                pool: Arc::clone(self),
                owner: owner.to_owned(),
                bytes,
            });
        }
        Err(match self.fits(bytes) {
            true => NoRoom::Now,
            false => NoRoom::Ever,
        })
    }

    /// Returns true if an owner that holds `own` of `all` bytes that are taken may take more. Nothing always fits.
    fn allows(&self, own: usize, all: usize, bytes: usize) -> bool {
        let left = self.most.saturating_sub(all.saturating_add(bytes));
        bytes == 0 || own.saturating_add(bytes) <= left
    }

    fn lock(&self) -> MutexGuard<'_, Counts<String>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reserved memory, given back when this is dropped.
#[derive(Debug)]
pub struct MemoryHold {
    pool: Arc<MemoryPool>,
    owner: String,
    bytes: usize,
}

impl Drop for MemoryHold {
    fn drop(&mut self) {
        self.pool.give_back(&self.owner, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_holds_more_than_what_is_free() {
        let pool = MemoryPool::new(1_000);
        assert!(pool.fits(500) && !pool.fits(501));
        assert!(pool.take("a", 500));
        assert!(!pool.take("a", 1));
        assert!(pool.take("b", 250));
        assert!(!pool.take("b", 1));
        assert!(pool.take("c", 100));
        assert!(!pool.take("d", 100));
        // Nothing fits also where an owner holds more than what is left.
        assert!(pool.take("a", 0));
        pool.give_back("a", 500);
        assert!(pool.take("d", 100));
        for (owner, bytes) in [("b", 250), ("c", 100), ("d", 100)] {
            pool.give_back(owner, bytes);
        }
        assert_eq!(pool.lock().all(), 0);
    }

    #[test]
    fn a_reservation_is_given_back_when_it_is_dropped() {
        let pool = Arc::new(MemoryPool::new(1_000));
        let held = pool.reserve("a", 400).unwrap();
        assert_eq!(pool.reserve("a", 200).unwrap_err(), NoRoom::Now);
        assert_eq!(pool.reserve("a", 501).unwrap_err(), NoRoom::Ever);
        let mut given_back = Counts::<String>::default();
        given_back.add("a", 300);
        assert!(pool.fits_after("a", 200, &given_back));
        assert!(!pool.fits_after("a", 500, &given_back));
        drop(held);
        assert!(pool.reserve("a", 500).is_ok());
        assert_eq!(pool.lock().all(), 0);
    }
}
