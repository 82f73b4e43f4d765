//! How many offers a client may make.

use std::time::{Duration, Instant};

/// Offers that a client may make within [`OFFER_WINDOW`]. It makes one when the call begins and one for every change of
/// its network.
const MAX_OFFERS: u32 = 10;

const OFFER_WINDOW: Duration = Duration::from_secs(10);

/// Offers that a client may make in a call; each may leave something in the stack.
const MAX_OFFERS_IN_ALL: u32 = 500;

/// How many offers came.
#[derive(Debug)]
pub(super) struct Offers {
    window: Instant,
    in_window: u32,
    in_all: u32,
}

impl Offers {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            window: now,
            in_window: 0,
            in_all: 0,
        }
    }

    /// Counts an offer; `false` when there were too many.
    pub(super) fn count(&mut self, now: Instant) -> bool {
        if now >= self.window + OFFER_WINDOW {
            self.window = now;
            self.in_window = 0;
        }
        self.in_window += 1;
        self.in_all += 1;
        self.in_window <= MAX_OFFERS && self.in_all <= MAX_OFFERS_IN_ALL
    }
}
