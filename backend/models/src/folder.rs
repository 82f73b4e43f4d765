//! The folder with the files of models: one folder a model. Nothing is ever given out that does not have its hash.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::manifest::{Model, ModelFile};

/// How much is read at a time.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// The folder. It need not exist, and need not be writable to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelsFolder {
    path: PathBuf,
}

/// Why a file was not given out.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not there.
    #[error("{} is not there: colloquy models pull {model}", path.display())]
    Missing {
        /// Its place.
        path: PathBuf,
        /// The model that it belongs to.
        model: &'static str,
    },
    /// It is another file than the manifest's.
    #[error("{} is damaged: colloquy models pull {model}", path.display())]
    Damaged {
        /// Its place.
        path: PathBuf,
        /// The model that it belongs to.
        model: &'static str,
    },
    /// It cannot be read.
    #[error("reading {}", path.display())]
    Unreadable {
        /// Its place.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
}

/// What is there of a model, without looking into its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Every file has its size.
    Present,
    /// Some file is missing, or has another size.
    Missing,
}

impl ModelsFolder {
    /// The folder at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a file of a model is.
    #[must_use]
    pub fn file(&self, model: &Model, file: &ModelFile) -> PathBuf {
        self.path.join(model.name).join(file.name)
    }

    /// What is there of a model, by the sizes of its files.
    #[must_use]
    pub fn presence(&self, model: &Model) -> Presence {
        let is_there = |file: &ModelFile| {
            std::fs::metadata(self.file(model, file)).is_ok_and(|found| found.len() == file.bytes)
        };
        match model.files.iter().all(is_there) {
            true => Presence::Present,
            false => Presence::Missing,
        }
    }

    /// Compares every file of a model with its hash.
    ///
    /// # Errors
    /// The first file that is missing, damaged or cannot be read.
    pub fn verify(&self, model: &Model) -> Result<(), ReadError> {
        for file in model.files {
            self.checked(model, file, &mut |_| ())?;
        }
        Ok(())
    }

    /// The contents of a file. What is given out is what was compared with the hash, so that nobody can change it in
    /// between.
    ///
    /// # Errors
    /// When it is missing, damaged or cannot be read.
    pub fn read(&self, model: &Model, file: &ModelFile) -> Result<Vec<u8>, ReadError> {
        let mut contents = Vec::new();
        self.checked(model, file, &mut |piece| contents.extend_from_slice(piece))?;
        Ok(contents)
    }

    fn checked(
        &self,
        model: &Model,
        file: &ModelFile,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), ReadError> {
        let path = self.file(model, file);
        match hash(&path, file.bytes, sink) {
            Ok(found) if found.as_deref() == Some(file.sha256) => Ok(()),
            Ok(_) => Err(ReadError::Damaged {
                path,
                model: model.name,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ReadError::Missing {
                path,
                model: model.name,
            }),
            Err(error) => Err(ReadError::Unreadable { path, error }),
        }
    }
}

/// The SHA-256 of a file of this size, `None` when it has another one; its contents go to the sink.
pub(crate) fn hash(
    path: &Path,
    bytes: u64,
    sink: &mut dyn FnMut(&[u8]),
) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() != bytes {
        return Ok(None);
    }
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut left = bytes;
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        // It may grow meanwhile.
        left = match left.checked_sub(length as u64) {
            Some(left) => left,
            None => return Ok(None),
        };
        hasher.update(&piece[..length]);
        sink(&piece[..length]);
    }
    Ok(Some(hexadecimal(&hasher.finalize())))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
