//! Why a transcript was not taken, not tried again, or not deleted.

use std::time::Duration;

use colloquy_accounts::{AccessDenied, AccountError, ledger::LedgerError, storage::ChargeError};
use colloquy_base::invalid::InvalidField;
use colloquy_blobs::{NoRoom, ObjectError, WriteError};
use colloquy_http::ApiError;
use colloquy_store::StoreError;

/// When a partner with too many transcripts in progress is to try again, and one whose file found no place.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// A transcript was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum AcceptError {
    /// These fields are wrong.
    #[error("fields are wrong")]
    Invalid(Vec<InvalidField>),
    /// The recording is larger than it may be.
    #[error("the recording has more than {0} bytes")]
    TooLarge(u64),
    /// There is no room for the recording, in the partner's storage or on the disk.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The partner would store more than it may.
    #[error(transparent)]
    Storage(#[from] ChargeError),
    /// The partner has no transcripts.
    #[error("transcription is switched off for this partner")]
    SwitchedOff,
    /// The partner has too many in progress.
    #[error("too many transcripts are in progress")]
    TooMany,
    /// The key reaches no partner of its own.
    #[error(transparent)]
    Denied(#[from] AccessDenied),
    /// The quota is exhausted, or cannot be asked.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The accounts' failure.
    #[error(transparent)]
    Accounts(#[from] AccountError),
    /// The recording could not be stored, or not be read.
    #[error(transparent)]
    Files(#[from] ObjectError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The request did not arrive.
    #[error(transparent)]
    Request(ApiError),
}

impl From<WriteError<ApiError>> for AcceptError {
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

impl From<AcceptError> for ApiError {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Invalid(wrong) => wrong.into(),
            AcceptError::TooLarge(most) => {
                let message = format!("has at most {} MiB", most / (1024 * 1024));
                InvalidField::new("audio", message).into()
            }
            AcceptError::NoRoom(why) => why.into(),
            AcceptError::Storage(error) => error.into(),
            AcceptError::SwitchedOff => {
                Self::forbidden("Transcription is switched off for this partner")
            }
            AcceptError::TooMany => Self {
                message: format!(
                    "Too many transcripts are in progress, try again in {} s",
                    TRY_AGAIN.as_secs()
                ),
                ..Self::rate_limited(TRY_AGAIN)
            },
            AcceptError::Denied(denied) => denied.into(),
            AcceptError::Ledger(error) => error.into(),
            AcceptError::Accounts(error) => error.into(),
            AcceptError::Files(error) => {
                let told = Self::unavailable("The recording cannot be stored now", TRY_AGAIN);
                Self {
                    source: Some(std::sync::Arc::new(error)),
                    ..told
                }
            }
            AcceptError::Store(error) => error.into(),
            AcceptError::Request(error) => error,
        }
    }
}

/// 404: the key reaches no such transcript.
pub(super) fn transcript_not_found() -> ApiError {
    ApiError::not_found("Transcript")
}

/// A transcript was not deleted.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeleteError {
    /// The key reaches no such transcript.
    #[error("Transcript not found")]
    Unknown,
    /// The transcript is queued or processing.
    #[error("The transcript has not ended; delete it once it is completed or ended in error")]
    Open,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DeleteError> for ApiError {
    fn from(error: DeleteError) -> Self {
        let message = error.to_string();
        match error {
            DeleteError::Unknown => transcript_not_found(),
            DeleteError::Open => Self::conflict(message),
            DeleteError::Store(error) => error.into(),
        }
    }
}

/// A transcript was not queued again.
#[derive(Debug, thiserror::Error)]
pub(super) enum RetryError {
    /// The key reaches no such transcript.
    #[error("Transcript not found")]
    Unknown,
    /// The transcript is completed, or has not ended for the first time.
    #[error("The transcript has not failed; only one that ended in error is tried again")]
    NotFailed,
    /// The recording would fail again, or failed before recordings were kept.
    #[error(
        "Nothing is kept of the recording, as the reason of the failure stays; send it again as a new transcript"
    )]
    NothingKept,
    /// A new transcript would not be taken either.
    #[error(transparent)]
    Refused(#[from] AcceptError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<RetryError> for ApiError {
    fn from(error: RetryError) -> Self {
        let message = error.to_string();
        match error {
            RetryError::Unknown => transcript_not_found(),
            RetryError::NotFailed | RetryError::NothingKept => Self::conflict(message),
            RetryError::Refused(error) => error.into(),
            RetryError::Store(error) => error.into(),
        }
    }
}
