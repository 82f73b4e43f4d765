//! Where the index is: a copy of this node in a folder, or one in PostgreSQL that all nodes share.

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use colloquy_config::Secret;
use colloquy_index::{
    embedded::{EmbeddedIndex, EmbeddedOptions},
    search::{IndexError, SearchIndex},
};
use colloquy_pgvector::{PgIndex, PgOptions, Writer};
use tokio::task::spawn_blocking;

use crate::{Bases, store};

/// How many processes may share a data folder.
const FOLDERS: usize = 16;
/// The file that says which changes are in the index.
const POSITION: &str = "position";

/// An index that is open.
#[derive(Debug)]
pub(super) enum OpenIndex {
    /// This node's own.
    Copy(NodeCopy),
    /// That of all nodes. One of them makes the changes at a time.
    Shared(Box<PgIndex>),
}

/// An index in a folder.
#[derive(Debug)]
pub(super) struct NodeCopy {
    index: EmbeddedIndex,
    folder: PathBuf,
    installation: String,
    /// Keeps other processes out of the folder.
    _lock: File,
}

/// The right to make changes.
#[derive(Debug)]
pub(super) enum Turn {
    /// There is nobody else.
    Alone,
    /// Until the connection is lost.
    Writer(Writer),
}

impl Turn {
    /// Whether nobody else makes changes.
    pub(super) async fn holds(&mut self) -> bool {
        match self {
            Self::Alone => true,
            Self::Writer(writer) => writer.is_alive().await,
        }
    }
}

impl OpenIndex {
    /// Opens the index that the settings name, and tells up to which change it has come.
    pub(super) async fn open(bases: &Bases) -> anyhow::Result<(Self, i64)> {
        let db = bases.store.db();
        store::name_installation(db, &bases.clock.new_id().to_string()).await?;
        let sequence = store::sequence(db).await?;
        let installation = sequence.installation.unwrap_or_default();
        let is_known = move |position: i64| {
            let changes = sequence.forgotten..=sequence.last;
            changes.contains(&position)
        };
        if let Some(url) = bases.config.store.shared_index() {
            return open_shared(bases, url, &installation).await;
        }
        let folder = bases.config.store.dir.join("index");
        let clock = Arc::clone(&bases.clock);
        let opened = spawn_blocking(move || {
            let (folder, lock) = take_folder(&folder)?;
            let position = position(&folder, &installation)?.filter(|it| is_known(*it));
            let content = folder.join("content");
            // Without its files an index has not come to any change.
            let position = position.filter(|_| EmbeddedIndex::exists(&content));
            if position.is_none() {
                empty(&folder, &content)?;
            }
            let open = || EmbeddedIndex::open(&content, EmbeddedOptions::default(), clock.clone());
            let (index, position) = match open() {
                Err(IndexError::Damaged(reason)) => {
                    tracing::error!(reason, "the search index is damaged; it is made again");
                    empty(&folder, &content)?;
                    (open()?, None)
                }
                opened => (opened?, position),
            };
            let copy = NodeCopy {
                index,
                folder,
                installation,
                _lock: lock,
            };
            anyhow::Ok((Self::Copy(copy), position.unwrap_or(0)))
        });
        opened.await?.context("opening the index")
    }

    /// The index.
    pub(super) fn index(&self) -> &dyn SearchIndex {
        match self {
            Self::Copy(copy) => &copy.index,
            Self::Shared(index) => &**index,
        }
    }

    /// True if it is on a disk of this node.
    pub(super) fn is_copy(&self) -> bool {
        matches!(self, Self::Copy(_))
    }

    /// Sets whether segments stay as they are, since merging them takes space. PostgreSQL has none.
    pub(super) fn hold_merges(&self, is_held: bool) {
        if let Self::Copy(copy) = self {
            copy.index.hold_merges(is_held);
        }
    }

    /// Compares the files with their checksums. PostgreSQL sees to its own.
    pub(super) async fn verify(&self) -> Result<(), IndexError> {
        match self {
            Self::Copy(copy) => copy.index.verify().await,
            Self::Shared(_) => Ok(()),
        }
    }

    /// Compares lengths and times of the files with those that were written, every few seconds at most.
    pub(super) async fn look(&self) -> Result<(), IndexError> {
        match self {
            Self::Copy(copy) => copy.index.look().await,
            Self::Shared(_) => Ok(()),
        }
    }

