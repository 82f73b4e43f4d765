//! The share of a publishable key's rate that one network has.
//!
//! A publishable key stands in a page, so anybody may send requests with it. One network gets a part of the rate and of the burst of
//! a key (`limits.networks_per_key`), one /56 of IPv6 half of them, and the rest is left to other visitors. Networks are counted for
//! each owner of keys; those beyond a bound count together, with new networks of the same owner only.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use colloquy_base::clock::Clock;
use colloquy_config::LimitsConfig;

use super::{RateLimited, charge};

/// All /64 of a /56 of IPv6, which a line of a home may have, have together the rate and the burst of a key divided by this.
const LINES_PER_KEY: u32 = 2;

/// The least burst of a share, unless the whole one is less: a page that opens sends some requests at once.
const LEAST_BURST: u32 = 8;

/// The least rate of a share, unless the whole one is less.
const LEAST_PER_MINUTE: u32 = 6;

const MINUTE: Duration = Duration::from_secs(60);

/// Time between two sweeps of the networks whose requests do not count any more.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// Stands for the networks of an owner that count together.
const OTHERS: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Stands for every /56 of an owner that counts together with others.
const OTHER_LINES: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

const BOUNDS: Bounds = Bounds {
    of_owner: 4_096,
    least_of_owner: 64,
    in_all: 65_536,
};

/// How many networks are counted one by one.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    of_owner: usize,
    /// Each owner has so many, however many others have.
    least_of_owner: usize,
    in_all: usize,
}

impl Bounds {
    fn are_reached(self, of_owner: usize, in_all: usize) -> bool {
        of_owner >= self.of_owner || (in_all >= self.in_all && of_owner >= self.least_of_owner)
    }
}

/// A rate, and how many requests may come at once. Both are at least one.
#[derive(Debug, Clone, Copy)]
struct Rate {
    per_minute: u32,
    burst: u32,
}

/// What a network has of a [`Rate`].
#[derive(Debug, Clone, Copy)]
struct Part {
    /// For how long a request counts.
    one: Duration,
    burst: u32,
}

impl Rate {
    fn divided_by(self, count: u32) -> Part {
        let Self { per_minute, burst } = self;
        let least = MINUTE / per_minute.min(LEAST_PER_MINUTE);
        Part {
            one: (MINUTE * count / per_minute).min(least),
            burst: (burst / count).max(burst.min(LEAST_BURST)),
        }
    }
}

/// Returns the /56 that a /64 of IPv6 is in. A bit of the host tells it from the first /64 in it.
fn line(network: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(network) = network else {
        return None;
    };
    let [a, b, c, d, ..] = network.segments();
    Some(Ipv6Addr::new(a, b, c, d & 0xff00, 0, 0, 0, 1).into())
}

/// The requests of networks with publishable keys.
#[derive(Debug)]
pub(super) struct Shares {
    /// The rate of a key.
    per_minute: u32,
    /// The burst of a key.
    burst: u32,
    /// One network has both divided by this.
    networks_per_key: u32,
    bounds: Bounds,
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Time at which the last request of a network ceases to count (GCRA), by owner and network.
    owners: HashMap<String, HashMap<IpAddr, Instant>>,
    /// The number of networks of all owners.
    networks: usize,
    sweep_at: Option<Instant>,
}

impl Shares {
    pub(super) fn new(config: &LimitsConfig, clock: &Arc<dyn Clock>) -> Self {
        Self {
            per_minute: config.requests_per_minute,
            burst: config.request_burst,
            networks_per_key: config.networks_per_key.max(1),
            bounds: BOUNDS,
            clock: Arc::clone(clock),
            table: Mutex::default(),
        }
    }

