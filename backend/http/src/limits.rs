//! Rate limits: requests of a key, and failed sign-ins or session attempts of an address.
//!
//! Each node counts for itself. A limiter is asked once a request and answers from memory. Keys are counted once they are
//! known, so there are not more of them than were made. Addresses are anybody's: a table of bounded size counts them, those
//! of one /64 of IPv6 together, and takes an attempt back that was none. One network has a share of the rate of a publishable
//! key (`shares`).

mod shares;

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use colloquy_base::clock::Clock;
use colloquy_config::LimitsConfig;
use governor::{Quota, RateLimiter, middleware::NoOpMiddleware, state::keyed::DashMapStateStore};
use tokio::sync::Notify;

use super::ApiError;
use shares::Shares;

pub use shares::HeldShare;

/// Checks between two sweeps of the keys that are back at their full burst.
const SWEEP_EVERY: u32 = 4_096;

/// The most addresses that are counted one by one. Beyond, new ones count together.
const MOST_ADDRESSES: usize = 65_536;

/// What a partner has a minute, whatever its rate; a request takes a part of it.
const SHARES: NonZeroU32 = NonZeroU32::new(60_000_000).unwrap();

/// How long a request waits for the held attempts of its address. What they wait for, a database, has had its time then.
const HELD_PATIENCE: Duration = Duration::from_secs(5);

/// The server's clock, as the limiter reads it.
#[derive(Debug, Clone)]
struct LimiterClock(Arc<dyn Clock>);

impl governor::clock::Clock for LimiterClock {
    type Instant = Instant;

    fn now(&self) -> Instant {
        self.0.instant()
    }
}

/// There were too many of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many, try again in {} s", .wait.as_secs_f64().ceil())]
pub struct RateLimited {
    /// Until the next one may come.
    pub wait: Duration,
}

impl From<RateLimited> for ApiError {
    fn from(limited: RateLimited) -> Self {
        Self::rate_limited(limited.wait)
    }
}

/// The rate limits of this node.
#[derive(Debug)]
pub struct RateLimits {
    keys: Limiter,
    partners: Limiter,
    shares: Shares,
    addresses: Attempts,
    warnings: Limiter,
}

/// A rate of one sort of requests: those of each key, and all of this node.
#[derive(Debug)]
pub struct RequestRate {
    keys: Limiter,
    all: Limiter,
}

impl RequestRate {
    /// So many in a minute, those of a minute at once.
    #[must_use]
    pub fn new(per_minute: u32, per_minute_of_all: u32, clock: &Arc<dyn Clock>) -> Self {
        Self {
            keys: Limiter::new(self::per_minute(per_minute), clock),
            all: Limiter::new(self::per_minute(per_minute_of_all), clock),
        }
    }

    /// Counts a request of a key. One that is too many for its key is none for all.
    ///
    /// # Errors
    /// When there are too many.
    pub fn check(&self, key_id: &str) -> Result<(), RateLimited> {
        self.keys.check(&key_id.to_owned())?;
        self.all.check(&String::new())
    }
}

impl RateLimits {
    /// The limits of the settings.
    #[must_use]
    pub fn new(config: &LimitsConfig, clock: &Arc<dyn Clock>) -> Self {
        let keys =
            per_minute(config.requests_per_minute).allow_burst(at_least_one(config.request_burst));
        Self {
            keys: Limiter::new(keys, clock),
            partners: Limiter::new(Quota::per_minute(SHARES), clock),
            shares: Shares::new(config, clock),
            addresses: Attempts::new(config.attempts_per_minute, clock),
            warnings: Limiter::new(Quota::per_minute(NonZeroU32::MIN), clock),
        }
    }

    /// Counts a request of a key.
    ///
    /// # Errors
    /// When there are too many.
    pub fn check_key(&self, key_id: &str) -> Result<(), RateLimited> {
        self.keys.check(&key_id.to_owned())
    }

    /// Counts a request of a partner, which has a rate of its own; those of a minute may come at once.
    ///
    /// # Errors
    /// When there are too many.
    pub fn check_partner(&self, partner: &str, per_minute: NonZeroU32) -> Result<(), RateLimited> {
        let shares = SHARES.get() / per_minute.get();
        self.partners
            .take(&partner.to_owned(), at_least_one(shares))
    }

