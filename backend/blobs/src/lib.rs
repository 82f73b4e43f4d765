//! Files: what partners upload, and what is made of it.
//!
//! A file lies in a folder or in object storage ([`Objects`]), under a key that is never used twice, and is never changed.
//! The database knows every key before anything is written there, so that nothing is left over: a file is *pending* until the
//! transaction that refers to it keeps it ([`Blobs::keep`]), and *doomed* once nothing does ([`Blobs::doom`]). A sweeper removes
//! what is doomed, and what stayed pending because its process died.
//!
//! What a file means, and who may read it, belongs to the capability that keeps it.

mod bundle;
mod capability;
mod copies;
mod gathered;
mod local;
mod objects;
mod reader;
mod store;

use std::{fmt, io::Read as _, sync::Arc, time::Duration};

use anyhow::Context as _;
use bytes::Bytes;
use colloquy_base::identifiers::PartnerId;
use colloquy_kernel::Base;
use colloquy_store::{StoreError, Transaction};
use futures_util::Stream;
use tokio::task::spawn_blocking;

use self::copies::Copies;
pub use self::{
    bundle::{BundleError, bundle},
    capability::BlobsCapability,
    local::LocalFile,
    objects::{ObjectError, Objects, OpenError, OpenFile},
    reader::BlobReader,
};

/// Whether a failure is that files can neither be stored nor read now.
#[must_use]
pub fn is_away(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| matches!(cause.downcast_ref(), Some(ObjectError::Failed(_))))
}

/// How long a file may be pending. The longest upload takes a part of it (`http.body_ms`, ten minutes by default).
const PENDING: Duration = Duration::from_secs(2 * 3_600);

/// The files of an installation; cheap to clone.
#[derive(Debug, Clone)]
pub struct Blobs(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    base: Base,
    objects: Objects,
    copies: Copies,
}

/// A file that was written and that nobody refers to yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Where it lies.
    pub key: BlobKey,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its content, in lower-case hexadecimal digits.
    pub sha256: String,
}

/// Where a file lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct BlobKey(String);

impl BlobKey {
    /// The key as a row has it.
    #[must_use]
    pub fn of_row(key: String) -> Self {
        Self(key)
    }

