//! This process among the nodes of the installation: who it is, that it lives, and which nodes are gone.
//!
//! A node's name stays with its data folder; its id is new for every process. Calls and leases carry the id, so what a
//! killed process held can be told from what a living one holds. What happens to those is the business of `calls` and
//! `jobs`.

mod store;

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read as _, Write as _},
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use colloquy_base::clock::runtime_now;
use colloquy_store::StoreError;
use tokio::time::sleep;

use crate::{Base, Kernel};

/// How often a node says that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// A node that was silent for this long is gone.
pub const LOST_AFTER: Duration = Duration::from_secs(30);

/// This process.
#[derive(Debug)]
pub struct Node {
    /// New for every process.
    pub id: String,
    /// Stays with the data folder.
    pub name: String,
    pulse: Mutex<Heartbeat>,
    /// Held while the process lives; the system lets go of it however the process ends.
    _lock: Option<File>,
}

/// Joins the installation. Nodes of the same name that came before are gone from now on: the lock on the data folder
/// says that their process is dead, so nobody has to wait for their silence.
///
/// # Errors
/// When the data folder or the database fails.
pub async fn join(base: &Base) -> anyhow::Result<Node> {
    let id = base.clock.new_id().to_string();
    let fresh = base.clock.new_id().to_string();
    let dir = base.config.store.dir.clone();
    let (name, lock) = tokio::task::spawn_blocking(move || claim_name(&dir, fresh)).await??;
    let now = base.clock.now_ms();
    let transaction = base.store.begin().await?;
    if lock.is_some() {
        store::end_earlier(&transaction, &name, now).await?;
    }
    store::insert(&transaction, &id, &name, now).await?;
    transaction.commit().await?;
    tracing::info!(node = id, name, "joined as a node");
    Ok(Node {
        id,
        name,
        pulse: Mutex::new(Heartbeat {
            last: now,
            outage: None,
        }),
        _lock: lock,
    })
}

/// What this node knows of its own heartbeat.
#[derive(Debug)]
struct Heartbeat {
    /// When it was stored last, in milliseconds since 1970.
    last: i64,
    outage: Option<Outage>,
}

/// The database could not be told that this node lives, so nor could it by others.
#[derive(Debug)]
struct Outage {
    /// The last heartbeat before.
    before: i64,
    /// The first one after.
    over: Option<i64>,
}

/// Says that this node lives.
///
/// # Errors
/// The database's failure.
pub async fn heartbeat(kernel: &Kernel) -> Result<(), StoreError> {
    let now = kernel.clock.now_ms();
    let stored = store::heartbeat(kernel.store.db(), &kernel.node.id, now).await;
    let mut pulse = kernel
        .node
        .pulse
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let before = pulse.last;
    match &stored {
        Ok(()) => {
            pulse.last = now;
            if let Some(outage) = &mut pulse.outage {
                outage.over.get_or_insert(now);
            }
        }
        Err(_) => match &mut pulse.outage {
            Some(outage) if outage.over.is_none() => {}
            outage => *outage = Some(Outage { before, over: None }),
        },
    }
    stored
}

/// Says that this node lives, until the server has drained: otherwise other nodes would end calls, and settle reservations,
/// that are still open here. `open` tells how many there are.
pub fn start(kernel: &Kernel, open: impl Fn() -> usize + Send + 'static) {
    let kernel = kernel.clone();
    kernel.clone().tasks.spawn(async move {
        let mut forget_at = runtime_now() + FORGET_EVERY;
        loop {
            let stopping = kernel.shutdown.is_cancelled();
            if stopping && open() == 0 {
                return;
            }
            if stopping {
                sleep(DRAIN_CHECK).await;
            } else {
                tokio::select! {
                    () = kernel.shutdown.cancelled() => continue,
                    () = sleep(HEARTBEAT) => {}
                }
            }
            if let Err(error) = heartbeat(&kernel).await {
                kernel.store.complain("saying that this node lives", &error);
            }
            if runtime_now() >= forget_at {
                forget_at = runtime_now() + FORGET_EVERY;
                let before = kernel.clock.now_ms() - FORGET_AFTER.as_millis() as i64;
                if let Err(error) = store::forget(kernel.store.db(), before).await {
                    kernel.store.complain("forgetting nodes", &error);
                }
            }
        }
    });
}

/// How often it is looked whether the last work of a stopping server has ended.
const DRAIN_CHECK: Duration = Duration::from_secs(1);

/// The SQL of a sub-select with the ids of all nodes that live; `$1` is [`lost_before`].
pub const LIVING: &str = "SELECT id FROM nodes WHERE ended_at IS NULL AND heartbeat_at >= $1";

/// Rows of nodes that were silent for this long are removed.
const FORGET_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often. Not at the start: what they left behind is looked at first.
const FORGET_EVERY: Duration = Duration::from_secs(3600);

/// The time, in milliseconds since 1970, since which a living node has said so. After the database was away, when nobody
/// could, all nodes get their time anew.
#[must_use]
pub fn lost_before(kernel: &Kernel) -> i64 {
    let now = kernel.clock.now_ms();
    let patience = LOST_AFTER.as_millis() as i64;
    let pulse = kernel
        .node
        .pulse
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    match &pulse.outage {
        Some(outage) if outage.over.is_none_or(|over| now - over < patience) => {
            outage.before - patience
        }
        _ => now - patience,
    }
}

/// The folder's name for this node, and the lock on it. Another living process on the same folder is another node: this
/// one then takes a name of its own and no lock.
fn claim_name(dir: &Path, fresh: String) -> anyhow::Result<(String, Option<File>)> {
    let path = dir.join("node-id");
    let shown = path.display().to_string();
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .with_context(|| format!("opening {shown}"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok((fresh, None)),
        Err(TryLockError::Error(error)) => {
            tracing::warn!(%error, "no lock on {shown}: two processes on one data folder would go unnoticed");
        }
    }
    let mut name = String::new();
    file.read_to_string(&mut name)
        .with_context(|| format!("reading {shown}"))?;
    let name = match name.trim() {
        "" => {
            writeln!(file, "{fresh}").with_context(|| format!("writing {shown}"))?;
            fresh
        }
        known => known.to_owned(),
    };
    Ok((name, Some(file)))
}
