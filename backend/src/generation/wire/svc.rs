//! `metadata.svc`: what a request says to this service and not to the model.

use serde_json::Value;

use super::{Object, fields::Invalid};
use crate::{
    characters::{CharacterInput, parse_character_params},
    http::ApiError,
};

/// The service's own part of a request's metadata.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Svc {
    /// Who answers; parsed, not looked up.
    pub(crate) character: Option<CharacterInput>,
    /// The template parameters; flat.
    pub(crate) character_params: Object,
}

impl Svc {
    /// Parses the value of `metadata.svc`.
    pub(super) fn parse(value: Value) -> Result<Self, ApiError> {
        let Value::Object(mut svc) = value else {
            return Err(Invalid::new("metadata.svc", "must be an object").into());
        };
        let character = match svc.remove("character") {
            None | Some(Value::Null) => None,
            Some(value) => Some(CharacterInput::parse(&value).map_err(inside_svc)?),
        };
        let character_params = match svc.remove("character_params") {
            // Forms send JSON text, and the parser takes it; here the document says object.
            Some(Value::String(_)) => {
                return Err(
                    Invalid::new("metadata.svc.character_params", "must be an object").into(),
                );
            }
            params => parse_character_params(params.as_ref()).map_err(inside_svc)?,
        };
        match svc.keys().next() {
            None => Ok(Self {
                character,
                character_params,
            }),
            Some(key) => Err(Invalid::new(
                format!("metadata.svc.{key}"),
                "is not allowed; only character and character_params are",
            )
            .into()),
        }
    }
}

/// An error of a part, as an error of a field below `metadata.svc`. Some parts name the field in their message and some do
/// not; here all of them do.
fn inside_svc(error: ApiError) -> ApiError {
    let field = format!("metadata.svc.{}", error.field.unwrap_or_default());
    ApiError {
        message: format!("{field}: {}", error.message),
        field: Some(field),
        ..error
    }
}
