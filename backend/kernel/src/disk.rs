//! The free space of the disks that a server writes to.
//!
//! A part of it is a reserve (`store.disk_reserve_bytes`): files of partners are not written into it, so that what frees space, such as
//! deleting documents, finds room for its own changes of the database. Other requests that store something are refused once half of
//! the reserve is used.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use colloquy_config::Config;
use rustix::fs::statvfs;
use tokio::task::spawn_blocking;

/// The disks of the data folder, of the folder of files and of an SQLite database; cheap to clone.
#[derive(Debug, Clone)]
pub struct Disk(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    folders: Vec<PathBuf>,
    reserve: u64,
    /// Bytes that were admitted and are not written yet.
    arriving: AtomicU64,
}

/// The space of the disk that has the least left above its reserve, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// What may still be written, without what is arriving.
    pub free: u64,
    /// The reserve: `store.disk_reserve_bytes`, and at most a tenth of the disk.
    pub reserve: u64,
}

/// Files cannot be taken, since the disk is nearly full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server's disk is nearly full: {} bytes are free, of which {} are kept for deleting (store.disk_reserve_bytes); delete \
     files, or have the operator make room on the disk", .0.free, .0.reserve
)]
pub struct DiskFull(pub DiskSpace);

/// Bytes that were admitted and are about to be written. They count until they are [written](Self::written) or this is dropped.
#[derive(Debug)]
pub struct Arriving {
    disk: Disk,
    bytes: u64,
}

impl DiskSpace {
    /// True if so many bytes can be written without the reserve.
    #[must_use]
    fn has_room_for(self, bytes: u64) -> bool {
        let left = self.free.checked_sub(bytes);
        left.is_some_and(|left| left >= self.reserve)
    }

    /// True if half of the reserve is used, so that nothing but deletion should store anything.
    #[must_use]
    pub fn is_low(self) -> bool {
        self.free < self.reserve / 2
    }
}

impl Disk {
    /// The disks that these settings name.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let place = config.store.blob_place().ok();
        let blobs = place.and_then(|place| place.to_file_path().ok());
        let database = config.store.file().and_then(|file| {
            // A link is opened as what it leads to.
            let file = file.canonicalize().or_else(|_| std::path::absolute(&file));
            Some(file.ok()?.parent()?.to_owned())
        });
        let folders = [Some(config.store.dir.clone()), blobs, database];
        Self(Arc::new(Parts {
            folders: folders.into_iter().flatten().collect(),
            reserve: config.store.disk_reserve_bytes,
            arriving: AtomicU64::new(0),
        }))
    }

    /// Returns the space that is left.
    ///
    /// # Errors
    /// When a disk cannot be asked.
    pub async fn space(&self) -> io::Result<DiskSpace> {
        let parts = Arc::clone(&self.0);
        let asked = spawn_blocking(move || parts.space());
        asked.await.map_err(io::Error::other)?
    }

    /// Admits bytes that are about to be written.
    ///
    /// # Errors
    /// When they would need the reserve. A disk that cannot be asked admits them: writing says what is wrong with it.
    pub async fn admit(&self, bytes: u64) -> Result<Arriving, DiskFull> {
        // Counted first, so that of two that arrive at once each sees the other.
        let others = self.0.arriving.fetch_add(bytes, Ordering::SeqCst);
        let arriving = Arriving {
            disk: self.clone(),
            bytes,
        };
        match self.space().await {
            Ok(space) if !space.has_room_for(others.saturating_add(bytes)) => Err(DiskFull(space)),
            Ok(_) => Ok(arriving),
            Err(error) => {
                tracing::debug!(%error, "the free space of the disk is not known");
                Ok(arriving)
            }
        }
    }
}

impl Parts {
    fn space(&self) -> io::Result<DiskSpace> {
        let mut least: Option<DiskSpace> = None;
        for folder in &self.folders {
            let found = statvfs(folder)?;
            let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
            let space = DiskSpace {
                free: bytes(found.f_bavail),
                reserve: self.reserve.min(bytes(found.f_blocks) / 10),
            };
            let above = |space: DiskSpace| space.free.saturating_sub(space.reserve);
            if least.is_none_or(|least| above(space) < above(least)) {
                least = Some(space);
            }
        }
        least.ok_or_else(|| io::Error::other("there is no folder"))
    }
}

impl Arriving {
    /// Adds what was admitted later.
    pub fn add(&mut self, mut more: Self) {
        self.bytes = self.bytes.saturating_add(more.bytes);
        more.bytes = 0;
    }

    /// Notes that so many of the bytes were written: the disk says of itself that they are there.
    pub fn written(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.disk.0.arriving.fetch_sub(bytes, Ordering::SeqCst);
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.written(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use colloquy_config::Secret;

    use super::*;

    fn disk(reserve: u64) -> (tempfile::TempDir, Disk) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("blobs")).unwrap();
        let mut config = Config::default();
        config.store.dir = folder.path().to_owned();
        config.store.disk_reserve_bytes = reserve;
        let disk = Disk::new(&config);
        (folder, disk)
    }

    #[test]
    fn the_disk_of_an_sqlite_database_is_watched() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other disk");
        let mut config = Config::default();
        config.store.dir = folder.path().join("data");
        let url = format!("sqlite://{}/other%20disk/x.db", folder.path().display());
        config.store.database_url = Some(Secret::new(url));
        let disk = Disk::new(&config);
        assert!(disk.0.folders.contains(&other), "{disk:?}");
    }

    #[test]
    fn the_reserve_is_for_deletion() {
        let space = DiskSpace {
            free: 1_000,
            reserve: 400,
        };
        assert!(space.has_room_for(600));
        assert!(!space.has_room_for(601));
        assert!(!space.is_low());
        let low = |free| DiskSpace { free, ..space }.is_low();
        assert_eq!([low(200), low(199)], [false, true]);
    }

    #[tokio::test]
    async fn what_is_arriving_counts_until_it_is_written() {
        let (_folder, disk) = disk(0);
        let free = disk.space().await.unwrap().free;
        let arriving = || disk.0.arriving.load(Ordering::SeqCst);
        let most = free / 3 * 2;
        let mut first = disk.admit(most).await.unwrap();
        let refused = disk.admit(most).await.unwrap_err();
        assert!(refused.to_string().contains("store.disk_reserve_bytes"));
        assert_eq!(arriving(), most, "what was refused does not count");
        first.written(most);
        first.add(disk.admit(most).await.unwrap());
        assert_eq!(arriving(), most);
        drop(first);
        assert_eq!(arriving(), 0);
    }

    #[tokio::test]
    async fn the_reserve_is_a_tenth_of_a_small_disk_at_most() {
        let (_folder, disk) = disk(u64::MAX);
        let space = disk.space().await.unwrap();
        assert!(space.reserve > 0 && space.reserve < u64::MAX / 10);
    }
}
