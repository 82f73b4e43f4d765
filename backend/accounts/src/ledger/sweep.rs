//! Reservations whose process is gone, and records that are old.

use std::time::Duration;

use colloquy_kernel::node;
use colloquy_store::StoreError;
use tokio::sync::oneshot;

use super::{Outcome, books::DAY_MS, put_back, queue::Settlement, store};
use crate::Accounts;

/// How many rows are looked at together.
const MOST: u64 = 1_000;
/// How often old records are removed.
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);

/// Settles the reservations of nodes that are gone, at their bound. Safe on many nodes at once. How many it settled.
///
/// # Errors
/// The database's failure.
pub async fn sweep(accounts: &Accounts) -> Result<u64, StoreError> {
    let mut settled = 0;
    loop {
        let before = node::lost_before(&accounts.kernel).await?;
        let lost = store::lost(accounts.store.db(), &accounts.kernel.node.id, before, MOST).await?;
        if lost.is_empty() {
            break;
        }
        let mut stored = Vec::new();
        for held in lost {
            let (done, counted) = oneshot::channel();
            let usage = held.bound.used_up();
            stored.push(counted);
            accounts.ledger.queue.settle(Settlement {
                held,
                used: Some((usage, Outcome::Bound)),
                done: Some(done),
                open: None,
            });
        }
        for counted in stored {
            // An error: the writer has ended, and with it this process.
            settled += u64::from(counted.await.unwrap_or(false));
        }
    }
    if settled > 0 {
        tracing::warn!(
            settled,
            "reservations of nodes that are gone were settled at their bound"
        );
    }
    Ok(settled)
}

/// Removes the records that are older than `limits.usage_record_days`; their days' sums stay. How many it removed.
///
/// # Errors
/// The database's failure.
pub async fn prune(accounts: &Accounts) -> Result<u64, StoreError> {
    let days = i64::from(accounts.config.limits.usage_record_days);
    let before = accounts.clock.now_ms() - days * DAY_MS;
    let mut removed = 0;
    loop {
        let some = store::prune(accounts.store.db(), before, MOST).await?;
        removed += some;
        if some < MOST {
            return Ok(removed);
        }
    }
}

/// Sweeps and prunes until the server stops.
pub(super) async fn keep_sweeping(accounts: Accounts) {
    let mut prune_at = accounts.clock.instant();
    loop {
        if accounts.clock.instant() >= prune_at {
            prune_at += PRUNE_EVERY;
            if let Err(error) = prune(&accounts).await {
                accounts
                    .store
                    .complain("removing old usage records", &error);
            }
        }
        tokio::select! {
            () = accounts.kernel.shutdown.cancelled() => return,
            () = tokio::time::sleep(node::HEARTBEAT) => {}
        }
        if let Err(error) = sweep(&accounts).await {
            accounts
                .store
                .complain("settling lost reservations", &error);
        }
        if let Err(error) = put_back(&accounts).await {
            accounts
                .store
                .complain("putting quotas back into the running period", &error);
        }
    }
}
