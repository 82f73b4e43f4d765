//! What clients are told of errors.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use colloquy_blobs::ObjectError;
use colloquy_http::ApiError;

use crate::error::{BaseError, ReceiveError};

/// When files may be stored and read again.
const FILES_WAIT: Duration = Duration::from_secs(5);

impl From<BaseError> for ApiError {
    /// 400 that names the field, 404, 409, 413, 503, 507.
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
            BaseError::NoRoom(why) => why.into(),
            BaseError::Detection(error) => Self::internal(error),
            BaseError::Files(ObjectError::Missing) => Self::not_found("Content"),
            BaseError::Files(error) if error.is_damage() => Self {
                message: "The stored file is damaged; upload it again".to_owned(),
                ..Self::internal(error)
            },
            BaseError::Files(error) => Self {
                source: Some(Arc::new(error)),
                ..Self::unavailable("Files cannot be stored or read now", FILES_WAIT)
            },
            BaseError::Store(error) => error.into(),
        }
    }
}

impl From<ReceiveError<Self>> for ApiError {
    fn from(error: ReceiveError<Self>) -> Self {
        match error {
            ReceiveError::Source(error) => error,
            ReceiveError::Base(error) => error.into(),
        }
    }
}
