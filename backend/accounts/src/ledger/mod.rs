//! The ledger: reserves a bound before something is paid for, settles what was really used after.
//!
//! A reservation is stored when [`Ledger::reserve`] returns, and counts against the quota until it is settled. Whoever
//! holds it settles it; one that is dropped, or whose process died, is settled at its bound, so that a crash never makes
//! anything free. Only integers: money is counted in 1e-8 USD.
//!
//! One task a process, the [`writer`], stores all that waits in one transaction. [`books`] says who is admitted,
//! [`mod@sweep`] settles what dead processes left, [`correct`] what they had not left after all. What is measured, [`measures`] lists: a line there is all that a further
//! measure takes here and in the database. What the bound of a request is, and what was used, the capabilities know;
//! whose the quota is and what it is for, [`quotas`](super::quotas) knows.

mod batch;
mod books;
#[cfg(test)]
mod books_tests;
pub mod budget;
mod correct;
mod error;
mod future;
mod measures;
mod queue;
mod report;
mod reservation;
pub(super) mod store;
mod sweep;
mod writer;

use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::oneshot;

pub use self::{
    books::{Period, Standing},
    correct::correct_settled,
    error::{LedgerError, Refused},
    future::put_back,
    measures::{Amounts, ByMeasure, Limits, Measure},
    report::{MAX_ROWS, UsageFilter, UsageQuota, UsageRow, UsageScope, usage, usage_page},
    reservation::Reservation,
    store::part_of_limit,
    sweep::{prune, sweep},
};
use self::{
    queue::{Admission, Queue, Settlement, Wanted},
    reservation::Entry,
};
use super::quotas::Quota;
use colloquy_base::clock::Clock;
use colloquy_store::{StoreError, Transaction};

use crate::Accounts;

/// What a reservation is for; it is stored with the usage.
#[derive(Debug, Clone)]
pub struct UsageContext {
    /// The endpoint, such as `chat.completions`, `responses`, `audio.speech`, `completions`, `calls`.
    pub endpoint: &'static str,
    /// The model's public name.
    pub model: String,
    /// The reference of a saved character, `<partner>/<name>`.
    pub character: Option<String>,
    /// The id of the request.
    pub request_id: String,
}

/// How that ended which was reserved for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Completed,
    /// At a limit of length, or cut short by a filter.
    Incomplete,
    /// With an error.
    Failed,
    /// The client hung up.
    Cancelled,
    /// Nobody knows: the bound is taken for what was used.
    Bound,
}

impl Outcome {
    /// The name in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Bound => "bound",
        }
    }
}

/// The way into the ledger; cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger {
    queue: Arc<Queue>,
    clock: Arc<dyn Clock>,
}

