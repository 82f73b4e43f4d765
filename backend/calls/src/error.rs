//! Why a call was not made, or not deleted.

use std::time::Duration;

use axum::http::StatusCode;
use colloquy_accounts::{
    AccessDenied, ledger::LedgerError, quotas::NotAllowed, storage::ChargeError,
};
use colloquy_base::invalid::InvalidField;
use colloquy_characters::{
    CharacterError, InvalidCharacter, NoDocumentMemory, RenderError, ResolveError,
};
use colloquy_http::ApiError;
use colloquy_store::StoreError;

use crate::room::Bound;

/// How long a client that found no room should wait.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// How long a client waits where calls that have not begun have all that they may: these begin, or expire, within minutes.
const UNBEGUN_RETRY_AFTER: Duration = Duration::from_secs(60);

/// A call was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum CreateError {
    /// A field is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// What stands for the character is none.
    #[error(transparent)]
    NoCharacter(#[from] InvalidCharacter),
    /// A publishable key may not set this field so.
    #[error(transparent)]
    NotForPages(InvalidField),
    /// The key is for other partners.
    #[error(transparent)]
    Denied(#[from] AccessDenied),
    /// The quota is not for it.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// There is no room.
    #[error(transparent)]
    NoRoom(#[from] Bound),
    /// There is no memory for the documents of its character.
    #[error(transparent)]
    NoMemory(#[from] NoDocumentMemory),
    /// There is no such character.
    #[error(transparent)]
    Unresolved(#[from] ResolveError),
    /// The knowledge base of the character could not be looked for.
    #[error(transparent)]
    Base(#[from] CharacterError),
    /// The character's templates cannot be filled in.
    #[error(transparent)]
    Template(#[from] RenderError),
    /// The quota does not pay for it.
    #[error(transparent)]
    Unpaid(#[from] LedgerError),
    /// The partner would store more than it may.
    #[error(transparent)]
    Storage(#[from] ChargeError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CreateError> for ApiError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Invalid(invalid) => invalid.into(),
            CreateError::NoCharacter(invalid) => invalid.into(),
            CreateError::NotForPages(invalid) => Self {
                field: Some(invalid.field.into_owned()),
                ..Self::forbidden(invalid.message)
            },
            CreateError::Denied(denied) => denied.into(),
            CreateError::NotAllowed(denied) => denied.into(),
            CreateError::NoRoom(bound) => bound.into(),
            CreateError::NoMemory(error) => error.into(),
            CreateError::Unresolved(error) => error.into(),
            CreateError::Base(error) => error.into(),
            CreateError::Template(error) => error.into(),
            CreateError::Unpaid(error) => error.into(),
            CreateError::Storage(error) => not_stored(error),
            CreateError::Store(error) => error.into(),
        }
    }
}

/// An error about the storage of the partner. How much the partner stores is nothing for a page, or for whoever has the key of a quota.
fn not_stored(error: ChargeError) -> ApiError {
    match error {
        ChargeError::Limit(reached) => ApiError {
            message: "The storage of the partner has no room for the call, whose character and parameters count until it ends; delete \
                      documents, recordings, voices, characters, stored responses, transcripts or calls that ended, or have the operator \
                      raise the partner's storage_bytes"
                .to_owned(),
            ..reached.into()
        },
        ChargeError::Store(error) => error.into(),
    }
}

impl From<Bound> for ApiError {
    fn from(bound: Bound) -> Self {
        let message = bound.to_string();
        match bound {
            Bound::Node => Self::unavailable(message, RETRY_AFTER),
            Bound::Partner | Bound::Key | Bound::Address | Bound::Connecting => Self {
                message,
                ..Self::rate_limited(RETRY_AFTER)
            },
            Bound::Unbegun
            | Bound::UnbegunOfNetwork
            | Bound::UnbegunStorage
            | Bound::UnbegunStorageOfNetwork => Self {
                message,
                ..Self::rate_limited(UNBEGUN_RETRY_AFTER)
            },
        }
    }
}

/// 404: the key reaches no such call.
pub(super) fn call_not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "call_not_found", "Call not found")
}

/// A call was not deleted.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeleteError {
    /// The key reaches no such call.
    #[error("Call not found")]
    Unknown,
    /// The call is not over.
    #[error(
        "The call has not ended, or is NODE_LOST for less than 10 minutes, so that its node may still tell how it ended; try again later"
    )]
    Open,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DeleteError> for ApiError {
    fn from(error: DeleteError) -> Self {
        let message = error.to_string();
        match error {
            DeleteError::Unknown => call_not_found(),
            DeleteError::Open => Self::conflict(message).with_code("call_not_ended"),
            DeleteError::Store(error) => error.into(),
        }
    }
}
