//! Why a completion was not taken.

use std::time::Duration;

use colloquy_accounts::AccessDenied;
use colloquy_base::invalid::InvalidField;
use colloquy_characters::{RenderError, ResolveError};
use colloquy_http::ApiError;
use colloquy_store::StoreError;

use super::request::in_input;

/// When a partner with too many completions in progress is to try again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// A completion was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum AcceptError {
    /// A field is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// The key is for other partners.
    #[error(transparent)]
    Denied(#[from] AccessDenied),
    /// There is no such character.
    #[error("{field}: {error}")]
    Unresolved {
        /// The field that names it.
        field: &'static str,
        error: ResolveError,
    },
    /// The character's templates cannot be filled in.
    #[error(transparent)]
    Template(#[from] RenderError),
    /// The partner has too many in progress.
    #[error("too many completions are in progress")]
    TooMany,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<AcceptError> for ApiError {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Invalid(invalid) => invalid.into(),
            AcceptError::Denied(denied) => denied.into(),
            AcceptError::Unresolved { field, error } => {
                let is_unknown = matches!(error, ResolveError::Unknown);
                Self {
                    field: is_unknown.then(|| field.to_owned()),
                    ..error.into()
                }
            }
            AcceptError::Template(error) => in_input(error),
            AcceptError::TooMany => Self {
                message: "Too many completions are in progress".to_owned(),
                ..Self::rate_limited(TRY_AGAIN)
            },
            AcceptError::Store(error) => error.into(),
        }
    }
}
