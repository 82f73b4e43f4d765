//! This process among the nodes of the installation: who it is, that it lives, and which nodes are gone.
//!
//! A node's name stays with its data folder; its id is new for every process. Calls and leases carry the id, so what a
//! killed process held can be told from what a living one holds. What happens to those is the business of `calls` and
//! `jobs`.
//!
//! Heartbeats have the database's time, and are compared on it: a node whose clock is wrong lives like any other.

mod database;
mod folder;
mod list;
mod pulse;
mod store;
#[cfg(test)]
mod tests;

use std::{
    fs::File,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::anyhow;
use colloquy_base::clock::runtime_now;
use colloquy_store::{Executor, StoreError};
use tokio::time::sleep;

pub use self::{
    database::DatabaseLock,
    folder::DataFolder,
    list::{KnownNode, NodeState, NodeTimes, list},
};
use self::{
    pulse::Pulse,
    store::{Beat, Card, Told},
};
use crate::{Base, Kernel};

/// How often a node says that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// A node that was silent for this long is gone.
pub const LOST_AFTER: Duration = Duration::from_secs(30);

/// How often a process that starts looks whether its node runs elsewhere.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The Git revision of the sources: `GIT_REVISION` in the environment of the build, unless that is empty.
pub const REVISION: Option<&str> = match option_env!("GIT_REVISION") {
    Some(revision) if !revision.is_empty() => Some(revision),
    _ => None,
};

/// Returns the version of this server, with the revision of its sources behind a `+` if the build knew it.
fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    REVISION.map_or_else(
        || version.to_owned(),
        |revision| format!("{version}+{revision}"),
    )
}

/// The calls of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Calls that hold a place.
    pub calls: usize,
    /// The most calls at once.
    pub max_calls: usize,
}

/// This process.
#[derive(Debug)]
pub struct Node {
    /// New for every process.
    pub id: String,
    /// Stays with the data folder.
    pub name: String,
    place: Option<String>,
    url: Option<String>,
    pulse: Mutex<Pulse>,
    load: Mutex<Option<Load>>,
    /// The origins of living nodes, and when they were read.
    origins: tokio::sync::Mutex<Option<(Instant, Vec<String>)>>,
    /// Held while the process lives; the system lets go of it however the process ends.
    _lock: Option<File>,
}

/// Joins the installation. Nodes of the same name that came before are gone from now on: the lock on the data folder
/// says that their process is dead, so nobody has to wait for their silence. One that runs on another folder is not:
/// then this folder is a copy of that, or that of this one.
///
/// # Errors
/// When a living node runs on a copy of the data folder, or on its original, or the database fails.
pub(crate) async fn join(base: &Base, folder: DataFolder) -> anyhow::Result<Node> {
    let silent = wait_for_silence(base, &folder).await?;
    enter(base, folder, &silent).await
}

/// Stores the node, unless one of its name that runs on another folder has said that it lives since it was found `silent`.
async fn enter(base: &Base, folder: DataFolder, silent: &[Beat]) -> anyhow::Result<Node> {
    let id = base.clock.new_id().to_string();
    let url = base.config.http.node_origin();
    let version = version();
    let card = Card {
        id: &id,
        name: &folder.name,
        place: folder.place.as_deref(),
        url: url.as_deref(),
        version: &version,
    };
    let at = base.clock.database_now_ms();
    let now = base.database_now_ms().await?;
    let transaction = base.store.begin().await?;
    if folder.lock.is_some() {
        // A folder and its copy that start together come one after the other, and the second sees the first.
        store::lock(&transaction, &folder.name).await?;
        if has_beaten(silent, &elsewhere(&transaction, &folder, now).await?) {
            return Err(refusal(&folder));
        }
        store::end_earlier(&transaction, &folder.name, at).await?;
    }
    let beat = store::insert(&transaction, &card, at).await?;
    // Of nodes that are gone nobody else would notice it.
    store::bring_back(&transaction, beat).await?;
    transaction.commit().await?;
    let name = folder.name;
    tracing::info!(node = id, name, "joined as a node");
    Ok(Node {
        pulse: Mutex::new(Pulse::new(beat, base.clock.instant())),
        load: Mutex::default(),
        origins: tokio::sync::Mutex::default(),
        id,
        name,
        place: folder.place,
        url,
        _lock: folder.lock,
    })
}

