//! The free space of the disks that a server writes to.
//!
//! A part of it is a reserve (`store.disk_reserve_bytes`): files of partners are not written into it, so that what frees space, such as
//! deleting documents, finds room for its own changes of the database. Other requests that store something are refused once half of
//! the reserve is used.
//!
//! On the disk of an SQLite database, a deletion needs room for the database's write-ahead log, which grows to 32 MB before it is written into
//! the database. So the reserve of that disk is at least twice as much, unless the setting is smaller, and a disk that has too little for that
//! is refused at the start.

use std::{
    cmp::Reverse,
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

/// What deletions need of the disk of an SQLite database, in bytes. Half of it is for the write-ahead log, which has 8,192 pages of 4 KiB and
/// those of one transaction; other requests are admitted to the other half.
const LEAST_FOR_DATABASE: u64 = 64 * 1024 * 1024;

/// The disks of the data folder, of the folder of files and of an SQLite database; cheap to clone.
#[derive(Debug, Clone)]
pub struct Disk(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    places: Vec<Place>,
    reserve: u64,
    /// Bytes that were admitted and are not written yet.
    arriving: AtomicU64,
}

#[derive(Debug, PartialEq, Eq)]
struct Place {
    folder: PathBuf,
    /// The most that is kept of a disk of which a tenth is less, in bytes.
    least: u64,
}

/// The space of the disk that has the least left above its reserve, in bytes: of one that [is low](Self::is_low), if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// What may still be written, without what is arriving.
    pub free: u64,
    /// The reserve: `store.disk_reserve_bytes`, and at most a tenth of the disk, or 64 MiB of that of an SQLite database.
    pub reserve: u64,
}

/// Files cannot be taken, since the disk is nearly full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server's disk is nearly full: {} bytes are free, of which {} are kept for deleting (store.disk_reserve_bytes); delete \
     files, or have the operator make room on the disk", .0.free, .0.reserve
)]
pub struct DiskFull(pub DiskSpace);

