//! The arithmetic of quotas, alone and in any order of what can happen to it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Amounts, Limits, Measure, books::*};

fn ms(time: &str) -> i64 {
    time.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

fn tokens(tokens: u64) -> Amounts {
    Amounts::default().with(Measure::Tokens, tokens)
}

#[test]
fn periods_begin_and_end_in_utc() {
    let at = ms("2028-02-29T23:59:59.999Z");
    assert_eq!(Period::Day.start(at), ms("2028-02-29T00:00:00Z"));
    assert_eq!(Period::Month.start(at), ms("2028-02-01T00:00:00Z"));
    assert_eq!(Period::Lifetime.start(at), 0);
    for (period, end) in [
        (Period::Day, Some(ms("2028-03-01T00:00:00Z"))),
        (Period::Month, Some(ms("2028-03-01T00:00:00Z"))),
        (Period::Lifetime, None),
    ] {
        assert_eq!(period.end(period.start(at)), end);
        if let Some(end) = end {
            assert_eq!(period.start(end), end);
            assert_eq!(period.start(end - 1), period.start(at));
        }
    }
    assert_eq!(Period::Day.start(-1), -86_400_000);
    let december = Period::Month.start(ms("2026-12-31T12:00:00Z"));
    assert_eq!(
        Period::Month.end(december),
        Some(ms("2027-01-01T00:00:00Z"))
    );
}

#[test]
fn a_refusal_says_when_to_come_back() {
    let now = ms("2026-01-02T03:04:05Z");
    let limits = Limits::default()
        .with(Measure::Tokens, Some(100))
        .with(Measure::Seconds, Some(10));
    let mut standing = Standing::fresh(Period::Day, limits, now);
    standing.reserve(tokens(60), tokens(60)).unwrap();
    let refused = |standing: &Standing, bound| {
        let refusal = { *standing }.reserve(bound, bound).unwrap_err();
        (refusal.measure, refusal.retry)
    };
    assert_eq!(
        refused(&standing, tokens(41)),
        (Measure::Tokens, Retry::Soon)
    );
    assert_eq!(
        refused(&standing, tokens(101)),
        (Measure::Tokens, Retry::Never)
    );
    standing.settle(standing.period_start, tokens(60), tokens(60));
    let midnight = Retry::At(ms("2026-01-03T00:00:00Z"));
    assert_eq!(refused(&standing, tokens(41)), (Measure::Tokens, midnight));
    // The measure that is the last to have room again counts.
    let bound = tokens(41).with(Measure::Seconds, 11);
    assert_eq!(refused(&standing, bound), (Measure::Seconds, Retry::Never));
    standing.period = Period::Lifetime;
    assert_eq!(
        refused(&standing, tokens(41)),
        (Measure::Tokens, Retry::Never)
    );

    // Exactly the rest passes, and so does what needs nothing of what is used up.
    standing.reserve(tokens(40), tokens(40)).unwrap();
    assert_eq!(standing.remaining(Measure::Tokens), Some(0));
    let seconds = Amounts::default().with(Measure::Seconds, 10);
    standing.reserve(seconds, seconds).unwrap();
    assert_eq!(standing.remaining(Measure::Characters), None);
}

#[test]
fn a_lowered_limit_leaves_nothing_and_sums_do_not_overflow() {
    let limits = Limits::default().with(Measure::Tokens, Some(10));
    let mut standing = Standing::fresh(Period::Lifetime, limits, 0);
    for _ in 0..2 {
        standing.settle(0, tokens(5), tokens(u64::MAX));
        assert_eq!(standing.used, tokens(u64::MAX));
        assert_eq!(standing.reserved, Amounts::default());
    }
    assert_eq!(standing.remaining(Measure::Tokens), Some(0));
    assert_eq!(
        standing.reserve(tokens(1), tokens(1)).unwrap_err().retry,
        Retry::Never
    );
    standing.used = tokens(8);
    standing.limits = limits.with(Measure::Tokens, Some(5));
    assert_eq!(standing.remaining(Measure::Tokens), Some(0));
    assert!(standing.reserve(tokens(1), tokens(1)).is_err());
    standing.reserve(tokens(0), tokens(0)).unwrap();
}

/// What can happen.
#[derive(Debug, Clone)]
enum Step {
    /// A node, whose clock is behind by so many milliseconds, reserves.
    Reserve {
        node: u8,
        behind_ms: i64,
        bound: Amounts,
    },
    /// A reservation in somebody's hands is settled, with this share of its bound in 255ths.
    Settle {
        which: usize,
        share: u8,
    },
    /// A reservation in somebody's hands is taken back.
    Unused {
        which: usize,
    },
    /// A node dies with all that is in its hands.
    Crash {
        node: u8,
    },
    /// The reservations of a node, dead or only silent, are settled at their bound.
    Sweep {
        node: u8,
    },
    Wait {
        ms: i64,
    },
    ChangePeriod(Period),
    ChangeLimit(u64),
}

fn amounts() -> impl Strategy<Value = Amounts> {
    (0_u64..50, 0_u64..50).prop_map(|(of_tokens, cost)| tokens(of_tokens).with(Measure::Cost, cost))
}

fn step() -> impl Strategy<Value = Step> {
    let period = prop_oneof![
        Just(Period::Day),
        Just(Period::Month),
        Just(Period::Lifetime)
    ];
    prop_oneof![
        8 => (0_u8..3, 0_i64..5_000, amounts())
            .prop_map(|(node, behind_ms, bound)| Step::Reserve { node, behind_ms, bound }),
        6 => (any::<usize>(), any::<u8>()).prop_map(|(which, share)| Step::Settle { which, share }),
        1 => any::<usize>().prop_map(|which| Step::Unused { which }),
        1 => (0_u8..3).prop_map(|node| Step::Crash { node }),
        1 => (0_u8..3).prop_map(|node| Step::Sweep { node }),
        3 => (0_i64..200_000_000).prop_map(|ms| Step::Wait { ms }),
        1 => period.prop_map(Step::ChangePeriod),
        1 => (50_u64..200).prop_map(Step::ChangeLimit),
    ]
}

/// A row of `reservations`.
#[derive(Debug, Clone, Copy)]
struct Row {
    node: u8,
    period_start: i64,
    created_at: i64,
    bound: Amounts,
}

/// A row of `usage_records`.
#[derive(Debug, Clone, Copy)]
struct Record {
    id: u32,
    /// When it was reserved.
    created_at: i64,
    used: Amounts,
    /// Settled at its bound by a sweep.
    is_swept: bool,
}

/// Who settles a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Owner,
    Sweep,
}