    /// Counts a request until the result is dropped. The rate is that of a key, or the one of its partner if that is less.
    pub(super) fn hold<'a>(
        &'a self,
        owner: &'a str,
        network: IpAddr,
        partner_rate: Option<NonZeroU32>,
    ) -> Result<HeldShare<'a>, RateLimited> {
        let most = partner_rate.map_or(u32::MAX, NonZeroU32::get);
        let rate = Rate {
            per_minute: self.per_minute.min(most).max(1),
            burst: self.burst.min(most).max(1),
        };
        let part = rate.divided_by(self.networks_per_key);
        let network_share = self.count(owner, network, OTHERS, part)?;
        // The network gets its request back if its /56 has no room.
        let part = rate.divided_by(LINES_PER_KEY);
        let line_share = line(network)
            .map(|line| self.count(owner, line, OTHER_LINES, part))
            .transpose()?;
        Ok(HeldShare {
            network: network_share,
            line: line_share,
        })
    }

    /// Counts a request of one network, or of one /56, until the result is dropped. `others` stands for those beyond the bounds.
    fn count<'a>(
        &'a self,
        owner: &'a str,
        network: IpAddr,
        others: IpAddr,
        part: Part,
    ) -> Result<HeldCount<'a>, RateLimited> {
        let now = self.clock.instant();
        let mut table = self.lock();
        table.sweep(now, self.bounds);
        let (network, until) = table.entry(owner, network, others, now, self.bounds);
        charge(until, now, part.one, part.one * part.burst)?;
        Ok(HeldCount {
            shares: self,
            owner,
            network,
            one: part.one,
            counts: false,
        })
    }

    /// Takes a request back. A network that has no other leaves the table, so that requests that the key's whole rate refuses
    /// do not fill it.
    fn give_back(&self, owner: &str, network: IpAddr, one: Duration) {
        let now = self.clock.instant();
        let mut table = self.lock();
        let table = &mut *table;
        let Some(networks) = table.owners.get_mut(owner) else {
            return;
        };
        let Some(until) = networks.get_mut(&network) else {
            return;
        };
        *until = until.checked_sub(one).unwrap_or(*until);
        if *until <= now {
            networks.remove(&network);
            table.networks -= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Removes the networks whose requests do not count any more, now and then.
    fn sweep(&mut self, now: Instant, bounds: Bounds) {
        if self.sweep_at.is_some_and(|at| now < at) {
            return;
        }
        self.sweep_at = Some(now + SWEEP_EVERY);
        self.owners.retain(|_, networks| {
            networks.retain(|_, until| *until > now);
            networks.shrink_to(bounds.least_of_owner);
            !networks.is_empty()
        });
        self.networks = self.owners.values().map(HashMap::len).sum();
    }

    /// Entry that a network is counted in: its own, or `others` of the owner for a new one beyond the bounds.
    fn entry(
        &mut self,
        owner: &str,
        mut network: IpAddr,
        others: IpAddr,
        now: Instant,
        bounds: Bounds,
    ) -> (IpAddr, &mut Instant) {
        let networks = self.owners.entry(owner.to_owned()).or_default();
        if !networks.contains_key(&network) && bounds.are_reached(networks.len(), self.networks) {
            let before = networks.len();
            networks.retain(|_, until| *until > now);
            self.networks -= before - networks.len();
            if bounds.are_reached(networks.len(), self.networks) {
                network = others;
            }
        }
        if !networks.contains_key(&network) {
            self.networks += 1;
        }
        (network, networks.entry(network).or_insert(now))
    }
}

/// A request that counts against the share of its network, and is taken back when this is dropped, unless it is kept.
#[derive(Debug)]
#[must_use = "a share that is dropped is given back"]
pub struct HeldShare<'a> {
    network: HeldCount<'a>,
    line: Option<HeldCount<'a>>,
}

impl HeldShare<'_> {
    /// Lets the request go on counting.
    pub fn keep(mut self) {
        self.network.counts = true;
        if let Some(line) = &mut self.line {
            line.counts = true;
        }
    }
}

/// A request in one of the table's entries.
#[derive(Debug)]
struct HeldCount<'a> {
    shares: &'a Shares,
    owner: &'a str,
    network: IpAddr,
    /// For how long the request counts.
    one: Duration,
    counts: bool,
}

