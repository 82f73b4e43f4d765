//! Periods that begin in the future, after a clock went forward and back.
//!
//! A quota takes the period of the time at which it is asked, and never an earlier one. So a clock that was wrong for a while
//! would leave it with what was used in that while, until the day comes that the clock showed.

use std::time::Duration;

use colloquy_store::StoreError;

use super::store;
use crate::Accounts;

/// How far a period may begin in the future: nodes whose clocks are a little ahead begin it.
const AHEAD: Duration = Duration::from_secs(3_600);
/// How many quotas are looked at together.
const MOST: u64 = 1_000;

/// Puts quotas back into the running period that are ahead of it by the database's clock, which no node's own can mislead.
/// What counts then is what was used, and is reserved, in the running period. Safe on many nodes at once. Returns how many
/// it put back.
///
/// # Errors
/// The database's failure.
pub async fn put_back(accounts: &Accounts) -> Result<u64, StoreError> {
    let now = accounts.kernel.database_now_ms().await?;
    let after = now + AHEAD.as_millis() as i64;
    let mut put_back = 0;
    for id in store::ahead(accounts.store.db(), after, MOST).await? {
        let transaction = accounts.store.begin().await?;
        if let Some(period) = store::lock_ahead(&transaction, &id, after).await? {
            store::bring_back(&transaction, &id, after, now).await?;
            store::recount(&transaction, &id, period, now).await?;
            put_back += 1;
        }
        transaction.commit().await?;
    }
    if put_back > 0 {
        tracing::warn!(
            put_back,
            "quotas whose period began in the future are in the running one again; a clock was wrong"
        );
    }
    Ok(put_back)
}
