//! What is measured, and amounts of it.

use serde::{Serialize, Serializer};

/// Makes [`Measure`] of a line for each: its name here and in the database.
macro_rules! measures {
    (
        limited { $($(#[$limited_doc:meta])* $limited:ident = $limited_name:literal,)+ }
        detailed { $($(#[$detailed_doc:meta])* $detailed:ident = $detailed_name:literal,)+ }
    ) => {
        /// What is measured of usage.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Measure {
            $($(#[$limited_doc])* $limited,)+
            $($(#[$detailed_doc])* $detailed,)+
        }

        impl Measure {
            /// All of them, in the order of the enumeration.
            pub const ALL: [Self; [$($limited_name,)+ $($detailed_name,)+].len()] =
                [$(Self::$limited,)+ $(Self::$detailed,)+];

            /// Those that a quota can limit.
            pub const LIMITED: [Self; [$($limited_name,)+].len()] = [$(Self::$limited,)+];

            /// The name in the database.
            pub(super) fn stored_name(self) -> &'static str {
                match self {
                    $(Self::$limited => $limited_name,)+
                    $(Self::$detailed => $detailed_name,)+
                }
            }
        }
    };
}

measures! {
    // What a quota can limit; what is added here is also shown, in `quotas/view.rs`.
    limited {
        /// Input and output tokens.
        Tokens = "tokens",
        /// Money, in 1e-8 USD.
        Cost = "cost",
        /// Characters of text that is spoken.
        Characters = "characters",
        /// Seconds of calls.
        Seconds = "seconds",
    }
    // What usage tells beside that.
    detailed {
        /// All input tokens.
        InputTokens = "input_tokens",
        /// Those of them that came from the model's cache.
        CachedTokens = "cached_tokens",
        /// All output tokens.
        OutputTokens = "output_tokens",
        /// Those of them that were reasoning.
        ReasoningTokens = "reasoning_tokens",
        /// Reservations that were settled.
        Requests = "requests",
    }
}

impl Measure {
    /// The name in the API, where money is in dollars.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cost => "dollars",
            other => other.stored_name(),
        }
    }

    /// The one of this name in the database.
    pub(super) fn from_stored(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|measure| measure.stored_name() == name)
    }

    /// More than any request can use.
    fn most(self) -> u64 {
        match self {
            Self::Cost => 1_000_000_000_000_000,
            _ => 2 * MOST_TOKENS,
        }
    }
}

/// More than any request has of input, and more than it has of output.
const MOST_TOKENS: u64 = 1_000_000_000_000;

/// A value for each measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByMeasure<T>([T; Measure::ALL.len()]);

/// An amount of each measure.
pub type Amounts = ByMeasure<u64>;

/// The most of each measure in a period; `None` for as much as one likes.
pub type Limits = ByMeasure<Option<u64>>;

impl<T: Copy> ByMeasure<T> {
    /// What this gives for each measure.
    #[must_use]
    pub fn from_fn(value: impl FnMut(Measure) -> T) -> Self {
        Self(Measure::ALL.map(value))
    }

    /// The value of one measure.
    #[must_use]
    pub fn of(&self, measure: Measure) -> T {
        self.0[measure as usize]
    }

    /// The same with another value of one measure.
    #[must_use]
    pub fn with(mut self, measure: Measure, value: T) -> Self {
        self.0[measure as usize] = value;
        self
    }

    /// Two of them, measure by measure.
    #[must_use]
    pub fn zip<U: Copy, V: Copy>(
        self,
        other: ByMeasure<U>,
        with: impl Fn(T, U) -> V,
    ) -> ByMeasure<V> {
        ByMeasure::from_fn(|measure| with(self.of(measure), other.of(measure)))
    }

    /// Each measure and its value.
    pub fn iter(self) -> impl Iterator<Item = (Measure, T)> {
        Measure::ALL.into_iter().zip(self.0)
    }
}

impl Amounts {
    /// The tokens of a text: of its input, of its output, and of both. A model that reports nonsense must not make sums
    /// overflow, so there are not more than any request can use.
    #[must_use]
    pub fn tokens(input: u64, output: u64) -> Self {
        let (input, output) = (input.min(MOST_TOKENS), output.min(MOST_TOKENS));
        Self::default()
            .with(Measure::Tokens, input + output)
            .with(Measure::InputTokens, input)
            .with(Measure::OutputTokens, output)
    }

    /// What counts against a quota.
    #[must_use]
    pub fn limited(self) -> Self {
        let limited = Measure::LIMITED.into_iter();
        limited.fold(Self::default(), |limited, measure| {
            limited.with(measure, self.of(measure))
        })
    }

    /// Not more than any request can use.
    pub(super) fn capped(self) -> Self {
        Self::from_fn(|measure| self.of(measure).min(measure.most()))
    }

    /// A bound as usage. What of its tokens is input is not known; they stand as output.
    pub(super) fn used_up(self) -> Self {
        self.with(Measure::OutputTokens, self.of(Measure::Tokens))
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    /// The measures that there is anything of.
    fn some(self) -> impl Iterator<Item = (Measure, u64)> {
        self.iter().filter(|(_, amount)| *amount > 0)
    }
}

/// As the database keeps them: an object without zeros, `{"tokens": 12, "cost": 34}`.
impl Serialize for Amounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.some()
                .map(|(measure, amount)| (measure.stored_name(), amount)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measure_has_its_own_place_and_names() {
        let places = Measure::ALL.map(|measure| measure as usize);
        assert_eq!(places.to_vec(), (0..places.len()).collect::<Vec<_>>());
        for measure in Measure::ALL {
            assert_eq!(Measure::from_stored(measure.stored_name()), Some(measure));
            let named = |other: &Measure| other.as_str() == measure.as_str();
            assert_eq!(Measure::ALL.iter().filter(|other| named(other)).count(), 1);
        }
        assert_eq!(Measure::from_stored("dollars"), None);
    }

    #[test]
    fn a_quota_counts_tokens_whatever_their_sort() {
        let used = Amounts::tokens(7, 5).with(Measure::CachedTokens, 3);
        assert_eq!(used.limited(), Amounts::default().with(Measure::Tokens, 12));
        let bound = Amounts::default().with(Measure::Tokens, 12);
        assert_eq!(bound.used_up(), Amounts::tokens(0, 12));
    }

    #[test]
    fn nonsense_is_capped_and_tokens_stay_the_sum_of_their_sorts() {
        let nonsense = Amounts::tokens(u64::MAX, 5).with(Measure::Cost, u64::MAX);
        let capped = nonsense.capped();
        assert_eq!(capped.of(Measure::Tokens), 1_000_000_000_005);
        assert_eq!(capped.of(Measure::InputTokens), 1_000_000_000_000);
        assert_eq!(capped.of(Measure::OutputTokens), 5);
        assert_eq!(capped.of(Measure::Cost), 1_000_000_000_000_000);
        let most = Amounts::tokens(u64::MAX, u64::MAX);
        assert_eq!(most.capped(), most);
    }

    #[test]
    fn what_is_stored_has_no_zeros() {
        let json = |amounts: Amounts| serde_json::to_string(&amounts).unwrap();
        let amounts = Amounts::default()
            .with(Measure::Cost, 34)
            .with(Measure::Tokens, 12);
        assert_eq!(json(amounts), r#"{"tokens":12,"cost":34}"#);
        assert_eq!(json(Amounts::default()), "{}");
    }
}
