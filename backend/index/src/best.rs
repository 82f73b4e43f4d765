//! The best of many that come one after another.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

/// As many as wanted of those with the highest scores. Of equal ones, the lowest.
pub(crate) struct Best<T> {
    most: usize,
    found: BinaryHeap<Reverse<Scored<T>>>,
}

impl<T: Ord> Best<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            found: BinaryHeap::new(),
        }
    }

    /// The lowest score, once there are as many as wanted: what is below it changes nothing any more.
    pub(crate) fn floor(&self) -> Option<f64> {
        let last = self.found.peek().filter(|_| self.found.len() >= self.most);
        last.map(|Reverse(last)| last.score)
    }

    pub(crate) fn push(&mut self, score: f64, item: T) {
        let scored = Scored { score, item };
        if self.found.len() < self.most {
            self.found.push(Reverse(scored));
        } else if let Some(mut last) = self.found.peek_mut()
            && scored > last.0
        {
            *last = Reverse(scored);
        }
    }

    /// What was found, in no order.
    pub(crate) fn into_vec(self) -> Vec<(f64, T)> {
        let found = self.found.into_iter();
        found
            .map(|Reverse(scored)| (scored.score, scored.item))
            .collect()
    }
}

struct Scored<T> {
    score: f64,
    item: T,
}

impl<T: Ord> Ord for Scored<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        let items = other.item.cmp(&self.item);
        self.score.total_cmp(&other.score).then(items)
    }
}

impl<T: Ord> PartialOrd for Scored<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Scored<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Ord> Eq for Scored<T> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_sorting_all_would(
            scores in proptest::collection::vec(0_u8..20, 0..60),
            most in 0_usize..20,
        ) {
            let mut best = Best::new(most);
            let mut all: Vec<(f64, usize)> = scores.into_iter().map(f64::from).zip(0..).collect();
            for (score, item) in &all {
                let floor = best.floor();
                best.push(*score, *item);
                prop_assert!(best.floor() >= floor);
            }
            let order = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            all.sort_by(order);
            all.truncate(most);
            let floor = all.last().filter(|_| all.len() == most);
            prop_assert_eq!(best.floor(), floor.map(|last| last.0));
            let mut found = best.into_vec();
            found.sort_by(order);
            prop_assert_eq!(found, all);
        }
    }
}
