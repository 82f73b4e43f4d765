//! The end of work that must not be lost although the database is away.
//!
//! What was done is known to this process alone until it is stored. So it is written to the data folder, and synced, and
//! then tried again until the database has it: by this process, also while it drains, or by the next one on the folder.
//! Storing an end twice is harmless, which is what makes this safe. What an end is belongs to its capability.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use colloquy_store::StoreError;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};

use crate::{Kernel, State};

/// The wait before an end is tried again; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// How long somebody waits for the database alone, before an end goes to the data folder.
const PATIENCE: Duration = Duration::from_secs(3);

/// An end.
pub trait Entry: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The state of the capability that it belongs to.
    type State: State;

    /// The name of the sort, of `a-z` and `_`, stable for as long as files of it may exist.
    const KIND: &'static str;

    /// What ended: letters, digits, `-` and `_`.
    fn id(&self) -> &str;

    /// Stores it. It may be stored already.
    ///
    /// # Errors
    /// When the database fails: it is worth another try when it was away.
    fn store(&self, state: &Self::State) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The folder of ends that may not be stored yet.
#[derive(Debug, Clone)]
pub struct Journal {
    dir: PathBuf,
    /// What this process tries to store.
    pending: Arc<Mutex<HashSet<String>>>,
}

/// An end that is tried, for as long as this lives.
struct Pending {
    name: String,
    all: Arc<Mutex<HashSet<String>>>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&self.name);
    }
}

impl Journal {
    /// Makes the folder inside of the data folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(data: &Path) -> anyhow::Result<Self> {
        let dir = data.join("journal");
        fs::create_dir_all(&dir)
            .with_context(|| format!("store.dir: cannot make {}", dir.display()))?;
        Ok(Self {
            dir,
            pending: Arc::default(),
        })
    }

    /// Whether this process has an end that the database has not taken yet.
    #[must_use]
    pub fn holds<E: Entry>(&self, id: &str) -> bool {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.contains(&name::<E>(id))
    }

    /// Returns true if this process has any end of this kind that the database has not taken yet.
    #[must_use]
    pub fn holds_any<E: Entry>(&self) -> bool {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let prefix = name::<E>("");
        pending.iter().any(|name| name.starts_with(&prefix))
    }

    fn pending<E: Entry>(&self, id: &str) -> Pending {
        let name = name::<E>(id);
        let mut all = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.clone());
        drop(all);
        Pending {
            name,
            all: Arc::clone(&self.pending),
        }
    }

    fn path<E: Entry>(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{}.json", name::<E>(id)))
    }

    /// Writes an end and syncs it.
    async fn write<E: Entry>(&self, entry: &E) -> io::Result<()> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !entry.id().chars().all(plain) {
            return Err(io::Error::other("the id is not fit for the name of a file"));
        }
        let text = serde_json::to_vec(entry)?;
        let (dir, path) = (self.dir.clone(), self.path::<E>(entry.id()));
        spawn_blocking(move || write(&dir, &path, &text))
            .await
            .map_err(io::Error::other)?
    }

    async fn remove<E: Entry>(&self, id: &str) {
        let path = self.path::<E>(id);
        // One that stays is stored again at the next start, which changes nothing.
        if let Ok(Err(error)) = spawn_blocking(move || fs::remove_file(path)).await
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, kind = E::KIND, id, "an end that is stored stays in the journal");
        }
    }

    /// Puts a file aside that nobody can store.
    async fn refuse(&self, path: PathBuf) {
        let aside = path.with_extension("refused");
        let shown = aside.display().to_string();
        let moved = spawn_blocking(move || fs::rename(path, aside)).await;
        tracing::error!(file = shown, moved = ?moved.ok(), "an end cannot be stored; its file is put aside");
    }

    /// The ends of a sort that an earlier process left behind.
    async fn left<E: Entry>(&self) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
        let dir = self.dir.clone();
        let left = spawn_blocking(move || {
            let mut left = Vec::new();
            for file in fs::read_dir(dir)? {
                let path = file?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with(&format!("{}.", E::KIND)) && name.ends_with(".json") {
                    left.push((path.clone(), fs::read(&path)?));
                }
            }
            io::Result::Ok(left)
        });
        left.await?.context("reading the journal")
    }
}

