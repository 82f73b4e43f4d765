//! Compares what is read of a file with the length and the hash that it was written with.
//!
//! A disk or a bucket may give back less than it was given, something else, or nothing. Nobody gets such a file as if it was whole: reading it fails,
//! at the latest in the place of its last piece.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use sha2::{Digest as _, Sha256};

use super::{BlobKey, Blobs, ObjectError, OpenFile, objects::hex};

/// The most damaged files that are remembered; there may be more.
const MOST_DAMAGED: usize = 1_000;
/// The most files that are remembered as whole.
const MOST_WHOLE: usize = 1_000;

/// What a file was written with, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) bytes: Option<u64>,
    /// In lower-case hexadecimal digits.
    pub(super) sha256: Option<String>,
}

/// What this process knows of files that it has read.
#[derive(Debug, Default)]
pub(super) struct Verified {
    /// The damaged files; true for one that was not there when it was read last.
    damaged: Mutex<BTreeMap<String, bool>>,
    /// Files of a folder that were read to their end, with the time at which each was changed last.
    whole: Mutex<HashMap<BlobKey, SystemTime>>,
}

impl Verified {
    /// Says in the log, once, that a file is not what was written.
    pub(super) fn report(&self, key: &BlobKey, why: &str) -> ObjectError {
        self.note_damage(key, false, why);
        ObjectError::Damaged
    }

    /// Says in the log, once, that a file is lost.
    fn report_lost(&self, key: &BlobKey) -> ObjectError {
        self.note_damage(key, true, "it is kept and not there");
        ObjectError::Lost
    }

    fn note_damage(&self, key: &BlobKey, is_lost: bool, why: &str) {
        let mut damaged = lock(&self.damaged);
        if let Some(was_lost) = damaged.get_mut(key.as_str()) {
            *was_lost = is_lost;
        } else if damaged.len() < MOST_DAMAGED {
            damaged.insert(key.as_str().to_owned(), is_lost);
            tracing::error!(%key, "a file is damaged: {why}");
            metrics::counter!("colloquy_damaged_files_total").increment(1);
        }
    }

    /// Notes that a file is whole, or there again, which may have been damaged.
    fn repaired(&self, key: &BlobKey) {
        lock(&self.damaged).remove(key.as_str());
    }

    /// Notes that a file is gone.
    pub(super) fn forget(&self, key: &BlobKey) {
        lock(&self.damaged).remove(key.as_str());
        lock(&self.whole).remove(key);
    }

    /// The damaged files.
    pub(super) fn damaged(&self) -> Vec<BlobKey> {
        let damaged = lock(&self.damaged);
        damaged.keys().cloned().map(BlobKey::of_row).collect()
    }

    fn lost(&self) -> Vec<BlobKey> {
        let damaged = lock(&self.damaged);
        let lost = damaged.iter().filter(|(_, is_lost)| **is_lost);
        lost.map(|(key, _)| BlobKey::of_row(key.clone())).collect()
    }

    pub(super) fn damaged_count(&self) -> usize {
        lock(&self.damaged).len()
    }

    /// True if the file was read to its end, and is as it was then.
    fn is_whole(&self, key: &BlobKey, changed: SystemTime) -> bool {
        lock(&self.whole).get(key) == Some(&changed)
    }