/// A disk has not even room for its reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "store.disk_reserve_bytes: the disk of the database has {total} bytes in all, and {reserve} of them would be kept for deleting; a disk of \
     {} bytes is enough, or set a smaller reserve, with which a full disk may leave no room to delete", .reserve.saturating_mul(2)
)]
pub struct DiskTooSmall {
    /// The bytes of the disk.
    pub total: u64,
    /// The bytes that are to be kept.
    pub reserve: u64,
}

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

    /// True if the reserve keeps files of partners out.
    #[must_use]
    pub fn is_nearly_full(self) -> bool {
        !self.has_room_for(1)
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
        let folders = [
            (Some(config.store.dir.clone()), 0),
            (blobs, 0),
            (database, LEAST_FOR_DATABASE),
        ];
        let place =
            |(folder, least): (Option<PathBuf>, u64)| folder.map(|folder| Place { folder, least });
        Self(Arc::new(Parts {
            places: folders.into_iter().filter_map(place).collect(),
            reserve: config.store.disk_reserve_bytes,
            arriving: AtomicU64::new(0),
        }))
    }

    /// Checks that each disk has room for its reserve and as much beside it. A disk that cannot be asked passes: writing says what is wrong
    /// with it.
    ///
    /// # Errors
    /// When a disk is smaller.
    pub fn check_size(&self) -> Result<(), DiskTooSmall> {
        for place in &self.0.places {
            if let Ok(found) = statvfs(&place.folder) {
                let total = found.f_blocks.saturating_mul(found.f_frsize);
                let reserve = place.reserve(self.0.reserve, total);
                if reserve > total / 2 {
                    return Err(DiskTooSmall { total, reserve });
                }
            }
        }
        Ok(())
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

impl Place {
    /// The reserve of its disk of `total` bytes, where so much is wanted. A disk that does not tell its size has none.
    fn reserve(&self, wanted: u64, total: u64) -> u64 {
        match total {
            0 => 0,
            _ => wanted.min((total / 10).max(self.least)),
        }
    }
}

impl Parts {
    fn space(&self) -> io::Result<DiskSpace> {
        // A disk of which half the reserve is used comes before one of which nothing above it is left: deletion alone writes to it.
        // Of places on one disk the largest reserve applies, also where nothing is left above any of theirs.
        let rank = |space: DiskSpace| {
            let above = space.free.saturating_sub(space.reserve);
            (!space.is_low(), above, Reverse(space.reserve))
        };
        let mut least: Option<DiskSpace> = None;
        for place in &self.places {
            let found = statvfs(&place.folder)?;
            let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
            let space = DiskSpace {
                free: bytes(found.f_bavail),
                reserve: place.reserve(self.reserve, bytes(found.f_blocks)),
            };
            if least.is_none_or(|least| rank(space) < rank(least)) {
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
        let watched = Place {
            folder: other,
            least: LEAST_FOR_DATABASE,
        };
        assert!(disk.0.places.contains(&watched), "{disk:?}");
    }

    #[test]
    fn the_reserve_of_a_database_has_room_for_its_log() {
        let place = |least| Place {
            folder: PathBuf::new(),
            least,
        };
        let (database, files) = (place(LEAST_FOR_DATABASE), place(0));
        let (mb, gb) = (1024 * 1024, 1024 * 1024 * 1024);
        for (total, of_database, of_files) in [
            (60 * mb, 64 * mb, 6 * mb),
            (320 * mb, 64 * mb, 32 * mb),
            (5 * gb, 512 * mb, 512 * mb),
            (500 * gb, gb, gb),
        ] {
            assert_eq!(database.reserve(gb, total), of_database, "{total}");
            assert_eq!(files.reserve(gb, total), of_files, "{total}");
        }
        // What the operator sets is kept.
        assert_eq!(database.reserve(mb, 60 * mb), mb);
        // Some file systems do not tell their size.
        assert_eq!(database.reserve(gb, 0), 0);
    }

    #[tokio::test]
    async fn a_place_that_is_low_is_told_before_one_that_has_nothing_above_its_reserve() {
        let (folder, disk) = disk(0);
        let free = disk.space().await.unwrap().free;
        let place = |least| Place {
            folder: folder.path().to_owned(),
            least,
        };
        // Nothing is above the reserve of either, and half of the second one is used.
        for leasts in [[free / 2 * 3, u64::MAX], [u64::MAX, free / 2 * 3]] {
            let parts = Parts {
                places: leasts.map(place).into(),
                reserve: u64::MAX,
                arriving: AtomicU64::new(0),
            };
            let space = Disk(Arc::new(parts)).space().await.unwrap();
            assert!(space.is_low(), "{space:?}");
        }
    }

    #[tokio::test]
    async fn places_on_one_disk_have_the_largest_reserve() {
        let (folder, small) = disk(0);
        let free = small.space().await.unwrap().free;
        let place = |least| Place {
            folder: folder.path().to_owned(),
            least,
        };
        let (_other, large) = disk(u64::MAX);
        let tenth = large.space().await.unwrap().reserve;
        // Nothing is left above either reserve. Half is used of both, of the larger one alone, or of neither.
        for (less, most) in [(4, 6), (1, 3), (1, 2)] {
            let [less, most] = [less, most].map(|times| free.saturating_mul(times));
            for leasts in [[less, most], [most, less]] {
                let parts = Parts {
                    places: leasts.map(place).into(),
                    reserve: u64::MAX,
                    arriving: AtomicU64::new(0),
                };
                let space = Disk(Arc::new(parts)).space().await.unwrap();
                assert_eq!(space.reserve, most.max(tenth), "{leasts:?}");
            }
        }
    }

    #[test]
    fn a_disk_that_has_no_room_for_its_reserve_is_refused() {
        let (folder, disk) = disk(u64::MAX);
        disk.check_size().unwrap();
        let place = Place {
            folder: folder.path().to_owned(),
            least: u64::MAX,
        };
        let parts = Parts {
            places: vec![place],
            reserve: u64::MAX,
            arriving: AtomicU64::new(0),
        };
        let refused = Disk(Arc::new(parts)).check_size().unwrap_err();
        assert!(refused.to_string().contains("store.disk_reserve_bytes"));
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
