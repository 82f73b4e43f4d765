//! `metadata.svc`: what a request says to this service and not to the model.

use colloquy_base::invalid::InvalidField;
use colloquy_characters::{CharacterInput, parse_character_params};
use colloquy_formats::Object;
use serde_json::Value;

use super::error::PrepareError;

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
    ///
    /// # Errors
    /// When a field is wrong, or what stands for the character is none.
    pub(super) fn parse(mut svc: Object) -> Result<Self, PrepareError> {
        let character = match svc.remove("character") {
            None | Some(Value::Null) => None,
            Some(value) => Some(CharacterInput::parse(&value)?),
        };
        let character_params = match svc.remove("character_params") {
            // Forms send JSON text, and the parser takes it; here the document says object.
            Some(Value::String(_)) => {
                return Err(invalid("character_params", "must be an object").into());
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
            )
            .into()),
        }
    }
}

/// This field below `metadata.svc` is wrong.
fn invalid(field: &str, what: &str) -> InvalidField {
    let field = format!("metadata.svc.{field}");
    let message = format!("{field} {what}");
    InvalidField::new(field, message)
}

/// A wrong field of a part, as one below `metadata.svc`, which its message names as well.
fn inside_svc(invalid: InvalidField) -> InvalidField {
    let field = format!("metadata.svc.{}", invalid.field);
    // It may begin with its own name for the field.
    let told = invalid.message.strip_prefix(invalid.field.as_ref());
    let told = told.map_or(invalid.message.as_ref(), str::trim_start);
    let message = format!("{field}: {}", told.trim_start_matches(": "));
    InvalidField::new(field, message)
}
