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
    time::Duration,
};

use anyhow::Context as _;
use sea_orm::DbErr;

use crate::app::{App, Base};

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
    store::forget(&transaction, now - FORGET_AFTER.as_millis() as i64).await?;
    store::insert(&transaction, &id, &name, now).await?;
    transaction.commit().await?;
    tracing::info!(node = id, name, "joined as a node");
    Ok(Node {
        id,
        name,
        _lock: lock,
    })
}

/// Says that this node lives.
///
/// # Errors
/// The database's failure.
pub async fn heartbeat(app: &App) -> Result<(), DbErr> {
    store::heartbeat(app.store.db(), &app.node.id, app.clock.now_ms()).await
}

/// The SQL of a sub-select with the ids of all nodes that live; `$1` is [`lost_before`].
pub const LIVING: &str = "SELECT id FROM nodes WHERE ended_at IS NULL AND heartbeat_at >= $1";

/// Rows of nodes that were silent for this long are removed.
const FORGET_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

/// The time, in milliseconds since 1970, since which a living node has said so.
#[must_use]
pub fn lost_before(app: &App) -> i64 {
    app.clock.now_ms() - LOST_AFTER.as_millis() as i64
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
