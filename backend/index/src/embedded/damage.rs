//! Finds damaged files of an index: written half, cut off, or changed.
//!
//! Every file of a segment ends with a footer of `tantivy` that has the CRC-32 of what stands before it. The files are read here in small pieces,
//! not mapped to memory: a file that became shorter since it was mapped ends the process that reads beyond its end.
//!
//! Reading all files takes long, so searches compare lengths and times of modification now and then ([`Signs`]).

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, ErrorKind, Read, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use crc32fast::Hasher;
use serde::Deserialize;
use tantivy::{Index, TantivyError, directory::error::OpenReadError};

use crate::search::IndexError;

/// The last bytes of a file: the length of the footer's JSON and a number that every footer has, of 32 bits each.
const TAIL: usize = 8;
const MAGIC: u32 = 1_337;
/// The longest JSON of a footer.
const MAX_FOOTER: u32 = 50_000;
/// What is read at once.
const PIECE: usize = 64 * 1024;
/// How often at most the signs of files are compared.
const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Footer {
    crc: u32,
}

/// The failure of the library, or what it found damaged.
pub(super) fn failure(error: TantivyError) -> IndexError {
    let is_damage = match &error {
        TantivyError::DataCorruption(_)
        | TantivyError::DeserializeError(_)
        | TantivyError::IncompatibleIndex(_)
        | TantivyError::SchemaError(_)
        | TantivyError::OpenReadError(
            OpenReadError::FileDoesNotExist(_) | OpenReadError::IncompatibleIndex(_),
        ) => true,
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. })
        | TantivyError::IoError(io_error) => is_malformed(io_error),
        _ => false,
    };
    match is_damage {
        true => IndexError::Damaged(error.to_string()),
        false => IndexError::Failed(error.to_string()),
    }
}

fn is_malformed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::NotFound
    )
}

/// The lengths and times of modification of the files of a commit. The files of a segment are written once, so one that changes was changed by
/// somebody else.
#[derive(Debug, Default)]
pub(super) struct Signs {
    files: HashMap<PathBuf, Sign>,
    looked: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sign {
    length: u64,
    modified: Option<SystemTime>,
}

impl Sign {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }
}

impl Signs {
    /// Takes the signs of the files of the last commit. Those of files that were known before stay as they were.
    pub(super) fn take(index: &Index, folder: &Path, known: &Self) -> Result<Self, IndexError> {
        let metas = index.load_metas().map_err(failure)?;
        let sign = |name: PathBuf| {
            let sign = known.files.get(&name).copied();
            // A segment without removals names a file of removals that it does not have.
            let sign = sign.or_else(|| Sign::of(&folder.join(&name)).ok())?;
            Some((name, sign))
        };
        let names = metas.list_segment_files().into_iter();
        Ok(Self {
            files: names.filter_map(sign).collect(),
            looked: known.looked,
        })
    }

    /// Compares the files with their signs, every [`LOOK_EVERY`] at most. Damage is found again until the index is made again.
    pub(super) fn look(&mut self, folder: &Path, now: Instant) -> Result<(), IndexError> {
        let looked = self.looked;
        if looked.is_some_and(|at| now.saturating_duration_since(at) < LOOK_EVERY) {
            return Ok(());
        }
        self.compare(folder)?;
        self.looked = Some(now);
        Ok(())
    }

    /// Compares the files with their signs. Of one that has another time the checksum is compared.
    pub(super) fn compare(&mut self, folder: &Path) -> Result<(), IndexError> {
        let mut gone = Vec::new();
        for (name, sign) in &mut self.files {
            let path = folder.join(name);
            match Sign::of(&path) {
                Ok(now) if now == *sign => {}
                Ok(now) if now.length != sign.length => {
                    return Err(damaged(name, "the length is another"));
                }
                Ok(now) => match is_whole(&path) {
                    Ok(true) => *sign = now,
                    Ok(false) => return Err(damaged(name, "the checksum is another")),
                    Err(error) => return Err(unreadable(name, &error)),
                },
                Err(error) if error.kind() == ErrorKind::NotFound => gone.push(name.clone()),
                Err(error) => return Err(IndexError::Failed(error.to_string())),
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        // A merge removes files that the commit does not name any more.
        let named = segment_files(folder)?;
        for name in gone {
            if named.contains(&name) {
                return Err(damaged(&name, "the file is gone"));
            }
            self.files.remove(&name);
        }
        Ok(())
    }
}

fn damaged(name: &Path, why: &str) -> IndexError {
    IndexError::Damaged(format!("{}: {why}", name.display()))
}

fn unreadable(name: &Path, error: &io::Error) -> IndexError {
    match is_malformed(error) {
        true => damaged(name, "the footer is malformed"),
        false => IndexError::Failed(error.to_string()),
    }
}

/// The files of the last commit.
fn segment_files(folder: &Path) -> Result<HashSet<PathBuf>, IndexError> {
    let metas = Index::open_in_dir(folder).and_then(|index| index.load_metas());
    Ok(metas.map_err(failure)?.list_segment_files())
}

/// Compares all files of the last commit with their checksums. A file that is not there is passed over: it may have been merged meanwhile, and
/// opening an index finds what is missing.
pub(super) fn verify(folder: &Path) -> Result<(), IndexError> {
    for name in segment_files(folder)? {
        match is_whole(&folder.join(&name)) {
            Ok(true) => {}
            Ok(false) => return Err(damaged(&name, "the checksum is another")),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&name, &error)),
        }
    }
    Ok(())
}

/// True if a file has the checksum that its footer says.
fn is_whole(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let malformed = || io::Error::from(ErrorKind::InvalidData);
    let before_tail = length.checked_sub(TAIL as u64).ok_or_else(malformed)?;
    file.seek(SeekFrom::Start(before_tail))?;
    let (mut json_length, mut magic) = ([0; 4], [0; 4]);
    file.read_exact(&mut json_length)?;
    file.read_exact(&mut magic)?;
    let json_length = u32::from_le_bytes(json_length);
    if u32::from_le_bytes(magic) != MAGIC || json_length > MAX_FOOTER {
        return Err(malformed());
    }
    let content = before_tail
        .checked_sub(json_length.into())
        .ok_or_else(malformed)?;
    file.seek(SeekFrom::Start(content))?;
    let footer = file.by_ref().take(json_length.into());
    let footer: Footer = serde_json::from_reader(footer).map_err(|_| malformed())?;
    file.seek(SeekFrom::Start(0))?;
    let mut rest = file.take(content);
    let mut hasher = Hasher::new();
    let mut piece = vec![0; PIECE];
    let mut hashed = 0;
    loop {
        let read = rest.read(&mut piece)?;
        if read == 0 {
            break;
        }
        hasher.update(&piece[..read]);
        hashed += read as u64;
    }
    Ok(hashed == content && hasher.finalize() == footer.crc)
}
