//! How a request names a character: a saved reference, or an object with everything in it.

use serde_json::{Map, Value};

use super::{Character, CharacterParameters, validate};
use crate::{accounts::PartnerId, http::ApiError};

/// The name of a saved character, as it stands in paths and references.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CharacterName(String);

impl CharacterName {
    /// Checks a name: 1 to 64 of letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
    ///
    /// # Errors
    /// 400 when it is not of that form.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= 64 && text.chars().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ApiError::invalid(
                "name",
                "a name is 1 to 64 letters, digits, -, _ and ., beginning with a letter or digit",
            ))
        }
    }

    /// The name of a stored row.
    pub(super) fn of_row(name: String) -> Self {
        Self(name)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A character as a request gives it, parsed but not looked up.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CharacterInput {
    /// `repo:<partner>/<name>`, or `repo-force:..`, which reads the row again.
    Saved {
        /// Whose character it is.
        partner: PartnerId,
        /// Its name.
        name: CharacterName,
        /// Whether the cache is passed by.
        force: bool,
    },
    /// An object with everything in it.
    Inline(Box<Character>),
}

impl CharacterInput {
    /// Parses the value of a `character` field: a reference, an object `{parameters, personality}` or
    /// `{description, personality}` (where `description` holds the parameters as JSON text), or such an object as JSON
    /// text, as forms send it.
    ///
    /// # Errors
    /// 400 `invalid_character`, with the field below `character` that is wrong.
    pub fn parse(value: &Value) -> Result<Self, ApiError> {
        match value {
            Value::String(text) if text.trim_start().starts_with('{') => {
                let object = serde_json::from_str(text).map_err(|error| {
                    ApiError::invalid_character(format!("The character is not valid JSON: {error}"))
                })?;
                Self::parse_object(object)
            }
            Value::String(text) => Self::parse_reference(text),
            Value::Object(object) => Self::parse_object(object.clone()),
            _ => Err(ApiError::invalid_character(
                "A character is repo:<partner>/<name> or an object",
            )),
        }
    }

    fn parse_reference(text: &str) -> Result<Self, ApiError> {
        let malformed =
            || ApiError::invalid_character("A saved character is written repo:<partner>/<name>");
        let (rest, force) = match (text.strip_prefix("repo:"), text.strip_prefix("repo-force:")) {
            (Some(rest), _) => (rest, false),
            (None, Some(rest)) => (rest, true),
            (None, None) => return Err(malformed()),
        };
        let (partner, name) = rest.split_once('/').ok_or_else(malformed)?;
        Ok(Self::Saved {
            partner: PartnerId::parse(partner).map_err(|_| malformed())?,
            name: CharacterName::parse(name).map_err(|_| malformed())?,
            force,
        })
    }

    fn parse_object(mut object: Map<String, Value>) -> Result<Self, ApiError> {
        let personality = match object.remove("personality") {
            Some(Value::String(personality)) => personality,
            Some(_) => return Err(within("personality", "must be a string")),
            None => return Err(within("personality", "is required")),
        };
        let parameters = match (object.remove("parameters"), object.remove("description")) {
            (Some(_), Some(_)) => {
                return Err(within(
                    "description",
                    "give either parameters or description",
                ));
            }
            (Some(parameters), None) => parse_parameters("parameters", parameters)?,
            (None, Some(description)) => parse_parameters("description", description)?,
            (None, None) => CharacterParameters::default(),
        };
        if let Some(field) = object.keys().next() {
            return Err(within(field, "is not a field of a character"));
        }
        let character = Character {
            reference: None,
            personality,
            parameters,
        };
        validate::character(&character).map_err(inside_character)?;
        Ok(Self::Inline(Box::new(character)))
    }

    /// The partner that a reference names; `None` for an inline character.
    #[must_use]
    pub fn partner(&self) -> Option<&PartnerId> {
        match self {
            Self::Saved { partner, .. } => Some(partner),
            Self::Inline(_) => None,
        }
    }
}

fn parse_parameters(field: &str, value: Value) -> Result<CharacterParameters, ApiError> {
    let value = match value {
        Value::String(text) => serde_json::from_str(&text)
            .map_err(|error| within(field, format!("is not valid JSON: {error}")))?,
        Value::Null => Value::Object(Map::new()),
        value => value,
    };
    validate::parameters(field, value).map_err(inside_character)
}

fn within(field: &str, message: impl std::fmt::Display) -> ApiError {
    ApiError {
        field: Some(format!("character.{field}")),
        ..ApiError::invalid_character(format!("character.{field} {message}"))
    }
}

/// An error of a part, as an error of the `character` field.
fn inside_character(error: ApiError) -> ApiError {
    let field = error.field.unwrap_or_default();
    within(&field, error.message)
}
