//! One batch in one transaction: settlements, then admissions.

use std::collections::BTreeMap;

use colloquy_store::{Rows, StoreError, Transaction, Writer};

use super::{
    Amounts, LedgerError, Measure, Refused, Standing, books,
    queue::{Admission, Settlement, Wanted},
    store::{self, Account, DayKey, NewRecord, NewReservation, Taken},
};
use crate::{Accounts, quotas::QuotaUnusable};

/// What became of a batch.
pub(super) struct Stored {
    /// Whether each settlement counted: it does not when somebody else had settled the reservation.
    pub(super) counted: Vec<bool>,
    /// What each admission came to.
    pub(super) decisions: Vec<Result<Admitted, LedgerError>>,
}

/// An admission that was stored.
pub(super) struct Admitted {
    pub(super) standing: Standing,
    /// What is reserved.
    pub(super) bound: Amounts,
    /// On the clock of its period, in milliseconds since 1970.
    pub(super) created_at: i64,
}

impl Admitted {
    /// What is stored of it.
    fn reservation<'a>(&self, wanted: &'a Wanted, node: &'a str) -> NewReservation<'a> {
        NewReservation {
            id: &wanted.id,
            quota: &wanted.quota,
            node,
            period_start: self.standing.period_start,
            bound: self.bound,
            entry: &wanted.entry,
            created_at: self.created_at,
        }
    }
}

/// Why a batch was not stored.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(super) struct Failure {
    error: StoreError,
    /// Whether it may have been stored all the same: what went wrong may be the answer to the commit.
    pub(super) undecided: bool,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self {
            error,
            undecided: false,
        }
    }
}

/// Stores a batch.
pub(super) async fn store(
    accounts: &Accounts,
    writer: &mut Writer,
    settlements: &[Settlement],
    admissions: &[Admission],
) -> Result<Stored, Failure> {
    let now = accounts.clock.now_ms();
    let ids = settlements.iter().map(|end| end.held.id.as_str());
    let taking = store::taking(quotas_of(settlements, admissions), ids)?;
    let (transaction, taken) = writer.begin(&store::TAKE, taking).await?;
    let mut taken = Taken::parse(taken)?;

    let settled = settle(settlements, &mut taken, now);
    let decisions: Vec<_> = admissions
        .iter()
        .map(|Admission { wanted, again, .. }| {
            // First all of it: less is for when nothing waits to be settled any more.
            let least = match again {
                true => wanted.least,
                false => wanted.bound,
            };
            admit(wanted, least, taken.accounts.get_mut(&wanted.quota), now)
        })
        .collect();
    let admitted = admissions.iter().zip(&decisions);
    let reservations: Vec<_> = admitted
        .filter_map(|(admission, decision)| {
            let admitted = decision.as_ref().ok()?;
            Some(admitted.reservation(&admission.wanted, &accounts.kernel.node.id))
        })
        .collect();

    let putting = settled.putting(&reservations, &taken)?;
    transaction
        .commit(&store::PUT, putting)
        .await
        .map_err(|error| Failure {
            error,
            undecided: true,
        })?;
    count(&settled.days);
    Ok(Stored {
        counted: settled.counted,
        decisions,
    })
}

/// Stores a settlement within a transaction of somebody else.
pub(super) async fn settle_in(
    transaction: &Transaction,
    settlement: Settlement,
    now: i64,
) -> Result<(), StoreError> {
    let taking = store::taking(
        [settlement.held.quota.as_str()],
        [settlement.held.id.as_str()],
    )?;
    let taken = store::TAKE.run_in(transaction, taking).await?;
    let mut taken = Taken::parse(taken)?;
    let settlements = [settlement];
    let settled = settle(&settlements, &mut taken, now);
    let putting = settled.putting(&[], &taken)?;
    store::PUT.run_in(transaction, putting).await?;
    count(&settled.days);
    Ok(())
}

/// Reserves within a transaction of somebody else, for no process.
pub(super) async fn reserve_in(
    transaction: &Transaction,
    wanted: &Wanted,
    now: i64,
) -> Result<Result<Standing, LedgerError>, StoreError> {
    let taking = store::taking([wanted.quota.as_str()], [])?;
    let taken = store::TAKE.run_in(transaction, taking).await?;
    let mut taken = Taken::parse(taken)?;
    let account = taken.accounts.get_mut(&wanted.quota);
    let admitted = match admit(wanted, wanted.least, account, now) {
        Ok(admitted) => admitted,
        Err(refused) => return Ok(Err(refused)),
    };
    let reservation = admitted.reservation(wanted, store::NO_NODE);
    let putting = Settled::default().putting(&[reservation], &taken)?;
    store::PUT.run_in(transaction, putting).await?;
    Ok(Ok(admitted.standing))
}

