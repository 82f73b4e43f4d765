//! Money: integers of 1e-8 USD inside, decimal text outside, never a float in between.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::ToSchema;

const PLACES: usize = 8;
/// 1 USD.
const DOLLAR: u64 = 10_u64.pow(PLACES as u32);

/// An amount of money, in 1e-8 USD. In JSON it is a decimal string such as `"12.5"`; a JSON number is read too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(value_type = String, example = "12.5")]
pub struct Usd(pub u64);

/// What is not an amount of money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write an amount of USD such as \"12.5\", with at most 8 decimal places")]
pub struct NotUsd;

impl FromStr for Usd {
    type Err = NotUsd;

    fn from_str(text: &str) -> Result<Self, NotUsd> {
        let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(places) || places.len() > PLACES {
            return Err(NotUsd);
        }
        let whole: u64 = whole.parse().map_err(|_| NotUsd)?;
        let places: u64 = format!("{places:0<PLACES$}").parse().map_err(|_| NotUsd)?;
        let units = whole.checked_mul(DOLLAR).ok_or(NotUsd)?;
        units.checked_add(places).map(Self).ok_or(NotUsd)
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, places) = (self.0 / DOLLAR, self.0 % DOLLAR);
        if places == 0 {
            return write!(f, "{whole}");
        }
        let places = format!("{places:0PLACES$}");
        write!(f, "{whole}.{}", places.trim_end_matches('0'))
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Usd;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount of USD such as \"12.5\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Usd, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Usd, E> {
                self.visit_str(&whole.to_string())
            }

            /// Settings files have signed integers.
            fn visit_i64<E: de::Error>(self, whole: i64) -> Result<Usd, E> {
                self.visit_str(&whole.to_string())
            }

            /// The shortest decimal text that means this float, which is what the client wrote.
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Usd, E> {
                self.visit_str(&number.to_string())
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl Usd {
    /// What so many cost when it is the price of `per`, in units of 1e-8 USD, rounded up.
    #[must_use]
    pub fn cost_of(self, count: u64, per: u64) -> u64 {
        let cost = (u128::from(self.0) * u128::from(count)).div_ceil(per.into());
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn costs_are_whole_units() {
        let price = |usd: &str| usd.parse::<Usd>().unwrap();
        assert_eq!(price("15").cost_of(1_000_000, 1_000_000), price("15").0);
        assert_eq!(price("15").cost_of(1, 1_000_000), 1_500);
        assert_eq!(price("3.60").cost_of(1, 3_600), 100_000);
        assert_eq!(price("0.001").cost_of(1, 1_000_000), 1, "rounded up");
        assert_eq!(price("0").cost_of(2_000, 1_000_000), 0);
        assert_eq!(Usd(u64::MAX).cost_of(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn decimal_text_and_numbers_are_read_exactly() {
        for (json, units) in [
            (r#""12.5""#, 1_250_000_000),
            ("12.5", 1_250_000_000),
            ("3", 300_000_000),
            ("0.1", 10_000_000),
            ("0.00000001", 1),
            ("1e-8", 1),
            (r#""0.00000001""#, 1),
            ("2.5e3", 250_000_000_000),
            (r#""184467440737.09551615""#, u64::MAX),
        ] {
            let read: Usd = serde_json::from_str(json).unwrap();
            assert_eq!(read.0, units, "{json}");
        }
        for json in [
            "-1",
            r#""-1""#,
            r#"".5""#,
            r#""5.""#,
            r#""1e3""#,
            r#""""#,
            r#"" 1""#,
            "0.000000001",
            r#""1.000000001""#,
            r#""184467440737.09551616""#,
            "1e300",
            "true",
            "null",
        ] {
            let read: Result<Usd, _> = serde_json::from_str(json);
            assert!(read.is_err(), "{json}: {read:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(units: u64) {
            let text = serde_json::to_string(&Usd(units)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Usd>(&text).unwrap(), Usd(units));
        }
    }
}
