//! What a connection is doing, and how long it may do it.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use colloquy_base::clock::runtime_now;
use colloquy_config::HttpConfig;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// How long a client may take for its next request, and for the head of one, once the server is told to stop.
const WHILE_LEAVING: Duration = Duration::from_secs(1);

/// The times of the settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    header: Duration,
    idle: Duration,
    /// How long a write may make no progress.
    pub(super) write_stall: Duration,
}

impl Limits {
    pub(super) fn new(config: &HttpConfig) -> Self {
        Self {
            header: Duration::from_millis(config.header_ms.into()),
            idle: Duration::from_millis(config.idle_ms.into()),
            write_stall: Duration::from_millis(config.write_stall_ms.into()),
        }
    }
}

/// No request is in progress.
const WAITING: u8 = 0;
/// A request is in progress.
const WORKING: u8 = 1;
/// The answer is complete, and some of it may still have to leave.
const LEAVING: u8 = 2;

/// What a connection is doing. Its reader, its requests and its task look at it, all in one task.
#[derive(Debug)]
pub(super) struct Watch {
    phase: AtomicU8,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When it began to wait.
    since: Instant,
    /// When the first byte of the next request came.
    begun: Option<Instant>,
    requests: u64,
    /// Whether the last request had a body, of which nobody may have read the rest.
    has_body: bool,
    cut: bool,
    /// Says that a request is in progress, to whoever waits for the last.
    in_progress: Option<TaskTrackerToken>,
}

/// What to do with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Look again then.
    Until(Instant),
    /// Its time is over.
    Over(&'static str),
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            phase: AtomicU8::new(WAITING),
            state: Mutex::new(State {
                since: runtime_now(),
                begun: None,
                requests: 0,
                has_body: false,
                cut: false,
                in_progress: None,
            }),
        }
    }

    /// A request's head is complete.
    pub(super) fn request(&self, token: TaskTrackerToken, has_body: bool) {
        let mut state = self.lock();
        state.requests += 1;
        state.has_body = has_body;
        state.begun = None;
        state.in_progress = Some(token);
        self.phase.store(WORKING, Ordering::Relaxed);
    }

    /// The last of the answer was handed over.
    pub(super) fn answered(&self) {
        self.lock().since = runtime_now();
        self.phase.store(LEAVING, Ordering::Relaxed);
    }

    /// Some of an answer has left.
    pub(super) fn wrote(&self) {
        if self.phase.load(Ordering::Relaxed) == LEAVING {
            self.lock().since = runtime_now();
        }
    }

    /// Everything that was handed over has left.
    pub(super) fn flushed(&self) {
        if self.phase.load(Ordering::Relaxed) == LEAVING {
            let mut state = self.lock();
            state.since = runtime_now();
            state.in_progress = None;
            self.phase.store(WAITING, Ordering::Relaxed);
        }
    }

    /// Bytes came.
    pub(super) fn read(&self) {
        if self.phase.load(Ordering::Relaxed) == WAITING {
            self.lock().begun.get_or_insert_with(runtime_now);
        }
    }

    /// The connection was handed on, or is over.
    pub(super) fn ended(&self) {
        self.lock().in_progress = None;
    }

    /// The connection is closed for its silence: nobody reads what may still come.
    pub(super) fn cut(&self) {
        self.lock().cut = true;
    }

    /// Whether nothing that was sent can be unread, or nobody cares.
    pub(super) fn is_quiet(&self) -> bool {
        let state = self.lock();
        state.cut || (self.waits_again(&state) && !state.has_body)
    }

    fn waits_again(&self, state: &State) -> bool {
        let waits = self.phase.load(Ordering::Relaxed) == WAITING;
        waits && state.begun.is_none() && state.requests > 0
    }

    /// Whether a request is in progress.
    pub(super) fn is_working(&self) -> bool {
        self.phase.load(Ordering::Relaxed) != WAITING
    }

    /// Whether its time is over. Once the server is told to stop, since `leaving`, a connection has a moment for a request that
    /// is on its way.
    pub(super) fn look(&self, limits: &Limits, now: Instant, leaving: Option<Instant>) -> Verdict {
        if self.is_working() {
            // Handlers have times of their own, and so has a write.
            return Verdict::Until(now + limits.header.min(limits.idle));
        }
        let state = self.lock();
        let (from, time, reason) = match state.begun {
            Some(begun) => (begun, limits.header, "header"),
            None if state.requests == 0 => (state.since, limits.header, "header"),
            None => (state.since, limits.idle, "idle"),
        };
        let until = from + time;
        let until = match leaving {
            Some(leaving) => until.min(from.max(leaving) + WHILE_LEAVING),
            None => until,
        };
        if until <= now {
            Verdict::Over(reason)
        } else {
            // A head may begin in the meantime, and then this is its time.
            Verdict::Until(until.min(now + limits.header))
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::task::TaskTracker;

    use super::*;

    const LIMITS: Limits = Limits {
        header: Duration::from_secs(15),
        idle: Duration::from_secs(75),
        write_stall: Duration::from_secs(120),
    };

    /// Why the connection is over so many seconds from now, and otherwise after how many it is looked at again.
    fn after(watch: &Watch, seconds: u64, leaving: bool) -> Result<f64, &'static str> {
        let begun = runtime_now();
        let now = begun + Duration::from_secs(seconds);
        match watch.look(&LIMITS, now, leaving.then_some(begun)) {
            Verdict::Until(at) => Ok(at.duration_since(now).as_secs_f64().ceil()),
            Verdict::Over(reason) => Err(reason),
        }
    }

    #[test]
    fn each_silence_has_its_time() {
        let (watch, requests) = (Watch::new(), TaskTracker::new());
        assert_eq!(after(&watch, 14, false), Ok(1.0));
        assert_eq!(after(&watch, 15, false), Err("header"));
        assert_eq!(after(&watch, 1, true), Err("header"));
        // A request takes as long as it likes.
        watch.request(requests.token(), false);
        assert_eq!(after(&watch, 1_000, true), Ok(15.0));
        watch.answered();
        assert!(watch.is_working() && !watch.is_quiet());
        assert_eq!(requests.len(), 1);
        watch.flushed();
        assert_eq!(requests.len(), 0);
        assert!(watch.is_quiet());
        assert_eq!(after(&watch, 59, false), Ok(15.0));
        assert_eq!(after(&watch, 74, false), Ok(1.0));
        assert_eq!(after(&watch, 75, false), Err("idle"));
        // The next request begins, and goes on slowly.
        watch.read();
        watch.read();
        assert!(!watch.is_quiet());
        assert_eq!(after(&watch, 14, false), Ok(1.0));
        assert_eq!(after(&watch, 15, false), Err("header"));
        // Some of a body may be unread.
        watch.request(requests.token(), true);
        watch.answered();
        watch.flushed();
        assert!(!watch.is_quiet());
    }
}
