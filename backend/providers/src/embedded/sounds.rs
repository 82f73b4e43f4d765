//! Sound files that programs are given: in memory where the system has such a folder, each until its utterance is done.
//!
//! A process has a folder of its own in there, which it holds a lock on while it lives. A process that is killed leaves the sound of visitors
//! behind, so the next one that needs a folder removes those of this user whose lock is free.

use std::{
    env,
    fs::{self, DirEntry, File, Permissions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::process::geteuid;
use tempfile::{Builder, NamedTempFile, TempDir};

/// Sound that needs no disk, where the system has it.
const MEMORY_FOLDER: &str = "/dev/shm";
/// Beginning of the names of the folders of processes.
const PREFIX: &str = "colloquy-sounds-";
/// Mode of a folder: others see neither sounds nor their names.
const MODE: u32 = 0o700;
/// The most entries of a place that are looked at for folders without a process; anybody may write there.
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

/// Makes the folder of this process, and removes those of processes that are gone.
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
    /// Makes a folder in a place, and removes those whose process is gone.
    fn make(place: &Path) -> io::Result<Self> {
        sweep(place);
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

/// Removes the folders of this user whose process is gone. Those that cannot be removed stay: sound is given out without that.
fn sweep(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else {
        return;
    };
    for entry in entries.take(MOST_ENTRIES).filter_map(Result::ok) {
        if is_of_this_user(&entry)
            && let Ok(lock) = File::open(entry.path())
            && lock.try_lock().is_ok()
        {
            // The lock is held until the folder is gone.
            if let Err(error) = fs::remove_dir_all(entry.path())
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(reason = %error.kind(), "a folder of sounds cannot be removed");
            }
        }
    }
}

/// True if an entry is a folder of a process of this user. Others may give theirs the same name, and anything in it.
fn is_of_this_user(entry: &DirEntry) -> bool {
    let is_named = entry.file_name().to_string_lossy().starts_with(PREFIX);
    // Links are not followed.
    is_named
        && entry
            .metadata()
            .is_ok_and(|about| about.is_dir() && about.uid() == geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        os::unix::fs::symlink,
        process::{Command, Stdio},
    };

    use super::*;

    /// The place of the process that is killed.
    const PLACE: &str = "COLLOQUY_SOUNDS_TEST";

    fn names(place: &Path) -> Vec<String> {
        let entries = fs::read_dir(place).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    #[ignore = "a process of its own, which is killed"]
    fn holds_a_folder() {
        let place = env::var_os(PLACE).unwrap();
        let folder = Folder::make(Path::new(&place)).unwrap();
        let mut sound = folder.file().unwrap();
        sound.write_all(b"hunter2").unwrap();
        println!("\nheld");
        io::stdout().flush().unwrap();
        // Until it is killed, or the one that started it is gone.
        io::stdin().read_line(&mut String::new()).unwrap();
    }

    #[test]
    fn the_folder_of_a_killed_process_is_removed_and_that_of_a_live_one_stays() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--ignored", "--nocapture", "--exact"])
            .arg("embedded::sounds::tests::holds_a_folder")
            .env(PLACE, place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "held"));
        let held = names(place);
        assert_eq!(held.len(), 1);
        let held = place.join(&held[0]);
        assert_eq!(names(&held).len(), 1, "a sound");
        let mode = fs::metadata(&held).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);

        let other = Folder::make(place).unwrap();
        assert_eq!((names(place).len(), names(&held).len()), (2, 1));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(names(&held).len(), 1, "nobody else removes it");
        sweep(place);
        assert!(!held.exists() && other.is_there());
        drop(other);
        assert_eq!(names(place), Vec::<String>::new());
    }

    #[test]
    fn only_folders_of_processes_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let kept = place.join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        symlink(&kept, place.join(format!("{PREFIX}link"))).unwrap();
        fs::write(place.join(format!("{PREFIX}file")), "").unwrap();
        // A process was killed before it locked it.
        fs::create_dir(place.join(format!("{PREFIX}begun"))).unwrap();
        sweep(place);
        let mut left = names(place);
        left.sort();
        assert_eq!(
            left,
            [
                format!("{PREFIX}file"),
                format!("{PREFIX}link"),
                "kept".to_owned()
            ]
        );
        assert!(kept.join("file").exists());
    }

    #[test]
    fn a_folder_that_was_cleaned_up_is_made_again() {
        let place = tempfile::tempdir().unwrap();
        let held = Mutex::default();
        let file = || with_folder(&held, place.path(), Folder::file).unwrap();
        let (first, again) = (file(), file());
        let folder = first.path().parent().unwrap().to_owned();
        assert_eq!(again.path().parent().unwrap(), folder);
        fs::remove_dir_all(&folder).unwrap();
        let second = file();
        assert!(second.path().exists() && !folder.exists());
        assert_eq!(names(place.path()).len(), 1);
        let path = second.path().to_owned();
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_in_the_place_of_the_own_one_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::make(place.path()).unwrap();
        assert!(folder.is_there());
        let path = folder.path.path();
        fs::rename(path, place.path().join("moved")).unwrap();
        fs::create_dir(path).unwrap();
        assert!(!folder.is_there());
        fs::remove_dir(path).unwrap();
        symlink(place.path().join("moved"), path).unwrap();
        assert!(!folder.is_there());
    }
}
