//! Which characters a quota may use.

use std::fmt;

use colloquy_base::identifiers::{CharacterName, PartnerId};

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

/// A text is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write repo:<partner>/*, repo:<partner>/<name> or inline")]
pub struct MalformedPattern;

impl CharacterPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, MalformedPattern> {
        if text == "inline" {
            return Ok(Self::Inline);
        }
        let (partner, name) = text
            .strip_prefix("repo:")
            .and_then(|rest| rest.split_once('/'))
            .ok_or(MalformedPattern)?;
        let partner = PartnerId::parse(partner).map_err(|_| MalformedPattern)?;
        match name {
            "*" => Ok(Self::Saved(partner)),
            name => CharacterName::parse(name)
                .map(|name| Self::One(partner, name))
                .map_err(|_| MalformedPattern),
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

    /// Whether it means this character: a saved one, or, without a name, one that a request brings along.
    #[must_use]
    pub fn matches(&self, saved: Option<(&PartnerId, &CharacterName)>) -> bool {
        match (self, saved) {
            (Self::Inline, None) => true,
            (Self::Saved(allowed), Some((partner, _))) => allowed == partner,
            (Self::One(allowed, one), Some((partner, name))) => allowed == partner && one == name,
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

    fn saved(partner: &str, name: &str) -> (PartnerId, CharacterName) {
        (
            PartnerId::parse(partner).unwrap(),
            CharacterName::parse(name).unwrap(),
        )
    }

    #[test]
    fn a_pattern_means_one_all_or_inline_characters() {
        let ada = saved("acme", "ada");
        let bob = saved("acme", "bob");
        let other = saved("other", "ada");
        for (text, matches) in [
            ("repo:acme/*", [true, true, false, false]),
            ("repo:acme/ada", [true, false, false, false]),
            ("repo:acme/Ada", [false, false, false, false]),
            ("inline", [false, false, false, true]),
        ] {
            let pattern = CharacterPattern::parse(text).unwrap();
            assert_eq!(pattern.to_string(), text);
            let found = [Some(&ada), Some(&bob), Some(&other), None]
                .map(|character| pattern.matches(character.map(|(partner, name)| (partner, name))));
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
