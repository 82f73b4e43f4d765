//! Files whose writing was given up in its midst, as by a client that went away: their rows hold room of their partners until the sweeper
//! removes them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::BlobKey;

/// The files that this process gave up, until the sweeper takes them.
#[derive(Debug, Default)]
pub(super) struct Abandoned(Mutex<Vec<BlobKey>>);

impl Abandoned {
    fn keys(&self) -> MutexGuard<'_, Vec<BlobKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all of them.
    pub(super) fn take(&self) -> Vec<BlobKey> {
        std::mem::take(&mut self.keys())
    }

    /// Puts back what could not be removed.
    pub(super) fn put_back(&self, keys: Vec<BlobKey>) {
        self.keys().extend(keys);
    }

    /// Watches over a file until its writing has ended.
    pub(super) fn watch(&self, key: &BlobKey) -> Writing<'_> {
        Writing {
            abandoned: self,
            key: Some(key.clone()),
        }
    }
}

/// A file that is being written. It is given up when this is dropped before [`Self::ended`].
#[derive(Debug)]
pub(super) struct Writing<'a> {
    abandoned: &'a Abandoned,
    key: Option<BlobKey>,
}

impl Writing<'_> {
    /// The file is written, or its row was doomed.
    pub(super) fn ended(mut self) {
        self.key = None;
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.abandoned.keys().extend(self.key.take());
    }
}