    /// Returns true once a minute for each `subject`, for warnings that anybody can cause.
    pub fn may_warn(&self, subject: &'static str) -> bool {
        self.warnings.check(&subject.to_owned()).is_ok()
    }

    /// Counts a request with a publishable key against the share of its [`network`], until the result is dropped: while it is found out
    /// if the key has room for it. A network has the rate and the burst of one key, or its partner's rate if that is less, divided by
    /// `limits.networks_per_key`, but 8 requests at once and 6 a minute in any case, or all if that is less. A /56 of IPv6 has half.
    ///
    /// # Errors
    /// When there are too many.
    pub fn hold_share<'a>(
        &'a self,
        owner: &'a str,
        network: IpAddr,
        partner_rate: Option<NonZeroU32>,
    ) -> Result<HeldShare<'a>, RateLimited> {
        self.shares.hold(owner, network, partner_rate)
    }

    /// Counts a failed sign-in, or an attempt to join a session, of an address.
    ///
    /// # Errors
    /// When there are too many.
    pub fn check_attempt(&self, address: IpAddr) -> Result<(), RateLimited> {
        self.addresses.take(network(address))
    }

    /// Counts an attempt until the result is dropped: while it is found out whether it is one. Where only such attempts leave
    /// no room, it waits for one of them to end, so that many clients behind one address may begin at once.
    ///
    /// # Errors
    /// When there are too many.
    pub async fn hold_attempt(&self, address: IpAddr) -> Result<HeldAttempt<'_>, RateLimited> {
        let network = network(address);
        let patience = tokio::time::sleep(self.addresses.patience);
        let mut patience = std::pin::pin!(patience);
        loop {
            let NotHeld { limited, freed } = match self.addresses.hold(network) {
                Ok(held) => return Ok(held),
                Err(refused) => refused,
            };
            let Some(freed) = freed else {
                return Err(limited);
            };
            tokio::select! {
                () = freed.notified() => {}
                () = patience.as_mut() => return Err(limited),
            }
        }
    }
}

/// An attempt that is given back, unless it was one.
#[derive(Debug)]
pub struct HeldAttempt<'a> {
    attempts: &'a Attempts,
    network: IpAddr,
    counts: bool,
}

impl HeldAttempt<'_> {
    /// It was an attempt and goes on counting: at no moment somebody else could have its place.
    pub fn keep(mut self) {
        self.counts = true;
    }
}

impl Drop for HeldAttempt<'_> {
    fn drop(&mut self) {
        self.attempts.release(self.network, self.counts);
    }
}

/// What counts as one address: that of IPv4 in whatever form, and a /64 of IPv6, which one customer of a provider has at
/// least.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

/// The attempts of addresses.
#[derive(Debug)]
struct Attempts {
    /// How long one attempt counts.
    one: Duration,
    /// How long as many count as an address may make at once.
    all: Duration,
    most: usize,
    /// How long a request waits for attempts that are held.
    patience: Duration,
    clock: Arc<dyn Clock>,
    table: Mutex<HashMap<IpAddr, Counted>>,
}

/// What one address has tried.
#[derive(Debug)]
struct Counted {
    /// When all of it is forgotten (the generic cell rate algorithm).
    until: Instant,
    /// How many of the attempts are held.
    held: u32,
    /// Wakes one that waits for a held attempt to end.
    freed: Option<Arc<Notify>>,
}

/// Why no attempt is held.
#[derive(Debug)]
struct NotHeld {
    limited: RateLimited,
    /// There is room once a held attempt ends.
    freed: Option<Arc<Notify>>,
}

impl Attempts {
    fn new(per_minute: u32, clock: &Arc<dyn Clock>) -> Self {
        let per_minute = per_minute.max(1);
        let one = Duration::from_secs(60) / per_minute;
        Self {
            one,
            all: one * per_minute,
            most: MOST_ADDRESSES,
            patience: HELD_PATIENCE,
            clock: Arc::clone(clock),
            table: Mutex::default(),
        }
    }

    fn take(&self, network: IpAddr) -> Result<(), RateLimited> {
        let now = self.clock.instant();
        let mut table = self.lock();
        self.count(self.entry(&mut table, network, now).1, now)
    }