/// The quotas of a batch, sorted, each once.
fn quotas_of<'a>(settlements: &'a [Settlement], admissions: &'a [Admission]) -> Vec<&'a str> {
    let settlements = settlements.iter().map(|end| end.held.quota.as_str());
    let admissions = admissions
        .iter()
        .map(|admission| admission.wanted.quota.as_str());
    let mut quotas: Vec<&str> = settlements.chain(admissions).collect();
    quotas.sort_unstable();
    quotas.dedup();
    quotas
}

/// What the settlements of a batch leave to be written.
#[derive(Default)]
struct Settled<'a> {
    counted: Vec<bool>,
    records: Vec<NewRecord<'a>>,
    days: BTreeMap<DayKey<'a>, Amounts>,
}

impl Settled<'_> {
    /// What is to be written.
    fn putting(
        &self,
        reservations: &[NewReservation<'_>],
        taken: &Taken,
    ) -> Result<[Rows; 5], StoreError> {
        store::putting(
            reservations,
            taken.accounts.values(),
            &self.records,
            &self.days,
        )
    }
}

/// Settles the reservations that were taken. Usage counts for the day of its reservation, so that the days of a period
/// add up to what was used in it.
fn settle<'a>(settlements: &'a [Settlement], taken: &mut Taken, now: i64) -> Settled<'a> {
    let mut settled = Settled {
        counted: Vec::with_capacity(settlements.len()),
        records: Vec::new(),
        days: BTreeMap::new(),
    };
    for Settlement { held, used, .. } in settlements {
        let period_start = taken.reservations.remove(&held.id);
        settled.counted.push(period_start.is_some());
        let account = taken.accounts.get_mut(&held.quota);
        let (Some(period_start), Some(account)) = (period_start, account) else {
            continue;
        };
        let amounts = used.map_or(Amounts::default(), |(usage, _)| usage.limited());
        account.standing.settle(period_start, held.bound, amounts);
        let Some((usage, outcome)) = *used else {
            continue;
        };
        settled.records.push(NewRecord {
            held,
            usage,
            outcome,
            settled_at: now,
        });
        let key = DayKey {
            quota: &held.quota,
            // A clock that was ahead may have made the reservation.
            day: books::day(held.created_at.min(now)),
            model: &held.entry.model,
            character: held.entry.character.as_deref().unwrap_or_default(),
        };
        let sum = settled.days.entry(key).or_default();
        *sum = sum.plus(usage.with(Measure::Requests, 1));
    }
    settled
}

/// Admits or refuses.
fn admit(
    wanted: &Wanted,
    least: Amounts,
    account: Option<&mut Account>,
    now: i64,
) -> Result<Admitted, LedgerError> {
    let account = account.ok_or(QuotaUnusable::Ended)?;
    account.validity.check(now)?;
    let standing = &mut account.standing;
    standing.roll_over(now);
    let reserved = standing.reserve(least, wanted.bound);
    let bound = reserved.map_err(|refusal| {
        LedgerError::Refused(Box::new(Refused {
            refusal,
            standing: *standing,
            at: now,
        }))
    })?;
    account.last_used_at = Some(now);
    Ok(Admitted {
        standing: account.standing,
        bound,
        created_at: now.max(account.standing.period_start),
    })
}

/// Counts stored usage by model.
fn count(days: &BTreeMap<DayKey<'_>, Amounts>) {
    for (key, sum) in days {
        let model = || key.model.to_owned();
        metrics::counter!("colloquy_tokens_total", "model" => model(), "kind" => "input")
            .increment(sum.of(Measure::InputTokens));
        metrics::counter!("colloquy_tokens_total", "model" => model(), "kind" => "output")
            .increment(sum.of(Measure::OutputTokens));
        // A counter takes whole numbers only: 1e-9 USD.
        metrics::counter!("colloquy_cost_nanodollars_total", "model" => model())
            .increment(sum.of(Measure::Cost).saturating_mul(10));
    }
}