    /// Removes all that is in the index.
    pub(super) async fn clear(&self) -> anyhow::Result<()> {
        match self {
            Self::Copy(copy) => {
                // First, so that a process that dies does not take an empty index for a full one.
                remove_position(&copy.folder)?;
                Ok(copy.index.clear().await?)
            }
            Self::Shared(index) => Ok(index.clear().await?),
        }
    }

    /// Up to which change it has come since somebody else may have made changes; `None` where nobody else does.
    pub(super) async fn position(&self) -> anyhow::Result<Option<i64>> {
        Ok(match self {
            Self::Copy(_) => None,
            Self::Shared(index) => Some(index.position().await?.unwrap_or(0)),
        })
    }

    /// The right to make changes, and after which one; `None` while another node has it. An index that has missed more than is remembered
    /// is made again.
    pub(super) async fn turn(
        &self,
        bases: &Bases,
        position: i64,
    ) -> anyhow::Result<Option<(Turn, i64)>> {
        let Self::Shared(index) = self else {
            return Ok(Some((Turn::Alone, position)));
        };
        let Some(writer) = index.writer().await? else {
            return Ok(None);
        };
        let sequence = store::sequence(bases.store.db()).await?;
        let position = index.position().await?;
        let known = position.filter(|it| (sequence.forgotten..=sequence.last).contains(it));
        if known.is_none() {
            index.clear().await?;
        }
        Ok(Some((Turn::Writer(writer), known.unwrap_or(0))))
    }

    /// Remembers up to which change the index has come. Should that be lost, some changes are made again.
    pub(super) async fn note(&self, position: i64) -> anyhow::Result<()> {
        match self {
            Self::Copy(copy) => Ok(copy.note(position).await?),
            Self::Shared(index) => Ok(index.note(position).await?),
        }
    }
}

async fn open_shared(
    bases: &Bases,
    url: &Secret,
    installation: &str,
) -> anyhow::Result<(OpenIndex, i64)> {
    let options = PgOptions {
        max_connections: bases.config.store.max_connections,
        ..PgOptions::default()
    };
    let clock = Arc::clone(&bases.clock);
    let opened = PgIndex::open(url.reveal(), installation, options, clock).await;
    let index = opened.context("store.search_url")?;
    let position = index.position().await?.unwrap_or(0);
    Ok((OpenIndex::Shared(Box::new(index)), position))
}

impl NodeCopy {
    async fn note(&self, position: i64) -> io::Result<()> {
        let text = format!("{}\n{position}\n", self.installation);
        let (new, file) = (self.folder.join("position.new"), self.folder.join(POSITION));
        tokio::fs::write(&new, text).await?;
        tokio::fs::rename(&new, &file).await
    }
}

/// Removes what is in a folder of an index.
fn empty(folder: &Path, content: &Path) -> io::Result<()> {
    remove_position(folder)?;
    match std::fs::remove_dir_all(content) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_position(folder: &Path) -> io::Result<()> {
    match std::fs::remove_file(folder.join(POSITION)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A folder that no other process uses: each that shares the data folder has one of its own.
fn take_folder(parent: &Path) -> anyhow::Result<(PathBuf, File)> {
    for number in 0..FOLDERS {
        let folder = parent.join(number.to_string());
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let lock = File::create(folder.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => return Ok((folder, lock)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    anyhow::bail!("more than {FOLDERS} processes use {}", parent.display())
}

/// Up to which change the index in a folder has come; `None` where it is of another database, or that is not known, as where the file was
/// written half.
fn position(folder: &Path, installation: &str) -> io::Result<Option<i64>> {
    let text = match std::fs::read_to_string(folder.join(POSITION)) {
        Ok(text) => text,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::InvalidData
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    // A number without its end may be the beginning of another.
    let whole = text.strip_suffix('\n').unwrap_or_default();
    let (name, position) = whole.split_once('\n').unwrap_or_default();
    let position = position.parse().ok();
    Ok(position.filter(|_| name == installation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_counts_that_was_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        let read = |bytes: &[u8]| {
            std::fs::write(folder.path().join(POSITION), bytes).unwrap();
            position(folder.path(), "here").unwrap()
        };
        assert_eq!(read(b"here\n1234\n"), Some(1_234));
        for broken in [
            &b"here\n12"[..],
            b"here\n",
            b"here",
            b"",
            b"\0\0\0\0",
            b"\xff\xfe\n1\n",
            b"there\n1234\n",
        ] {
            assert_eq!(read(broken), None, "{broken:?}");
        }
        remove_position(folder.path()).unwrap();
        assert_eq!(position(folder.path(), "here").unwrap(), None);
        remove_position(folder.path()).unwrap();
    }
}
