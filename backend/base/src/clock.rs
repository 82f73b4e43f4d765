//! The only source of time and identifiers, so that tests can own both.

use std::{
    fmt::Debug,
    sync::Mutex,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use uuid::Uuid;

/// Tells the time and hands out identifiers.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The time of day, for everything that is stored or shown.
    fn now(&self) -> Timestamp;

    /// A time that never goes back, for measuring how long something took.
    fn instant(&self) -> Instant;

    /// A new identifier; later ones sort after earlier ones.
    fn new_id(&self) -> Uuid;

    /// The time of day in milliseconds since 1970, as the database stores it.
    fn now_ms(&self) -> i64 {
        self.now().as_millisecond()
    }

    /// The time that stands for the database's own, in milliseconds since 1970: that of a test. `None` leaves it to the
    /// database, whose clock all nodes share.
    fn database_now_ms(&self) -> Option<i64> {
        None
    }
}

/// The clock of the machine.
#[derive(Debug, Default)]
pub struct SystemClock;

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one home of the clock and of identifiers"
)]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn instant(&self) -> Instant {
        Instant::now()
    }

    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}

/// A clock that stands still until it is moved; for tests.
#[derive(Debug)]
pub struct ManualClock {
    base: Instant,
    state: Mutex<(Timestamp, Duration)>,
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self {
            base: SystemClock.instant(),
            state: Mutex::new((now, Duration::ZERO)),
        }
    }

    /// Sets the time of day, as an operator does; the monotonic time stays as it is.
    pub fn set(&self, now: Timestamp) {
        self.lock().0 = now;
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock();
        state.0 += by;
        state.1 += by;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Timestamp, Duration)> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().0
    }

    fn instant(&self) -> Instant {
        self.base + self.lock().1
    }

    fn new_id(&self) -> Uuid {
        SystemClock.new_id()
    }

    fn database_now_ms(&self) -> Option<i64> {
        Some(self.now_ms())
    }
}

/// The runtime's time, which its timers wait for: for deadlines and for what they are measured against. Tests own it by
/// `tokio::time::pause`.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one home of the clock and of identifiers"
)]
pub fn runtime_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// A stored time, in milliseconds since 1970, as the API shows it (RFC 3339, UTC).
#[must_use]
pub fn rfc3339(ms: i64) -> String {
    Timestamp::from_millisecond(ms)
        .map(|time| time.to_string())
        .unwrap_or_default()
}
