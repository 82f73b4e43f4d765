//! What is made of failures, by all who ask: whether the same service, another one or nobody is asked again, and whether a
//! model rests. Text generation and calls ask in different ways and go by this alike.
//!
//! A model rests after failures in a row, so that nobody waits for one that is down. What a request can bring about by
//! itself must not take the model from others: a partner whose requests fail one after the other makes the model rest for
//! itself alone. It rests for everybody when connections fail, before anything of a request was sent, or when the requests
//! of as many partners fail, with no answer to anybody between them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{Contact, ProviderError, ProviderErrorKind};

/// The first rest after failures.
const FIRST_REST: Duration = Duration::from_secs(1);
/// The longest rest after failures.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// Failures in a row after which a model rests.
const FAILURES: u32 = 5;

/// What a failure says of the model's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// It answers: it found fault with the request, or has too many of them.
    Answered,
    /// Nothing: it was not asked.
    Nothing,
    /// It failed, and the request may be why.
    Doubtful,
    /// It was silent, broke off, or stands behind a gateway that does not reach it.
    Unwell,
    /// There is no connection, so no request is why.
    Unreachable,
}

impl ProviderErrorKind {
    /// Whether asking the same service again may help.
    #[must_use]
    pub fn is_transient(self) -> bool {
        !matches!(self, Self::Rejected | Self::Misconfigured)
    }
}

impl ProviderError {
    /// Whether the request itself was refused, so that no other model is asked. A model that the service does not have is
    /// the operator's fault.
    #[must_use]
    pub fn is_of_request(&self) -> bool {
        self.kind == ProviderErrorKind::Rejected && !matches!(self.status(), None | Some(404))
    }

    /// A model that is not asked because it rests.
    pub fn resting(model: &str, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..Self::new(model, ProviderErrorKind::Resting, "it rests after failures")
        }
    }

    pub(super) fn status(&self) -> Option<u16> {
        self.told.as_ref().and_then(|told| told.status)
    }

    /// Returns true if the request was sent, or was tried to be.
    pub(super) fn was_asked(&self) -> bool {
        self.evidence() != Evidence::Nothing
    }

    /// Returns true if the service is well, and only this request failed.
    pub(super) fn is_answer(&self) -> bool {
        self.evidence() == Evidence::Answered
    }

    fn evidence(&self) -> Evidence {
        match self.kind {
            ProviderErrorKind::Rejected | ProviderErrorKind::RateLimited => Evidence::Answered,
            // Neither says anything of the service: it was not asked.
            ProviderErrorKind::Resting | ProviderErrorKind::Busy => Evidence::Nothing,
            ProviderErrorKind::Connect => Evidence::Unreachable,
            ProviderErrorKind::Timeout | ProviderErrorKind::Cut => Evidence::Unwell,
            ProviderErrorKind::Failed => match self.status() {
                Some(502 | 503 | 504 | 529) => Evidence::Unwell,
                _ => Evidence::Doubtful,
            },
            ProviderErrorKind::Misconfigured
            | ProviderErrorKind::Malformed
            | ProviderErrorKind::Empty => Evidence::Doubtful,
        }
    }
}

/// A circuit breaker: whether a model rests, for a partner or for everybody. After a rest one request finds out.
#[derive(Debug, Default)]
pub struct Health {
    state: Mutex<State>,
    contact: Contact,
}

/// The rests of a model at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rests {
    /// The time for which the model still rests for all partners; `None` if it does not.
    pub all: Option<Duration>,
    /// The number of partners for which the model rests because of their own requests.
    pub partners: usize,
}

#[derive(Debug, Default)]
struct State {
    all: Circuit,
    /// The partners whose requests have failed since the last answer to anybody; each is one failure of `all`. There are as
    /// many as the operator has made, at most.
    failing: BTreeSet<String>,
    /// What each of them found out with requests of its own.
    own: BTreeMap<String, Circuit>,
}

#[derive(Debug, Default)]
struct Circuit {
    /// Failures in a row.
    failures: u32,
    /// The end of the rest.
    until: Option<Instant>,
    /// The last rest, which the next one doubles.
    last: Duration,
    /// The rests so far.
    rests: u64,
}

/// A request that may ask the model. What it finds out counts unless the model went to rest meanwhile: requests that run
/// side by side fail together, and are one failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    partner: Option<String>,
    all: u64,
    own: u64,
}

impl Health {
    /// Whether a request of this partner may ask the model now; `None` for who asks for all partners.
    ///
    /// # Errors
    /// How long it still rests. The request that ends a rest is let through alone: others wait for what it finds out,
    /// for as long as the rest was.
    pub fn admit(&self, now: Instant, partner: Option<&str>) -> Result<Admission, Duration> {
        let mut state = self.lock();
        let State { all, own, .. } = &mut *state;
        let mut own = partner.and_then(|partner| own.get_mut(partner));
        // Nobody takes the one request after the rest of all whose own rest goes on.
        for circuit in own.iter().map(|own| &**own).chain([&*all]) {
            circuit.awake(now)?;
        }
        Ok(Admission {
            partner: partner.map(str::to_owned),
            all: all.admit(now),
            own: own.as_mut().map_or(0, |own| own.admit(now)),
        })
    }

