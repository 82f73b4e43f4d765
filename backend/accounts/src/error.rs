//! What is refused about partners, keys and quotas, and why.

use colloquy_base::invalid::InvalidField;
use colloquy_http::{DiskLow, limits::RateLimited};
use colloquy_store::StoreError;

use crate::storage::{ChargeError, StorageLimitReached};

/// Something about partners, keys or quotas was not done.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// A field is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// There is no such thing.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The state of things does not allow it.
    #[error("{0}")]
    Conflict(&'static str),
    /// The partner would store more than it may.
    #[error(transparent)]
    Storage(#[from] StorageLimitReached),
    /// The disk is nearly full, and the change would store more than before.
    #[error(transparent)]
    Disk(#[from] DiskLow),
    /// The database failed. Not transparent: jobs find outages among the causes.
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl From<ChargeError> for AccountError {
    fn from(error: ChargeError) -> Self {
        match error {
            ChargeError::Limit(reached) => reached.into(),
            ChargeError::Store(error) => error.into(),
        }
    }
}

/// A key gives no access at all.
#[derive(Debug, thiserror::Error)]
pub enum KeyRefused {
    /// It is unknown, or it has ended.
    #[error("the key is unknown or has ended")]
    Invalid,
    /// There is none, as the database says; the attempt was counted when it was asked.
    #[error("there is no such key")]
    Unknown,
    /// Its quota is switched off.
    #[error("the quota is switched off")]
    Disabled,
    /// Too many keys were tried from there for the database to be asked.
    #[error(transparent)]
    TooManyAttempts(#[from] RateLimited),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A key is valid, and not for this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessDenied {
    /// It is about another partner.
    #[error("the key does not reach this partner")]
    OtherPartner,
    /// It takes the key of an administrator.
    #[error("this needs the key of an administrator")]
    NotAdministrator,
    /// The key lacks the scope.
    #[error("the key lacks the scope for this")]
    MissingScope,
}
