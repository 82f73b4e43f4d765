//! Figures that several benchmarks give.

use std::time::Duration;

/// The nearest-rank percentile of sorted samples, in milliseconds, rounded to hundredths.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Option<f64> {
    Some(rounded(exact(sorted, percent)?, 100.0))
}

/// The same, not rounded.
pub(crate) fn exact(sorted: &[Duration], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    Some(sorted.get(rank - 1)?.as_secs_f64() * 1_000.0)
}

/// A value with so many steps to a unit.
pub(crate) fn rounded(value: f64, per_unit: f64) -> f64 {
    (value * per_unit).round() / per_unit
}

/// Bytes in units of 1,000,000.
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let samples: Vec<Duration> = (1..=20).map(Duration::from_millis).collect();
        assert_eq!(percentile(&samples, 50), Some(10.0));
        assert_eq!(percentile(&samples, 95), Some(19.0));
        assert_eq!(percentile(&samples[..1], 95), Some(1.0));
        assert_eq!(percentile(&[], 50), None);
    }
}
