//! `metadata.svc`: what a request says to this service and not to the model.

use colloquy_characters::{CharacterInput, parse_character_params};
use colloquy_formats::Object;
use colloquy_http::ApiError;
use serde_json::Value;

/// The service's own part of a request's metadata.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Svc {
    /// Who answers; parsed, not looked up.
    pub(super) character: Option<CharacterInput>,
    /// The template parameters; flat.
    pub(super) character_params: Object,
}

impl Svc {
    /// Parses the value of `metadata.svc`.
    pub(super) fn parse(mut svc: Object) -> Result<Self, ApiError> {
        let character = match svc.remove("character") {
            None | Some(Value::Null) => None,
            Some(value) => Some(CharacterInput::parse(&value).map_err(inside_svc)?),
        };
        let character_params = match svc.remove("character_params") {
            // Forms send JSON text, and the parser takes it; here the document says object.
            Some(Value::String(_)) => {
                return Err(invalid("character_params", "must be an object"));
            }
            params => parse_character_params(params.as_ref()).map_err(inside_svc)?,
        };
        match svc.keys().next() {
            None => Ok(Self {
                character,
                character_params,
            }),
            Some(key) => Err(invalid(
                key,
                "is not allowed; only character and character_params are",
            )),
        }
    }
}

/// This field below `metadata.svc` is wrong.
fn invalid(field: &str, what: &str) -> ApiError {
    let field = format!("metadata.svc.{field}");
    let message = format!("{field} {what}");
    ApiError::invalid(field, message)
}

/// An error of a part, as an error of a field below `metadata.svc`. Some parts name the field in their message and some do
/// not; here all of them do.
fn inside_svc(error: impl Into<ApiError>) -> ApiError {
    let error = error.into();
    let field = format!(
        "metadata.svc.{}",
        error.field.as_deref().unwrap_or_default()
    );
    ApiError {
        message: format!("{field}: {}", error.message),
        field: Some(field),
        ..error
    }
}
