//! How much each of many has of something that is bounded.

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

/// How much each of many has, and all together. Whoever has nothing is forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts<K: Eq + Hash> {
    all: usize,
    each: HashMap<K, usize>,
}

impl<K: Eq + Hash> Default for Counts<K> {
    fn default() -> Self {
        let each = HashMap::new();
        Self { all: 0, each }
    }
}

impl<K: Eq + Hash> Counts<K> {
    /// What all have together.
    #[must_use]
    pub fn all(&self) -> usize {
        self.all
    }

    /// What one has.
    pub fn of<Q>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.each.get(key).copied().unwrap_or_default()
    }

    /// Those that have something.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.each.keys()
    }

    /// Gives one more.
    pub fn add<Q>(&mut self, key: &Q, amount: usize)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        if amount == 0 {
            return;
        }
        self.all = self.all.saturating_add(amount);
        match self.each.get_mut(key) {
            Some(count) => *count = count.saturating_add(amount),
            None => {
                self.each.insert(key.to_owned(), amount);
            }
        }
    }

    /// Takes from one what it was given.
    pub fn remove<Q>(&mut self, key: &Q, amount: usize)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some(count) = self.each.get_mut(key) {
            let taken = amount.min(*count);
            *count -= taken;
            self.all -= taken;
            if *count == 0 {
                self.each.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_nothing_is_forgotten() {
        let mut counts = Counts::<String>::default();
        counts.add("a", 2);
        counts.add("a", 1);
        counts.add("b", 4);
        counts.add("c", 0);
        assert_eq!((counts.of("a"), counts.of("c"), counts.all()), (3, 0, 7));
        counts.remove("a", 3);
        counts.remove("b", 9);
        counts.remove("c", 1);
        assert_eq!(counts, Counts::default());
    }
}