/// Finds the nodes of this folder's name that may live and run on another folder; `now` is the database's time.
async fn elsewhere(
    db: &impl Executor,
    folder: &DataFolder,
    now: i64,
) -> Result<Vec<Beat>, StoreError> {
    let lost_before = now - LOST_AFTER.as_millis() as i64;
    match &folder.place {
        Some(place) if folder.lock.is_some() && !folder.has_database => {
            store::elsewhere(db, &folder.name, place, lost_before).await
        }
        _ => Ok(Vec::new()),
    }
}

/// True if a heartbeat of `now` is later than those of an earlier look, `before`. One that is earlier went back with the clock.
fn has_beaten(before: &[Beat], now: &[Beat]) -> bool {
    let is_known = |beat: &Beat| {
        let mut before = before.iter();
        before.any(|it| it.id == beat.id && it.heartbeat_at >= beat.heartbeat_at)
    };
    !now.iter().all(is_known)
}

/// Looks whether a node of this folder's name runs on another folder: its heartbeat goes on. One that died a moment ago is
/// told from it by its silence, which takes [`LOST_AFTER`] at most. Returns those that are silent and may count as living
/// still.
async fn wait_for_silence(base: &Base, folder: &DataFolder) -> anyhow::Result<Vec<Beat>> {
    let look = async || {
        let now = base.database_now_ms().await?;
        elsewhere(base.store.db(), folder, now).await
    };
    let mut last = look().await?;
    if last.is_empty() {
        return Ok(last);
    }
    let path = folder.path.display();
    tracing::warn!(
        name = folder.name,
        "a node of the name that {path} has lived a moment ago, on another folder or with a version that does not tell its folder; \
         waiting until it is silent"
    );
    let begun = runtime_now();
    while !last.is_empty() && begun.elapsed() < LOST_AFTER {
        sleep(LOOK_EVERY).await;
        let next = look().await?;
        if has_beaten(&last, &next) {
            return Err(refusal(folder));
        }
        last = next;
    }
    Ok(last)
}

fn refusal(folder: &DataFolder) -> anyhow::Error {
    anyhow!(
        "store.dir: {path} is a copy of the folder of a node that runs ({name}), or the original of it; give one of them a folder of its \
         own, or remove node-id and journal from the copy",
        path = folder.path.display(),
        name = folder.name
    )
}

impl Node {
    fn pulse(&self) -> MutexGuard<'_, Pulse> {
        self.pulse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what the next heartbeats say of the calls of this node.
    pub fn set_load(&self, load: Load) {
        *self.load.lock().unwrap_or_else(PoisonError::into_inner) = Some(load);
    }

    fn load(&self) -> Option<Load> {
        *self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says that this node lives. One that was taken for dead lives again.
///
/// # Errors
/// The database's failure.
pub async fn heartbeat(kernel: &Kernel) -> Result<(), StoreError> {
    let stored = beat(kernel).await;
    let now = kernel.clock.instant();
    let jump = match &stored {
        Ok(at) => kernel.node.pulse().stored(*at, now),
        Err(_) => {
            kernel.node.pulse().failed();
            None
        }
    };
    let at = stored?;
    if let Some(jump) = jump {
        tracing::warn!(
            ?jump,
            "the database's clock has jumped; every node gets its time anew"
        );
        store::bring_back(kernel.store.db(), at).await?;
    }
    Ok(())
}

/// Stores a heartbeat and returns its time.
async fn beat(kernel: &Kernel) -> Result<i64, StoreError> {
    let (db, node) = (kernel.store.db(), &kernel.node);
    let at = kernel.clock.database_now_ms();
    let load = node.load();
    let told = Told {
        stopping: kernel.leaving.is_cancelled(),
        calls: load.map(|load| load.calls as i64),
        max_calls: load.map(|load| load.max_calls as i64),
    };
    match store::heartbeat(db, &node.id, told, at).await? {
        Some(stored) => {
            if stored.was_ended() {
                tracing::error!(
                    node = node.id,
                    name = node.name,
                    "this node was taken for dead and lives again; another process with a copy of its data folder may have started"
                );
                store::revive(db, &node.id).await?;
            }
            Ok(stored.heartbeat_at)
        }
        None => {
            let version = version();
            let card = Card {
                id: &node.id,
                name: &node.name,
                place: node.place.as_deref(),
                url: node.url.as_deref(),
                version: &version,
            };
            store::insert(db, &card, at).await
        }
    }
}

/// Says that this node lives, until the server has drained: otherwise other nodes would end calls, and settle reservations,
/// that are still open here. `open` tells how many there are, and `load` the calls.
pub fn start(
    kernel: &Kernel,
    open: impl Fn() -> usize + Send + 'static,
    load: impl Fn() -> Load + Send + 'static,
) {
    let kernel = kernel.clone();
    kernel.clone().tasks.spawn(async move {
        let mut forget_at = runtime_now() + FORGET_EVERY;
        let mut has_left = false;
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
                    // Others see at once that it stops.
                    () = kernel.leaving.cancelled(), if !has_left => has_left = true,
                    () = sleep(HEARTBEAT) => {}
                }
            }
            kernel.node.set_load(load());
            if let Err(error) = heartbeat(&kernel).await {
                kernel.store.complain("saying that this node lives", &error);
            }
            if runtime_now() >= forget_at {
                forget_at = runtime_now() + FORGET_EVERY;
                if let Err(error) = forget(&kernel).await {
                    kernel.store.complain("forgetting nodes", &error);
                }
            }
        }
    });
}

