//! Which characters a quota may use.

use std::fmt;

use crate::{
    accounts::PartnerId,
    characters::{CharacterInput, CharacterName},
    http::ApiError,
};

/// One character, or a sort of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CharacterPattern {
    /// `repo:<partner>/*`: all saved characters of a partner.
    Saved(PartnerId),
    /// `repo:<partner>/<name>`: one saved character.
    One(PartnerId, CharacterName),
    /// `inline`: characters that requests bring along.
    Inline,
}

impl CharacterPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// 400 when it is none.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let malformed = || {
            ApiError::invalid(
                "allowed_characters",
                "write repo:<partner>/*, repo:<partner>/<name> or inline",
            )
        };
        if text == "inline" {
            return Ok(Self::Inline);
        }
        let (partner, name) = text
            .strip_prefix("repo:")
            .and_then(|rest| rest.split_once('/'))
            .ok_or_else(malformed)?;
        let partner = PartnerId::parse(partner).map_err(|_| malformed())?;
        match name {
            "*" => Ok(Self::Saved(partner)),
            name => CharacterName::parse(name)
                .map(|name| Self::One(partner, name))
                .map_err(|_| malformed()),
        }
    }

    /// The partner that it names.
    #[must_use]
    pub fn partner(&self) -> Option<&PartnerId> {
        match self {
            Self::Saved(partner) | Self::One(partner, _) => Some(partner),
            Self::Inline => None,
        }
    }

    /// Whether it means this character.
    #[must_use]
    pub fn matches(&self, character: &CharacterInput) -> bool {
        match (self, character) {
            (Self::Inline, CharacterInput::Inline(_)) => true,
            (Self::Saved(allowed), CharacterInput::Saved { partner, .. }) => allowed == partner,
            (Self::One(allowed, one), CharacterInput::Saved { partner, name, .. }) => {
                allowed == partner && one == name
            }
            _ => false,
        }
    }
}

impl fmt::Display for CharacterPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saved(partner) => write!(f, "repo:{}/*", partner.as_str()),
            Self::One(partner, name) => write!(f, "repo:{}/{}", partner.as_str(), name.as_str()),
            Self::Inline => f.write_str("inline"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn character(value: serde_json::Value) -> CharacterInput {
        CharacterInput::parse(&value).unwrap()
    }

    #[test]
    fn a_pattern_means_one_all_or_inline_characters() {
        let ada = character(json!("repo:acme/ada"));
        let bob = character(json!("repo-force:acme/bob"));
        let other = character(json!("repo:other/ada"));
        let inline = character(json!({"personality": "You are Ada."}));
        for (text, matches) in [
            ("repo:acme/*", [true, true, false, false]),
            ("repo:acme/ada", [true, false, false, false]),
            ("repo:acme/Ada", [false, false, false, false]),
            ("inline", [false, false, false, true]),
        ] {
            let pattern = CharacterPattern::parse(text).unwrap();
            assert_eq!(pattern.to_string(), text);
            let found = [&ada, &bob, &other, &inline].map(|character| pattern.matches(character));
            assert_eq!(found, matches, "{text}");
        }
        for text in [
            "",
            "*",
            "repo:acme",
            "repo:acme/",
            "repo:*/*",
            "repo:acme/a*",
            "acme/ada",
            "Inline",
            "repo-force:acme/ada",
        ] {
            assert!(CharacterPattern::parse(text).is_err(), "{text}");
        }
    }
}
