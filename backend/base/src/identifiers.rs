//! The identifiers that stand in paths and in references: of partners, and of saved characters.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::invalid::InvalidField;

/// A partner's identifier, as it stands in paths and in `repo:<partner>/<character>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(value_type = String)]
#[serde(try_from = "String", into = "String")]
pub struct PartnerId(String);

impl PartnerId {
    /// Checks an identifier: 1 to 64 of `a-z`, `0-9`, `-` and `_`, beginning with a letter or digit.
    ///
    /// # Errors
    /// When it is not of that form.
    pub fn parse(text: &str) -> Result<Self, InvalidField> {
        let allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        if begins && text.len() <= 64 && text.chars().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidField::new(
                "partner",
                "a partner is 1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit",
            ))
        }
    }

    /// The identifier of a stored row, which was checked when it was stored.
    #[must_use]
    pub fn of_row(partner: &str) -> Self {
        Self(partner.to_owned())
    }

    /// The identifier.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PartnerId {
    type Error = InvalidField;

    fn try_from(text: String) -> Result<Self, InvalidField> {
        Self::parse(&text)
    }
}

impl From<PartnerId> for String {
    fn from(partner: PartnerId) -> Self {
        partner.0
    }
}

/// The name of a saved character, as it stands in paths and references.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CharacterName(String);

impl CharacterName {
    /// Checks a name: 1 to 64 of letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
    ///
    /// # Errors
    /// When it is not of that form.
    pub fn parse(text: &str) -> Result<Self, InvalidField> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= 64 && text.chars().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidField::new(
                "name",
                "a name is 1 to 64 letters, digits, -, _ and ., beginning with a letter or digit",
            ))
        }
    }

    /// The name of a stored row, which was checked when it was stored.
    #[must_use]
    pub fn of_row(name: String) -> Self {
        Self(name)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
