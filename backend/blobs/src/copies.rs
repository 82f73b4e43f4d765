//! Copies of files that lie elsewhere, kept for a moment: a recording is read a window at a time, and each of them has the same copy.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tempfile::TempPath;

use super::BlobKey;

/// How long a copy stays that nobody asks for.
const UNUSED: Duration = Duration::from_secs(60);
/// How many stay, and how large they are together, in bytes. Copies that are being read may be more.
const MOST: usize = 8;
const MOST_BYTES: u64 = 1024 * 1024 * 1024;

/// A copy, which is removed with its last reader, or once it is forgotten.
#[derive(Debug)]
pub(super) struct Copy {
    path: TempPath,
    bytes: u64,
}

impl Copy {
    pub(super) fn new(path: TempPath, bytes: u64) -> Self {
        Self { path, bytes }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A copy that stays.
#[derive(Debug)]
struct Kept {
    key: BlobKey,
    asked: Instant,
    copy: Arc<Copy>,
}

/// The copies that stay, the one that was asked for last at the end.
#[derive(Debug, Default)]
pub(super) struct Copies(Mutex<Vec<Kept>>);

impl Copies {
    /// The copy of a file.
    pub(super) fn find(&self, key: &BlobKey, now: Instant) -> Option<Arc<Copy>> {
        let mut all = self.lock();
        let at = all.iter().position(|kept| kept.key == *key)?;
        let mut kept = all.remove(at);
        kept.asked = now;
        let copy = Arc::clone(&kept.copy);
        all.push(kept);
        Some(copy)
    }

    /// Keeps a copy for a while, and forgets those for which there is no room then.
    pub(super) fn keep(&self, key: &BlobKey, copy: Copy, now: Instant) -> Arc<Copy> {
        let copy = Arc::new(copy);
        let mut all = self.lock();
        all.retain(|kept| kept.key != *key);
        all.push(Kept {
            key: key.clone(),
            asked: now,
            copy: Arc::clone(&copy),
        });
        while all.len() > MOST || all.iter().map(|kept| kept.copy.bytes).sum::<u64>() > MOST_BYTES {
            all.remove(0);
        }
        copy
    }

    /// Forgets the copies that nobody has asked for in a while.
    pub(super) fn forget_unused(&self, now: Instant) {
        let is_used = |kept: &Kept| now.saturating_duration_since(kept.asked) < UNUSED;
        self.lock().retain(is_used);
    }

    /// Forgets the copy of a file that is gone.
    pub(super) fn forget(&self, key: &BlobKey) {
        self.lock().retain(|kept| kept.key != *key);
    }

    /// Forgets all copies.
    pub(super) fn forget_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use colloquy_base::clock::{Clock as _, SystemClock};

    use super::*;

    fn key(name: &str) -> BlobKey {
        BlobKey::of_row(format!("acme/{name}"))
    }

    fn copy(bytes: u64) -> Copy {
        let file = tempfile::NamedTempFile::new().unwrap();
        Copy::new(file.into_temp_path(), bytes)
    }

    #[test]
    fn copies_stay_while_there_is_room_and_somebody_asks() {
        let (copies, now) = (Copies::default(), SystemClock.instant());
        let after = |seconds| now + Duration::from_secs(seconds);
        let path = copies.keep(&key("a"), copy(5), now).path().to_owned();
        assert!(path.exists());
        assert_eq!(copies.find(&key("a"), after(50)).unwrap().path(), path);
        copies.forget_unused(after(100));
        assert!(path.exists(), "it was asked for");
        copies.forget_unused(after(111));
        assert!(!path.exists() && copies.find(&key("a"), after(111)).is_none());

        // Those that were asked for longest ago go first.
        copies.keep(&key("first"), copy(1), now);
        for number in 0..MOST - 1 {
            copies.keep(&key(&number.to_string()), copy(1), now);
        }
        assert!(copies.find(&key("first"), now).is_some());
        copies.keep(&key("more"), copy(1), now);
        assert!(copies.find(&key("first"), now).is_some());
        assert!(copies.find(&key("0"), now).is_none());
        copies.keep(&key("large"), copy(MOST_BYTES), now);
        assert!(copies.find(&key("first"), now).is_none());
        assert!(copies.find(&key("large"), now).is_some());
    }

    #[test]
    fn a_copy_that_is_being_read_stays_for_its_reader() {
        let (copies, now) = (Copies::default(), SystemClock.instant());
        let read = copies.keep(&key("a"), copy(MOST_BYTES + 1), now);
        assert!(copies.find(&key("a"), now).is_none(), "it is too large");
        assert!(read.path().exists());
        let other = copies.keep(&key("b"), copy(1), now);
        copies.forget(&key("b"));
        assert!(other.path().exists() && copies.find(&key("b"), now).is_none());
        let path = other.path().to_owned();
        drop(other);
        assert!(!path.exists());
    }
}
