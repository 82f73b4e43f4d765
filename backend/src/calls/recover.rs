//! Calls whose end nobody else will write: those of dead nodes, and those that nobody joined.

use std::time::Duration;

use sea_orm::DbErr;

use super::store;
use crate::{app::App, node};

/// One round of the sweeper: says that this node lives, ends the calls of nodes that are gone (`NODE_LOST`) and those
/// whose signed URL expired unused (`NOT_JOINED`). Safe on many nodes at once.
///
/// # Errors
/// The database's failure.
pub async fn sweep(app: &App) -> Result<(), DbErr> {
    node::heartbeat(app).await?;
    let db = app.store.db();
    let now = app.clock.now_ms();
    let lost = store::end_lost(db, &app.node.id, node::lost_before(app), now).await?;
    if lost > 0 {
        tracing::warn!(lost, "calls of nodes that are gone ended in error");
    }
    let not_joined = store::end_not_joined(db, now).await?;
    if not_joined > 0 {
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