fn name<E: Entry>(id: &str) -> String {
    format!("{}.{id}", E::KIND)
}

/// A file is there with all of its content, or not at all.
fn write(dir: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let written = (|| {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&fresh)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&fresh, path)
    })();
    if written.is_err() {
        // It takes room that others need.
        let _ = fs::remove_file(&fresh);
    }
    written?;
    File::open(dir)?.sync_all()
}

/// Writes an end to the journal and stores it, for as long as that takes. Without room for the journal this process tries
/// all the same. Whoever waits for the handle waits until it is stored.
pub fn keep<E: Entry>(state: &E::State, entry: E) -> JoinHandle<()> {
    let task = state.clone();
    state.as_ref().tasks.spawn(async move {
        let kernel: &Kernel = task.as_ref();
        let written = kernel.journal.write(&entry).await;
        if let Err(error) = &written {
            kernel.store.complain("writing to the journal", error);
        }
        try_on(&task, entry, written.is_ok()).await;
    })
}

/// Stores an end; when the database is away, it is in the journal when this returns, and stored as soon as possible.
///
/// # Errors
/// When neither takes it.
pub async fn store<E: Entry>(state: &E::State, entry: E) -> Result<(), StoreError> {
    let away = match timeout(PATIENCE, entry.store(state)).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) if !error.is_unavailable() => return Err(error),
        Ok(Err(error)) => Some(error),
        Err(_) => None,
    };
    let kernel: &Kernel = state.as_ref();
    if let Err(error) = kernel.journal.write(&entry).await {
        kernel.store.complain("writing to the journal", &error);
        return Err(away.unwrap_or_else(|| StoreError::unavailable("no answer in time")));
    }
    let pending = kernel.journal.pending::<E>(entry.id());
    let task = state.clone();
    kernel.tasks.spawn(async move {
        try_on(&task, entry, true).await;
        drop(pending);
    });
    Ok(())
}

/// Stores what an earlier process left of a sort. What the database does not take now is tried again beside everything
/// else.
///
/// # Errors
/// When the journal cannot be read.
pub async fn replay<E: Entry>(state: &E::State) -> anyhow::Result<()> {
    let kernel: &Kernel = state.as_ref();
    for (path, text) in kernel.journal.left::<E>().await? {
        match serde_json::from_slice::<E>(&text) {
            Ok(entry) => {
                tracing::info!(
                    kind = E::KIND,
                    id = entry.id(),
                    "an end was left in the journal"
                );
                let task = state.clone();
                let trying = async move { try_on(&task, entry, true).await };
                let stored = kernel.tasks.spawn(trying);
                let _ = timeout(PATIENCE, stored).await;
            }
            Err(error) => {
                tracing::error!(
                    line = error.line(),
                    column = error.column(),
                    "a file of the journal cannot be read"
                );
                kernel.journal.refuse(path).await;
            }
        }
    }
    Ok(())
}

/// Tries until the database has it.
async fn try_on<E: Entry>(state: &E::State, entry: E, written: bool) {
    let kernel: &Kernel = state.as_ref();
    let mut wait = FIRST_WAIT;
    loop {
        match entry.store(state).await {
            Ok(()) => break,
            Err(error) if error.is_unavailable() => {
                kernel
                    .store
                    .complain("storing an end, which is tried again", &error);
            }
            Err(error) => {
                tracing::error!(kind = E::KIND, id = entry.id(), %error, "an end was refused");
                if written {
                    kernel
                        .journal
                        .refuse(kernel.journal.path::<E>(entry.id()))
                        .await;
                }
                return;
            }
        }
        sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
    if written {
        kernel.journal.remove::<E>(entry.id()).await;
    }
}