    fn hold(&self, network: IpAddr) -> Result<HeldAttempt<'_>, NotHeld> {
        let now = self.clock.instant();
        let mut table = self.lock();
        let (network, entry) = self.entry(&mut table, network, now);
        match self.count(entry, now) {
            Ok(()) => {
                entry.held += 1;
                let attempts = self;
                Ok(HeldAttempt {
                    attempts,
                    network,
                    counts: false,
                })
            }
            Err(limited) => {
                let freed =
                    (entry.held > 0).then(|| Arc::clone(entry.freed.get_or_insert_default()));
                if freed.is_none()
                    && let Some(freed) = &entry.freed
                {
                    // Nobody else will wake the next one, who waits in vain as well.
                    freed.notify_one();
                }
                Err(NotHeld { limited, freed })
            }
        }
    }

    /// Ends a held attempt, which goes on counting if it was one.
    fn release(&self, network: IpAddr, counts: bool) {
        let mut table = self.lock();
        if let Some(entry) = table.get_mut(&network) {
            if !counts {
                entry.until = entry.until.checked_sub(self.one).unwrap_or(entry.until);
            }
            entry.held -= 1;
            if let Some(freed) = &entry.freed {
                freed.notify_one();
            }
        }
    }

    fn count(&self, entry: &mut Counted, now: Instant) -> Result<(), RateLimited> {
        charge(&mut entry.until, now, self.one, self.all)
    }

    /// Where an address is counted: by itself as long as there is room.
    fn entry<'a>(
        &self,
        table: &'a mut HashMap<IpAddr, Counted>,
        mut network: IpAddr,
        now: Instant,
    ) -> (IpAddr, &'a mut Counted) {
        if table.len() >= self.most && !table.contains_key(&network) {
            table.retain(|_, entry| entry.held > 0 || entry.until > now);
            if table.len() >= self.most {
                network = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
            }
        }
        let entry = table.entry(network).or_insert(Counted {
            until: now,
            held: 0,
            freed: None,
        });
        (network, entry)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Counted>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Limiter {
    limiter: RateLimiter<String, DashMapStateStore<String>, LimiterClock, NoOpMiddleware<Instant>>,
    clock: LimiterClock,
    checks: AtomicU32,
}

impl Limiter {
    fn new(quota: Quota, clock: &Arc<dyn Clock>) -> Self {
        let clock = LimiterClock(Arc::clone(clock));
        Self {
            limiter: RateLimiter::dashmap_with_clock(quota, clock.clone()),
            clock,
            checks: AtomicU32::new(0),
        }
    }

    fn check(&self, key: &String) -> Result<(), RateLimited> {
        self.take(key, NonZeroU32::MIN)
    }

    fn take(&self, key: &String, shares: NonZeroU32) -> Result<(), RateLimited> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            self.limiter.retain_recent();
        }
        // Nobody takes more than a full burst.
        let Ok(taken) = self.limiter.check_key_n(key, shares) else {
            let wait = Duration::from_secs(60);
            return Err(RateLimited { wait });
        };
        taken.map_err(|refused| {
            let now = governor::clock::Clock::now(&self.clock);
            RateLimited {
                wait: refused.wait_time_from(now),
            }
        })
    }
}

/// Adds `one` to the time `until` which a bucket is not empty, unless that would be more than `all` from now (GCRA).
fn charge(
    until: &mut Instant,
    now: Instant,
    one: Duration,
    all: Duration,
) -> Result<(), RateLimited> {
    let next = (*until).max(now) + one;
    match next.saturating_duration_since(now).checked_sub(all) {
        Some(wait) if !wait.is_zero() => Err(RateLimited { wait }),
        _ => {
            *until = next;
            Ok(())
        }
    }
}

fn per_minute(count: u32) -> Quota {
    Quota::per_minute(at_least_one(count))
}

