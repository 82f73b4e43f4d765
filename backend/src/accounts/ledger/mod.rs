//! The ledger: reserves a bound before something is paid for, settles what was really used after.
//!
//! A reservation is stored when [`Ledger::reserve`] returns, and counts against the quota until it is settled. Whoever
//! holds it settles it; one that is dropped, or whose process died, is settled at its bound, so that a crash never makes
//! anything free. Only integers: money is counted in 1e-8 USD.
//!
//! One task a process, the [`writer`], stores all that waits in one transaction. [`books`] says who is admitted,
//! [`mod@sweep`] settles what dead processes left. What the bound of a request is, and what was used, the capabilities know;
//! whose the quota is and what it is for, [`quotas`](super::quotas) knows.

mod batch;
mod books;
#[cfg(test)]
mod books_tests;
mod headers;
mod queue;
mod report;
mod reservation;
pub(super) mod store;
mod sweep;
mod writer;

use std::sync::Arc;

use anyhow::Context as _;
use sea_orm::{DatabaseTransaction, DbErr};
use tokio::sync::oneshot;

pub use self::{
    books::{Amounts, Limits, Measure, Period, Standing},
    report::{UsageFilter, UsageRow, usage},
    reservation::Reservation,
    sweep::{prune, sweep},
};
use self::{
    queue::{Admission, Queue, Settlement},
    reservation::Entry,
};
use super::quotas::Quota;
use crate::{app::App, clock::Clock, http::ApiError};

/// What a reservation is for; it is stored with the usage.
#[derive(Debug, Clone)]
pub struct About {
    /// The endpoint, such as `chat.completions`, `responses`, `audio.speech`, `completions`, `calls`.
    pub endpoint: &'static str,
    /// The model's public name.
    pub model: String,
    /// The reference of a saved character, `<partner>/<name>`.
    pub character: Option<String>,
    /// The id of the request.
    pub request_id: String,
}

/// What was really used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// All input tokens.
    pub input_tokens: u64,
    /// Those of them that came from the model's cache.
    pub cached_tokens: u64,
    /// All output tokens.
    pub output_tokens: u64,
    /// Those of them that were reasoning.
    pub reasoning_tokens: u64,
    /// Characters of text that was spoken.
    pub characters: u64,
    /// Seconds of a call.
    pub seconds: u64,
    /// Money, in 1e-8 USD.
    pub cost: u64,
}

/// More than any request can use. A model that reports nonsense must not make sums overflow.
const MOST: Usage = Usage {
    input_tokens: 1_000_000_000_000,
    cached_tokens: 1_000_000_000_000,
    output_tokens: 1_000_000_000_000,
    reasoning_tokens: 1_000_000_000_000,
    characters: 1_000_000_000_000,
    seconds: 1_000_000_000_000,
    cost: 1_000_000_000_000_000,
};

impl Usage {
    /// What counts against a quota.
    #[must_use]
    pub fn amounts(&self) -> Amounts {
        Amounts {
            tokens: self.input_tokens.saturating_add(self.output_tokens),
            cost: self.cost,
            characters: self.characters,
            seconds: self.seconds,
        }
    }

    /// A bound as usage. What of its tokens is input is not known; they stand as output.
    fn of_bound(bound: Amounts) -> Self {
        Self {
            output_tokens: bound.tokens,
            characters: bound.characters,
            seconds: bound.seconds,
            cost: bound.cost,
            ..Self::default()
        }
    }

    fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    fn at_most(self, most: Self) -> Self {
        self.zip(most, u64::min)
    }

    fn zip(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input_tokens: with(self.input_tokens, other.input_tokens),
            cached_tokens: with(self.cached_tokens, other.cached_tokens),
            output_tokens: with(self.output_tokens, other.output_tokens),
            reasoning_tokens: with(self.reasoning_tokens, other.reasoning_tokens),
            characters: with(self.characters, other.characters),
            seconds: with(self.seconds, other.seconds),
            cost: with(self.cost, other.cost),
        }
    }
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

    /// Reserves a bound. It is stored when this returns. When this is dropped before, nothing stays reserved.
    ///
    /// # Errors
    /// 429 `quota_exhausted` when used, reserved and bound together exceed a limit, with the time until the period's
    /// end, or 1 s when only running reservations are in the way, or no time when it is no use to wait. 401 and 403 when
    /// the quota ended or was disabled in the meantime. 503 when the database fails or the server has stopped.
    pub async fn reserve(
        &self,
        quota: &Arc<Quota>,
        bound: Amounts,
        about: About,
    ) -> Result<Reservation, ApiError> {
        let (reply, answer) = oneshot::channel();
        let admission = Admission {
            id: self.clock.new_id().to_string(),
            quota: quota.id.clone(),
            bound: bound.zip(MOST.amounts(), u64::min),
            entry: Entry::new(about),
            reply,
            again: false,
        };
        self.queue.admit(admission)?;
        // Without an answer, the writer has ended.
        answer.await.unwrap_or_else(|_| Err(queue::stopped()))
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

/// What a reservation came to that belongs to no process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// So much was used.
    Used(Usage, Outcome),
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
    app: &App,
    transaction: &DatabaseTransaction,
    id: &str,
    spent: Spent,
) -> Result<(), DbErr> {
    let Some(held) = store::kept(transaction, id).await? else {
        return Ok(());
    };
    let used = match spent {
        Spent::Used(usage, outcome) => Some((usage, outcome)),
        Spent::Bound => Some((Usage::of_bound(held.bound), Outcome::Bound)),
        Spent::Nothing => None,
    };
    let settlement = Settlement {
        used,
        ..Settlement::unused(held)
    };
    batch::settle_in(transaction, settlement, app.clock.now_ms()).await
}

/// Starts the writer and the sweeper, and settles what an earlier process of this node left behind.
///
/// # Errors
/// When the database fails.
pub async fn start(app: &App) -> anyhow::Result<()> {
    app.tasks.spawn(writer::write(app.clone()));
    sweep(app).await.context("settling lost reservations")?;
    app.tasks.spawn(sweep::keep_sweeping(app.clone()));
    Ok(())
}
