//! What is refused about knowledge bases, and why.

use std::{convert::Infallible, time::Duration};

use axum::http::StatusCode;
use colloquy_base::invalid::InvalidField;
use colloquy_blobs::{ObjectError, WriteError};
use colloquy_extract::ExtractError;
use colloquy_http::ApiError;
use colloquy_store::StoreError;

/// When files may be stored and read again.
const FILES_WAIT: Duration = Duration::from_secs(5);

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
    /// The request broke off, or was refused as it came.
    #[error(transparent)]
    Request(#[from] Box<ApiError>),
    /// Files cannot be stored or read.
    #[error(transparent)]
    Files(ObjectError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ObjectError> for BaseError {
    fn from(error: ObjectError) -> Self {
        Self::Files(error)
    }
}

impl From<WriteError<ApiError>> for BaseError {
    fn from(error: WriteError<ApiError>) -> Self {
        match error {
            WriteError::TooLarge(most) => Self::TooLarge(most),
            WriteError::Source(error) => Self::Request(Box::new(error)),
            WriteError::Object(error) => Self::Files(error),
            WriteError::Database(error) => Self::Store(error),
        }
    }
}

impl From<WriteError<Infallible>> for BaseError {
    fn from(error: WriteError<Infallible>) -> Self {
        match error {
            WriteError::TooLarge(most) => Self::TooLarge(most),
            WriteError::Source(never) => match never {},
            WriteError::Object(error) => Self::Files(error),
            WriteError::Database(error) => Self::Store(error),
        }
    }
}

impl From<BaseError> for ApiError {
    /// 400 that names the field, 404, 409, 413, 503.
    fn from(error: BaseError) -> Self {
        match error {
            BaseError::Invalid(invalid) => invalid.into(),
            BaseError::Refused(refused) => Self::invalid("file", refused.to_string()),
            BaseError::NotFound(what) => Self::not_found(what),
            BaseError::Conflict(why) => Self::conflict(why),
            BaseError::Full(why) => Self::conflict(why).with_code("limit_reached"),
            BaseError::TooLarge(most) => Self {
                field: Some("file".to_owned()),
                ..Self::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "file_too_large",
                    format!("A file has {most} bytes at most"),
                )
            },
            BaseError::Request(error) => *error,
            BaseError::Files(ObjectError::Missing) => Self::not_found("Content"),
            BaseError::Files(error) => Self {
                source: Some(std::sync::Arc::new(error)),
                ..Self::unavailable("Files cannot be stored or read now", FILES_WAIT)
            },
            BaseError::Store(error) => error.into(),
        }
    }
}
