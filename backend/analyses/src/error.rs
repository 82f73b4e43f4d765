//! Why an analysis was not taken.

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