impl Ledger {
    /// A ledger whose writer is not running yet: that begins with [`start`].
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            queue: Arc::new(Queue::default()),
            clock,
        }
    }

    /// Reserves a bound: what a quota can limit of it. It is stored when this returns. When this is dropped before, nothing stays reserved.
    ///
    /// # Errors
    /// [`LedgerError::Refused`] when used, reserved and bound together exceed a limit, with the time until the period's
    /// end, or 1 s when only running reservations are in the way, or no time when it is no use to wait;
    /// [`LedgerError::Unusable`] when the quota ended or was disabled in the meantime. The others when the database fails or
    /// the server has stopped.
    pub async fn reserve(
        &self,
        quota: &Arc<Quota>,
        bound: Amounts,
        about: UsageContext,
    ) -> Result<Reservation, LedgerError> {
        self.reserve_within(quota, bound, bound, about).await
    }

    /// Reserves a bound, or what is left of it when that is not less than `least`: [`Reservation::bound`] says how much.
    ///
    /// # Errors
    /// As for [`Self::reserve`], when there is not even `least`.
    pub async fn reserve_within(
        &self,
        quota: &Arc<Quota>,
        least: Amounts,
        bound: Amounts,
        about: UsageContext,
    ) -> Result<Reservation, LedgerError> {
        self.admitted(&quota.id, least, bound, about).await
    }

    /// Reserves a bound of a [`budget`], as [`Self::reserve`] does of a quota.
    ///
    /// # Errors
    /// Those of [`Self::reserve`].
    pub async fn reserve_of_budget(
        &self,
        budget: &str,
        bound: Amounts,
        about: UsageContext,
    ) -> Result<Reservation, LedgerError> {
        self.admitted(budget, bound, bound, about).await
    }

    async fn admitted(
        &self,
        quota: &str,
        least: Amounts,
        bound: Amounts,
        about: UsageContext,
    ) -> Result<Reservation, LedgerError> {
        let (reply, answer) = oneshot::channel();
        let admission = Admission {
            wanted: Wanted {
                id: self.clock.new_id().to_string(),
                quota: quota.to_owned(),
                bound: bound.limited().capped(),
                least: least.limited().capped(),
                entry: Entry::new(about),
            },
            reply,
            again: false,
        };
        self.queue.admit(admission)?;
        // Without an answer, the writer has ended.
        answer.await.unwrap_or_else(|_| Err(LedgerError::Stopped))
    }

    /// How many reservations of this process are not settled yet.
    #[must_use]
    pub fn open(&self) -> usize {
        self.queue.open()
    }

    /// Nothing is reserved from now on; the writer ends once everything that is reserved has been settled.
    pub fn close(&self) {
        self.queue.close();
    }
}

/// Reserves a bound of a quota for no process, under an id of its own, together with what else the transaction does. It is settled by
/// [`settle_kept`].
///
/// # Errors
/// The database's failure. Within: [`LedgerError::Refused`] when used, reserved and bound together exceed a limit, and
/// [`LedgerError::Unusable`] when the quota ended or is switched off; then nothing was changed.
pub async fn reserve_kept(
    transaction: &Transaction,
    quota: &str,
    id: &str,
    bound: Amounts,
    about: UsageContext,
    now: i64,
) -> Result<Result<Standing, LedgerError>, StoreError> {
    let bound = bound.limited().capped();
    let wanted = Wanted {
        id: id.to_owned(),
        quota: quota.to_owned(),
        bound,
        least: bound,
        entry: Entry::new(about),
    };
    batch::reserve_in(transaction, &wanted, now).await
}

/// What a reservation came to that belongs to no process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetachedUsage {
    /// So much was used.
    Used(Amounts, Outcome),
    /// Nobody knows: its bound.
    Bound,
    /// It is taken back as if it had never been.
    Nothing,
}

/// Settles the reservation of this id, if it belongs to no process, together with what else the transaction does.
///
/// # Errors
/// The database's failure.
pub async fn settle_kept(
    accounts: &Accounts,
    transaction: &Transaction,
    id: &str,
    spent: DetachedUsage,
) -> Result<(), StoreError> {
    let Some(held) = store::kept(transaction, id).await? else {
        return Ok(());
    };
    let used = match spent {
        DetachedUsage::Used(usage, outcome) => Some((usage, outcome)),
        DetachedUsage::Bound => Some((held.bound.used_up(), Outcome::Bound)),
        DetachedUsage::Nothing => None,
    };
    let settlement = Settlement {
        used,
        ..Settlement::unused(held)
    };
    batch::settle_in(transaction, settlement, accounts.clock.now_ms()).await
}

/// Starts the writer and the sweeper, and settles what an earlier process of this node left behind.
///
/// # Errors
/// When the database fails.
pub async fn start(accounts: &Accounts) -> anyhow::Result<()> {
    accounts.kernel.tasks.spawn(writer::write(accounts.clone()));
    sweep(accounts)
        .await
        .context("settling lost reservations")?;
    put_back(accounts)
        .await
        .context("putting quotas back into the running period")?;
    accounts
        .kernel
        .tasks
        .spawn(sweep::keep_sweeping(accounts.clone()));
    Ok(())
}
