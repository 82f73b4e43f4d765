//! The arithmetic of quotas: what is admitted, what a settlement leaves, when a period begins anew.
//!
//! Pure: no clock, no database. The [writer](super::writer) reads a [`Standing`] from a quota's rows, changes it here and
//! writes it back, all in one transaction.

use jiff::{Timestamp, ToSpan as _, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Amounts, Limits, Measure};

pub(super) const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// When what was used is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// At midnight, UTC.
    Day,
    /// At midnight before the first of a month, UTC.
    Month,
    /// Never.
    Lifetime,
}

impl Period {
    const ALL: [Self; 3] = [Self::Day, Self::Month, Self::Lifetime];

    /// The name in the table and in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
            Self::Lifetime => "lifetime",
        }
    }

    pub(crate) fn from_stored(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|period| period.as_str() == text)
    }

    /// When the period that holds this time began; all times are milliseconds since 1970. A lifetime began at 0.
    #[must_use]
    pub fn start(self, at_ms: i64) -> i64 {
        match self {
            Self::Day => at_ms - at_ms.rem_euclid(DAY_MS),
            Self::Month => date(at_ms)
                .and_then(|date| midnight(date.first_of_month()))
                .unwrap_or(at_ms),
            Self::Lifetime => 0,
        }
    }

    /// When the period that began then ends; `None` for a lifetime.
    #[must_use]
    pub fn end(self, start_ms: i64) -> Option<i64> {
        match self {
            Self::Day => Some(start_ms + DAY_MS),
            Self::Month => midnight(date(start_ms)?.checked_add(1.month()).ok()?),
            Self::Lifetime => None,
        }
    }
}

/// The day, UTC; `None` for times that no clock shows, beyond the year 9999.
fn date(at_ms: i64) -> Option<Date> {
    let time = Timestamp::from_millisecond(at_ms).ok()?;
    Some(time.to_zoned(TimeZone::UTC).date())
}

/// The day as `usage_days` keeps it, `YYYY-MM-DD`.
pub(super) fn day(at_ms: i64) -> String {
    date(at_ms).map(|date| date.to_string()).unwrap_or_default()
}

fn midnight(date: Date) -> Option<i64> {
    let time = date.to_zoned(TimeZone::UTC).ok()?;
    Some(time.timestamp().as_millisecond())
}

/// How a quota stands: its limits, and what is used and reserved in the running period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// When what was used is forgotten.
    pub period: Period,
    /// When the running period began, in milliseconds since 1970; 0 for a lifetime.
    pub period_start: i64,
    /// The most in a period.
    pub limits: Limits,
    /// What was settled.
    pub used: Amounts,
    /// The bounds of what runs.
    pub reserved: Amounts,
}

/// Why a reservation is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The measure that is the last to have room again.
    pub(super) measure: Measure,
    pub(super) retry: Retry,
}

/// When a refused reservation may pass, in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Retry {
    /// Once what runs has settled.
    Soon,
    /// When the period is over, at this time in milliseconds since 1970.
    At(i64),
    /// Never: the bound is above the limit, or a lifetime's limit is used up.
    Never,
}

impl Standing {
    /// Nothing used of these limits.
    #[must_use]
    pub(crate) fn fresh(period: Period, limits: Limits, now_ms: i64) -> Self {
        Self {
            period,
            period_start: period.start(now_ms),
            limits,
            used: Amounts::default(),
            reserved: Amounts::default(),
        }
    }

    /// What can still be reserved of a measure; `None` without a limit.
    #[must_use]
    pub fn remaining(&self, measure: Measure) -> Option<u64> {
        let taken = self.used.plus(self.reserved).of(measure);
        Some(self.limits.of(measure)?.saturating_sub(taken))
    }

    /// When the running period ends, in milliseconds since 1970; `None` for a lifetime.
    #[must_use]
    pub fn period_end(&self) -> Option<i64> {
        self.period.end(self.period_start)
    }

    /// Begins the period of this time, unless it is the running one. It never goes back: the clock of another node may
    /// be a little ahead of ours. What begins far in the future, [`future`](super::future) puts back.
    pub(crate) fn roll_over(&mut self, now_ms: i64) {
        let start = self.period.start(now_ms);
        if start > self.period_start {
            *self = Self {
                period_start: start,
                used: Amounts::default(),
                reserved: Amounts::default(),
                ..*self
            };
        }
    }

    /// Reserves a bound, or what is left of it when that is not less than `least`; says how much it is. What it needs
    /// nothing of cannot refuse it.
    pub(super) fn reserve(&mut self, least: Amounts, bound: Amounts) -> Result<Amounts, Refusal> {
        let refusal = Measure::LIMITED
            .into_iter()
            .filter_map(|measure| self.refusal(measure, least.of(measure)))
            .max_by_key(|refusal| refusal.retry);
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let left = Amounts::from_fn(|measure| self.remaining(measure).unwrap_or(u64::MAX));
        let granted = bound.zip(left, u64::min);
        self.reserved = self.reserved.plus(granted);
        Ok(granted)
    }

    fn refusal(&self, measure: Measure, bound: u64) -> Option<Refusal> {
        let limit = self.limits.of(measure)?;
        let wanted = bound.saturating_add(self.used.of(measure));
        if bound == 0 || wanted.saturating_add(self.reserved.of(measure)) <= limit {
            return None;
        }
        let retry = if bound > limit {
            Retry::Never
        } else if wanted > limit {
            self.period_end().map_or(Retry::Never, Retry::At)
        } else {
            Retry::Soon
        };
        Some(Refusal { measure, retry })
    }

    /// Puts what was used in place of the bound. A reservation of another period than the running one changes nothing:
    /// what it had reserved and may have used was forgotten with its period.
    pub(super) fn settle(&mut self, period_start: i64, bound: Amounts, used: Amounts) {
        if period_start == self.period_start {
            self.reserved = self.reserved.minus(bound);
            self.used = self.used.plus(used);
        }
    }

    /// Puts what was used in place of what a reservation of this time was settled with. One of another period than the
    /// running one changes nothing.
    pub(super) fn correct(&mut self, created_at: i64, settled: Amounts, used: Amounts) {
        if self.period.start(created_at) == self.period_start {
            self.used = self.used.minus(settled).plus(used);
        }
    }
}