/// The database, as the statements of the store treat it, and what processes hold.
struct World {
    now: i64,
    standing: Standing,
    rows: BTreeMap<u32, Row>,
    records: Vec<Record>,
    hands: Vec<(u32, Row)>,
    made: u32,
    unused: u32,
}

impl World {
    fn new() -> Self {
        let now = ms("2026-01-30T22:00:00Z");
        let limits = Limits::default()
            .with(Measure::Tokens, Some(100))
            .with(Measure::Cost, Some(120));
        Self {
            now,
            standing: Standing::fresh(Period::Day, limits, now),
            rows: BTreeMap::new(),
            records: Vec::new(),
            hands: Vec::new(),
            made: 0,
            unused: 0,
        }
    }

    fn act(&mut self, step: Step) {
        match step {
            Step::Reserve {
                node,
                behind_ms,
                bound,
            } => self.reserve(node, self.now - behind_ms, bound),
            Step::Settle { which, share } => {
                if let Some((id, row)) = self.out_of_hand(which) {
                    let part = |amount: u64| amount * u64::from(share) / 255;
                    let used = row.bound.zip(row.bound, |amount, _| part(amount));
                    // The answer to the first commit is lost, so it is tried again.
                    for _ in 0..2 {
                        self.settle(id, row.created_at, row.bound, Some(used), By::Owner);
                    }
                }
            }
            Step::Unused { which } => {
                if let Some((id, row)) = self.out_of_hand(which) {
                    self.settle(id, row.created_at, row.bound, None, By::Owner);
                }
            }
            Step::Crash { node } => self.hands.retain(|(_, row)| row.node != node),
            Step::Sweep { node } => {
                let rows = self.rows.clone();
                for (id, row) in rows.into_iter().filter(|(_, row)| row.node == node) {
                    self.settle(id, row.created_at, row.bound, Some(row.bound), By::Sweep);
                }
            }
            Step::Wait { ms } => self.now += ms,
            Step::ChangePeriod(period) => self.change_period(period),
            Step::ChangeLimit(limit) => {
                self.standing.limits = Limits::default()
                    .with(Measure::Tokens, Some(limit))
                    .with(Measure::Cost, Some(limit + 20));
            }
        }
    }

