//! The condition of the node's index: whether it follows, waits for space, is being made again, or may be damaged.

use std::time::{Duration, Instant};

use colloquy_index::search::IndexError;

/// How often all files of an index are compared with their checksums: damage may lie where no search reads.
const VERIFY_EVERY: Duration = Duration::from_secs(6 * 3_600);
/// How often at most that is done since a search failed.
const SUSPECT_EVERY: Duration = Duration::from_secs(60);

/// The index cannot be searched now.
#[derive(Debug, thiserror::Error)]
#[error("the search index cannot be searched now")]
pub(crate) struct IndexAway(#[source] pub(crate) Option<IndexError>);

/// The condition of an index.
#[derive(Debug, Default)]
pub(super) struct Condition {
    /// The last change of what was to be found when making it again began; until the index has it, searches would find too little.
    making_until: Option<i64>,
    /// The files are damaged and not removed yet.
    is_damaged: bool,
    /// A search has failed since the files were verified.
    is_suspect: bool,
    verified: Option<Instant>,
    suspected: Option<Instant>,
    /// Additions wait for space on the disk.
    is_held: bool,
    /// Why the index does not follow.
    failure: Option<String>,
}

impl Condition {
    /// Notes that the index was opened, with files that were verified.
    pub(super) fn open(&mut self, now: Instant) {
        self.verified = Some(now);
    }

    /// Notes that a search failed for no reason of its own.
    pub(super) fn suspect(&mut self) {
        self.is_suspect = true;
    }

    /// True if the files are to be verified now, which begins.
    pub(super) fn begin_verifying(&mut self, now: Instant) -> bool {
        let is_older =
            |than: Duration| move |at: Instant| now.saturating_duration_since(at) >= than;
        let is_suspect = self.is_suspect && self.suspected.is_none_or(is_older(SUSPECT_EVERY));
        let begins = is_suspect || self.verified.is_some_and(is_older(VERIFY_EVERY));
        if begins {
            self.verified = Some(now);
            self.is_suspect = false;
            if is_suspect {
                self.suspected = Some(now);
            }
        }
        begins
    }

    /// Notes damaged files.
    pub(super) fn damage(&mut self) {
        self.is_damaged = true;
    }

    /// True if the files have to be removed.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Begins to make the index again, of all changes up to this one.
    pub(super) fn begin_making(&mut self, last: i64) {
        self.is_damaged = false;
        self.making_until = Some(last);
    }

    /// Notes up to which change the index has come. True if it is complete again with that.
    pub(super) fn reach(&mut self, position: i64) -> bool {
        let ends = self.making_until.is_some_and(|until| position >= until);
        if ends {
            self.making_until = None;
        }
        ends
    }

    /// True if a search finds all that it should.
    pub(super) fn is_searchable(&self) -> bool {
        !self.is_damaged && self.making_until.is_none()
    }

    /// Notes whether additions wait for space on the disk.
    pub(super) fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// True if additions wait for space on the disk.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Notes how the last attempt to follow ended.
    pub(super) fn follow(&mut self, failure: Option<String>) {
        self.failure = failure;
    }

    /// Why the index is not as it should be, if it is not.
    pub(super) fn reason(&self) -> Option<String> {
        if !self.is_searchable() {
            return Some("the search index is being made again".to_owned());
        }
        let held = self
            .is_held
            .then(|| "additions to the search index wait for space on the disk".to_owned());
        self.failure.clone().or(held)
    }
}

#[cfg(test)]
mod tests {
    use colloquy_base::clock::{Clock as _, SystemClock};

    use super::*;

    #[test]
    fn an_index_that_is_made_again_is_not_searched_before_it_is_complete() {
        let mut condition = Condition::default();
        assert!(condition.is_searchable() && condition.reason().is_none());
        condition.damage();
        assert!(!condition.is_searchable() && condition.reason().is_some());
        condition.begin_making(7);
        assert!(!condition.is_damaged() && !condition.is_searchable());
        assert!(!condition.reach(6) && !condition.is_searchable());
        assert!(condition.reach(8) && condition.is_searchable());
        assert!(!condition.reach(9), "it is told once");
    }

    #[test]
    fn an_index_whose_additions_wait_is_searched_and_not_as_it_should_be() {
        let mut condition = Condition::default();
        condition.hold(true);
        assert!(condition.is_searchable() && condition.reason().is_some());
        condition.hold(false);
        assert_eq!(condition.reason(), None);
    }

    #[test]
    fn files_are_verified_now_and_then_and_after_a_failure() {
        let begin = SystemClock.instant();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut condition = Condition::default();
        condition.open(begin);
        assert!(!condition.begin_verifying(after(60)));
        condition.suspect();
        assert!(condition.begin_verifying(after(61)));
        condition.suspect();
        assert!(
            !condition.begin_verifying(after(62)),
            "not for every search"
        );
        assert!(condition.begin_verifying(after(122)));
        assert!(!condition.begin_verifying(after(200)));
        assert!(condition.begin_verifying(after(122 + 6 * 3_600)));
    }
}
