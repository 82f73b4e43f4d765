//! Clocks of tests.

use std::{sync::Arc, time::Instant};

use colloquy_base::clock::{Clock, ManualClock, SystemClock};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// A clock that shows 2026-01-02T03:04:05Z until it is moved.
pub fn manual() -> Arc<ManualClock> {
    let now: Timestamp = "2026-01-02T03:04:05Z".parse().expect("a time");
    Arc::new(ManualClock::new(now))
}

/// The clock of a machine that is wrong by so much; the database's is right.
#[derive(Debug)]
pub struct WrongClock(SignedDuration);

impl WrongClock {
    /// A clock that is so many seconds ahead, or behind if that is negative.
    pub fn by_seconds(seconds: i64) -> Self {
        Self(SignedDuration::from_secs(seconds))
    }
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        SystemClock.now() + self.0
    }

    fn instant(&self) -> Instant {
        SystemClock.instant()
    }

    fn new_id(&self) -> Uuid {
        SystemClock.new_id()
    }
}
