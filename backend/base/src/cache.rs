//! A small map whose entries are short-lived: what was read from the database a moment ago.
//!
//! Another node may have changed the row, so an entry is used for a few seconds at most; a change on this node forgets
//! it at once.

use std::{
    borrow::Borrow,
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::clock::Clock;

/// A bounded map with entries that age.
#[derive(Debug)]
pub struct ShortCache<K, V> {
    clock: Arc<dyn Clock>,
    max_age: Duration,
    capacity: usize,
    state: Mutex<State<K, V>>,
}

#[derive(Debug)]
struct State<K, V> {
    entries: HashMap<K, (Instant, V)>,
    generation: u64,
}

/// Taken before a row is read, so that a change in between keeps the old row out of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation(u64);

impl<K: Eq + Hash, V: Clone> ShortCache<K, V> {
    /// An empty cache of at most `capacity` entries, each used for at most `max_age`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, max_age: Duration, capacity: usize) -> Self {
        Self {
            clock,
            max_age,
            capacity,
            state: Mutex::new(State {
                entries: HashMap::new(),
                generation: 0,
            }),
        }
    }

    /// The entry, when it is young enough.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let now = self.clock.instant();
        let state = self.lock();
        let (read_at, value) = state.entries.get(key)?;
        (now.saturating_duration_since(*read_at) <= self.max_age).then(|| value.clone())
    }

    /// The entry, however old it is: what was so once.
    pub fn get_old<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.lock().entries.get(key).map(|(_, value)| value.clone())
    }

    /// The generation to hand to [`Self::insert`]; take it before reading the row.
    pub fn generation(&self) -> Generation {
        Generation(self.lock().generation)
    }

    /// Keeps a value, unless something was forgotten since `generation`.
    pub fn insert(&self, generation: Generation, key: K, value: V) {
        let now = self.clock.instant();
        let max_age = self.max_age;
        let mut state = self.lock();
        if state.generation != generation.0 {
            return;
        }
        if state.entries.len() >= self.capacity {
            state
                .entries
                .retain(|_, (read_at, _)| now.saturating_duration_since(*read_at) <= max_age);
            if state.entries.len() >= self.capacity {
                state.entries.clear();
            }
        }
        state.entries.insert(key, (now, value));
    }

    /// Replaces a kept value without making it younger.
    pub fn replace(&self, key: &K, value: V) {
        if let Some(entry) = self.lock().entries.get_mut(key) {
            entry.1 = value;
        }
    }

    /// Forgets the entries that `forget` picks.
    pub fn forget(&self, forget: impl Fn(&K, &V) -> bool) {
        let mut state = self.lock();
        state.generation += 1;
        state.entries.retain(|key, (_, value)| !forget(key, value));
    }

    fn lock(&self) -> MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    fn cache(capacity: usize) -> (Arc<ManualClock>, ShortCache<u32, &'static str>) {
        let clock = Arc::new(ManualClock::new(jiff::Timestamp::UNIX_EPOCH));
        let cache = ShortCache::new(clock.clone(), Duration::from_secs(5), capacity);
        (clock, cache)
    }

    #[test]
    fn an_entry_ages() {
        let (clock, cache) = cache(8);
        cache.insert(cache.generation(), 1, "one");
        clock.advance(Duration::from_secs(5));
        assert_eq!(cache.get(&1), Some("one"));
        clock.advance(Duration::from_millis(1));
        assert_eq!(cache.get(&1), None);
    }

    #[test]
    fn a_row_read_before_a_change_is_not_kept() {
        let (_clock, cache) = cache(8);
        let generation = cache.generation();
        cache.forget(|key, _| *key == 1);
        cache.insert(generation, 1, "old");
        assert_eq!(cache.get(&1), None);
    }

    #[test]
    fn a_replaced_value_keeps_its_age() {
        let (clock, cache) = cache(8);
        cache.insert(cache.generation(), 1, "one");
        clock.advance(Duration::from_secs(4));
        cache.replace(&1, "uno");
        cache.replace(&2, "dos");
        assert_eq!((cache.get(&1), cache.get(&2)), (Some("uno"), None));
        clock.advance(Duration::from_secs(2));
        assert_eq!(cache.get(&1), None);
    }

    #[test]
    fn it_stays_bounded() {
        let (_clock, cache) = cache(2);
        for key in 0..5 {
            cache.insert(cache.generation(), key, "x");
        }
        assert!(cache.lock().entries.len() <= 2);
        assert_eq!(cache.get(&4), Some("x"));
    }
}
