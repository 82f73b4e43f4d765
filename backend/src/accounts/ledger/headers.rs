//! `x-ratelimit-*`: how much of a quota is left, as clients of the public APIs read it.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::{Measure, Standing};
use crate::money::Usd;

impl Standing {
    /// The headers for what is limited. A period ends in so many seconds; a lifetime does not.
    #[must_use]
    pub fn headers(&self, now_ms: i64) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut insert = |name: &str, of: &str, value: String| {
            let name = HeaderName::try_from(format!("x-ratelimit-{name}-{of}"));
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        };
        for measure in Measure::ALL {
            let (Some(limit), Some(remaining)) = (self.limits.of(measure), self.remaining(measure))
            else {
                continue;
            };
            let text = |amount: u64| match measure {
                Measure::Dollars => Usd(amount).to_string(),
                _ => amount.to_string(),
            };
            let name = measure.as_str();
            insert("limit", name, text(limit));
            insert("remaining", name, text(remaining));
            if let Some(end) = self.period_end() {
                let seconds = (end - now_ms).max(0).unsigned_abs().div_ceil(1_000);
                insert("reset", name, format!("{seconds}s"));
            }
        }
        headers
    }
}