    fn note_whole(&self, key: &BlobKey, changed: SystemTime) {
        let mut whole = lock(&self.whole);
        if whole.len() >= MOST_WHOLE {
            whole.clear();
        }
        whole.insert(key.clone(), changed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is being read.
struct Reading {
    blobs: Blobs,
    key: BlobKey,
    /// `None` at the end.
    pieces: Option<stream::BoxStream<'static, Result<Bytes, ObjectError>>>,
    expected: Expected,
    bytes: u64,
    hash: Sha256,
    /// The last piece that came, which is given out once another has come, or the file is whole.
    held: Option<Bytes>,
}

impl Reading {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, ObjectError> {
        while let Some(pieces) = &mut self.pieces {
            match pieces.next().await.transpose()? {
                Some(piece) => {
                    self.bytes += piece.len() as u64;
                    self.hash.update(&piece);
                    if let Some(before) = self.held.replace(piece) {
                        return Ok(Some((before, self)));
                    }
                }
                None => {
                    self.pieces = None;
                    let sha256 = hex(&std::mem::take(&mut self.hash).finalize());
                    self.blobs
                        .compare(&self.key, &self.expected, self.bytes, &sha256)?;
                }
            }
        }
        Ok(self.held.take().map(|last| (last, self)))
    }
}

impl Blobs {
    /// Tells a file that is lost from one that was given up, where there is none.
    pub(super) async fn found<T>(
        &self,
        key: &BlobKey,
        read: Result<T, ObjectError>,
    ) -> Result<T, ObjectError> {
        if !matches!(read, Err(ObjectError::Missing)) {
            return read;
        }
        // Looked up after it was not found: it may have been given up and removed in between, by another node as well.
        match self.expected(key).await?.bytes {
            Some(_) => Err(self.0.verified.report_lost(key)),
            None => read,
        }
    }

    /// Forgets that files were lost that are there again, as those of a disk that is mounted late. What is in them is compared when they are read.
    pub(super) async fn forget_found(&self) {
        for key in self.0.verified.lost() {
            match self.0.objects.read(&key).await {
                Ok(_) => self.0.verified.repaired(&key),
                Err(ObjectError::Missing) => {}
                // The place of files is away, and would be for the others.
                Err(_) => return,
            }
        }
    }

    /// Compares what was read with what is expected.
    pub(super) fn compare(
        &self,
        key: &BlobKey,
        expected: &Expected,
        bytes: u64,
        sha256: &str,
    ) -> Result<(), ObjectError> {
        self.compare_length(key, expected, bytes)?;
        match &expected.sha256 {
            Some(expected) if expected != sha256 => {
                Err(self.0.verified.report(key, "its hash is another"))
            }
            Some(_) => {
                self.0.verified.repaired(key);
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(super) fn compare_length(
        &self,
        key: &BlobKey,
        expected: &Expected,
        bytes: u64,
    ) -> Result<(), ObjectError> {
        match expected.bytes {
            Some(expected) if expected != bytes => {
                let why = format!("it has {bytes} bytes in place of {expected}");
                Err(self.0.verified.report(key, &why))
            }
            _ => Ok(()),
        }
    }

    /// The file with pieces that end in an error when they are not what was written.
    pub(super) fn verifying(&self, key: &BlobKey, expected: Expected, open: OpenFile) -> OpenFile {
        let reading = Reading {
            blobs: self.clone(),
            key: key.clone(),
            pieces: Some(open.pieces),
            expected: Expected {
                // A file may become shorter while it is read.
                bytes: expected.bytes.or(Some(open.bytes)),
                ..expected
            },
            bytes: 0,
            hash: Sha256::new(),
            held: None,
        };
        OpenFile {
            bytes: open.bytes,
            pieces: stream::try_unfold(reading, Reading::next).boxed(),
        }
    }

    /// Reads a file of a folder to its end, unless that was done since it was changed last.
    pub(super) async fn verify_local(
        &self,
        key: &BlobKey,
        changed: SystemTime,
    ) -> Result<(), ObjectError> {
        if self.0.verified.is_whole(key, changed) {
            return Ok(());
        }
        drain(self.read(key).await?.pieces).await?;
        self.0.verified.note_whole(key, changed);
        Ok(())
    }
}

async fn drain(
    mut pieces: impl Stream<Item = Result<Bytes, ObjectError>> + Unpin,
) -> Result<(), ObjectError> {
    while pieces.next().await.transpose()?.is_some() {}
    Ok(())
}
