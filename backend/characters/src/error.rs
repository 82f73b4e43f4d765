//! What is refused about characters, and why.

use axum::http::StatusCode;
use colloquy_accounts::storage::ChargeError;
use colloquy_base::invalid::InvalidField;
use colloquy_http::ApiError;
use colloquy_store::StoreError;

/// Something about saved characters was not done.
#[derive(Debug, thiserror::Error)]
pub enum CharacterError {
    /// A field is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// There is no such thing.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The partner has a character of this name.
    #[error("A character of this name exists")]
    NameTaken,
    /// It is not the newest version that was to be replaced.
    #[error("The newest version is {0}")]
    NewerVersion(i64),
    /// The partner would store more than it may.
    #[error(transparent)]
    Storage(#[from] ChargeError),
    /// The knowledge bases could not be asked.
    #[error("{0}")]
    Bases(anyhow::Error),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A request means no character.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// There is none, or it is another partner's, so that nobody learns which names others use.
    #[error("unknown character")]
    Unknown,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What stands for a character in a request is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidCharacter {
    /// The field below `character`, when it is one of them.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
}

/// The templates of a character were not filled in.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A template or a parameter is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// Too many are being filled in.
    #[error("too many templates are being filled in")]
    Busy,
    /// A fault of the server.
    #[error("{0}")]
    Failed(String),
}

impl From<CharacterError> for ApiError {
    /// 400 that names the field, 404, 409, 413, or the database's failure.
    fn from(error: CharacterError) -> Self {
        match error {
            CharacterError::Invalid(invalid) => invalid.into(),
            CharacterError::NotFound(what) => Self::not_found(what),
            CharacterError::NameTaken | CharacterError::NewerVersion(_) => {
                Self::conflict(error.to_string())
            }
            CharacterError::Storage(error) => error.into(),
            CharacterError::Bases(error) => match error.downcast::<StoreError>() {
                Ok(error) => error.into(),
                Err(error) => Self::internal(error),
            },
            CharacterError::Store(error) => error.into(),
        }
    }
}

impl From<ResolveError> for ApiError {
    /// 400 `invalid_character`, or the database's failure.
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Unknown => InvalidCharacter::whole("Unknown character").into(),
            ResolveError::Store(error) => error.into(),
        }
    }
}

impl InvalidCharacter {
    /// The character as a whole is none.
    pub(super) fn whole(message: impl Into<String>) -> Self {
        Self {
            field: None,
            message: message.into(),
        }
    }
}

impl From<InvalidCharacter> for ApiError {
    /// 400 `invalid_character`, the code that the call document prescribes.
    fn from(invalid: InvalidCharacter) -> Self {
        let field = match &invalid.field {
            Some(field) => format!("character.{field}"),
            None => "character".to_owned(),
        };
        Self {
            field: Some(field),
            ..Self::new(
                StatusCode::BAD_REQUEST,
                "invalid_character",
                invalid.message,
            )
        }
    }
}

impl From<RenderError> for ApiError {
    /// 400 that names the field, or 503.
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::Invalid(invalid) => invalid.into(),
            RenderError::Busy => Self::unavailable(
                "Too many templates are being filled in; try again later",
                super::template::TRY_AGAIN,
            ),
            RenderError::Failed(why) => Self::internal(why),
        }
    }
}
