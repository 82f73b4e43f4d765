//! Whether the client of a call is there: when it was heard last, how long it is waited for, and how long its call lasted.

use std::time::{Duration, Instant};

/// The presence of a client.
#[derive(Debug)]
pub(super) struct Presence {
    /// When its connection or a message on it came last.
    heard_at: Instant,
    /// When media first came up.
    connected_at: Option<Instant>,
    /// When the call ends unless the client comes back, or media comes up.
    give_up_at: Option<Instant>,
}

impl Presence {
    /// A client that has come, and whose media is to come up within this time.
    pub(super) fn new(now: Instant, patience: Duration) -> Self {
        Self {
            heard_at: now,
            connected_at: None,
            give_up_at: Some(now + patience),
        }
    }

    /// Notes a message or a connection of the client.
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard_at = now;
    }

    /// When the client's connection or a message on it came last.
    pub(super) fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// When the call ends unless the client comes back, or media comes up.
    pub(super) fn give_up_at(&self) -> Option<Instant> {
        self.give_up_at
    }

    /// Returns true if the client has been away for as long as it is waited for.
    pub(super) fn is_given_up(&self, now: Instant) -> bool {
        self.give_up_at.is_some_and(|at| at <= now)
    }

    /// Waits for the first media for this time from now on.
    pub(super) fn expect_media(&mut self, patience: Duration, now: Instant) {
        self.give_up_at = Some(now + patience);
    }

    /// Notes that media came up for the first time.
    pub(super) fn connect(&mut self, now: Instant) {
        self.connected_at = Some(now);
        self.give_up_at = None;
    }

    /// Begins to wait for a client that is away, unless it is waited for already, and ends the wait for one that is there.
    pub(super) fn reconsider(&mut self, is_away: bool, patience: Duration, now: Instant) {
        self.give_up_at = is_away.then(|| self.give_up_at.unwrap_or(now + patience));
    }

    /// Returns how long a call lasted that ends now: from its first media on, until its client was last heard if the client is away, however
    /// the call ends. Nobody pays for the wait. A client that hangs up has been heard now. `media_heard` is when media or a check of the
    /// client's came last.
    pub(super) fn call_time(&self, media_heard: Option<Instant>, now: Instant) -> Duration {
        let Some(connected_at) = self.connected_at else {
            return Duration::ZERO;
        };
        // Once media came up, only a client that is away is waited for.
        let ended = match self.give_up_at {
            Some(_) => media_heard.map_or(self.heard_at, |at| at.max(self.heard_at)),
            None => now,
        };
        ended.saturating_duration_since(connected_at)
    }
}

#[cfg(test)]
mod tests {
    use colloquy_base::clock::{Clock as _, SystemClock};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// A client whose media came up after 2 s and that said something after 10 s, and the time after so many seconds.
    fn connected() -> (Presence, impl Fn(u64) -> Instant) {
        let epoch = SystemClock.instant();
        let at = move |seconds| epoch + Duration::from_secs(seconds);
        let mut presence = Presence::new(epoch, PATIENCE);
        presence.connect(at(2));
        presence.hear(at(10));
        (presence, at)
    }

    #[test]
    fn nobody_pays_for_the_wait_for_a_client_that_does_not_come_back() {
        let (mut presence, at) = connected();
        // Its connection is lost, and then its media.
        presence.reconsider(true, PATIENCE, at(20));
        presence.reconsider(true, PATIENCE, at(25));
        assert_eq!(presence.give_up_at(), Some(at(50)));
        assert!(!presence.is_given_up(at(49)));
        assert!(presence.is_given_up(at(50)));
        let seconds = |heard| presence.call_time(heard, at(50)).as_secs();
        assert_eq!(seconds(None), 8);
        assert_eq!(seconds(Some(at(5))), 8);
        assert_eq!(seconds(Some(at(19))), 17);
    }

    #[test]
    fn nobody_pays_for_an_absence_in_which_the_call_ends() {
        let (mut presence, at) = connected();
        presence.reconsider(true, PATIENCE, at(20));
        // The time limit, or the server's stop, comes before the client is given up.
        assert!(!presence.is_given_up(at(40)));
        assert_eq!(presence.call_time(Some(at(12)), at(40)).as_secs(), 10);
        assert_eq!(presence.call_time(None, at(40)).as_secs(), 8);
        // Its media goes on without its connection.
        assert_eq!(presence.call_time(Some(at(40)), at(40)).as_secs(), 38);
    }

    #[test]
    fn a_client_that_is_there_or_comes_back_pays_until_the_end() {
        let (mut presence, at) = connected();
        let seconds = |presence: &Presence, now| presence.call_time(Some(at(12)), now).as_secs();
        assert_eq!(seconds(&presence, at(15)), 13);
        presence.reconsider(true, PATIENCE, at(20));
        // It hangs up while its media is away.
        presence.hear(at(40));
        assert_eq!(seconds(&presence, at(40)), 38);
        presence.reconsider(false, PATIENCE, at(40));
        assert_eq!(presence.give_up_at(), None);
        assert_eq!(seconds(&presence, at(100)), 98);
    }

    #[test]
    fn a_call_without_media_takes_no_time() {
        let (_, at) = connected();
        let mut presence = Presence::new(at(0), PATIENCE);
        assert_eq!(presence.give_up_at(), Some(at(30)));
        presence.expect_media(PATIENCE, at(20));
        assert!(!presence.is_given_up(at(49)));
        assert!(presence.is_given_up(at(50)));
        assert_eq!(presence.call_time(Some(at(40)), at(50)), Duration::ZERO);
    }
}