    fn out_of_hand(&mut self, which: usize) -> Option<(u32, Row)> {
        let at = which.checked_rem(self.hands.len())?;
        Some(self.hands.swap_remove(at))
    }

    fn reserve(&mut self, node: u8, now: i64, bound: Amounts) {
        self.standing.roll_over(now);
        // Every third one makes do with less.
        let least = match self.made % 3 {
            0 => bound.zip(bound, |amount, _| amount / 3),
            _ => bound,
        };
        let Ok(granted) = self.standing.reserve(least, bound) else {
            return;
        };
        for measure in Measure::ALL {
            let range = least.of(measure)..=bound.of(measure);
            assert!(range.contains(&granted.of(measure)), "{measure:?}");
        }
        let bound = granted;
        let row = Row {
            node,
            period_start: self.standing.period_start,
            created_at: now.max(self.standing.period_start),
            bound,
        };
        self.made += 1;
        self.rows.insert(self.made, row);
        self.hands.push((self.made, row));
        for measure in [Measure::Tokens, Measure::Cost] {
            let taken = self.used().plus(self.reserved()).of(measure);
            let limit = self.standing.limits.of(measure).unwrap();
            assert!(
                bound.of(measure) == 0 || taken <= limit,
                "{measure:?}: {taken} of {limit}"
            );
        }
    }

    /// Whoever comes second finds no row; an owner then corrects what a sweep has settled.
    fn settle(&mut self, id: u32, created_at: i64, bound: Amounts, used: Option<Amounts>, by: By) {
        let Some(row) = self.rows.remove(&id) else {
            if by == By::Owner {
                self.correct(id, used);
            }
            return;
        };
        self.standing
            .settle(row.period_start, bound, used.unwrap_or_default());
        match used {
            Some(used) => self.records.push(Record {
                id,
                created_at,
                used,
                is_swept: by == By::Sweep,
            }),
            None => self.unused += 1,
        }
    }

    /// As `correct::correct_swept`.
    fn correct(&mut self, id: u32, used: Option<Amounts>) {
        let mut records = self.records.iter();
        let Some(at) = records.position(|record| record.id == id && record.is_swept) else {
            return;
        };
        let record = self.records.swap_remove(at);
        self.standing
            .correct(record.created_at, record.used, used.unwrap_or_default());
        match used {
            Some(used) => self.records.push(Record {
                used,
                is_swept: false,
                ..record
            }),
            None => self.unused += 1,
        }
    }

    /// As `store::recount`.
    fn change_period(&mut self, period: Period) {
        if period == self.standing.period {
            return;
        }
        let start = period.start(self.now);
        for row in self.rows.values_mut().filter(|row| row.created_at >= start) {
            row.period_start = start;
        }
        self.standing.period = period;
        self.standing.period_start = start;
        self.standing.used = self.used();
        self.standing.reserved = self.reserved();
    }

    /// What was used in the running period, by the records.
    fn used(&self) -> Amounts {
        let since = day(self.standing.period_start);
        let records = self.records.iter();
        records
            .filter(|record| day(record.created_at) >= since)
            .fold(Amounts::default(), |sum, record| sum.plus(record.used))
    }

    /// What is reserved in the running period, by the rows.
    fn reserved(&self) -> Amounts {
        let rows = self.rows.values();
        rows.filter(|row| row.created_at >= self.standing.period_start)
            .fold(Amounts::default(), |sum, row| sum.plus(row.bound))
    }

    fn check(&self) {
        assert_eq!(self.standing.used, self.used());
        assert_eq!(self.standing.reserved, self.reserved());
        let ended = self.records.len() + self.unused as usize;
        assert_eq!(self.made as usize, self.rows.len() + ended);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// No order of reserving, settling, dying, sweeping and changing lets more be taken than the limit, or loses
    /// anything: the counters are what the rows and records say, and every reservation ends once.
    #[test]
    fn nothing_exceeds_a_limit_and_nothing_is_lost(steps in prop::collection::vec(step(), 0..80)) {
        let mut world = World::new();
        for step in steps {
            world.act(step);
            world.check();
        }
        for node in 0..3 {
            world.act(Step::Crash { node });
            world.act(Step::Sweep { node });
        }
        world.check();
        prop_assert_eq!(world.rows.len(), 0);
        prop_assert_eq!(world.standing.reserved, Amounts::default());
    }
}
