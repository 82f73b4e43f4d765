//! Clocks of machines that are wrong.

use std::time::Instant;

use colloquy_base::clock::{Clock, SystemClock};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

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
