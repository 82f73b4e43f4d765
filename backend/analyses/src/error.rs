//! Why an analysis was not taken, or not tried again.

use std::time::Duration;

use colloquy_accounts::{ledger::LedgerError, storage::ChargeError};
use colloquy_base::invalid::InvalidField;
use colloquy_http::{ApiError, limits::RateLimited};
use colloquy_store::StoreError;

/// When a partner with too many analyses in progress is to try again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// An analysis was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum AcceptError {
    /// These fields are wrong.
    #[error("fields are wrong")]
    Invalid(Vec<InvalidField>),
    /// The key asks too often, or all of them do.
    #[error(transparent)]
    TooOften(#[from] RateLimited),
    /// The partner has too many in progress.
    #[error("too many analyses are in progress")]
    TooMany,
    /// The partner would store more than it may.
    #[error(transparent)]
    Storage(#[from] ChargeError),
    /// The quota is exhausted, or cannot be asked.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<AcceptError> for ApiError {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Invalid(wrong) => wrong.into(),
            AcceptError::TooOften(limited) => limited.into(),
            AcceptError::TooMany => Self {
                message: format!(
                    "Too many analyses are in progress, try again in {} s",
                    TRY_AGAIN.as_secs()
                ),
                ..Self::rate_limited(TRY_AGAIN)
            },
            AcceptError::Storage(error) => error.into(),
            AcceptError::Ledger(error) => error.into(),
            AcceptError::Store(error) => error.into(),
        }
    }
}

/// 404: the key reaches no such analysis.
pub(super) fn analysis_not_found() -> ApiError {
    ApiError::not_found("Analysis")
}

/// An analysis was not begun again.
#[derive(Debug, thiserror::Error)]
pub(super) enum RetryError {
    /// The key reaches no such analysis.
    #[error("Analysis not found")]
    Unknown,
    /// The analysis is completed, or has not ended for the first time.
    #[error("The analysis has not failed; only one that did is tried again")]
    NotFailed,
    /// The analysis failed before inputs were kept.
    #[error("The input is not kept any more; send it again as a new analysis")]
    NothingKept,
    /// A new analysis would not be taken either.
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
            RetryError::Unknown => analysis_not_found(),
            RetryError::NotFailed | RetryError::NothingKept => Self::conflict(message),
            RetryError::Refused(error) => error.into(),
            RetryError::Store(error) => error.into(),
        }
    }
}
