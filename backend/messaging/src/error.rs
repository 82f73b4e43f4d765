//! Why a completion was not taken.

use std::time::Duration;

use colloquy_accounts::{AccessDenied, storage::ChargeError};
use colloquy_base::invalid::InvalidField;
use colloquy_characters::{
    CharacterError, InvalidCharacter, NoDocumentMemory, RenderError, ResolveError,
};
use colloquy_http::ApiError;
use colloquy_store::StoreError;

/// When a partner with too many completions in progress is to try again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// A completion was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum AcceptError {
    /// A field is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// What stands for the character is none.
    #[error(transparent)]
    NoCharacter(#[from] InvalidCharacter),
    /// A template parameter is wrong.
    #[error(transparent)]
    Params(InvalidField),
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
    /// The knowledge base of the character could not be looked for.
    #[error(transparent)]
    Base(#[from] CharacterError),
    /// The character's templates cannot be filled in.
    #[error(transparent)]
    Template(#[from] RenderError),
    /// The partner has too many in progress.
    #[error("too many completions are in progress")]
    TooMany,
    /// There is no memory for the documents of its character.
    #[error(transparent)]
    NoMemory(#[from] NoDocumentMemory),
    /// The partner would store more than it may.
    #[error(transparent)]
    Storage(#[from] ChargeError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<AcceptError> for ApiError {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Invalid(invalid) => invalid.into(),
            AcceptError::NoCharacter(invalid) => in_input(invalid),
            AcceptError::Params(invalid) => in_input(invalid),
            AcceptError::Denied(denied) => denied.into(),
            AcceptError::Unresolved { field, error } => {
                let is_unknown = matches!(error, ResolveError::Unknown);
                Self {
                    field: is_unknown.then(|| field.to_owned()),
                    ..error.into()
                }
            }
            AcceptError::Base(error) => error.into(),
            AcceptError::Template(error) => in_input(error),
            AcceptError::TooMany => Self {
                message: "Too many completions are in progress".to_owned(),
                ..Self::rate_limited(TRY_AGAIN)
            },
            AcceptError::NoMemory(error) => error.into(),
            AcceptError::Storage(error) => error.into(),
            AcceptError::Store(error) => error.into(),
        }
    }
}

/// An error about a part of the input, as one about the body's field.
fn in_input(error: impl Into<ApiError>) -> ApiError {
    let error = error.into();
    let field = error.field.as_ref().map(|field| match field.as_str() {
        known if known.starts_with("character") => format!("input.{known}"),
        part => format!("input.character.{part}"),
    });
    ApiError { field, ..error }
}
