//! How much a client may ask for in a call.

use std::time::{Duration, Instant};

/// Limits on the requests of a client.
#[derive(Debug)]
pub(super) struct Limits {
    /// A client makes an offer when the call begins and one for every change of its network; each may leave something in the stack.
    pub(super) offers: Limit,
    /// Typed turns, by their bytes: each of them asks the model for a reply to the whole conversation.
    pub(super) typed_turns: Limit,
}

impl Limits {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            offers: Limit::new(now, 10, 500),
            typed_turns: Limit::new(now, MAX_TYPED_TURNS, MAX_TYPED_BYTES),
        }
    }
}

/// Typed turns that a client may send within [`WINDOW`].
pub(super) const MAX_TYPED_TURNS: u32 = 20;

/// The most bytes of typed turns in a call.
pub(super) const MAX_TYPED_BYTES: usize = 1024 * 1024;

pub(super) const WINDOW: Duration = Duration::from_secs(10);

/// Counts requests within [`WINDOW`], and what they weigh in all.
#[derive(Debug)]
pub(super) struct Limit {
    window: Instant,
    in_window: u32,
    most_in_window: u32,
    in_all: usize,
    most_in_all: usize,
}

impl Limit {
    fn new(now: Instant, most_in_window: u32, most_in_all: usize) -> Self {
        Self {
            window: now,
            in_window: 0,
            most_in_window,
            in_all: 0,
            most_in_all,
        }
    }

    /// Counts a request of this weight; `false` when it is too much. One that is refused weighs nothing.
    pub(super) fn count(&mut self, now: Instant, weight: usize) -> bool {
        if now >= self.window + WINDOW {
            self.window = now;
            self.in_window = 0;
        }
        self.in_window = self.in_window.saturating_add(1);
        let in_all = self.in_all.saturating_add(weight);
        let is_allowed = self.in_window <= self.most_in_window && in_all <= self.most_in_all;
        if is_allowed {
            self.in_all = in_all;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use colloquy_base::clock::{Clock as _, SystemClock};

    use super::*;

    #[test]
    fn a_limit_counts_within_windows_and_in_all() {
        let begin = SystemClock.instant();
        let mut limit = Limit::new(begin, 2, 10);
        assert!(limit.count(begin, 3));
        assert!(!limit.count(begin, 8), "too much in all");
        assert!(!limit.count(begin, 1), "too many in the window");
        assert!(
            limit.count(begin + WINDOW, 7),
            "what was refused weighs nothing"
        );
        assert!(!limit.count(begin + 2 * WINDOW, 1));
    }

    #[test]
    fn typed_turns_keep_a_conversation_small() {
        let begin = SystemClock.instant();
        let mut turns = Limits::new(begin).typed_turns;
        let longest = colloquy_protocol::MAX_TEXT_CHARS * char::MAX.len_utf8();
        let mut taken = 0;
        for second in 0..4 * 3600_u64 {
            for _ in 0..100 {
                if turns.count(begin + Duration::from_secs(second), longest) {
                    taken += longest;
                }
            }
        }
        assert!(taken <= MAX_TYPED_BYTES, "{taken}");
        assert!(taken > MAX_TYPED_BYTES / 2, "{taken}");
    }
}
