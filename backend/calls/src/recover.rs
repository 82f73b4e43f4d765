//! Calls whose end nobody else will write: those of dead nodes, and those that nobody joined.

use std::collections::BTreeSet;

use colloquy_accounts::{
    ledger::{self, DetachedUsage},
    storage,
};
use colloquy_kernel::node;
use colloquy_store::StoreError;

use super::{
    bill,
    ended::{self, Held},
    ending::look_for_end_requests,
    store,
};
use crate::Calls;

/// One round of the sweeper: ends the calls of nodes that are gone (`NODE_LOST`) and those whose signed URL expired unused
/// (`NOT_JOINED`), by the database's clock, or was signed while that was ahead. Who pays for the former pays for the time until their node was heard
/// last, and for the latter nothing.
/// A node that lives after all replaces `NODE_LOST` when it ends its call. Safe on many nodes at once.
///
/// # Errors
/// The database's failure.
pub async fn sweep(calls: &Calls) -> Result<(), StoreError> {
    let now = calls.clock.now_ms();
    let held = Held::now(&calls.kernel).await?;
    let lost_before = node::lost_before(&calls.kernel).await?;
    let database_now = calls.kernel.database_now_ms().await?;
    let own_node = &calls.kernel.node.id;
    let transaction = calls.store.begin().await?;
    let mut released = Vec::new();
    let mut silent = BTreeSet::new();
    let lost = store::end_lost(&transaction, own_node, lost_before, now).await?;
    for call in &lost {
        released.push((
            call.partner.clone(),
            call.character_bytes - call.ended_bytes,
        ));
        if call.silent_bytes > 0 {
            silent.extend(call.page_key.clone());
        }
        let spent = match call.call_time() {
            Some(flowed) => {
                let cost = bill::cost(calls, flowed);
                store::set_cost(&transaction, &call.id, cost).await?;
                bill::spent(calls, flowed, false)
            }
            None => DetachedUsage::Bound,
        };
        ledger::settle_kept(calls, &transaction, &call.id, spent).await?;
    }
    let not_joined = store::end_not_joined(&transaction, now, database_now, held.latest).await?;
    let ahead = not_joined
        .iter()
        .filter(|call| call.created_at > held.latest);
    let ahead = ahead.count();
    for call in &not_joined {
        released.push((call.partner.clone(), call.character_bytes));
        silent.extend(call.page_key.clone());
        ledger::settle_kept(calls, &transaction, &call.id, DetachedUsage::Nothing).await?;
    }
    storage::release_texts(&transaction, released).await?;
    for page_key in &silent {
        ended::bound_silent(&transaction, page_key, held).await?;
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
    if ahead > 0 {
        tracing::warn!(
            ahead,
            "calls that were created more than an hour ahead ended in error: was the clock of the database wrong?"
        );
    }
    Ok(())
}

/// Sweeps until the server stops.
pub(super) async fn keep_sweeping(calls: Calls) {
    loop {
        tokio::select! {
            () = calls.kernel.shutdown.cancelled() => return,
            () = tokio::time::sleep(node::HEARTBEAT) => {}
        }
        if let Err(error) = sweep(&calls).await {
            calls.store.complain("sweeping calls", &error);
        }
        if let Err(error) = look_for_end_requests(&calls).await {
            calls
                .store
                .complain("looking for calls that are to end", &error);
        }
    }
}
