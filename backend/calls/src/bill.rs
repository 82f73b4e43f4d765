//! What a call costs the quota that pays for it: its time limit is reserved, the time that media flowed is settled.
//!
//! The reservation has the call's id. Once the call is stored it belongs to no process, since a call may be created here,
//! run elsewhere, and outlive both: whoever writes the call's end settles it, in the same transaction.

use std::{sync::Arc, time::Duration};

use colloquy_accounts::{
    ledger::{Amounts, DetachedUsage, LedgerError, Measure, Outcome, Reservation, UsageContext},
    quotas::Quota,
};
use colloquy_base::money::Usd;
use colloquy_config::EMBEDDED_MODEL;

use crate::Calls;

/// The seconds that the price is for: an hour.
const PRICED_SECONDS: u64 = 3_600;

/// Reserves a call as long as it may last.
///
/// # Errors
/// When the quota does not allow the model of calls or is exhausted, or the ledger fails.
pub(super) async fn reserve(
    calls: &Calls,
    quota: &Arc<Quota>,
    character: Option<String>,
    time_limit_seconds: u32,
    request_id: &str,
) -> Result<Reservation, LedgerError> {
    let model = calls.providers.models.of_calls().name();
    quota.require_model(model)?;
    let about = UsageContext {
        endpoint: "calls",
        model: model.to_owned(),
        character,
        request_id: request_id.to_owned(),
    };
    let bound = amounts(calls, time_limit_seconds.into());
    calls.ledger.reserve(quota, bound, about).await
}

/// Returns the usage of a call by the time that its media flowed, in whole seconds rounded up, and its outcome.
pub(super) fn used(calls: &Calls, call_time: Duration, completed: bool) -> (Amounts, Outcome) {
    let seconds = call_time.as_secs_f64().ceil() as u64;
    let outcome = match completed {
        true => Outcome::Completed,
        false => Outcome::Failed,
    };
    (amounts(calls, seconds), outcome)
}

/// The cost of a call, exact or a lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// The price of the time that media flowed.
    pub(super) usd: Usd,
    /// True if the call cost more by an unknown amount: no price of calls is set, and services outside of the server understood, answered or spoke.
    pub(super) is_lower_bound: bool,
}

/// Returns the cost of a call by the time that its media flowed.
pub(super) fn cost(calls: &Calls, call_time: Duration) -> Cost {
    let (amounts, _) = used(calls, call_time, true);
    let config = &calls.config;
    let has_services = calls.providers.models.of_calls().name() != EMBEDDED_MODEL
        || config.transcriber.base_url.is_some()
        || config.synthesizer.base_url.is_some();
    Cost {
        usd: Usd(amounts.of(Measure::Cost)),
        is_lower_bound: config.calls.usd_per_hour.0 == 0 && has_services,
    }
}

/// Returns the usage that settles the reservation of a call.
pub(super) fn spent(calls: &Calls, call_time: Duration, completed: bool) -> DetachedUsage {
    let (amounts, outcome) = used(calls, call_time, completed);
    DetachedUsage::Used(amounts, outcome)
}

/// Returns an amount of seconds and their price.
fn amounts(calls: &Calls, seconds: u64) -> Amounts {
    let price = calls.config.calls.usd_per_hour;
    Amounts::default()
        .with(Measure::Seconds, seconds)
        .with(Measure::Cost, price.cost_of(seconds, PRICED_SECONDS))
}
