//! A folder with what was computed from the files of models, so that it need not be computed each time that they are loaded.
//!
//! Nothing in it is needed: what is missing, damaged or cannot be written is computed again. It belongs to this node alone, unlike
//! the folder with the models; whoever can write to it can change what the models answer.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::PathBuf,
};

use sha2::{Digest as _, Sha256};

use crate::manifest::ModelFile;

/// Bytes of the hash that a file begins with.
const HASH_BYTES: usize = 32;

/// The folder. It need not exist until something is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedFolder {
    path: PathBuf,
}

/// One thing that was computed from a file of a model, in one version of its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Computed {
    folder: PathBuf,
    /// Its name in the folder, which is part of what is hashed: one file does not pass for another.
    name: String,
}

impl ComputedFolder {
    /// The folder at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// What of this kind (such as `silence`) was computed from a file, in this version of its format.
    #[must_use]
    pub fn of(&self, source: &ModelFile, kind: &str, version: u32) -> Computed {
        Computed {
            folder: self.path.clone(),
            name: format!("{}.{kind}-{version}", source.sha256),
        }
    }
}

impl Computed {
    /// Its place.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// What was written, if it has so many bytes and its hash; of another size, nothing is read.
    #[must_use]
    pub fn read(&self, bytes: usize) -> Option<Vec<u8>> {
        let path = self.path();
        let length = (HASH_BYTES + bytes) as u64;
        let is_of_size = |found: fs::Metadata| found.is_file() && found.len() == length;
        // Asked before it is opened: to open a pipe would wait for its other end.
        if !fs::metadata(&path).is_ok_and(is_of_size) {
            return None;
        }
        let mut hash = [0; HASH_BYTES];
        let mut file = File::open(path).ok()?;
        file.read_exact(&mut hash).ok()?;
        let mut contents = Vec::with_capacity(bytes);
        // It may grow meanwhile.
        file.take(bytes as u64).read_to_end(&mut contents).ok()?;
        (contents.len() == bytes && self.hash(&contents) == hash).then_some(contents)
    }

    /// Writes it, so that others find either all of it or what was there before. While another process writes it, nothing happens.
    ///
    /// # Errors
    /// When it cannot be written; nothing is left of it then.
    pub fn write(&self, contents: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        // Always the same name: a process that is killed leaves one file at most, which the next one writes over.
        let part = self.folder.join(format!("{}.part", self.name));
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(&part)?;
        if file.try_lock().is_err() {
            return Ok(());
        }
        let written = self.write_to(&file, contents);
        // The lock goes with the file, which has its final name before others may write to it. One that opened it before writes to
        // the file of that name then; what becomes of it is told by its hash.
        let written = written.and_then(|()| fs::rename(&part, self.path()));
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written
    }

    fn write_to(&self, mut file: &File, contents: &[u8]) -> io::Result<()> {
        file.set_len(0)?;
        file.write_all(&self.hash(contents))?;
        file.write_all(contents)
    }

    fn hash(&self, contents: &[u8]) -> [u8; HASH_BYTES] {
        let mut hasher = Sha256::new();
        hasher.update(self.name.as_bytes());
        hasher.update([0]);
        hasher.update(contents);
        hasher.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    fn silence_of(folder: &ComputedFolder, model: &str) -> Computed {
        let model = manifest::model(model).unwrap();
        folder.of(model.file("model.bin").unwrap(), "silence", 1)
    }

    fn names(folder: &std::path::Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn what_was_written_is_read_again() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = ComputedFolder::new(temporary.path().join("a/b"));
        let computed = silence_of(&folder, "whisper-tiny.en");
        assert_eq!(computed.read(3), None);
        for contents in [[1, 2, 3], [4, 5, 6]] {
            computed.write(&contents).unwrap();
            assert_eq!(computed.read(3).unwrap(), contents);
        }
        assert_eq!(names(&temporary.path().join("a/b")), 1);
        // What a process that was killed left behind is in nobody's way.
        fs::write(computed.path().with_extension("silence-1.part"), [9; 99]).unwrap();
        computed.write(&[7, 8, 9]).unwrap();
        assert_eq!(computed.read(3).unwrap(), [7, 8, 9]);
        assert_eq!(names(&temporary.path().join("a/b")), 1);
    }

    #[test]
    fn what_is_damaged_foreign_or_of_another_size_is_not_given_out() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = ComputedFolder::new(temporary.path());
        let computed = silence_of(&folder, "whisper-tiny.en");
        computed.write(&[5; 1_000]).unwrap();
        let good = fs::read(computed.path()).unwrap();
        assert_eq!((computed.read(999), computed.read(1_001)), (None, None));
        for at in [0, 31, 32, 500, good.len() - 1] {
            let mut damaged = good.clone();
            damaged[at] ^= 1;
            fs::write(computed.path(), damaged).unwrap();
            assert_eq!(computed.read(1_000), None, "{at}");
        }
        for wrong in [&[][..], &good[..20], &good[..500], &[0; 5_000]] {
            fs::write(computed.path(), wrong).unwrap();
            assert_eq!(computed.read(1_000), None);
        }
        // Of another model, or of another version.
        let other = silence_of(&folder, "whisper-base");
        fs::write(other.path(), &good).unwrap();
        assert_eq!(other.read(1_000), None);
        fs::remove_file(computed.path()).unwrap();
        fs::create_dir(computed.path()).unwrap();
        assert_eq!(computed.read(1_000), None);
        assert!(computed.write(&[1]).is_err());
        assert_eq!(names(temporary.path()), 2, "no part is left");
    }

    #[test]
    fn a_folder_that_cannot_be_is_an_error_and_nothing_more() {
        let temporary = tempfile::NamedTempFile::new().unwrap();
        let folder = ComputedFolder::new(temporary.path().join("cache"));
        let computed = silence_of(&folder, "whisper-tiny.en");
        assert!(computed.write(&[1]).is_err());
        assert_eq!(computed.read(1), None);
    }

    #[test]
    fn several_may_write_at_a_time() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = ComputedFolder::new(temporary.path());
        let computed = silence_of(&folder, "whisper-tiny.en");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        // One that comes when the file has its name already may spoil it, and then it is none.
                        let _ = computed.write(&[3; 10_000]);
                        let read = computed.read(10_000);
                        assert!(read.is_none_or(|read| read == [3; 10_000]));
                    }
                });
            }
        });
        computed.write(&[4; 10_000]).unwrap();
        assert_eq!(computed.read(10_000).unwrap(), [4; 10_000]);
    }
}
