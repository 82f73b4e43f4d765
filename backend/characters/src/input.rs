//! How a request names a character: a saved reference, or an object with everything in it.

use std::fmt::Display;

use colloquy_accounts::PartnerId;
use colloquy_base::{invalid::InvalidField, json};
use serde_json::{Map, Value};

use super::{Character, CharacterName, CharacterParameters, InvalidCharacter, validate};

/// A character as a request gives it, parsed but not looked up.
#[derive(Debug, Clone, PartialEq)]
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
    /// Names the field below `character` that is wrong.
    pub fn parse(value: &Value) -> Result<Self, InvalidCharacter> {
        match value {
            Value::String(text) if text.trim_start().starts_with('{') => {
                let not_json = |error: &dyn Display| {
                    InvalidCharacter::whole(format!("The character is not valid JSON: {error}"))
                };
                match json::parse(text.as_bytes()) {
                    Ok(Value::Object(object)) => Self::parse_object(object),
                    Ok(_) => Err(not_json(&"it is not an object")),
                    Err(error) => Err(not_json(&error)),
                }
            }
            Value::String(text) => Self::parse_reference(text),
            Value::Object(object) => Self::parse_object(object.clone()),
            _ => Err(InvalidCharacter::whole(
                "A character is repo:<partner>/<name> or an object",
            )),
        }
    }

    fn parse_reference(text: &str) -> Result<Self, InvalidCharacter> {
        let malformed =
            || InvalidCharacter::whole("A saved character is written repo:<partner>/<name>");
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

    fn parse_object(mut object: Map<String, Value>) -> Result<Self, InvalidCharacter> {
        let personality = match object.remove("personality") {
            Some(Value::String(personality)) => personality,
            Some(_) => return Err(within("personality", "must be a string")),
            None => return Err(within("personality", "is required")),
        };
        let parameters = match (object.remove("parameters"), object.remove("description")) {
            (Some(_), Some(_)) => {
                return Err(within(
                    "description",
                    "is given beside parameters, give one of them",
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

    /// The saved character that a reference names; `None` for an inline one.
    #[must_use]
    pub fn saved(&self) -> Option<(&PartnerId, &CharacterName)> {
        match self {
            Self::Saved { partner, name, .. } => Some((partner, name)),
            Self::Inline(_) => None,
        }
    }
}

fn parse_parameters(field: &str, value: Value) -> Result<CharacterParameters, InvalidCharacter> {
    let value = match value {
        Value::String(text) => json::parse(text.as_bytes())
            .map_err(|error| within(field, format!("is not valid JSON: {error}")))?,
        Value::Null => Value::Object(Map::new()),
        value => value,
    };
    validate::parameters(field, value).map_err(inside_character)
}

fn within(field: &str, message: impl Display) -> InvalidCharacter {
    InvalidCharacter {
        field: Some(field.to_owned()),
        message: message.to_string(),
    }
}

/// An error of a part, as an error of the `character` field.
fn inside_character(invalid: InvalidField) -> InvalidCharacter {
    within(&invalid.field, invalid.message)
}
