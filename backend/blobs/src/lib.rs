//! Files: what partners upload, and what is made of it.
//!
//! A file lies in a folder or in object storage ([`Objects`]), under a key that is never used twice, and is never changed.
//! The database knows every key before anything is written there, so that nothing is left over: a file is *pending* until the
//! transaction that refers to it keeps it ([`Blobs::keep`]), and *doomed* once nothing does ([`Blobs::doom`]). A sweeper removes
//! what is doomed, and what stayed pending because its process died.
//!
//! A file that is kept is compared with its length and its hash when it is read ([`ObjectError::Damaged`]), and is lost when it is not there
//! ([`ObjectError::Lost`]).
//!
//! What a file means, and who may read it, belongs to the capability that keeps it.

mod abandoned;
mod bundle;
mod capability;
mod copies;
mod gathered;
mod local;
mod objects;
mod reader;
mod room;
mod store;
mod verifying;

use std::{convert::Infallible, fmt, io::Read as _, pin::pin, sync::Arc, time::Duration};

use anyhow::Context as _;
use bytes::Bytes;
use colloquy_accounts::storage;
use colloquy_base::identifiers::PartnerId;
use colloquy_kernel::{Base, disk::Disk};
use colloquy_store::{StoreError, Transaction};
use futures_util::{Stream, StreamExt as _, stream};
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;

use self::{
    abandoned::Abandoned,
    copies::Copies,
    objects::hex,
    room::{Owner, Refused, Room},
    verifying::{Expected, Verified},
};
pub use self::{
    bundle::{BundleError, bundle, streamed_bundle},
    capability::BlobsCapability,
    local::LocalFile,
    objects::{ObjectError, Objects, OpenError, OpenFile},
    reader::BlobReader,
    room::NoRoom,
};

/// True if files can neither be stored nor read now, or the disk is nearly full.
#[must_use]
pub fn is_away(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| {
        matches!(cause.downcast_ref(), Some(ObjectError::Failed(_)))
            || matches!(cause.downcast_ref(), Some(NoRoom::Disk(_)))
    })
}

