//! What a node knows of its own heartbeat, and what follows for its judgement of others.

use std::time::{Duration, Instant};

use super::LOST_AFTER;

/// How far the database's clock may run off from this machine's between two heartbeats: more than a heartbeat may take.
pub(super) const DRIFT: Duration = Duration::from_secs(20);

/// The last heartbeat, and whether one failed. Times are the database's, in milliseconds since 1970.
#[derive(Debug)]
pub(super) struct Pulse {
    /// When a heartbeat was stored last.
    last: i64,
    /// The same on this machine's monotonic time.
    last_instant: Instant,
    outage: Option<Outage>,
}

/// The database could not be told that this node lives, so nor could it by others.
#[derive(Debug)]
struct Outage {
    /// The last heartbeat before.
    before: i64,
    /// The first one after.
    over: Option<i64>,
}

/// The database's clock was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Jump {
    Forward,
    Back,
}

impl Pulse {
    pub(super) fn new(at: i64, now: Instant) -> Self {
        Self {
            last: at,
            last_instant: now,
            outage: None,
        }
    }

    /// A heartbeat was stored. Tells whether the database's clock has jumped since the last one.
    pub(super) fn stored(&mut self, at: i64, now: Instant) -> Option<Jump> {
        let passed = now.saturating_duration_since(self.last_instant);
        let drift = DRIFT.as_millis() as i64;
        let ahead = at - self.last - passed.as_millis() as i64;
        let jump = if ahead > drift {
            Some(Jump::Forward)
        } else if ahead < -drift {
            Some(Jump::Back)
        } else {
            None
        };
        if let Some(outage) = &mut self.outage {
            outage.over.get_or_insert(at);
        }
        if jump.is_some() {
            // Whoever lives has said so by the earlier clock.
            self.outage = Some(Outage {
                before: self.last.min(at),
                over: Some(at),
            });
        }
        self.last = at;
        self.last_instant = now;
        jump
    }

    /// A heartbeat was not stored.
    pub(super) fn failed(&mut self) {
        let before = self.last;
        match &mut self.outage {
            Some(outage) if outage.over.is_none() => {}
            outage => *outage = Some(Outage { before, over: None }),
        }
    }

    /// The database's time at this instant, unless its clock has jumped since the last heartbeat.
    pub(super) fn expected(&self, instant: Instant) -> i64 {
        let passed = instant.saturating_duration_since(self.last_instant);
        self.last.saturating_add(passed.as_millis() as i64)
    }

    /// The time since which a living node has said so. `now` is the database's time at this instant.
    pub(super) fn lost_before(&self, now: i64, instant: Instant) -> i64 {
        let patience = LOST_AFTER.as_millis() as i64;
        if now.saturating_sub(self.expected(instant)) > DRIFT.as_millis() as i64 {
            // It has jumped, as the next heartbeat will tell.
            return self.last - patience;
        }
        match &self.outage {
            Some(outage) if outage.over.is_none_or(|over| now - over < patience) => {
                outage.before - patience
            }
            _ => now - patience,
        }
    }
}

#[cfg(test)]
mod tests {
    use colloquy_base::clock::{Clock as _, SystemClock};

    use super::*;

    const SECOND: i64 = 1_000;

    #[test]
    fn a_clock_that_jumps_gives_every_node_its_time_anew() {
        let begun = SystemClock.instant();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let day = 24 * 3_600 * SECOND;
        let mut pulse = Pulse::new(0, begun);
        assert_eq!(pulse.stored(5 * SECOND, after(5)), None);
        assert_eq!(pulse.lost_before(10 * SECOND, after(10)), -20 * SECOND);
        // Before a heartbeat has told, too.
        let at = 40 * day;
        assert_eq!(pulse.lost_before(at, after(10)), -25 * SECOND);

        assert_eq!(pulse.stored(at, after(10)), Some(Jump::Forward));
        assert_eq!(pulse.lost_before(at + 29 * SECOND, after(39)), -25 * SECOND);
        assert_eq!(pulse.lost_before(at + 30 * SECOND, after(40)), at);

        assert_eq!(pulse.stored(15 * SECOND, after(45)), Some(Jump::Back));
        assert_eq!(pulse.lost_before(20 * SECOND, after(50)), -15 * SECOND);
        assert_eq!(pulse.lost_before(45 * SECOND, after(75)), 15 * SECOND);
    }
}
