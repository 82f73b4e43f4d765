//! The end of a call.

use std::time::Duration;

use colloquy_accounts::{
    Tenant, ledger,
    storage::{self, Sum},
};
use colloquy_kernel::journal::{self, Entry};
use colloquy_store::{StoreError, Transaction};
use colloquy_webhooks::Event;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::{
    CallState, Outcome, bill,
    ended::{self, Held},
    store::{self, CallRow, End},
    view,
};
use crate::Calls;

/// A call that ended here, until that is stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ended {
    call: String,
    /// In milliseconds since 1970.
    ended_at: i64,
    outcome: Outcome,
}

impl Entry for Ended {
    type State = Calls;

    const KIND: &'static str = "call";

    fn id(&self) -> &str {
        &self.call
    }

    async fn store(&self, calls: &Calls) -> Result<(), StoreError> {
        finish_at(calls, &self.call, &self.outcome, self.ended_at).await
    }
}

/// Ends a call for certain: a database that is away, and the end of this process, only put it off. Whoever waits for the
/// handle waits until it is stored.
pub fn end(calls: &Calls, id: &str, outcome: Outcome) -> JoinHandle<()> {
    let ended = Ended {
        call: id.to_owned(),
        ended_at: calls.clock.now_ms(),
        outcome,
    };
    journal::keep(calls, ended)
}

/// Ends a call: state, durations, transcript and the webhook's job in one transaction, which clears its character, releases
/// the bytes of that and counts those of its transcript, its metadata and the webhook's delivery, beyond the limit of the partner, too. Ending it
/// twice is harmless; the first end counts, except for `NODE_LOST`: other nodes presume that of a node that they cannot hear, and whoever ran the
/// call knows better. Then what it cost is corrected, too.
///
/// The webhook is sent for calls that completed; a call that failed sends none, since the interface document promises
/// one for completion only. A failed call has neither durations nor transcript.
///
/// # Errors
/// The database's failure.
pub async fn finish(calls: &Calls, id: &str, outcome: Outcome) -> Result<(), StoreError> {
    finish_at(calls, id, &outcome, calls.clock.now_ms()).await
}

async fn finish_at(calls: &Calls, id: &str, outcome: &Outcome, now: i64) -> Result<(), StoreError> {
    let completed = outcome.error.is_none();
    let lines = serde_json::to_string(&outcome.transcript).map_err(StoreError::other)?;
    let visitor = serde_json::to_string(&outcome.visitor).map_err(StoreError::other)?;
    let end = End {
        state: if completed {
            CallState::Completed
        } else {
            CallState::Error
        },
        error_code: outcome.error.as_deref(),
        call_seconds: completed.then(|| whole_seconds(outcome.call_time)),
        server_runtime_seconds: completed.then(|| whole_seconds(outcome.server_time)),
        transcript: (completed && !outcome.transcript.is_empty()).then_some(lines),
        visitor: (completed && !outcome.visitor.is_empty()).then_some(visitor),
        now,
    };
    let held = Held::now(&calls.kernel).await?;
    let transaction = calls.store.begin().await?;
    let Some(stored) = store_end(&transaction, id, &end).await? else {
        return Ok(());
    };
    let StoredEnd {
        mut row,
        lost_at,
        counted,
    } = stored;
    // Its end takes a moment, which nobody pays for.
    let paid = outcome.call_time.min(row.time_limit());
    let cost = bill::cost(calls, paid);
    store::set_cost(&transaction, id, cost).await?;
    row.set_cost(cost);
    match lost_at {
        None => {
            let spent = bill::spent(calls, paid, completed);
            ledger::settle_kept(calls, &transaction, id, spent).await?;
        }
        Some(lost_at) => {
            let (amounts, outcome) = bill::used(calls, paid, completed);
            ledger::correct_settled(&transaction, id, lost_at, amounts, outcome).await?;
        }
    }
    let mut released = counted - row.ended_bytes;
    if let Some(url) = row.webhook_url.as_deref().filter(|_| completed) {
        let payload = serde_json::to_value(view::ended(&row)?).map_err(StoreError::other)?;
        let tenant = Tenant::of_row(&row.partner);
        let sent = colloquy_webhooks::send(
            &calls.webhooks,
            &transaction,
            &tenant,
            Event::CallCompleted,
            &view::path(&row.id),
            url,
            &payload,
        )
        .await?;
        released -= storage::counted(sent as u64);
    }
    storage::release(&transaction, &row.partner, Sum::Texts, released).await?;
    if let Some(page_key) = row.page_key.as_deref().filter(|_| row.silent_bytes > 0) {
        ended::bound_silent(&transaction, page_key, held).await?;
    }
    transaction.commit().await?;
    calls.kernel.jobs.wake();
    let state = if completed { "completed" } else { "error" };
    metrics::counter!("colloquy_calls_ended_total", "state" => state).increment(1);
    Ok(())
}

/// An end that the call's row has.
struct StoredEnd {
    row: CallRow,
    /// When other nodes had presumed the call lost, if they had.
    lost_at: Option<i64>,
    /// How many bytes of the call counted before: its character and parameters, or what it had when it was presumed lost.
    counted: i64,
}

/// Stores an end in the call's row. Returns `None` when another end counts, which is said in the log.
async fn store_end(
    transaction: &Transaction,
    id: &str,
    end: &End<'_>,
) -> Result<Option<StoredEnd>, StoreError> {
    if let Some(row) = store::end(transaction, id, end).await? {
        let counted = row.character_bytes;
        return Ok(Some(StoredEnd {
            row,
            lost_at: None,
            counted,
        }));
    }
    let Some(stored) = store::ended_call(transaction, id).await? else {
        tracing::warn!(call = %id, "the outcome of a call was not stored: there is no such call any more");
        return Ok(None);
    };
    if let Some(lost_at) = stored.presumed_lost_at()
        && let Some(row) = store::end_presumed_lost(transaction, id, end).await?
    {
        tracing::warn!(
            call = %id,
            state = end.state.as_str(),
            "a call that other nodes had presumed lost has ended; its outcome counts"
        );
        return Ok(Some(StoredEnd {
            row,
            lost_at: Some(lost_at),
            counted: stored.ended_bytes,
        }));
    }
    // The same end, from the journal.
    if stored.ended_at != Some(end.now) {
        tracing::warn!(
            call = %id,
            state = stored.state,
            error = stored.error_code,
            "the outcome of a call was not stored: the call had ended before"
        );
    }
    Ok(None)
}

/// The nearest whole second.
fn whole_seconds(time: Duration) -> i64 {
    i64::try_from((time + Duration::from_millis(500)).as_secs()).unwrap_or(i64::MAX)
}