/// The hash of a file of so many bytes is computed where it is read; that takes a millisecond.
const HASHED_AT_ONCE: usize = 256 * 1024;
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
    disk: Disk,
    verified: Verified,
    abandoned: Abandoned,
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
    /// There is no room for it.
    #[error("there is no room for it")]
    NoRoom(#[from] NoRoom),
    /// It could not be stored.
    #[error("it could not be stored")]
    Object(#[from] ObjectError),
    /// The database's failure.
    #[error("the database does not know it")]
    Database(#[from] StoreError),
}

impl<E> WriteError<E> {
    fn of_room(refused: Refused) -> Self {
        match refused {
            Refused::NoRoom(why) => Self::NoRoom(why.count()),
            Refused::Database(error) => Self::Database(error),
        }
    }
}

impl<E> WriteError<WriteError<E>> {
    /// What came of a file whose pieces fail as writing it does.
    fn flatten(self) -> WriteError<E> {
        match self {
            Self::TooLarge(most) => WriteError::TooLarge(most),
            Self::Source(error) => error,
            Self::NoRoom(why) => WriteError::NoRoom(why),
            Self::Object(error) => WriteError::Object(error),
            Self::Database(error) => WriteError::Database(error),
        }
    }
}

impl Blobs {
    /// Files in the place that the settings name, made when it is a folder that is missing.
    ///
    /// # Errors
    /// When there is no such place, or the disk of the database has no room for its reserve; the setting is named.
    pub fn open(base: Base) -> anyhow::Result<Self> {
        let place = base.config.store.blob_place()?;
        let copies = base.config.store.dir.join(local::COPIES);
        let disk = Disk::new(&base.config);
        disk.check_size()?;
        let objects = Objects::open(&place, copies).context("store.blob_url")?;
        Ok(Self(Arc::new(Parts {
            base,
            objects,
            copies: Copies::default(),
            disk,
            verified: Verified::default(),
            abandoned: Abandoned::default(),
        })))
    }

    /// Writes a file of a partner as its pieces come, `most` bytes of it; little of it is in memory at a time. It is pending until it
    /// is kept, and goes away by itself when it is not. Its bytes count from when they arrive.
    ///
    /// # Errors
    /// When it is larger, does not arrive, has no room in the partner's storage or on the disk, or cannot be stored. Nothing of it is
    /// left then.
    pub async fn write<E: Send>(
        &self,
        owner: &PartnerId,
        pieces: impl Stream<Item = Result<Bytes, E>> + Send,
        most: u64,
    ) -> Result<Written, WriteError<E>> {
        let owner = Owner {
            partner: owner,
            most,
            is_limited: true,
        };
        self.write_for(owner, pieces).await
    }

    /// Like [`Self::write`], for a file that is in memory.
    ///
    /// # Errors
    /// When it has no room or cannot be stored.
    pub async fn write_bytes(
        &self,
        owner: &PartnerId,
        bytes: Bytes,
    ) -> Result<Written, WriteError<Infallible>> {
        let most = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let pieces = futures_util::stream::iter([Ok(bytes)]);
        self.write(owner, pieces, most).await
    }

    /// Like [`Self::write_bytes`], for what must not be lost since it was paid for: it counts, and is not refused beyond the limit of the
    /// partner. [`Self::check_room`] is asked before it is paid for.
    ///
    /// # Errors
    /// When the disk has no room, or it cannot be stored.
    pub async fn write_paid(
        &self,
        owner: &PartnerId,
        bytes: Bytes,
    ) -> Result<Written, WriteError<Infallible>> {
        let owner = Owner {
            partner: owner,
            most: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            is_limited: false,
        };
        let pieces = futures_util::stream::iter([Ok(bytes)]);
        self.write_for(owner, pieces).await
    }

    async fn write_for<E: Send>(
        &self,
        owner: Owner<'_>,
        pieces: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<Written, WriteError<E>> {
        let Parts {
            base,
            objects,
            disk,
            abandoned,
            ..
        } = &*self.0;
        let key = BlobKey(format!(
            "{}/{}",
            owner.partner.as_str(),
            base.clock.new_id()
        ));
        let mut pieces = pin!(pieces);
        let first = pieces.next().await.transpose();
        let first = first.map_err(WriteError::Source)?.unwrap_or_default();
        let writing = abandoned.watch(&key);
        let begun = Room::begin(base, disk, &key, owner, first.len() as u64).await;
        let mut room = begun.map_err(WriteError::of_room)?;
        let first = stream::iter([Ok(first)]);
        let rest = stream::unfold((pieces, &mut room), move |(mut pieces, room)| async move {
            let piece = match pieces.next().await? {
                Ok(piece) => room
                    .take(&piece)
                    .await
                    .map(|()| piece)
                    .map_err(WriteError::of_room),
                Err(error) => Err(WriteError::Source(error)),
            };
            Some((piece, (pieces, room)))
        });
        let written = objects.write(&key, first.chain(rest), owner.most).await;
        let written = match written.map_err(WriteError::flatten) {
            Ok(stored) => room
                .settle(stored.bytes)
                .await
                .map(|()| stored)
                .map_err(Into::into),
            Err(error) => Err(error),
        };
        match written {
            Ok(stored) => {
                writing.ended();
                Ok(Written {
                    key,
                    bytes: stored.bytes,
                    sha256: stored.sha256,
                })
            }
            Err(error) => {
                let now = base.clock.now_ms();
                // The sweeper finds it otherwise; a failure here is no reason to hide the other one.
                match store::doom_pending(base.store.db(), &key, now).await {
                    Ok(()) => writing.ended(),
                    Err(error) => base.store.complain("forgetting a file", &error),
                }
                Err(error)
            }
        }
    }

    /// Checks that a partner may store so many more bytes, before something is paid for that makes them.
    ///
    /// # Errors
    /// When it may not, or the database fails.
    pub async fn check_room(
        &self,
        owner: &PartnerId,
        bytes: u64,
    ) -> Result<(), WriteError<Infallible>> {
        let Parts { base, disk, .. } = &*self.0;
        let room = room::check(base, disk, owner, bytes).await;
        room.map_err(WriteError::of_room)
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

    /// Opens a file for reading, a piece at a time. In the place of its last piece is [`ObjectError::Damaged`] when the file is not what was
    /// written.
    ///
    /// # Errors
    /// When it is not there, has another length than it was written with, or cannot be read.
    pub async fn read(&self, key: &BlobKey) -> Result<OpenFile, ObjectError> {
        let expected = self.expected(key).await?;
        let open = self.0.objects.read(key).await;
        let open = self.found(key, open).await?;
        self.compare_length(key, &expected, open.bytes).await?;
        Ok(self.verifying(key, expected, open))
    }

    /// A whole file of `most` bytes at most.
    ///
    /// # Errors
    /// When it is not there, is larger, is not what was written, or cannot be read.
    pub async fn read_whole(&self, key: &BlobKey, most: u64) -> Result<Bytes, ObjectError> {
        let expected = self.expected(key).await?;
        let read = self.0.objects.read_whole(key, most, expected.bytes).await;
        let bytes = match self.found(key, read).await? {
            Ok(bytes) => bytes,
            Err(length) => {
                self.compare_length(key, &expected, length).await?;
                return Err(ObjectError::Damaged);
            }
        };
        let hashed = bytes.clone();
        let hash = move || hex(&Sha256::digest(&hashed));
        let sha256 = match bytes.len() {
            // Nothing is compared with it.
            _ if expected.sha256.is_none() => String::new(),
            ..=HASHED_AT_ONCE => hash(),
            _ => spawn_blocking(hash)
                .await
                .map_err(|error| ObjectError::other(error.to_string()))?,
        };
        self.compare(key, &expected, bytes.len() as u64, &sha256)
            .await?;
        Ok(bytes)
    }

    /// Counts the files that were damaged or lost when a node read them last.
    ///
    /// # Errors
    /// The database's failure.
    pub async fn damaged(&self) -> Result<u64, StoreError> {
        store::damaged(self.0.base.store.db()).await
    }

    /// What a file was kept with.
    async fn expected(&self, key: &BlobKey) -> Result<Expected, ObjectError> {
        let expected = store::expected(self.0.base.store.db(), key).await;
        // Without the database nobody can tell whether a file is whole.
        let expected = expected.map_err(|error| ObjectError::other(error.to_string()))?;
        Ok(expected.unwrap_or_default())
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
        let read = self.0.objects.read_whole(&key, 8, None).await;
        let removed = self.0.objects.remove(&key).await;
        if read? != Ok(content) {
            return Err(ObjectError::other("what was stored is not what is read"));
        }
        removed
    }

    /// The disks that files are written to.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.0.disk
    }

    /// Sets the gauges of what is stored and of the free space of the disk.
    ///
    /// # Errors
    /// The failure of the database or of the disk.
    pub(crate) async fn measure(&self) -> anyhow::Result<()> {
        let Parts { base, disk, .. } = &*self.0;
        let stored = storage::total(base.store.db()).await?;
        metrics::gauge!("colloquy_stored_bytes").set(stored as f64);
        let space = disk.space().await?;
        metrics::gauge!("colloquy_disk_free_bytes").set(space.free as f64);
        metrics::gauge!("colloquy_disk_reserve_bytes").set(space.reserve as f64);
        Ok(())
    }

    /// Removes what is doomed or was pending for too long, and copies that nobody reads any more, and says how many files the first
    /// were. Lost files are looked for again.
    ///
    /// # Errors
    /// The failure of the database or of the place.
    pub async fn sweep(&self) -> anyhow::Result<usize> {
        let Parts {
            base,
            objects,
            copies,
            verified,
            abandoned,
            ..
        } = &*self.0;
        copies.forget_unused(base.clock.instant());
        self.forget_found().await?;
        let now = base.clock.now_ms();
        let mut given_up = abandoned.take();
        while let Some(key) = given_up.pop() {
            if let Err(error) = store::doom_pending(base.store.db(), &key, now).await {
                given_up.push(key);
                abandoned.put_back(given_up);
                return Err(error.into());
            }
        }
        let pending = i64::try_from(PENDING.as_millis()).unwrap_or(i64::MAX);
        let latest = base.latest_now_ms().await?;
        store::bring_back(base.store.db(), now, latest).await?;
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
                verified.forget(&key);
                let transaction = base.store.begin().await?;
                store::remove(&transaction, &key).await?;
                transaction.commit().await?;
                removed += 1;
            }
        }
    }
}