    /// The model answered.
    pub fn answered(&self, admission: &Admission, now: Instant) {
        self.contact.answered(now);
        self.end_rests(admission);
    }

    /// Returns when the model answered and failed last.
    #[must_use]
    pub fn contact(&self) -> &Contact {
        &self.contact
    }

    /// Returns how the model rests. No request is let through by it.
    #[must_use]
    pub fn rests(&self, now: Instant) -> Rests {
        let state = self.lock();
        let own = state.own.values();
        Rests {
            all: state.all.awake(now).err(),
            partners: own.filter(|circuit| circuit.awake(now).is_err()).count(),
        }
    }

    fn end_rests(&self, admission: &Admission) {
        let mut state = self.lock();
        let Admission { partner, all, own } = admission;
        if *all == state.all.rests {
            state.all.answered();
            state.failing.clear();
        }
        if let Some(partner) = partner
            && state
                .own
                .get(partner)
                .is_some_and(|known| known.rests == *own)
        {
            state.own.remove(partner);
        }
    }

    /// The model gave no answer, or not all of it.
    pub fn failed(&self, admission: &Admission, now: Instant, error: &ProviderError) {
        self.contact.failed(now, error);
        let evidence = error.evidence();
        match evidence {
            Evidence::Answered => return self.end_rests(admission),
            Evidence::Nothing => return,
            Evidence::Doubtful | Evidence::Unwell | Evidence::Unreachable => {}
        }
        let mut state = self.lock();
        let partner = admission.partner.as_deref().unwrap_or_default();
        if admission.all == state.all.rests {
            if evidence == Evidence::Unreachable {
                state.all.failed(now);
            } else {
                if state.all.until.is_some() {
                    // One partner's failure does not prolong the rest of all: it ends, and the count begins anew.
                    state.all.failures = 0;
                    state.all.until = None;
                    state.failing.clear();
                }
                if state.failing.insert(partner.to_owned()) {
                    state.all.failed(now);
                }
            }
        }
        if evidence == Evidence::Unwell && admission.partner.is_some() {
            let own = state.own.entry(partner.to_owned()).or_default();
            if own.rests == admission.own {
                own.failed(now);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Circuit {
    fn awake(&self, now: Instant) -> Result<(), Duration> {
        match self.until {
            Some(until) if now < until => Err(until - now),
            _ => Ok(()),
        }
    }

    fn admit(&mut self, now: Instant) -> u64 {
        if self.until.is_some() {
            self.until = Some(now + self.last);
        }
        self.rests
    }

    fn answered(&mut self) {
        self.failures = 0;
        self.until = None;
        self.last = Duration::ZERO;
    }

    fn failed(&mut self, now: Instant) {
        self.failures += 1;
        if self.failures >= FAILURES {
            self.last = (self.last * 2).clamp(FIRST_REST, LONGEST_REST);
            self.until = Some(now + self.last);
            self.rests += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpstreamFailure;
    use colloquy_base::clock::{Clock as _, ManualClock};

    const UNREACHABLE: ProviderErrorKind = ProviderErrorKind::Connect;
    const SILENT: ProviderErrorKind = ProviderErrorKind::Timeout;

    /// A model that partners ask.
    struct World {
        clock: ManualClock,
        health: Health,
    }

    impl World {
        fn new() -> Self {
            Self {
                clock: ManualClock::new(jiff::Timestamp::UNIX_EPOCH),
                health: Health::default(),
            }
        }

        fn admit(&self, partner: &str) -> Result<Admission, Duration> {
            self.health.admit(self.clock.instant(), Some(partner))
        }

        fn answer(&self, admission: &Admission) {
            self.health.answered(admission, self.clock.instant());
        }

        fn fail(&self, admission: &Admission, error: impl Into<ProviderError>) {
            self.health
                .failed(admission, self.clock.instant(), &error.into());
        }

        /// Requests of a partner that fail one after the other; how many of them the model was asked.
        fn ask(&self, partner: &str, times: usize, error: impl Into<ProviderError>) -> usize {
            let error = error.into();
            let asks = (0..times).filter_map(|_| self.admit(partner).ok());
            asks.map(|admission| self.fail(&admission, error.clone()))
                .count()
        }
    }

    impl From<ProviderErrorKind> for ProviderError {
        fn from(kind: ProviderErrorKind) -> Self {
            Self::new("m", kind, "")
        }
    }

    fn status(kind: ProviderErrorKind, status: u16) -> ProviderError {
        let told = UpstreamFailure {
            status: Some(status),
            ..UpstreamFailure::default()
        };
        ProviderError {
            told: Some(Box::new(told)),
            retry_after: Some(Duration::from_secs(600)),
            ..kind.into()
        }
    }

    #[test]
    fn a_model_rests_and_one_request_finds_out() {
        let world = World::new();
        for error in [UNREACHABLE, SILENT] {
            let world = World::new();
            assert_eq!(world.ask("a", 9, error), FAILURES as usize);
            assert_eq!(world.admit("a"), Err(FIRST_REST), "{error:?}");
            world.clock.advance(FIRST_REST);
            let finds_out = world.admit("a").unwrap();
            assert!(world.admit("a").is_err(), "the others");
            world.fail(&finds_out, error);
            assert_eq!(world.admit("a"), Err(FIRST_REST * 2));
            for _ in 0..9 {
                world.clock.advance(LONGEST_REST);
                world.ask("a", 1, error);
            }
            assert_eq!(world.admit("a"), Err(LONGEST_REST));
            world.clock.advance(LONGEST_REST);
            world.answer(&world.admit("a").unwrap());
            world.ask("a", 1, error);
            assert!(world.admit("a").is_ok());
        }
        assert!(world.admit("a").is_ok());
    }

    #[test]
    fn rests_are_told_without_an_admission() {
        let world = World::new();
        let rests = |world: &World| world.health.rests(world.clock.instant());
        assert_eq!(rests(&world), Rests::default());
        world.ask("a", 9, SILENT);
        let of_one = Rests {
            all: None,
            partners: 1,
        };
        assert_eq!(rests(&world), of_one);
        world.ask("b", 9, UNREACHABLE);
        let of_all = rests(&world);
        assert_eq!(of_all.all, Some(FIRST_REST));
        assert!(world.health.contact().last().is_failing());
        world.clock.advance(FIRST_REST);
        assert_eq!(rests(&world), Rests::default());
        world.answer(&world.admit("b").expect("nobody took the one request"));
        assert!(!world.health.contact().last().is_failing());
    }

    #[test]
    fn requests_that_fail_together_are_one_rest() {
        let world = World::new();
        let running = [(); 12].map(|()| world.admit("a").unwrap());
        for admission in &running {
            world.fail(admission, UNREACHABLE);
        }
        assert_eq!(world.admit("a"), Err(FIRST_REST));
        world.answer(&running[0]);
        assert!(world.admit("a").is_err(), "it answered before");
        world.clock.advance(FIRST_REST);
        let slow = world.admit("a").unwrap();
        world.clock.advance(FIRST_REST);
        assert!(world.admit("a").is_ok());
        world.answer(&slow);
        assert!(world.admit("a").is_ok());
        assert!(world.admit("a").is_ok(), "it is back");
    }

    #[test]
    fn no_partner_makes_a_model_rest_for_another_one() {
        let failures = [
            ProviderError::from(SILENT),
            ProviderErrorKind::Cut.into(),
            ProviderErrorKind::Malformed.into(),
            status(ProviderErrorKind::Failed, 500),
            status(ProviderErrorKind::Failed, 502),
            status(ProviderErrorKind::Failed, 503),
            status(ProviderErrorKind::Rejected, 400),
            status(ProviderErrorKind::RateLimited, 429),
            status(ProviderErrorKind::Misconfigured, 403),
        ];
        let world = World::new();
        for _ in 0..20 {
            for error in &failures {
                world.ask("bad", 10, error.clone());
                assert!(world.admit("good").is_ok(), "{error}");
                world.clock.advance(LONGEST_REST);
            }
        }
        // With the failures of a few others it is still there for who has none.
        for partner in ["b", "c", "d"] {
            world.ask(partner, 10, SILENT);
        }
        assert!(world.admit("good").is_ok());
        world.ask("e", 1, SILENT);
        world.ask("bad", 1, SILENT);
        assert!(world.admit("good").is_err(), "it fails for everybody");
        // Nor is it one partner who decides about the next rest.
        world.clock.advance(FIRST_REST);
        assert_eq!(world.ask("f", 1, SILENT), 1);
        assert!(world.admit("good").is_ok());
    }

    #[test]
    fn who_asks_for_all_partners_is_one_of_them() {
        let world = World::new();
        let now = world.clock.instant();
        for _ in 0..20 {
            let admission = world.health.admit(now, None).unwrap();
            world.fail(&admission, SILENT);
        }
        assert!(world.admit("a").is_ok());
        world.ask("a", 9, UNREACHABLE);
        assert!(world.health.admit(now, None).is_err());
    }

    #[test]
    fn what_a_request_may_be_to_blame_for_is_no_rest() {
        for error in [
            status(ProviderErrorKind::Failed, 500),
            ProviderErrorKind::Failed.into(),
            ProviderErrorKind::Malformed.into(),
            status(ProviderErrorKind::RateLimited, 429),
            status(ProviderErrorKind::Rejected, 422),
        ] {
            let world = World::new();
            assert_eq!(world.ask("a", 50, error.clone()), 50, "{error}");
        }
        // A refusal is an answer.
        let world = World::new();
        world.ask("a", 4, SILENT);
        world.ask("a", 1, status(ProviderErrorKind::Rejected, 400));
        world.ask("a", 4, SILENT);
        assert!(world.admit("a").is_ok());
        for gateway in [502, 503, 504, 529] {
            let world = World::new();
            assert_eq!(
                world.ask("a", 9, status(ProviderErrorKind::Failed, gateway)),
                FAILURES as usize
            );
        }
    }
}
