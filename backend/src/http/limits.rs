//! Rate limits: requests of a key, and failed sign-ins or session attempts of an address.
//!
//! Each node counts for itself. A limiter is asked once a request and answers from memory.

use std::{
    hash::Hash,
    net::IpAddr,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use governor::{Quota, RateLimiter, middleware::NoOpMiddleware, state::keyed::DashMapStateStore};

use super::ApiError;
use crate::{clock::Clock, config::LimitsConfig};

/// Checks between two sweeps of the keys that are back at their full burst.
const SWEEP_EVERY: u32 = 4_096;

/// The server's clock, as the limiter reads it.
#[derive(Debug, Clone)]
struct LimiterClock(Arc<dyn Clock>);

impl governor::clock::Clock for LimiterClock {
    type Instant = Instant;

    fn now(&self) -> Instant {
        self.0.instant()
    }
}

/// The rate limits of this node.
#[derive(Debug)]
pub struct RateLimits {
    keys: Limiter<String>,
    addresses: Limiter<IpAddr>,
}

impl RateLimits {
    /// The limits of the settings.
    #[must_use]
    pub fn new(config: &LimitsConfig, clock: &Arc<dyn Clock>) -> Self {
        let keys =
            per_minute(config.requests_per_minute).allow_burst(at_least_one(config.request_burst));
        Self {
            keys: Limiter::new(keys, clock),
            addresses: Limiter::new(per_minute(config.attempts_per_minute), clock),
        }
    }

    /// Counts a request of a key.
    ///
    /// # Errors
    /// 429 with the wait.
    pub fn check_key(&self, key_id: &str) -> Result<(), ApiError> {
        self.keys.check(&key_id.to_owned())
    }

    /// Counts a failed sign-in, or an attempt to join a session, of an address.
    ///
    /// # Errors
    /// 429 with the wait.
    pub fn check_attempt(&self, address: IpAddr) -> Result<(), ApiError> {
        self.addresses.check(&address)
    }
}

#[derive(Debug)]
struct Limiter<K: Eq + Hash + Clone> {
    limiter: RateLimiter<K, DashMapStateStore<K>, LimiterClock, NoOpMiddleware<Instant>>,
    clock: LimiterClock,
    checks: AtomicU32,
}

impl<K: Eq + Hash + Clone> Limiter<K> {
    fn new(quota: Quota, clock: &Arc<dyn Clock>) -> Self {
        let clock = LimiterClock(Arc::clone(clock));
        Self {
            limiter: RateLimiter::dashmap_with_clock(quota, clock.clone()),
            clock,
            checks: AtomicU32::new(0),
        }
    }

    fn check(&self, key: &K) -> Result<(), ApiError> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(key).map_err(|refused| {
            let now = governor::clock::Clock::now(&self.clock);
            ApiError::rate_limited(refused.wait_time_from(now))
        })
    }
}

fn per_minute(count: u32) -> Quota {
    Quota::per_minute(at_least_one(count))
}

fn at_least_one(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}
