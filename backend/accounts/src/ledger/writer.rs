//! The one task of a process that writes the ledger.
//!
//! While a transaction is on its way to the disk, the next admissions and settlements gather; they then share one
//! transaction (group commit). Nobody waits for most settlements, so they gather for some milliseconds more. The rows of
//! their quotas are locked in it, so limits hold over all nodes.
//!
//! When the database fails, whoever waits for an admission hears it at once. Settlements wait and are tried again, in
//! transactions of their own that get smaller: one that cannot be stored must not keep the others from it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use colloquy_base::clock::runtime_now;
use colloquy_store::Writer;
use tokio::time::{Instant, sleep_until};

use super::{
    LedgerError,
    batch::{self, Admitted, Stored},
    correct::correct_swept,
    queue::{Admission, Batch, Queue, Settlement},
    reservation::Reservation,
};
use crate::Accounts;

/// The most settlements, and the most admissions, of one transaction.
const MOST: usize = 256;
/// The most corrections, each a transaction, before others have their turn.
const MOST_CORRECTED: usize = 16;
/// The wait before failed settlements are tried again; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Writes until the ledger is closed and everything is settled.
pub(super) async fn write(accounts: Accounts) {
    let queue = Arc::clone(&accounts.ledger.queue);
    let mut writer = Writer::new(&accounts.store);
    let mut retries = Retries::new();
    loop {
        tokio::select! {
            batch = queue.next(MOST) => match batch {
                Some(batch) => run(&accounts, &mut writer, &queue, batch, &mut retries).await,
                None if retries.waiting.is_empty() => return,
                None => {
                    sleep_until(retries.at).await;
                    retries.run(&accounts, &mut writer).await;
                }
            },
            () = sleep_until(retries.at), if !retries.waiting.is_empty() => retries.run(&accounts, &mut writer).await,
        }
        let waiting = queue.depth() + retries.waiting.len();
        metrics::gauge!("colloquy_ledger_queue_depth").set(waiting as f64);
        metrics::gauge!("colloquy_reservations_open").set(queue.open() as f64);
    }
}

/// Stores a batch and tells everybody how it went.
async fn run(
    accounts: &Accounts,
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
    match batch::store(accounts, writer, &settlements, &admissions).await {
        Ok(Stored { counted, decisions }) => {
            let late = finish(settlements, counted);
            for (admission, decision) in admissions.into_iter().zip(decisions) {
                if matches!(decision, Err(LedgerError::Refused(_))) {
                    // What it has no room for may only wait to be settled.
                    if let Some(admission) = queue.settle_first(admission) {
                        answer(admission, decision, queue);
                    }
                } else {
                    answer(admission, decision, queue);
                }
            }
            retries.correct(accounts, late).await;
        }
        Err(failure) => {
            accounts.store.complain("storing in the ledger", &failure);
            retries.add(settlements);
            for admission in admissions {
                let bound = admission.wanted.bound;
                let (held, reply) = admission.into_held(bound, accounts.clock.now_ms());
                if failure.undecided {
                    retries.add([Settlement::unused(held)]);
                }
                drop(reply.send(Err(LedgerError::Unavailable)));
            }
        }
    }
}

fn answer(admission: Admission, decision: Result<Admitted, LedgerError>, queue: &Arc<Queue>) {
    let (reply, granted) = match decision {
        Ok(Admitted {
            standing,
            bound,
            created_at,
        }) => {
            let (held, reply) = admission.into_held(bound, created_at);
            (reply, Ok(Reservation::new(held, queue, standing)))
        }
        Err(error) => (admission.reply, Err(error)),
    };
    // Somebody who does not wait any more gives the reservation back by dropping it.
    drop(reply.send(granted));
}

/// Says that settlements are stored. Returns those of this process that did not count, which another node may have settled.
fn finish(settlements: Vec<Settlement>, counted: Vec<bool>) -> Vec<Settlement> {
    let mut late = Vec::new();
    for (settlement, counted) in settlements.into_iter().zip(counted) {
        // What a sweep settles was used, and is not open here.
        if !counted && (settlement.open.is_some() || settlement.used.is_none()) {
            late.push(settlement);
        } else {
            tell(settlement, counted);
        }
    }
    late
}

/// Says that a settlement is stored.
fn tell(settlement: Settlement, counted: bool) {
    let Settlement { done, open, .. } = settlement;
    // Whoever hears of it finds it no longer open.
    drop(open);
    if let Some(done) = done {
        // Nobody has to wait for it.
        let _ = done.send(counted);
    }
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
            at: runtime_now(),
            wait: FIRST_WAIT,
            most: MOST,
        }
    }

    fn add(&mut self, settlements: impl IntoIterator<Item = Settlement>) {
        if self.waiting.is_empty() {
            self.at = runtime_now() + FIRST_WAIT;
        }
        self.waiting.extend(settlements);
    }

    /// Tries some of them again. Those that fail go to the end, and fewer are tried together the next time.
    async fn run(&mut self, accounts: &Accounts, writer: &mut Writer) {
        let count = self.most.min(self.waiting.len());
        let settlements: Vec<Settlement> = self.waiting.drain(..count).collect();
        metrics::counter!("colloquy_ledger_settle_retries_total").increment(count as u64);
        match batch::store(accounts, writer, &settlements, &[]).await {
            Ok(Stored { counted, .. }) => {
                let late = finish(settlements, counted);
                self.most = (self.most * 2).min(MOST);
                if self.correct(accounts, late).await {
                    self.at = runtime_now();
                    self.wait = FIRST_WAIT;
                } else {
                    self.back_off();
                }
            }
            Err(failure) => {
                accounts
                    .store
                    .complain("storing settlements again", &failure);
                self.waiting.extend(settlements);
                self.back_off();
                self.most = (count / 2).max(1);
            }
        }
    }

    fn back_off(&mut self) {
        self.at = runtime_now() + self.wait;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }

    /// Corrects what other nodes have settled at its bound. Returns false if one failed; it is tried again with those behind it,
    /// as a settlement, after them.
    async fn correct(&mut self, accounts: &Accounts, late: Vec<Settlement>) -> bool {
        let mut late = late.into_iter();
        let mut turn = MOST_CORRECTED;
        while let Some(settlement) = late.next() {
            if let Err(error) = correct_swept(accounts, &settlement).await {
                accounts
                    .store
                    .complain("correcting what another node has settled", &error);
                self.add(late.chain([settlement]));
                return false;
            }
            tell(settlement, false);
            turn -= 1;
            if turn == 0 {
                self.add(late);
                return true;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::ledger::{
        Amounts, Outcome,
        reservation::{Entry, Held},
    };

    #[test]
    fn what_may_have_been_swept_is_looked_at_again() {
        let unused = || {
            Settlement::unused(Held {
                id: "one".to_owned(),
                quota: "quota".to_owned(),
                bound: Amounts::default(),
                entry: Entry {
                    endpoint: Cow::Borrowed("/"),
                    model: "gpt".to_owned(),
                    character: None,
                    request_id: "request".to_owned(),
                },
                created_at: 0,
            })
        };
        let swept = Settlement {
            used: Some((Amounts::default(), Outcome::Bound)),
            ..unused()
        };
        // An admission whose commit was not answered may be stored, and another node may have settled it.
        let late = finish(vec![unused(), unused(), swept], vec![false, true, false]);
        assert_eq!(late.len(), 1);
        assert!(late[0].used.is_none());
    }
}