    /// The key as rows have it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a file was not written. `E` is the failure of whoever brings it.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E> {
    /// It is larger than it may be.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// It did not arrive.
    #[error("it did not arrive")]
    Source(E),
    /// It could not be stored.
    #[error("it could not be stored")]
    Object(#[from] ObjectError),
    /// The database's failure.
    #[error("the database does not know it")]
    Database(#[from] StoreError),
}

impl Blobs {
    /// Files in the place that the settings name, made when it is a folder that is missing.
    ///
    /// # Errors
    /// When there is no such place; the setting is named.
    pub fn open(base: Base) -> anyhow::Result<Self> {
        let place = base.config.store.blob_place()?;
        let copies = base.config.store.dir.join(local::COPIES);
        let objects = Objects::open(&place, copies).context("store.blob_url")?;
        Ok(Self(Arc::new(Parts {
            base,
            objects,
            copies: Copies::default(),
        })))
    }

    /// Writes a file of a partner as its pieces come, `most` bytes of it; little of it is in memory at a time. It is pending until it
    /// is kept, and goes away by itself when it is not.
    ///
    /// # Errors
    /// When it is larger, does not arrive, or cannot be stored. Nothing of it is left then.
    pub async fn write<E>(
        &self,
        owner: &PartnerId,
        pieces: impl Stream<Item = Result<Bytes, E>> + Send,
        most: u64,
    ) -> Result<Written, WriteError<E>> {
        let Parts { base, objects, .. } = &*self.0;
        let key = BlobKey(format!("{}/{}", owner.as_str(), base.clock.new_id()));
        let now = base.clock.now_ms();
        store::insert(base.store.db(), &key, owner.as_str(), now).await?;
        let written = objects.write(&key, pieces, most).await;
        let stored = match written {
            Ok(stored) => stored,
            Err(error) => {
                // The sweeper would find it later; a failure here is no reason to hide the other one.
                if let Err(error) = store::doom_pending(base.store.db(), &key, now).await {
                    base.store.complain("forgetting a file", &error);
                }
                return Err(error);
            }
        };
        Ok(Written {
            key,
            bytes: stored.bytes,
            sha256: stored.sha256,
        })
    }

    /// The same for a file that is in memory.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn write_bytes(
        &self,
        owner: &PartnerId,
        bytes: Bytes,
    ) -> Result<Written, WriteError<std::convert::Infallible>> {
        let most = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let pieces = futures_util::stream::iter([Ok(bytes)]);
        self.write(owner, pieces, most).await
    }

    /// Keeps a file, in the transaction that refers to it.
    ///
    /// # Errors
    /// The database's failure; also when the file has been pending for so long that it was removed.
    pub async fn keep(
        &self,
        transaction: &Transaction,
        written: &Written,
    ) -> Result<(), StoreError> {
        let now = self.0.base.clock.now_ms();
        store::keep(transaction, written, now).await
    }

    /// Gives files up, in the transaction that refers to them no more. They are removed a moment later.
    ///
    /// # Errors
    /// The database's failure.
    pub async fn doom(
        &self,
        transaction: &Transaction,
        keys: &[BlobKey],
    ) -> Result<(), StoreError> {
        let now = self.0.base.clock.now_ms();
        for key in keys {
            store::doom(transaction, key, now).await?;
        }
        Ok(())
    }

    /// Gives a file up that nobody refers to, so that it goes sooner than by itself. Where that fails, it is told in the log, and goes
    /// by itself.
    pub async fn discard(&self, written: &Written) {
        let Parts { base, .. } = &*self.0;
        let now = base.clock.now_ms();
        if let Err(error) = store::doom_pending(base.store.db(), &written.key, now).await {
            base.store.complain("forgetting a file", &error);
        }
    }

    /// Gives files up whose keys a query finds by this value, in a transaction.
    ///
    /// # Errors
    /// The database's failure.
    pub async fn doom_found(
        &self,
        transaction: &Transaction,
        query: &str,
        value: &str,
    ) -> Result<(), StoreError> {
        let now = self.0.base.clock.now_ms();
        store::doom_found(transaction, query, value, now).await
    }

    /// A file of this size for code that reads here and there, a piece at a time. It blocks.
    #[must_use]
    pub fn reader(&self, key: &BlobKey, bytes: u64) -> BlobReader {
        BlobReader::new(self.clone(), key.clone(), bytes)
    }

    /// How a file of this size begins: so many bytes, or all of it.
    ///
    /// # Errors
    /// When it is not there or cannot be read.
    pub async fn beginning(
        &self,
        key: &BlobKey,
        bytes: u64,
        most: usize,
    ) -> Result<Vec<u8>, ObjectError> {
        let reader = self.reader(key, bytes);
        let read = spawn_blocking(move || {
            let mut beginning = Vec::with_capacity(most);
            reader.take(most as u64).read_to_end(&mut beginning)?;
            Ok::<_, std::io::Error>(beginning)
        });
        let read = read.await.map_err(std::io::Error::other).flatten();
        read.map_err(|error| ObjectError::Failed(error.to_string()))
    }

    /// Opens a file for reading, a piece at a time.
    ///
    /// # Errors
    /// When it is not there or cannot be read.
    pub async fn read(&self, key: &BlobKey) -> Result<OpenFile, ObjectError> {
        self.0.objects.read(key).await
    }

    /// A whole file of `most` bytes at most.
    ///
    /// # Errors
    /// When it is not there, is larger, or cannot be read.
    pub async fn read_whole(&self, key: &BlobKey, most: u64) -> Result<Bytes, ObjectError> {
        self.0.objects.read_whole(key, most).await
    }

    /// Whether files can be written and read.
    ///
    /// # Errors
    /// When they cannot.
    pub async fn check(&self) -> Result<(), ObjectError> {
        let key = BlobKey(format!("checks/{}", self.0.base.clock.new_id()));
        let content = Bytes::from_static(b"colloquy");
        let pieces =
            futures_util::stream::iter([Ok::<_, std::convert::Infallible>(content.clone())]);
        match self.0.objects.write(&key, pieces, 8).await {
            Ok(_) => {}
            Err(WriteError::Object(error)) => return Err(error),
            Err(other) => return Err(ObjectError::other(other.to_string())),
        }
        let read = self.0.objects.read_whole(&key, 8).await;
        let removed = self.0.objects.remove(&key).await;
        if read? != content {
            return Err(ObjectError::other("what was stored is not what is read"));
        }
        removed
    }

    /// Removes what is doomed or was pending for too long, and copies that nobody reads any more, and says how many files the first
    /// were.
    ///
    /// # Errors
    /// The failure of the database or of the place.
    pub async fn sweep(&self) -> anyhow::Result<usize> {
        let Parts {
            base,
            objects,
            copies,
        } = &*self.0;
        copies.forget_unused(base.clock.instant());
        let now = base.clock.now_ms();
        let pending = i64::try_from(PENDING.as_millis()).unwrap_or(i64::MAX);
        store::doom_abandoned(base.store.db(), now - pending, now).await?;
        let mut removed = 0;
        loop {
            let keys = store::doomed(base.store.db()).await?;
            if keys.is_empty() {
                return Ok(removed);
            }
            for key in keys {
                // The row goes after the file: without it nobody would know of the file.
                objects.remove(&key).await?;
                copies.forget(&key);
                store::remove(base.store.db(), &key).await?;
                removed += 1;
            }
        }
    }
}
