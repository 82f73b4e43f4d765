//! Why a request was not prepared, or has no answer, and what is not there of stored responses.

use std::time::Duration;

use axum::http::StatusCode;
use colloquy_accounts::{
    AccountError, ledger::LedgerError, quotas::NotAllowed, storage::ChargeError,
};
use colloquy_base::invalid::InvalidField;
use colloquy_characters::{
    CharacterError, InvalidCharacter, NoDocumentMemory, RenderError, ResolveError,
};
use colloquy_formats::{FormatError, UnknownItem};
use colloquy_http::{ApiError, DiskLow, memory::NoRoom};
use colloquy_providers::{ProviderError, UpstreamFailure};
use colloquy_store::StoreError;

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
    /// The model does something else.
    #[error("{field}: {name} {what}")]
    OtherModel {
        /// The field that names it.
        field: &'static str,
        name: String,
        /// What it does, and where it is asked.
        what: &'static str,
    },
    /// What stands for the character is none.
    #[error(transparent)]
    NoCharacter(#[from] InvalidCharacter),
    /// There is no such character.
    #[error(transparent)]
    Unresolved(#[from] ResolveError),
    /// The knowledge base of the character could not be looked for.
    #[error(transparent)]
    Base(#[from] CharacterError),
    /// The character's templates cannot be filled in.
    #[error(transparent)]
    Template(#[from] RenderError),
    /// The conversation cannot be gone on from.
    #[error("{0}")]
    Unknown(&'static str),
    /// The input refers to an item that is not found among those of stored responses.
    #[error(transparent)]
    Item(#[from] UnknownItem),
    /// The database has not taken the response yet.
    #[error("the response is not stored yet")]
    NotStored,
    /// There is no room for what it holds.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// There is no memory for the documents of its character.
    #[error(transparent)]
    NoDocumentMemory(#[from] NoDocumentMemory),
    /// The response would be stored, and the disk is nearly full.
    #[error(transparent)]
    DiskLow(#[from] DiskLow),
    /// The response would be stored, and the partner would store more than it may.
    #[error(transparent)]
    Storage(#[from] ChargeError),
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
            PrepareError::Format(error) => {
                let message = error.to_string();
                Self::invalid(error.field, message)
            }
            PrepareError::NotAllowed(denied) => denied.into(),
            PrepareError::UnknownModel { field, name } => {
                Self::invalid(field, format!("there is no model {name}"))
                    .with_code("model_not_found")
            }
            PrepareError::OtherModel { field, name, what } => {
                Self::invalid(field, format!("{name} {what}")).with_code("unsupported_model")
            }
            PrepareError::NoCharacter(invalid) => {
                let error = Self::from(invalid);
                let named = error.field.clone().unwrap_or_default();
                let error = in_svc(error);
                let field = error.field.as_deref().unwrap_or_default();
                // A message about a part of the character begins with its path.
                let message = match error.message.strip_prefix(&named) {
                    Some(rest) if rest.starts_with(' ') => format!("{field}{rest}"),
                    _ => format!("{field}: {}", error.message),
                };
                Self { message, ..error }
            }
            PrepareError::Unresolved(error) => in_svc(error.into()),
            PrepareError::Base(error) => error.into(),
            PrepareError::Template(error) => in_svc(error.into()),
            PrepareError::Unknown(what) => {
                Self::invalid("previous_response_id", what).with_code("previous_response_not_found")
            }
            PrepareError::Item(unknown) => {
                let message = unknown.to_string();
                Self {
                    field: Some(unknown.field),
                    ..Self::new(StatusCode::NOT_FOUND, "item_not_found", message)
                }
            }
            PrepareError::NotStored => Self::unavailable("The response is not stored yet", SOON),
            PrepareError::NoRoom(error) => error.into(),
            PrepareError::NoDocumentMemory(error) => error.into(),
            PrepareError::DiskLow(error) => error.into(),
            PrepareError::Storage(error) => not_stored(error),
            PrepareError::Unpaid(error) => error.into(),
            PrepareError::Partner(error) => error.into(),
            PrepareError::Store(error) => error.into(),
            PrepareError::Remembered(error) => Self::internal(error),
        }
    }
}

/// An error about what would be stored: a request stores unless it says otherwise, so the message names how it goes on without. How much the
/// partner stores is nothing for whoever has the key of a quota.
fn not_stored(error: ChargeError) -> ApiError {
    match error {
        ChargeError::Limit(reached) => ApiError {
            message: "the storage of the partner has no room for the response; delete stored responses, or send store: false, which needs none"
                .to_owned(),
            field: Some("store".to_owned()),
            ..reached.into()
        },
        ChargeError::Store(error) => error.into(),
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

/// A request that was taken has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    /// What was asked for is wrong in a way that only the model knows.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// The quota does not pay for it.
    #[error(transparent)]
    Unpaid(#[from] LedgerError),
    /// The models failed, the last of them so.
    #[error(transparent)]
    Model(#[from] ProviderError),
    /// The model's answer is none.
    #[error("the model's answer is none")]
    NoAnswer(Box<UpstreamFailure>),
    /// The server stops.
    #[error("the server stops")]
    Stopping,
    /// It could not be stored, as it was asked to be.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    /// There is no memory for it.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<StoredError> for ApiError {
    fn from(error: StoredError) -> Self {
        match error {
            StoredError::NotFound => Self::not_found("Response"),
            StoredError::NotStored => PrepareError::NotStored.into(),
            StoredError::NoRoom(error) => error.into(),
            StoredError::Store(error) => error.into(),
        }
    }
}
