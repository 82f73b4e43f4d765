//! Compares what is read of a file with the length and the hash that it was written with.
//!
//! A disk or a bucket may give back less than it was given, something else, or nothing. Nobody gets such a file as if it was whole: reading it fails,
//! at the latest in the place of its last piece.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use bytes::Bytes;
use colloquy_store::StoreError;
use futures_util::{Stream, StreamExt as _, stream};
use sha2::{Digest as _, Sha256};

use super::{BlobKey, Blobs, ObjectError, OpenFile, Parts, objects::hex, store};

/// The most files that are remembered as whole.
const MOST_WHOLE: usize = 1_000;

/// What a file was written with, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) bytes: Option<u64>,
    /// In lower-case hexadecimal digits.
    pub(super) sha256: Option<String>,
    /// Damage that the database knows of.
    pub(super) damage: Option<Damage>,
}

/// Damage to a file that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    /// The file is not what was written.
    Altered,
    /// The file is not there.
    Lost,
}

/// What this process knows of files that it has read.
#[derive(Debug, Default)]
pub(super) struct Verified {
    /// Files of a folder that were read to their end, with the time at which each was changed last.
    whole: Mutex<HashMap<BlobKey, SystemTime>>,
    /// The lost file that was looked for last.
    looked_for: Mutex<Option<BlobKey>>,
}

impl Verified {
    /// Notes that a file is gone.
    pub(super) fn forget(&self, key: &BlobKey) {
        lock(&self.whole).remove(key);
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
                        .compare(&self.key, &self.expected, self.bytes, &sha256)
                        .await?;
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
        let expected = self.expected(key).await?;
        match expected.bytes {
            Some(_) => {
                let why = "it is kept and not there";
                Err(self.note_damage(key, &expected, Damage::Lost, why).await)
            }
            None => read,
        }
    }

    /// Notes that a file is damaged, for all nodes and until it is found whole or removed, and says so in the log once.
    pub(super) async fn note_damage(
        &self,
        key: &BlobKey,
        expected: &Expected,
        damage: Damage,
        why: &str,
    ) -> ObjectError {
        let Parts { base, .. } = &*self.0;
        if expected.damage != Some(damage) {
            let now = base.clock.now_ms();
            match store::note_damage(base.store.db(), key, damage, now).await {
                Ok(true) => {
                    tracing::error!(%key, "a file is damaged: {why}");
                    metrics::counter!("colloquy_damaged_files_total").increment(1);
                }
                Ok(false) => {}
                // Whoever reads it next notes it.
                Err(error) => base.store.complain("noting a damaged file", &error),
            }
        }
        match damage {
            Damage::Altered => ObjectError::Damaged,
            Damage::Lost => ObjectError::Lost,
        }
    }

    /// Notes that a file is whole, or there again, which was damaged.
    async fn note_repair(&self, key: &BlobKey) {
        let store = &self.0.base.store;
        if let Err(error) = store::forget_damage(store.db(), key).await {
            store.complain("noting a file that is whole again", &error);
        }
    }

    /// Looks for lost files, as those of a disk that is mounted late, and forgets that those were lost that are there again. What is in them is
    /// compared when they are read. After [`store::LOOKED_FOR`] of them the next call goes on.
    ///
    /// # Errors
    /// The database's failure.
    pub(super) async fn forget_found(&self) -> Result<(), StoreError> {
        let Parts {
            base,
            objects,
            verified,
            ..
        } = &*self.0;
        let after = lock(&verified.looked_for).take();
        let lost = store::lost(base.store.db(), after.as_ref()).await?;
        for key in &lost {
            match objects.read(key).await {
                Ok(_) => self.note_repair(key).await,
                Err(ObjectError::Missing) => {}
                // The place of files is away, and would be for the others.
                Err(_) => return Ok(()),
            }
        }
        if lost.len() == store::LOOKED_FOR {
            *lock(&verified.looked_for) = lost.into_iter().next_back();
        }
        Ok(())
    }

    /// Compares what was read with what is expected.
    pub(super) async fn compare(
        &self,
        key: &BlobKey,
        expected: &Expected,
        bytes: u64,
        sha256: &str,
    ) -> Result<(), ObjectError> {
        self.compare_length(key, expected, bytes).await?;
        if expected.sha256.as_ref().is_some_and(|it| it != sha256) {
            let why = "its hash is another";
            return Err(self.note_damage(key, expected, Damage::Altered, why).await);
        }
        if expected.damage.is_some() {
            self.note_repair(key).await;
        }
        Ok(())
    }

    pub(super) async fn compare_length(
        &self,
        key: &BlobKey,
        expected: &Expected,
        bytes: u64,
    ) -> Result<(), ObjectError> {
        match expected.bytes {
            Some(wanted) if wanted != bytes => {
                let why = format!("it has {bytes} bytes in place of {wanted}");
                Err(self.note_damage(key, expected, Damage::Altered, &why).await)
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
