//! Why a request was not prepared, and what is not there of stored responses.

use std::time::Duration;

use colloquy_accounts::{AccountError, ledger::LedgerError, quotas::NotAllowed};
use colloquy_base::invalid::InvalidField;
use colloquy_characters::{RenderError, ResolveError};
use colloquy_formats::FormatError;
use colloquy_http::{ApiError, memory::NoRoom};
use colloquy_store::StoreError;

use super::request::mistake;

/// When those come back who ask for a response that the database has not taken yet.
const SOON: Duration = Duration::from_secs(1);

/// A request was not prepared. It has cost nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    /// A field is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// A field is not what the API has, or what the model can do.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The quota is not for it.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// There is no such model.
    #[error("{field}: there is no model {name}")]
    UnknownModel {
        /// The field that names it.
        field: &'static str,
        name: String,
    },
    /// There is no such character.
    #[error(transparent)]
    Unresolved(#[from] ResolveError),
    /// The character's templates cannot be filled in.
    #[error(transparent)]
    Template(#[from] RenderError),
    /// The conversation cannot be gone on from.
    #[error("{0}")]
    Unknown(&'static str),
    /// The database has not taken the response yet.
    #[error("the response is not stored yet")]
    NotStored,
    /// There is no room for what it holds.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The quota does not pay for it.
    #[error(transparent)]
    Unpaid(#[from] LedgerError),
    /// The partner cannot be read.
    #[error(transparent)]
    Partner(#[from] AccountError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A fault of the server.
    #[error("what was remembered cannot be read: {0}")]
    Remembered(serde_json::Error),
}

impl From<PrepareError> for ApiError {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Invalid(invalid) => invalid.into(),
            PrepareError::Format(error) => mistake(error),
            PrepareError::NotAllowed(denied) => denied.into(),
            PrepareError::UnknownModel { field, name } => {
                Self::invalid(field, format!("there is no model {name}"))
                    .with_code("model_not_found")
            }
            PrepareError::Unresolved(error) => in_svc(error.into()),
            PrepareError::Template(error) => in_svc(error.into()),
            PrepareError::Unknown(what) => {
                Self::invalid("previous_response_id", what).with_code("previous_response_not_found")
            }
            PrepareError::NotStored => Self::unavailable("The response is not stored yet", SOON),
            PrepareError::NoRoom(error) => error.into(),
            PrepareError::Unpaid(error) => error.into(),
            PrepareError::Partner(error) => error.into(),
            PrepareError::Store(error) => error.into(),
            PrepareError::Remembered(error) => Self::internal(error),
        }
    }
}

/// An error about the character, as one about the request's field.
fn in_svc(error: ApiError) -> ApiError {
    let field = error.field.as_ref().map(|field| match field.as_str() {
        known if known.starts_with("character") => format!("metadata.svc.{known}"),
        part => format!("metadata.svc.character.{part}"),
    });
    ApiError { field, ..error }
}

/// A stored response was not read or deleted.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoredError {
    /// There is none.
    #[error("there is no such response")]
    NotFound,
    /// The database has not taken it yet.
    #[error("the response is not stored yet")]
    NotStored,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<StoredError> for ApiError {
    fn from(error: StoredError) -> Self {
        match error {
            StoredError::NotFound => Self::not_found("Response"),
            StoredError::NotStored => PrepareError::NotStored.into(),
            StoredError::Store(error) => error.into(),
        }
    }
}
