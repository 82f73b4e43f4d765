//! Finds damaged files of an index: written half, cut off, or changed.
//!
//! Every file of a segment ends with a footer of `tantivy` that has the CRC-32 of what stands before it. The files are read here in small pieces,
//! not mapped to memory: a file that became shorter since it was mapped ends the process that reads beyond its end.

use std::{
    fs::File,
    io::{self, ErrorKind, Read, Seek as _, SeekFrom},
    path::Path,
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

/// Compares all files of the last commit with their checksums. A file that is not there is passed over: it may have been merged meanwhile, and
/// opening an index finds what is missing.
pub(super) fn verify(folder: &Path) -> Result<(), IndexError> {
    let metas = Index::open_in_dir(folder)
        .and_then(|index| index.load_metas())
        .map_err(failure)?;
    for name in metas.list_segment_files() {
        let damaged = |why: &str| IndexError::Damaged(format!("{}: {why}", name.display()));
        match is_whole(&folder.join(&name)) {
            Ok(true) => {}
            Ok(false) => return Err(damaged("the checksum is another")),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if is_malformed(&error) => return Err(damaged("the footer is malformed")),
            Err(error) => return Err(IndexError::Failed(error.to_string())),
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
