//! Why something was not done with a voice.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use colloquy_base::{fair_queue::Full, invalid::InvalidField};
use colloquy_blobs::{NoRoom, ObjectError, WriteError};
use colloquy_digitize::DigitizeError;
use colloquy_http::ApiError;
use colloquy_store::StoreError;

/// When something that has no room now may have some.
const TRY_AGAIN: Duration = Duration::from_secs(10);
/// When a server without a worker may have one.
const LATER: Duration = Duration::from_secs(3_600);

/// Something was not done with a voice.
#[derive(Debug, thiserror::Error)]
pub(super) enum VoiceError {
    /// There is no such thing.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The voice is being split or embedded.
    #[error("the voice is being processed")]
    Locked,
    /// Another voice, or too many of them, are in the way.
    #[error("{0}")]
    Conflict(String),
    /// A field is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// A file is larger than it may be.
    #[error("a file has more than {0} bytes")]
    TooLarge(u64),
    /// There is no room for a file, in the partner's storage or on the disk.
    #[error("{0}")]
    NoRoom(#[from] NoRoom),
    /// The partner has too many voices that are being processed.
    #[error("too many voices are being processed")]
    TooMany,
    /// This server makes nothing of voices.
    #[error("there is no voice worker")]
    NoWorker,
    /// Too many samples are being made.
    #[error(transparent)]
    Full(#[from] Full),
    /// A recording cannot be decoded.
    #[error("{0}")]
    Unreadable(#[from] DigitizeError),
    /// A file cannot be stored or read.
    #[error("{0}")]
    Files(#[from] ObjectError),
    /// The database failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The request did not arrive.
    #[error(transparent)]
    Request(ApiError),
    /// Something that should not be.
    #[error(transparent)]
    Internal(anyhow::Error),
}

impl From<WriteError<ApiError>> for VoiceError {
    fn from(error: WriteError<ApiError>) -> Self {
        match error {
            WriteError::TooLarge(most) => Self::TooLarge(most),
            WriteError::Source(error) => Self::Request(error),
            WriteError::NoRoom(why) => Self::NoRoom(why),
            WriteError::Object(error) => Self::Files(error),
            WriteError::Database(error) => Self::Store(error),
        }
    }
}

impl From<VoiceError> for ApiError {
    fn from(error: VoiceError) -> Self {
        match error {
            VoiceError::NotFound(what) => Self::not_found(what),
            VoiceError::Locked => Self::conflict("Voice is currently being processed"),
            VoiceError::Conflict(why) => Self::conflict(why),
            VoiceError::Invalid(invalid) => invalid.into(),
            VoiceError::TooLarge(most) => Self {
                field: Some("file".to_owned()),
                ..Self::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "file_too_large",
                    format!("A file has {most} bytes at most"),
                )
            },
            VoiceError::NoRoom(why) => why.into(),
            VoiceError::TooMany => Self::rate_limited(TRY_AGAIN),
            VoiceError::NoWorker => Self::unavailable(
                "This server embeds no voices: it has neither the model ge2e nor the address of a voice worker",
                LATER,
            ),
            VoiceError::Full(full) => Self::unavailable(full.to_string(), full.retry_after),
            VoiceError::Unreadable(error) if error.may_pass() => Self {
                source: Some(Arc::new(error)),
                ..Self::unavailable("Recordings cannot be decoded now", TRY_AGAIN)
            },
            VoiceError::Unreadable(error) => Self::invalid("file", error.to_string()),
            VoiceError::Files(ObjectError::Missing) => Self::not_found("Sample"),
            VoiceError::Files(error) if error.is_damage() => Self {
                message: "The stored recording is damaged; upload it again".to_owned(),
                ..Self::internal(error)
            },
            VoiceError::Files(error) => Self {
                source: Some(Arc::new(error)),
                ..Self::unavailable("Files cannot be stored or read now", TRY_AGAIN)
            },
            VoiceError::Store(error) => error.into(),
            VoiceError::Request(error) => error,
            VoiceError::Internal(error) => Self::internal(error),
        }
    }
}