impl Drop for HeldCount<'_> {
    fn drop(&mut self) {
        if !self.counts {
            self.shares.give_back(self.owner, self.network, self.one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_base::clock::ManualClock;

    fn shares(per_minute: u32, burst: u32) -> (Arc<ManualClock>, Shares) {
        let clock = Arc::new(ManualClock::new(jiff::Timestamp::UNIX_EPOCH));
        let shared: Arc<dyn Clock> = clock.clone();
        let config = LimitsConfig {
            requests_per_minute: per_minute,
            request_burst: burst,
            ..LimitsConfig::default()
        };
        (clock, Shares::new(&config, &shared))
    }

    fn network(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn ask(shares: &Shares, owner: &str, last: u8) -> Result<(), RateLimited> {
        shares.hold(owner, network(last), None).map(HeldShare::keep)
    }

    /// How many requests pass at once, and when the next may come.
    fn burst(shares: &Shares, last: u8, partner_rate: Option<u32>) -> (u32, Duration) {
        let rate = partner_rate.and_then(NonZeroU32::new);
        burst_of(shares, network(last), rate)
    }

    fn burst_of(shares: &Shares, network: IpAddr, rate: Option<NonZeroU32>) -> (u32, Duration) {
        for passed in 0.. {
            match shares.hold("acme", network, rate) {
                Ok(share) => share.keep(),
                Err(RateLimited { wait }) => return (passed, wait),
            }
        }
        unreachable!("nothing is refused")
    }

    #[test]
    fn one_network_has_a_quarter_of_rate_and_burst() {
        let (clock, shares) = shares(60, 40);
        let seconds = Duration::from_secs;
        assert_eq!(burst(&shares, 1, None), (10, seconds(4)));
        clock.advance(seconds(3));
        assert_eq!(burst(&shares, 1, None), (0, seconds(1)));
        clock.advance(seconds(1));
        assert_eq!(burst(&shares, 1, None), (1, seconds(4)));
        // Neither another network nor another owner has lost anything.
        ask(&shares, "other", 1).unwrap();
        assert_eq!(burst(&shares, 2, None), (10, seconds(4)));
        clock.advance(seconds(60));
        assert_eq!(burst(&shares, 1, None), (10, seconds(4)));
    }

    #[test]
    fn a_network_has_as_large_a_part_as_the_settings_say() {
        let (_, mut shares) = shares(60, 40);
        shares.networks_per_key = 2;
        assert_eq!(burst(&shares, 1, None), (20, Duration::from_secs(2)));
        shares.networks_per_key = 1_000;
        assert_eq!(burst(&shares, 2, None), (8, Duration::from_secs(10)));
    }

    #[test]
    fn a_share_of_little_is_at_least_eight_at_once_and_six_a_minute_or_all() {
        for (per_minute, whole, expected, seconds) in [
            (20, 20, 8, 10),
            (20, 8, 8, 10),
            (20, 3, 3, 10),
            (6, 40, 10, 10),
            (2, 1, 1, 30),
            (1, 1, 1, 60),
        ] {
            let (clock, shares) = shares(per_minute, whole);
            let one = Duration::from_secs(seconds);
            assert_eq!(burst(&shares, 1, None), (expected, one), "{per_minute}");
            clock.advance(one);
            assert_eq!(burst(&shares, 1, None), (1, one), "{per_minute}");
        }
    }

    #[test]
    fn the_rate_of_a_partner_is_shared_where_it_is_less() {
        let (_, shares) = shares(600, 100);
        assert_eq!(burst(&shares, 1, Some(40)), (10, Duration::from_secs(6)));
        assert_eq!(
            burst(&shares, 2, Some(6_000)),
            (25, Duration::from_millis(400))
        );
    }

    #[test]
    fn one_line_of_ipv6_has_half_however_many_networks_are_in_it() {
        let (clock, shares) = shares(60, 40);
        let of = |network: &str| burst_of(&shares, network.parse().unwrap(), None);
        let seconds = Duration::from_secs;
        assert_eq!(of("2001:db8:0:100::"), (10, seconds(4)));
        assert_eq!(of("2001:db8:0:1ff::"), (10, seconds(4)));
        assert_eq!(of("2001:db8:0:101::"), (0, seconds(2)));
        // Neither the next line nor an address of IPv4 has lost anything, and the refused network takes no place.
        assert_eq!(of("2001:db8:0:200::"), (10, seconds(4)));
        assert_eq!(burst(&shares, 1, None), (10, seconds(4)));
        assert_eq!(shares.lock().networks, 6);
        clock.advance(seconds(2));
        assert_eq!(of("2001:db8:0:101::"), (1, seconds(2)));
        clock.advance(MINUTE);
        assert_eq!(of("2001:db8:0:101::"), (10, seconds(4)));
        assert_eq!(shares.lock().networks, 2);
    }

    #[test]
    fn what_is_dropped_does_not_count_and_takes_no_place() {
        let (_, shares) = shares(60, 40);
        for address in ["192.0.2.1", "2001:db8::"] {
            let address = address.parse().unwrap();
            for _ in 0..30 {
                drop(shares.hold("acme", address, None).unwrap());
            }
            assert_eq!(shares.lock().networks, 0);
        }
        ask(&shares, "acme", 1).unwrap();
        drop(shares.hold("acme", network(1), None).unwrap());
        assert_eq!(shares.lock().networks, 1);
        assert_eq!(burst(&shares, 1, None), (9, Duration::from_secs(4)));
    }

    fn bounded() -> (Arc<ManualClock>, Shares) {
        // Two at once, and one in four seconds.
        let (clock, mut shares) = shares(60, 2);
        shares.bounds = Bounds {
            of_owner: 3,
            least_of_owner: 1,
            in_all: 5,
        };
        (clock, shares)
    }

    #[test]
    fn networks_beyond_the_bound_of_an_owner_count_together() {
        let (clock, shares) = bounded();
        for last in 1..=3 {
            ask(&shares, "acme", last).unwrap();
        }
        ask(&shares, "acme", 4).unwrap();
        ask(&shares, "acme", 5).unwrap();
        ask(&shares, "acme", 6).unwrap_err();
        // The counters of those that were there first are as they were, and so is the room of others.
        assert_eq!(burst(&shares, 1, None), (1, Duration::from_secs(4)));
        for _ in 0..2 {
            ask(&shares, "other", 6).unwrap();
        }
        ask(&shares, "other", 6).unwrap_err();
        assert_eq!(shares.lock().networks, 5);
        // What does not count any more makes room at once.
        clock.advance(Duration::from_secs(8));
        assert_eq!(burst(&shares, 6, None), (2, Duration::from_secs(4)));
        assert_eq!(shares.lock().owners["acme"].len(), 1);
    }

    #[test]
    fn all_owners_together_have_a_bound_that_leaves_each_of_them_some() {
        let (clock, shares) = bounded();
        for last in 1..=3 {
            ask(&shares, "acme", last).unwrap();
            ask(&shares, "other", last).unwrap();
        }
        // The last one of `other` is counted as one of several.
        assert!(shares.lock().owners["other"].contains_key(&OTHERS));
        for last in 1..=9 {
            let _ = ask(&shares, "third", last);
        }
        let of = |owner: &str| shares.lock().owners.get(owner).map(HashMap::len);
        assert_eq!(of("third"), Some(2));
        assert!(shares.lock().owners["third"].contains_key(&network(1)));
        assert_eq!(shares.lock().networks, 8);
        clock.advance(MINUTE);
        ask(&shares, "fourth", 1).unwrap();
        assert_eq!(
            (of("acme"), of("third"), of("fourth")),
            (None, None, Some(1))
        );
        assert_eq!(shares.lock().networks, 1);
    }
}
