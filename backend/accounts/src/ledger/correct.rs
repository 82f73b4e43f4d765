//! Corrects what was settled on a presumption that turned out to be wrong.

use std::time::Duration;

use colloquy_store::{StoreError, Transaction};

use super::{
    Amounts, Outcome, books,
    store::{self, DayKey, PUT, TAKE, Taken},
};

/// How far the clocks of two nodes, or one clock within a transaction, may be apart.
const APART: Duration = Duration::from_secs(60);

/// Puts what was used in place of what a reservation was settled with about `settled_at`, together with what else the
/// transaction does: in its record, in the sums of its day, and in the running period of its quota. Does nothing for a
/// reservation that was not there, or whose record is too old to be kept.
///
/// # Errors
/// The database's failure.
pub async fn correct_settled(
    transaction: &Transaction,
    id: &str,
    settled_at: i64,
    used: Amounts,
    outcome: Outcome,
) -> Result<(), StoreError> {
    let from = settled_at - APART.as_millis() as i64;
    let Some(record) = store::record(transaction, id, from).await? else {
        return Ok(());
    };
    let taking = store::taking([record.quota.as_str()], [])?;
    let mut taken = Taken::parse(TAKE.run_in(transaction, taking).await?)?;
    store::replace_record(transaction, id, &record, used, outcome).await?;
    let Some(account) = taken.accounts.get_mut(&record.quota) else {
        // The quota is gone, and its days with it.
        return Ok(());
    };
    let (was, is) = (record.amounts.limited(), used.limited());
    account.standing.correct(record.created_at, was, is);
    let putting = store::putting(&[], taken.accounts.values(), &[], [])?;
    PUT.run_in(transaction, putting).await?;
    let day = DayKey {
        quota: &record.quota,
        day: books::day(record.created_at),
        model: &record.model,
        character: record.character.as_deref().unwrap_or_default(),
    };
    store::correct_day(transaction, &day, record.amounts, used).await
}
