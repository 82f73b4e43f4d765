//! The lock on an SQLite database: one server has it, whatever its data folder is.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::bail;
use colloquy_base::clock::runtime_now;
use colloquy_config::StoreConfig;
use tokio::{task::spawn_blocking, time::sleep};

use super::folder::{LOOK_EVERY, PATIENCE};

/// An SQLite database that a server has taken, until this is dropped or the process ends, however that ends. The lock is on a
/// file beside the database, `<database>.lock`, since SQLite loses its own locks when somebody else in the process closes the
/// database.
///
/// Relative paths and symbolic links to the database or its folders lead to the same lock. Hard links do not; SQLite itself
/// does not support them either. Nor does a symbolic link whose file is not made yet, and not every network file system locks
/// across machines. PostgreSQL and databases in memory need no lock.
#[derive(Debug)]
#[must_use = "dropped, it lets go of the database"]
pub struct DatabaseLock {
    /// `None` where there is nothing to lock, or no way to.
    _file: Option<File>,
}

/// An attempt to lock.
enum Attempt {
    Locked(Option<File>),
    /// Another server has it.
    Taken,
}

impl DatabaseLock {
    /// Takes the database, waiting a moment for a server that is about to end.
    ///
    /// # Errors
    /// When another server has it; the setting and the file are named.
    pub async fn claim(config: &StoreConfig) -> anyhow::Result<Self> {
        Self::claim_within(config, PATIENCE).await
    }

    pub(super) async fn claim_within(
        config: &StoreConfig,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let Some(database) = config.file() else {
            return Ok(Self { _file: None });
        };
        let given_up = runtime_now() + patience;
        loop {
            let path = database.clone();
            if let Attempt::Locked(file) = spawn_blocking(move || lock(&path)).await? {
                return Ok(Self { _file: file });
            }
            if runtime_now() >= given_up {
                let setting = match config.database_url {
                    Some(_) => "store.database_url",
                    None => "store.dir",
                };
                bail!(
                    "{setting}: another server runs on the database {}; a SQLite database has one server: stop that one, or give this \
                     one a database of its own, or both the same PostgreSQL",
                    config.place()
                );
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

/// Tries to lock a database. One that cannot be locked is not refused: opening it says what is wrong with its folder.
fn lock(database: &Path) -> Attempt {
    let locked = lock_path(database).and_then(|path| {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).open(path)
    });
    let error = match locked.map(|file| (file.try_lock(), file)) {
        Ok((Ok(()), file)) => return Attempt::Locked(Some(file)),
        Ok((Err(TryLockError::WouldBlock), _)) => return Attempt::Taken,
        Ok((Err(TryLockError::Error(error)), _)) | Err(error) => error,
    };
    tracing::warn!(
        %error,
        "no lock beside {}: two servers on one database would go unnoticed",
        database.display()
    );
    Attempt::Locked(None)
}

/// The file beside the database that is locked, the same whether the database is made yet or not.
fn lock_path(database: &Path) -> io::Result<PathBuf> {
    let database = std::path::absolute(database)?;
    let found = database.canonicalize().or_else(|error| {
        match (error.kind(), database.parent(), database.file_name()) {
            (io::ErrorKind::NotFound, Some(folder), Some(name)) => {
                Ok(folder.canonicalize()?.join(name))
            }
            _ => Err(error),
        }
    })?;
    let mut path = found.into_os_string();
    path.push(".lock");
    Ok(path.into())
}
