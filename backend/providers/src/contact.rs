//! The last answer and the last failure of a service, noted from the requests of this process. No request is sent to find out.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use super::{ProviderError, ProviderErrorKind};

/// The contact of this process with a service.
#[derive(Debug, Default)]
pub struct Contact(Mutex<LastContact>);

/// The last answer and the last failure of a service; both `None` before it was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastContact {
    /// The time of the last answer; a refusal is an answer.
    pub answered: Option<Instant>,
    /// The time and kind of the last failure.
    pub failed: Option<(Instant, ProviderErrorKind)>,
}

impl LastContact {
    /// Returns true if the last request got no answer.
    #[must_use]
    pub fn is_failing(self) -> bool {
        let failed = self.failed.map(|(at, _)| at);
        failed.is_some() && self.answered < failed
    }
}

impl Contact {
    /// The service answered.
    pub fn answered(&self, now: Instant) {
        self.lock().answered = Some(now);
    }

    /// A request failed. One that was not sent says nothing.
    pub fn failed(&self, now: Instant, error: &ProviderError) {
        if !error.was_asked() {
            return;
        }
        let mut last = self.lock();
        last.failed = Some((now, error.kind));
        if error.is_answer() {
            last.answered = Some(now);
        }
    }

    /// Returns the last answer and the last failure.
    #[must_use]
    pub fn last(&self) -> LastContact {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, LastContact> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use colloquy_base::clock::{Clock as _, ManualClock};

    use super::*;

    #[test]
    fn a_service_fails_from_its_last_failure_to_its_next_answer() {
        let clock = ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let contact = Contact::default();
        let fail = |kind| {
            clock.advance(Duration::from_secs(1));
            contact.failed(clock.instant(), &ProviderError::new("m", kind, ""));
        };
        for kind in [ProviderErrorKind::Resting, ProviderErrorKind::Busy] {
            fail(kind);
            assert_eq!(
                contact.last(),
                LastContact::default(),
                "{kind:?}: it was not asked"
            );
        }
        fail(ProviderErrorKind::Connect);
        assert!(contact.last().is_failing());
        assert_eq!(contact.last().answered, None);
        clock.advance(Duration::from_secs(1));
        contact.answered(clock.instant());
        assert!(!contact.last().is_failing());
        fail(ProviderErrorKind::RateLimited);
        let last = contact.last();
        assert!(!last.is_failing(), "it answers");
        assert_eq!(last.failed.unwrap().1, ProviderErrorKind::RateLimited);
        fail(ProviderErrorKind::Timeout);
        assert!(contact.last().is_failing());
    }
}