fn at_least_one(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_base::clock::ManualClock;

    fn attempts(per_minute: u32) -> (Arc<ManualClock>, Attempts) {
        let clock = Arc::new(ManualClock::new(jiff::Timestamp::UNIX_EPOCH));
        let shared: Arc<dyn Clock> = clock.clone();
        (clock, Attempts::new(per_minute, &shared))
    }

    fn at(text: &str) -> IpAddr {
        network(text.parse().unwrap())
    }

    #[test]
    fn one_customer_of_a_provider_is_one_address() {
        assert_eq!(at("2001:db8:1:2:3:4:5:6"), at("2001:db8:1:2::"));
        assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("::ffff:192.0.2.1"), at("::ffff:192.0.2.2"));
    }

    #[test]
    fn attempts_come_back_one_by_one() {
        let (clock, attempts) = attempts(60);
        let address = at("192.0.2.1");
        for _ in 0..60 {
            attempts.take(address).unwrap();
        }
        let refused = attempts.take(address).unwrap_err();
        assert_eq!(refused.wait, Duration::from_secs(1));
        attempts.take(at("192.0.2.2")).unwrap();
        clock.advance(Duration::from_secs(1));
        attempts.take(address).unwrap();
        assert!(attempts.take(address).is_err());
        clock.advance(Duration::from_secs(1));
        drop(attempts.hold(address).unwrap());
        attempts.take(address).unwrap();
        assert!(attempts.take(address).is_err());
    }

    fn limits(patience: Duration) -> RateLimits {
        let (_, mut addresses) = attempts(2);
        addresses.patience = patience;
        RateLimits {
            keys: Limiter::new(per_minute(1), &addresses.clock.clone()),
            partners: Limiter::new(per_minute(1), &addresses.clock.clone()),
            shares: Shares::new(&LimitsConfig::default(), &addresses.clock.clone()),
            warnings: Limiter::new(per_minute(1), &addresses.clock.clone()),
            addresses,
        }
    }

    #[test]
    fn each_warning_that_anybody_can_cause_is_given_once_a_minute() {
        let (clock, Attempts { clock: shared, .. }) = attempts(1);
        let limits = RateLimits::new(&LimitsConfig::default(), &shared);
        assert!(limits.may_warn("one"));
        assert!(!limits.may_warn("one"));
        assert!(limits.may_warn("another"));
        clock.advance(Duration::from_secs(59));
        assert!(!limits.may_warn("one"));
        clock.advance(Duration::from_secs(1));
        assert!(limits.may_warn("one"));
    }

    #[tokio::test]
    async fn who_finds_only_held_attempts_waits_for_one_to_end() {
        let limits = limits(Duration::from_secs(60));
        let address = at("192.0.2.1");
        let hold = async || limits.hold_attempt(address).await;
        let (first, second) = (hold().await.unwrap(), hold().await.unwrap());
        // One after the other gets on, whoever gives up in the meantime.
        let one = async || drop(hold().await.unwrap());
        let free = async {
            let gone = hold();
            tokio::select! {
                biased;
                _ = gone => panic!("there was no room"),
                () = async { drop(first) } => {}
            }
        };
        tokio::join!(one(), free, one(), one());
        // Attempts that turned out to be wrong leave no room to those who wait, and nobody waits for it in vain.
        limits.check_attempt(address).unwrap();
        let refused = async || {
            hold().await.unwrap_err();
        };
        let fail = async { second.keep() };
        tokio::join!(refused(), refused(), refused(), fail);
        let table = limits.addresses.lock();
        assert!(table.values().all(|counted| counted.held == 0));
    }

    #[tokio::test]
    async fn held_attempts_that_do_not_end_are_waited_for_in_vain() {
        let limits = limits(Duration::from_millis(10));
        let address = at("192.0.2.1");
        let hold = async || limits.hold_attempt(address).await;
        let _held = (hold().await.unwrap(), hold().await.unwrap());
        hold().await.unwrap_err();
    }

    #[test]
    fn the_table_does_not_grow_beyond_its_bound() {
        let (clock, mut attempts) = attempts(2);
        attempts.most = 3;
        for last in 1..=3 {
            attempts.take(at(&format!("192.0.2.{last}"))).unwrap();
        }
        // These count together.
        attempts.take(at("192.0.2.4")).unwrap();
        attempts.take(at("192.0.2.5")).unwrap();
        assert!(attempts.take(at("192.0.2.6")).is_err());
        attempts.take(at("192.0.2.1")).unwrap();
        let length = |attempts: &Attempts| attempts.lock().len();
        assert_eq!(length(&attempts), 4);
        clock.advance(Duration::from_secs(120));
        attempts.take(at("192.0.2.6")).unwrap();
        assert_eq!(length(&attempts), 1);
    }
}
