//! A network that loses, delays, reorders and repeats packets, the same way each time for the same seed.

use std::time::Duration;

/// Marsaglia's xorshift64*.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 16) % bound
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Network {
    pub(crate) loss_percent: u64,
    /// Each packet but the first is delayed by up to this much on its own, so that neighbours overtake each other.
    pub(crate) jitter_ms: u64,
    pub(crate) duplicate_percent: u64,
    pub(crate) seed: u64,
}

impl Network {
    /// When the copies of each of `count` packets arrive after they were sent.
    pub(crate) fn delays(&self, count: usize) -> Vec<Vec<Duration>> {
        let mut random = Random::new(self.seed.wrapping_add(1));
        let mut deliver = |index| {
            if random.percent(self.loss_percent) {
                return Vec::new();
            }
            let copies = if random.percent(self.duplicate_percent) {
                2
            } else {
                1
            };
            let delay = |_| {
                Duration::from_millis(if index == 0 {
                    0
                } else {
                    random.below(self.jitter_ms + 1)
                })
            };
            (0..copies).map(delay).collect()
        };
        (0..count).map(&mut deliver).collect()
    }
}
