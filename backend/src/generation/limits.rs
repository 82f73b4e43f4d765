//! `x-ratelimit-*`: how much of a quota is left, as clients of the public APIs read it.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    accounts::ledger::{Measure, Standing},
    money::Usd,
};

/// The headers for what the quota limits. A period ends in so many seconds; a lifetime does not.
pub(super) fn headers(standing: &Standing, now_ms: i64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let plain: fn(u64) -> String = |amount| amount.to_string();
    let dollars: fn(u64) -> String = |units| Usd(units).to_string();
    let limits = [
        (Measure::Tokens, "tokens", standing.limits.tokens, plain),
        (Measure::Dollars, "dollars", standing.limits.cost, dollars),
    ];
    let mut insert = |name: &str, of: &str, value: String| {
        let name = HeaderName::try_from(format!("x-ratelimit-{name}-{of}"));
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    };
    for (measure, name, limit, text) in limits {
        let (Some(limit), Some(remaining)) = (limit, standing.remaining(measure)) else {
            continue;
        };
        insert("limit", name, text(limit));
        insert("remaining", name, text(remaining));
        if let Some(end) = standing.period_end() {
            let seconds = (end - now_ms).max(0).unsigned_abs().div_ceil(1_000);
            insert("reset", name, format!("{seconds}s"));
        }
    }
    headers
}
