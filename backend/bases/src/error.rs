//! What is refused about knowledge bases, and why.

use std::convert::Infallible;

use colloquy_accounts::storage::ChargeError;
use colloquy_base::invalid::InvalidField;
use colloquy_blobs::{NoRoom, ObjectError, WriteError};
use colloquy_extract::ExtractError;
use colloquy_store::StoreError;

/// Something about knowledge bases was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BaseError {
    /// A field is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// A file is not taken.
    #[error(transparent)]
    Refused(#[from] ExtractError),
    /// There is no such thing.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The state of things does not allow it.
    #[error("{0}")]
    Conflict(&'static str),
    /// There is no room for more.
    #[error("{0}")]
    Full(String),
    /// A file is larger than one may be.
    #[error("the file has more than {0} bytes")]
    TooLarge(u64),
    /// There is no room for a file or a row, in the partner's storage or on the disk.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// Looking at a file failed.
    #[error("looking at the file failed")]
    Detection(#[from] tokio::task::JoinError),
    /// Files cannot be stored or read.
    #[error(transparent)]
    Files(ObjectError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ChargeError> for BaseError {
    fn from(error: ChargeError) -> Self {
        match error {
            ChargeError::Limit(reached) => Self::NoRoom(reached.into()),
            ChargeError::Store(error) => Self::Store(error),
        }
    }
}

impl From<ObjectError> for BaseError {
    fn from(error: ObjectError) -> Self {
        Self::Files(error)
    }
}

impl From<WriteError<Infallible>> for BaseError {
    fn from(error: WriteError<Infallible>) -> Self {
        match error {
            WriteError::TooLarge(most) => Self::TooLarge(most),
            WriteError::Source(never) => match never {},
            WriteError::NoRoom(why) => Self::NoRoom(why),
            WriteError::Object(error) => Self::Files(error),
            WriteError::Database(error) => Self::Store(error),
        }
    }
}

/// A file was not taken. `E` is the failure of whoever brings it.
#[derive(Debug)]
pub(crate) enum ReceiveError<E> {
    /// It did not arrive.
    Source(E),
    /// It is not taken.
    Base(BaseError),
}

impl<E, B: Into<BaseError>> From<B> for ReceiveError<E> {
    fn from(error: B) -> Self {
        Self::Base(error.into())
    }
}

impl<E> ReceiveError<E> {
    /// What storing it failed with.
    pub(crate) fn of_write(error: WriteError<E>) -> Self {
        match error {
            WriteError::TooLarge(most) => Self::Base(BaseError::TooLarge(most)),
            WriteError::Source(error) => Self::Source(error),
            WriteError::NoRoom(why) => Self::Base(why.into()),
            WriteError::Object(error) => Self::Base(error.into()),
            WriteError::Database(error) => Self::Base(error.into()),
        }
    }
}
