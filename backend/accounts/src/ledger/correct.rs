//! Corrects what was settled on a presumption that turned out to be wrong.

use std::time::Duration;

use colloquy_store::{StoreError, Transaction};

use super::{
    Amounts, Measure, Outcome,
    books::{self, DAY_MS},
    queue::Settlement,
    store::{self, DayKey, PUT, Record, TAKE, Taken},
};
use crate::Accounts;

/// How far the clocks of two nodes, or one clock within a transaction, may be apart.
const APART: Duration = Duration::from_secs(60);

/// What was really used of a reservation.
#[derive(Clone, Copy)]
struct Spent<'a> {
    model: &'a str,
    amounts: Amounts,
    outcome: Outcome,
}

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
    let mut taken = take(transaction, &record.quota).await?;
    let spent = Spent {
        model: &record.model,
        amounts: used,
        outcome,
    };
    correct(transaction, &mut taken, id, &record, Some(spent)).await
}

/// Corrects a reservation that another node settled at its bound, because it could not hear the owner, to what the owner
/// settles. The record of the bound is what is corrected, and is one of a bound no more after, so a repeated settlement
/// changes nothing. A record is kept for `limits.usage_record_days`; a later settlement counts nothing, which is logged.
///
/// # Errors
/// The database's failure; then nothing was changed, or the commit's answer was lost.
pub(super) async fn correct_swept(
    accounts: &Accounts,
    settlement: &Settlement,
) -> Result<(), StoreError> {
    let Settlement { held, used, .. } = settlement;
    let transaction = accounts.store.begin().await?;
    // A sweep that is about to store the bound has the quota locked.
    let mut taken = take(&transaction, &held.quota).await?;
    let Some(record) = store::bound_record(&transaction, &held.id).await? else {
        if used.is_some() && is_forgotten(accounts, held.created_at) {
            tracing::warn!(
                reservation = %held.id,
                request = %held.entry.request_id,
                "a settlement counted nothing: it comes after `limits.usage_record_days`"
            );
        }
        return Ok(());
    };
    if *used == Some((record.amounts, Outcome::Bound)) && record.model == held.entry.model {
        return Ok(());
    }
    let spent = used.map(|(amounts, outcome)| Spent {
        model: &held.entry.model,
        amounts,
        outcome,
    });
    correct(&transaction, &mut taken, &held.id, &record, spent).await?;
    transaction.commit().await?;
    tracing::warn!(
        reservation = %held.id,
        request = %held.entry.request_id,
        "a reservation that another node had settled at its bound is corrected to what was used"
    );
    Ok(())
}

/// Whether the record of a reservation that was made then may be removed by now.
fn is_forgotten(accounts: &Accounts, created_at: i64) -> bool {
    let kept = DAY_MS * i64::from(accounts.config.limits.usage_record_days);
    created_at < accounts.clock.now_ms() - kept
}

/// Locks a quota and reads how it stands.
async fn take(transaction: &Transaction, quota: &str) -> Result<Taken, StoreError> {
    let taking = store::taking([quota], [])?;
    Taken::parse(TAKE.run_in(transaction, taking).await?)
}

/// Puts what was spent in place of what a record says, or removes the record where nothing was. The quota is locked, unless
/// it is gone, and its days with it.
async fn correct(
    transaction: &Transaction,
    taken: &mut Taken,
    id: &str,
    record: &Record,
    spent: Option<Spent<'_>>,
) -> Result<(), StoreError> {
    match spent {
        Some(Spent {
            model,
            amounts,
            outcome,
        }) => store::replace_record(transaction, id, record, model, amounts, outcome).await?,
        None => store::remove_record(transaction, id, record).await?,
    }
    let Some(account) = taken.accounts.get_mut(&record.quota) else {
        return Ok(());
    };
    let used = spent.map_or(Amounts::default(), |spent| spent.amounts);
    let (was, is) = (record.amounts.limited(), used.limited());
    account.standing.correct(record.created_at, was, is);
    let putting = store::putting(&[], taken.accounts.values(), &[], [])?;
    PUT.run_in(transaction, putting).await?;

    let counted = record.amounts.with(Measure::Requests, 1);
    let key = day_key(record, &record.model);
    let Some(Spent { model, amounts, .. }) = spent else {
        return store::correct_day(transaction, &key, counted, Amounts::default()).await;
    };
    let used = amounts.with(Measure::Requests, 1);
    if model == record.model {
        return store::correct_day(transaction, &key, counted, used).await;
    }
    store::correct_day(transaction, &key, counted, Amounts::default()).await?;
    let key = day_key(record, model);
    store::correct_day(transaction, &key, Amounts::default(), used).await
}

/// The sums of days in which a record counts, under this model.
fn day_key<'a>(record: &'a Record, model: &'a str) -> DayKey<'a> {
    DayKey {
        quota: &record.quota,
        // As when it was settled: a clock that was ahead may have made the reservation.
        day: books::day(record.created_at.min(record.settled_at)),
        model,
        character: record.character.as_deref().unwrap_or_default(),
    }
}
