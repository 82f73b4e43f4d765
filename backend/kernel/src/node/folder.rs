//! The data folder of a process: the lock on it, the node's name in it, and what tells it from a copy.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context as _, bail};
use colloquy_base::clock::{Clock, runtime_now};
use colloquy_config::StoreConfig;
use tokio::{task::spawn_blocking, time::sleep};

/// How long a server waits for the one before it, which may be about to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A data folder that a server has taken, until this is dropped or the process ends, however that ends.
#[derive(Debug)]
pub struct DataFolder {
    pub(super) path: PathBuf,
    /// The node's name, which stays with the folder.
    pub(super) name: String,
    /// Which folder of which running system it is; a copy is another one. `None` where the system does not tell.
    pub(super) place: Option<String>,
    /// Whether the database is a file of this folder, so that the lock holds for both.
    pub(super) has_database: bool,
    /// `None` where another process has it: this one is then a node of a name of its own.
    pub(super) lock: Option<File>,
}

impl DataFolder {
    /// Takes the folder, and makes it when it is missing. One that another server has is shared where the database is
    /// PostgreSQL; a folder with SQLite in it is not.
    ///
    /// # Errors
    /// When it cannot be made or read, or another server has it and the database is SQLite; the setting and the folder are
    /// named.
    pub async fn claim(config: &StoreConfig, clock: &dyn Clock) -> anyhow::Result<Self> {
        Self::claim_within(config, clock, PATIENCE).await
    }

    pub(super) async fn claim_within(
        config: &StoreConfig,
        clock: &dyn Clock,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let fresh = clock.new_id().to_string();
        let has_database = config.database_url.is_none();
        let shared = !config.url().reveal().starts_with("sqlite:");
        let given_up = runtime_now() + patience;
        loop {
            let (dir, name) = (config.dir.clone(), fresh.clone());
            let mut claimed = spawn_blocking(move || claim(&dir, name)).await??;
            claimed.has_database = has_database;
            if claimed.lock.is_some() || shared {
                return Ok(claimed);
            }
            if runtime_now() >= given_up {
                bail!(
                    "store.dir: another server runs on {}; a SQLite database has one server: stop that one, or give this one a folder of its own",
                    std::path::absolute(&config.dir)?.display()
                );
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

fn claim(dir: &Path, fresh: String) -> anyhow::Result<DataFolder> {
    let path = dir.join("node-id");
    let shown = path.display().to_string();
    std::fs::create_dir_all(dir)
        .with_context(|| format!("store.dir: cannot make {}", dir.display()))?;
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .with_context(|| format!("store.dir: opening {shown}"))?;
    let mut folder = DataFolder {
        path: std::path::absolute(dir)?,
        name: fresh,
        place: None,
        has_database: false,
        lock: None,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(folder),
        Err(TryLockError::Error(error)) => {
            tracing::warn!(%error, "no lock on {shown}: two processes on one data folder would go unnoticed");
        }
    }
    let mut name = String::new();
    file.read_to_string(&mut name)
        .with_context(|| format!("store.dir: reading {shown}"))?;
    match name.trim() {
        "" => writeln!(file, "{}", folder.name)
            .with_context(|| format!("store.dir: writing {shown}"))?,
        known => known.clone_into(&mut folder.name),
    }
    folder.place = place(&file);
    folder.lock = Some(file);
    Ok(folder)
}

/// The running system by its boot, and the file by its number and its birth, or its device where the file system notes no
/// births: a restart finds all of it again, and a copy has other ones, also one of the whole disk in another machine.
fn place(file: &File) -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let about = file.metadata().ok()?;
    let born = about.created().ok();
    let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let which = born.map_or_else(|| u128::from(about.dev()), |born| born.as_nanos());
    Some(format!("{}/{}/{which}", boot.trim(), about.ino()))
}
