//! Calls whose end nobody else will write: those of dead nodes, and those that nobody joined.

use std::time::Duration;

use sea_orm::DbErr;

use super::store;
use crate::{
    accounts::ledger::{self, Spent},
    app::App,
    node,
};

/// One round of the sweeper: says that this node lives, ends the calls of nodes that are gone (`NODE_LOST`) and those
/// whose signed URL expired unused (`NOT_JOINED`). Who pays for them pays for the time limit of the former, and nothing for
/// the latter. Safe on many nodes at once.
///
/// # Errors
/// The database's failure.
pub async fn sweep(app: &App) -> Result<(), DbErr> {
    node::heartbeat(app).await?;
    let now = app.clock.now_ms();
    let transaction = app.store.begin().await?;
    let lost = store::end_lost(&transaction, &app.node.id, node::lost_before(app), now).await?;
    for call in &lost {
        ledger::settle_kept(app, &transaction, call, Spent::Bound).await?;
    }
    let not_joined = store::end_not_joined(&transaction, now).await?;
    for call in &not_joined {
        ledger::settle_kept(app, &transaction, call, Spent::Nothing).await?;
    }
    transaction.commit().await?;
    if !lost.is_empty() {
        let lost = lost.len();
        tracing::warn!(lost, "calls of nodes that are gone ended in error");
    }
    if !not_joined.is_empty() {
        let not_joined = not_joined.len();
        tracing::info!(not_joined, "calls that nobody joined ended in error");
    }
    Ok(())
}

/// How often the sweeper looks whether the last call of a stopping server has ended.
const DRAIN_CHECK: Duration = Duration::from_secs(1);

/// Sweeps until the server stops. While it drains the heartbeat goes on: otherwise other nodes would end calls, and settle
/// reservations, that are still open here.
pub(super) async fn keep_sweeping(app: App) {
    loop {
        let stopping = app.shutdown.is_cancelled();
        let slots = app.config.media.max_calls as usize;
        let calls = slots.saturating_sub(app.call_slots.available_permits());
        let running = calls + app.ledger.open();
        if stopping && running == 0 {
            return;
        }
        if stopping {
            tokio::time::sleep(DRAIN_CHECK).await;
        } else {
            tokio::select! {
                () = app.shutdown.cancelled() => continue,
                () = tokio::time::sleep(node::HEARTBEAT) => {}
            }
        }
        if let Err(error) = sweep(&app).await {
            tracing::error!(%error, "sweeping calls");
        }
    }
}
