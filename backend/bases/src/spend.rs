//! What was spent, as sums over the requests that were settled.

use std::fmt;

use colloquy_base::money::Usd;

use crate::{
    admission::{PaidStep, UsageOutcome},
    store::UsageSum,
};

/// What a sort of requests came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) events: u64,
    /// Those whose tokens are known.
    pub(crate) counted: u64,
    /// Those whose cost is known.
    pub(crate) priced: u64,
    /// Documents; one that several models worked on counts for each.
    pub(crate) documents: u64,
    /// In units of 1e-8 dollars.
    pub(crate) cost: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

/// What the requests of a base came to.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpentByBase(Vec<UsageSum>);

impl SpentByBase {
    /// The sums of one base, out of those of several.
    pub(crate) fn of(sums: &[UsageSum], base: &str) -> Self {
        let own = sums.iter().filter(|sum| sum.base_id == base);
        Self(own.cloned().collect())
    }

    /// What those came to that are meant.
    pub(crate) fn sum(&self, is_meant: impl Fn(&UsageSum) -> bool) -> Spent {
        let mut spent = Spent::default();
        for sum in self.0.iter().filter(|sum| is_meant(sum)) {
            spent.events += sum.events.unsigned_abs();
            spent.counted += sum.counted.unsigned_abs();
            spent.priced += sum.priced.unsigned_abs();
            spent.documents += sum.documents.unsigned_abs();
            spent.cost = spent.cost.saturating_add(sum.cost.unsigned_abs());
            spent.input_tokens += sum.input_tokens.unsigned_abs();
            spent.output_tokens += sum.output_tokens.unsigned_abs();
        }
        spent
    }

    /// All of it.
    pub(crate) fn all(&self) -> Spent {
        self.sum(|_| true)
    }

    /// What was spent on one sort of requests.
    pub(crate) fn on(&self, step: PaidStep) -> Spent {
        self.sum(|sum| sum.kind == step)
    }

    /// How many requests to rewrite were answered as they should be, and how many were not.
    pub(crate) fn rewritten(&self) -> (u64, u64) {
        let of = |outcome| {
            let meant = |sum: &UsageSum| sum.kind == PaidStep::Rewrite && sum.outcome == outcome;
            self.sum(meant).events
        };
        (of(UsageOutcome::Success), of(UsageOutcome::Fault))
    }
}

/// What a document did cost: its latest rewriting, also one that failed, and reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentSpend {
    /// Nothing was asked that has a price.
    Nothing,
    /// Something was, and nobody knows what it cost.
    Unknown,
    /// At least so much.
    AtLeast(Usd),
    /// So much.
    Exactly(Usd),
}

impl DocumentSpend {
    /// The sum of parts: each with its cost, in units of 1e-8 dollars, and whether that is all of it.
    pub(crate) fn of(parts: [Option<(u64, bool)>; 2]) -> Self {
        let mut parts = parts.into_iter().flatten();
        let Some((mut cost, mut complete)) = parts.next() else {
            return Self::Nothing;
        };
        for (more, all) in parts {
            cost = cost.saturating_add(more);
            complete &= all;
        }
        match (complete, cost) {
            (true, cost) => Self::Exactly(Usd(cost)),
            (false, 0) => Self::Unknown,
            (false, cost) => Self::AtLeast(Usd(cost)),
        }
    }

    /// The dollars, as far as they are known.
    pub(crate) fn usd(self) -> Option<Usd> {
        match self {
            Self::Nothing | Self::Unknown => None,
            Self::AtLeast(usd) | Self::Exactly(usd) => Some(usd),
        }
    }
}

/// As people read it.
impl fmt::Display for DocumentSpend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("—"),
            Self::Unknown => f.write_str("n/a"),
            Self::AtLeast(usd) => write!(f, "≥ ${usd}"),
            Self::Exactly(usd) => write!(f, "${usd}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_shows_what_is_known_of_its_cost() {
        let shown = |parts| DocumentSpend::of(parts).to_string();
        assert_eq!(shown([None, None]), "—");
        assert_eq!(shown([Some((0, false)), None]), "n/a");
        assert_eq!(shown([Some((150_000, true)), None]), "$0.0015");
        assert_eq!(shown([Some((0, true)), None]), "$0");
        let both = [Some((150_000, true)), Some((50_000, true))];
        assert_eq!(shown(both), "$0.002");
        // One part without all of its costs makes the sum a lower bound.
        let partly = [Some((150_000, true)), Some((0, false))];
        assert_eq!(shown(partly), "≥ $0.0015");
        assert_eq!(DocumentSpend::of(partly).usd(), Some(Usd(150_000)));
        assert_eq!(DocumentSpend::of([None, None]).usd(), None);
    }
}