async fn forget(kernel: &Kernel) -> Result<(), StoreError> {
    let before = kernel.database_now_ms().await? - FORGET_AFTER.as_millis() as i64;
    store::forget(kernel.store.db(), before).await
}

/// How often it is looked whether the last work of a stopping server has ended.
const DRAIN_CHECK: Duration = Duration::from_secs(1);

/// The SQL of a sub-select with the ids of all nodes that live; `$1` is [`lost_before`].
pub const LIVING: &str = "SELECT id FROM nodes WHERE ended_at IS NULL AND heartbeat_at >= $1";

/// Rows of nodes that were silent for this long are removed.
const FORGET_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often. Not at the start: what they left behind is looked at first.
const FORGET_EVERY: Duration = Duration::from_secs(3600);

/// The database's time, in milliseconds since 1970, since which a living node has said so. After the database was away, when
/// nobody could, and after its clock jumped, all nodes get their time anew.
///
/// # Errors
/// The database's failure.
pub async fn lost_before(kernel: &Kernel) -> Result<i64, StoreError> {
    let now = kernel.database_now_ms().await?;
    let instant = kernel.clock.instant();
    Ok(kernel.node.pulse().lost_before(now, instant))
}

/// Returns [`lost_before`] without asking the database, for what is only shown.
#[must_use]
pub fn expected_lost_before(kernel: &Kernel) -> i64 {
    let now = expected_database_now_ms(kernel);
    let instant = kernel.clock.instant();
    kernel.node.pulse().lost_before(now, instant)
}

/// Returns the origins (`http.node_url`) of the nodes that count as living, each once. Nodes without one are left out. The database is asked once in
/// the time of a heartbeat, however many ask; while it is away, the last known origins are returned.
pub async fn origins(kernel: &Kernel) -> Vec<String> {
    let mut known = kernel.node.origins.lock().await;
    let now = kernel.clock.instant();
    if let Some((read_at, origins)) = &*known
        && now.saturating_duration_since(*read_at) < HEARTBEAT
    {
        return origins.clone();
    }
    let read = store::origins(kernel.store.db(), expected_lost_before(kernel)).await;
    let origins = read.unwrap_or_else(|error| {
        kernel
            .store
            .complain("reading the origins of nodes", &error);
        known.take().map(|(_, origins)| origins).unwrap_or_default()
    });
    *known = Some((now, origins.clone()));
    origins
}

/// Returns the database's time, in milliseconds since 1970, without asking: that of the last heartbeat and what has passed
/// since. A jump of its clock shows with the next heartbeat.
#[must_use]
pub fn expected_database_now_ms(kernel: &Kernel) -> i64 {
    let of_test = kernel.clock.database_now_ms();
    of_test.unwrap_or_else(|| kernel.node.pulse().expected(kernel.clock.instant()))
}

/// The SQL of the database's time in milliseconds since 1970, for what is compared with heartbeats: with
/// [`colloquy_base::clock::Clock::database_now_ms`] bound at this place.
pub fn database_time(db: &impl Executor, place: usize) -> String {
    store::now(db, place)
}
