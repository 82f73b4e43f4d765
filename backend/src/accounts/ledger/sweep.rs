//! Reservations whose process is gone, and records that are old.

use std::time::Duration;

use sea_orm::DbErr;
use tokio::sync::oneshot;

use super::{Outcome, Usage, queue::Settlement, store};
use crate::{app::App, node};

/// How many rows are looked at together.
const MOST: u64 = 1_000;
/// How often old records are removed.
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Settles the reservations of nodes that are gone, at their bound. Safe on many nodes at once. How many it settled.
///
/// # Errors
/// The database's failure.
pub async fn sweep(app: &App) -> Result<u64, DbErr> {
    let mut settled = 0;
    loop {
        let before = node::lost_before(app);
        let lost = store::lost(app.store.db(), &app.node.id, before, MOST).await?;
        if lost.is_empty() {
            break;
        }
        let mut stored = Vec::new();
        for held in lost {
            let (done, counted) = oneshot::channel();
            let usage = Usage::of_bound(held.bound);
            stored.push(counted);
            app.ledger.queue.settle(Settlement {
                held,
                used: Some((usage, Outcome::Bound)),
                done: Some(done),
                _open: None,
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
pub async fn prune(app: &App) -> Result<u64, DbErr> {
    let days = i64::from(app.config.limits.usage_record_days);
    let before = app.clock.now_ms() - days * DAY_MS;
    let mut removed = 0;
    loop {
        let some = store::prune(app.store.db(), before, MOST).await?;
        removed += some;
        if some < MOST {
            return Ok(removed);
        }
    }
}

/// Sweeps and prunes until the server stops.
pub(super) async fn keep_sweeping(app: App) {
    let mut prune_at = app.clock.instant();
    loop {
        if app.clock.instant() >= prune_at {
            prune_at += PRUNE_EVERY;
            if let Err(error) = prune(&app).await {
                tracing::error!(%error, "removing old usage records");
            }
        }
        tokio::select! {
            () = app.shutdown.cancelled() => return,
            () = tokio::time::sleep(node::HEARTBEAT) => {}
        }
        if let Err(error) = sweep(&app).await {
            tracing::error!(%error, "settling lost reservations");
        }
    }
}
