//! Sound files that programs are given: in memory where the system has such a folder, each until its utterance is done.
//!
//! A process has a folder of its own in there, which it holds a lock on while it lives, and removes it when it stops. A process that is killed
//! leaves the sound of visitors behind, so every server that starts removes the folders of this user whose lock is free.

use std::{
    env,
    fs::{self, File, Permissions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use colloquy_base::clock::{Clock as _, SystemClock};
use rustix::process::geteuid;
use tempfile::{Builder, NamedTempFile, TempDir};

/// Sound that needs no disk, where the system has it.
const MEMORY_FOLDER: &str = "/dev/shm";
/// Beginning of the names of the folders of processes.
const PREFIX: &str = "colloquy-sounds-";
/// Mode of a folder: others see neither sounds nor their names.
const MODE: u32 = 0o700;
/// Beginning and end of the names of files that earlier versions wrote into the place itself, around letters and digits.
const OLD_PREFIX: &str = "colloquy-";
const OLD_SUFFIX: &str = ".raw";
/// The letters and digits in between.
const OLD_LETTERS: usize = 6;
/// The age from which such a file is left over: a server of an earlier version, which may run beside, keeps one for a minute at most.
const OLD_SECONDS: i64 = 24 * 60 * 60;
/// The most entries of a place that are looked at for what was left behind; anybody may write there.
const MOST_ENTRIES: usize = 10_000;
/// The most folders that are made before one is held: a process that starts at the same time may remove one that has no lock yet.
const MOST_TRIES: usize = 16;

/// The folder of this process, once it is needed.
static FOLDER: Mutex<Option<Folder>> = Mutex::new(None);

/// The place that has the folders of processes.
pub(super) fn place() -> PathBuf {
    let memory = Path::new(MEMORY_FOLDER);
    match memory.is_dir() {
        true => memory.to_owned(),
        false => env::temp_dir(),
    }
}

/// Removes the sounds that ended processes of this user left behind. Blocks.
pub fn remove_abandoned_sounds() {
    sweep(&place(), SystemClock.now().as_second());
}

/// Removes the folder of this process with what lies in it. A sound that is written later is in another folder. Blocks.
pub fn remove_own_sounds() {
    remove(&FOLDER);
}

fn remove(held: &Mutex<Option<Folder>>) {
    let folder = held.lock().unwrap_or_else(PoisonError::into_inner).take();
    drop(folder);
}

/// Makes the folder of this process, which blocks.
///
/// # Errors
/// When no folder can be made.
pub(super) fn prepare() -> io::Result<()> {
    with_folder(&FOLDER, &place(), |_| Ok(()))
}

/// Writes a sound to a file, which is removed when it is dropped.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write(sound: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = with_folder(&FOLDER, &place(), Folder::file)?;
    file.write_all(sound)?;
    Ok(file)
}

/// Does something with the folder that is held, which is made in a place unless it is there.
fn with_folder<T>(
    held: &Mutex<Option<Folder>>,
    place: &Path,
    then: impl FnOnce(&Folder) -> io::Result<T>,
) -> io::Result<T> {
    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
    // Systems clean such places up now and then.
    if let Some(folder) = &*held
        && folder.is_there()
    {
        return then(folder);
    }
    let made: &Folder = held.insert(Folder::make(place)?);
    then(made)
}

/// A folder of a process, which is removed when it is dropped.
#[derive(Debug)]
struct Folder {
    path: TempDir,
    /// The open folder, which holds the lock on it.
    lock: File,
}

impl Folder {
    /// Makes a folder in a place.
    fn make(place: &Path) -> io::Result<Self> {
        for _ in 0..MOST_TRIES {
            let path = Builder::new()
                .prefix(PREFIX)
                .permissions(Permissions::from_mode(MODE))
                .tempdir_in(place)?;
            let lock = match File::open(path.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                lock => lock?,
            };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                // Nobody else can lock it, either, so it is not removed while it is in use, nor after a kill.
                Err(TryLockError::Error(error)) => {
                    tracing::warn!(reason = %error.kind(), "the folder of sounds cannot be locked");
                }
            }
            let folder = Self { path, lock };
            // Another process may have removed it before it was locked.
            if folder.is_there() {
                return Ok(folder);
            }
        }
        Err(io::Error::other("every folder was removed by others"))
    }

    /// True if the folder that is locked has its name still. Others may have put something in its place.
    fn is_there(&self) -> bool {
        let (held, named) = (self.lock.metadata(), fs::symlink_metadata(self.path.path()));
        let (Ok(held), Ok(named)) = (held, named) else {
            return false;
        };
        (held.dev(), held.ino()) == (named.dev(), named.ino()) && named.uid() == geteuid().as_raw()
    }

    /// An empty file in it.
    fn file(&self) -> io::Result<NamedTempFile> {
        let mut file = Builder::new();
        file.prefix("sound-").suffix(".raw");
        file.tempfile_in(self.path.path())
    }
}

/// Removes the folders of this user whose process is gone, and the files of earlier versions that are old at this time, in seconds since 1970.
/// What cannot be removed stays: sound is given out without that.
fn sweep(place: &Path, now_s: i64) {
    let Ok(entries) = fs::read_dir(place) else {
        return;
    };
    for entry in entries.take(MOST_ENTRIES).filter_map(Result::ok) {
        // Others may give theirs the same name, and anything in it. Links are not followed.
        let about = entry.metadata();
        let Some(about) = about.ok().filter(|it| it.uid() == geteuid().as_raw()) else {
            continue;
        };
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if about.is_dir() && name.starts_with(PREFIX) {
            remove_if_free(&entry.path());
        } else if about.is_file()
            && is_old_name(&name)
            && now_s.saturating_sub(about.mtime()) > OLD_SECONDS
        {
            warn_unless_removed(fs::remove_file(entry.path()));
        }
    }
}

/// Removes a folder if no process holds the lock on it.
fn remove_if_free(folder: &Path) {
    if let Ok(lock) = File::open(folder)
        && lock.try_lock().is_ok()
    {
        // The lock is held until the folder is gone.
        warn_unless_removed(fs::remove_dir_all(folder));
    }
}

/// Logs that sounds are left. Another process may have removed them.
fn warn_unless_removed(removed: io::Result<()>) {
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(reason = %error.kind(), "sounds that were left behind cannot be removed");
    }
}

/// Returns true for the name of a file that an earlier version wrote: "colloquy-a1B2c3.raw".
fn is_old_name(name: &str) -> bool {
    let letters = name.strip_prefix(OLD_PREFIX);
    let letters = letters.and_then(|rest| rest.strip_suffix(OLD_SUFFIX));
    letters.is_some_and(|letters| {
        letters.len() == OLD_LETTERS && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
#[path = "sounds_tests.rs"]
mod tests;
