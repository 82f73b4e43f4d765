//! The one task of a process that writes the ledger.
//!
//! While a transaction is on its way to the disk, the next admissions and settlements gather; they then share one
//! transaction (group commit). Nobody waits for most settlements, so they gather for some milliseconds more. The rows of
//! their quotas are locked in it, so limits hold over all nodes.
//!
//! When the database fails, whoever waits for an admission hears it at once. Settlements wait and are tried again, in
//! transactions of their own that get smaller: one that cannot be stored must not keep the others from it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::{
    batch::{self, Admitted, Stored},
    queue::{Admission, Batch, Queue, Settlement},
    reservation::Reservation,
};
use crate::{app::App, http::ApiError, store::Writer};

/// The most settlements, and the most admissions, of one transaction.
const MOST: usize = 256;
/// The wait before failed settlements are tried again; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Writes until the ledger is closed and everything is settled.
pub(super) async fn write(app: App) {
    let queue = Arc::clone(&app.ledger.queue);
    let mut writer = Writer::new(&app.store);
    let mut retries = Retries::new();
    loop {
        tokio::select! {
            batch = queue.next(MOST) => match batch {
                Some(batch) => run(&app, &mut writer, &queue, batch, &mut retries).await,
                None if retries.waiting.is_empty() => return,
                None => {
                    sleep_until(retries.at).await;
                    retries.run(&app, &mut writer).await;
                }
            },
            () = sleep_until(retries.at), if !retries.waiting.is_empty() => retries.run(&app, &mut writer).await,
        }
        let waiting = queue.depth() + retries.waiting.len();
        metrics::gauge!("colloquy_ledger_queue_depth").set(waiting as f64);
        metrics::gauge!("colloquy_reservations_open").set(queue.open() as f64);
    }
}

/// Stores a batch and tells everybody how it went.
async fn run(
    app: &App,
    writer: &mut Writer,
    queue: &Arc<Queue>,
    batch: Batch,
    retries: &mut Retries,
) {
    let Batch {
        settlements,
        mut admissions,
    } = batch;
    admissions.retain(|admission| !admission.reply.is_closed());
    metrics::histogram!("colloquy_ledger_batch_operations")
        .record((settlements.len() + admissions.len()) as f64);
    match batch::store(app, writer, &settlements, &admissions).await {
        Ok(Stored { counted, decisions }) => {
            finish(settlements, counted);
            for (admission, decision) in admissions.into_iter().zip(decisions) {
                if decision.as_ref().is_err_and(batch::is_exhausted) {
                    // What it has no room for may only wait to be settled.
                    if let Some(admission) = queue.settle_first(admission) {
                        answer(admission, decision, queue);
                    }
                } else {
                    answer(admission, decision, queue);
                }
            }
        }
        Err(failure) => {
            tracing::error!(error = %failure, "storing in the ledger");
            retries.add(settlements);
            for admission in admissions {
                let (held, reply) = admission.into_held(app.clock.now_ms());
                if failure.undecided {
                    retries.add([Settlement::unused(held)]);
                }
                drop(reply.send(Err(unavailable())));
            }
        }
    }
}

fn answer(admission: Admission, decision: Result<Admitted, ApiError>, queue: &Arc<Queue>) {
    let (reply, granted) = match decision {
        Ok(Admitted {
            standing,
            created_at,
        }) => {
            let (held, reply) = admission.into_held(created_at);
            (reply, Ok(Reservation::new(held, queue, standing)))
        }
        Err(error) => (admission.reply, Err(error)),
    };
    // Somebody who does not wait any more gives the reservation back by dropping it.
    drop(reply.send(granted));
}

/// Says that settlements are stored.
fn finish(settlements: Vec<Settlement>, counted: Vec<bool>) {
    for (settlement, counted) in settlements.into_iter().zip(counted) {
        if let Some(done) = settlement.done {
            // Nobody has to wait for it.
            let _ = done.send(counted);
        }
    }
}

/// 503: the database fails.
fn unavailable() -> ApiError {
    let wait = Duration::from_secs(1);
    ApiError::unavailable("Usage cannot be recorded at the moment", wait)
}

/// Settlements that were not stored.
struct Retries {
    waiting: VecDeque<Settlement>,
    /// When they are tried next.
    at: Instant,
    wait: Duration,
    /// How many are tried together.
    most: usize,
}

impl Retries {
    fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            at: Instant::now(),
            wait: FIRST_WAIT,
            most: MOST,
        }
    }

    fn add(&mut self, settlements: impl IntoIterator<Item = Settlement>) {
        if self.waiting.is_empty() {
            self.at = Instant::now() + FIRST_WAIT;
        }
        self.waiting.extend(settlements);
    }

    /// Tries some of them again. Those that fail go to the end, and fewer are tried together the next time.
    async fn run(&mut self, app: &App, writer: &mut Writer) {
        let count = self.most.min(self.waiting.len());
        let settlements: Vec<Settlement> = self.waiting.drain(..count).collect();
        metrics::counter!("colloquy_ledger_settle_retries_total").increment(count as u64);
        match batch::store(app, writer, &settlements, &[]).await {
            Ok(Stored { counted, .. }) => {
                finish(settlements, counted);
                self.at = Instant::now();
                self.wait = FIRST_WAIT;
                self.most = (self.most * 2).min(MOST);
            }
            Err(failure) => {
                tracing::error!(error = %failure, count, "storing settlements again");
                self.waiting.extend(settlements);
                self.at = Instant::now() + self.wait;
                self.wait = (self.wait * 2).min(LONGEST_WAIT);
                self.most = (count / 2).max(1);
            }
        }
    }
}
