//! The room that a file takes of its partner's storage and of the disk, reserved while it arrives.
//!
//! A partner's limit counts the bytes that rows of `blobs` have, so a row gets them before they are written: those of its first piece when it
//! is made, more in steps that double, and what it has in the end. So files that arrive at the same time cannot pass the limit together.

use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use colloquy_accounts::storage::{self, ChargeError, StorageLimitReached, Sum, counted};
use colloquy_base::identifiers::PartnerId;
use colloquy_http::ApiError;
use colloquy_kernel::{
    Base,
    disk::{Arriving, Disk, DiskFull},
};
use colloquy_store::{StoreError, Transaction};

use super::{BlobKey, store};

/// The least that is reserved at once behind the first piece of a file, in bytes, and the most.
const STEPS: (u64, u64) = (256 * 1024, 4 * 1024 * 1024);

/// When a disk that is full may have room again.
const DISK_WAIT: Duration = Duration::from_secs(10);

/// Why there is no room for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The partner would store more bytes than it may.
    #[error(transparent)]
    Partner(#[from] StorageLimitReached),
    /// The disk is nearly full.
    #[error(transparent)]
    Disk(#[from] DiskFull),
}

impl NoRoom {
    /// Counts a file that was refused.
    pub(super) fn count(self) -> Self {
        let reason = match self {
            Self::Partner(_) => "partner_limit",
            Self::Disk(_) => "disk",
        };
        metrics::counter!("colloquy_storage_refusals_total", "reason" => reason).increment(1);
        self
    }
}

/// 413 for the limit of the partner, 507 for the disk.
impl From<NoRoom> for ApiError {
    fn from(error: NoRoom) -> Self {
        let full = match error {
            NoRoom::Partner(reached) => return reached.into(),
            NoRoom::Disk(full) => full,
        };
        let mut message = full.to_string();
        if let Some(first) = message.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let status = StatusCode::INSUFFICIENT_STORAGE;
        Self {
            retry_after: Some(DISK_WAIT),
            ..Self::new(status, "insufficient_storage", message)
        }
    }
}

/// Why bytes of a file are not taken.
#[derive(Debug)]
pub(super) enum Refused {
    NoRoom(NoRoom),
    Database(StoreError),
}

impl From<ChargeError> for Refused {
    fn from(error: ChargeError) -> Self {
        match error {
            ChargeError::Limit(reached) => Self::NoRoom(reached.into()),
            ChargeError::Store(error) => Self::Database(error),
        }
    }
}

impl From<DiskFull> for Refused {
    fn from(error: DiskFull) -> Self {
        Self::NoRoom(error.into())
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Database(error)
    }
}

/// Whose file it is, and how large it may become.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) partner: &'a PartnerId,
    /// The most bytes of the file.
    pub(super) most: u64,
    /// Whether the file is refused beyond the limit of the partner. One that is not counts all the same.
    pub(super) is_limited: bool,
}

/// The room of a file that is being written.
#[derive(Debug)]
pub(super) struct Room<'a> {
    base: &'a Base,
    disk: &'a Disk,
    key: &'a BlobKey,
    owner: Owner<'a>,
    /// The bytes that its row has.
    reserved: u64,
    arrived: u64,
    /// The bytes of the last piece.
    last: u64,
    arriving: Arriving,
}

impl<'a> Room<'a> {
    /// Makes the row of a file that begins with so many bytes.
    ///
    /// # Errors
    /// When there is no room for them, or the database fails. There is no row then.
    pub(super) async fn begin(
        base: &'a Base,
        disk: &'a Disk,
        key: &'a BlobKey,
        owner: Owner<'a>,
        bytes: u64,
    ) -> Result<Self, Refused> {
        let bytes = bytes.min(owner.most);
        let arriving = disk.admit(bytes).await?;
        let room = Self {
            base,
            disk,
            key,
            owner,
            reserved: bytes,
            arrived: bytes,
            last: bytes,
            arriving,
        };
        let now = base.clock.now_ms();
        let transaction = base.store.begin().await?;
        // The row of the file goes before the partner's in every transaction that changes both.
        let partner = owner.partner.as_str();
        store::insert(&transaction, key, partner, counted(bytes), now).await?;
        room.charge(&transaction, bytes).await?;
        transaction.commit().await?;
        Ok(room)
    }

    /// Takes the next bytes of the file. Those beyond its own bound are let pass: whoever writes it refuses them.
    pub(super) async fn take(&mut self, piece: &Bytes) -> Result<(), Refused> {
        // The piece before it was written by now.
        self.arriving.written(self.last);
        self.last = 0;
        let needed = self.arrived.saturating_add(piece.len() as u64);
        if needed > self.owner.most {
            return Ok(());
        }
        if needed > self.reserved {
            let step = self.reserved.clamp(STEPS.0, STEPS.1);
            let wanted = self.reserved.saturating_add(step).min(self.owner.most);
            match self.reserve(wanted.max(needed)).await {
                Err(Refused::NoRoom(_)) if wanted > needed => self.reserve(needed).await?,
                reserved => reserved?,
            }
        }
        self.arrived = needed;
        self.last = piece.len() as u64;
        Ok(())
    }

    async fn reserve(&mut self, bytes: u64) -> Result<(), Refused> {
        let more = bytes - self.reserved;
        let arriving = self.disk.admit(more).await?;
        let transaction = self.base.store.begin().await?;
        store::resize(&transaction, self.key, counted(bytes)).await?;
        self.charge(&transaction, more).await?;
        transaction.commit().await?;
        self.arriving.add(arriving);
        self.reserved = bytes;
        Ok(())
    }

    async fn charge(&self, transaction: &Transaction, bytes: u64) -> Result<(), Refused> {
        let partner = self.owner.partner;
        match self.owner.is_limited {
            true => storage::charge(self.base, transaction, partner, Sum::Files, bytes).await?,
            false => storage::change(transaction, partner, Sum::Files, counted(bytes)).await?,
        }
        Ok(())
    }

    /// Gives back what was reserved and is not needed, once the file is written.
    ///
    /// # Errors
    /// The database's failure; also when the file took so long that it was given up.
    pub(super) async fn settle(self, bytes: u64) -> Result<(), StoreError> {
        if bytes == self.reserved {
            return Ok(());
        }
        let transaction = self.base.store.begin().await?;
        store::resize(&transaction, self.key, counted(bytes)).await?;
        let by = counted(bytes) - counted(self.reserved);
        storage::change(&transaction, self.owner.partner, Sum::Files, by).await?;
        transaction.commit().await
    }
}

/// Checks that a partner may store so many more bytes.
pub(super) async fn check(
    base: &Base,
    disk: &Disk,
    partner: &PartnerId,
    bytes: u64,
) -> Result<(), Refused> {
    let _arriving = disk.admit(bytes).await?;
    Ok(storage::check(base, partner, bytes).await?)
}
