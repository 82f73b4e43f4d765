//! Values that must not be shown.

use std::fmt;

use anyhow::ensure;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The fewest characters of a key that opens something here.
const FEWEST_CHARS: usize = 16;

/// The text that is shown in place of a secret.
pub(super) const HIDDEN: &str = "[redacted]";

/// A secret text; `Debug` and serialization hide it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Checks a secret of another service, which knows best how long it has to be. A blank one is a variable that was meant to
/// be filled in, and one with blanks around it is not what its service gave out.
///
/// # Errors
/// Names the setting, never the value.
pub fn check_secret(setting: &str, secret: Option<&Secret>) -> anyhow::Result<()> {
    let Some(Secret(text)) = secret else {
        return Ok(());
    };
    ensure!(
        !text.trim().is_empty(),
        "{setting}: it is blank; leave it out or fill it in"
    );
    ensure!(
        text.trim() == text,
        "{setting}: it begins or ends with a blank"
    );
    ensure!(
        !text.chars().any(char::is_control),
        "{setting}: it has a character that cannot be sent"
    );
    Ok(())
}

/// Checks a secret that opens something here, as [`check_secret`] and for its length.
///
/// # Errors
/// Names the setting, never the value.
pub(super) fn check_key(setting: &str, secret: Option<&Secret>) -> anyhow::Result<()> {
    check_secret(setting, secret)?;
    // What cannot be seen is no part of a key.
    let is_visible = |char: &char| matches!(char, ' '..='~') || char.is_alphanumeric();
    let length = secret.map(|Secret(text)| text.chars().filter(is_visible).count());
    ensure!(
        length.is_none_or(|length| length >= FEWEST_CHARS),
        "{setting}: it is shorter than {FEWEST_CHARS} characters that can be seen"
    );
    Ok(())
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A file may have a secret of digits as a number. The error of the derived code does not tell the value.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Text {
            Text(String),
            Number(u64),
        }
        match Text::deserialize(deserializer) {
            Ok(Text::Text(text)) => Ok(Self(text)),
            Ok(Text::Number(number)) => Ok(Self(number.to_string())),
            Err(_) => Err(D::Error::custom("a secret is a text")),
        }
    }
}

/// One key of the ring that signs call URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// The key's id, shown in the URL.
    pub kid: String,
    /// The key.
    pub secret: Secret,
}

/// The ring: the first key signs, all of them verify. Written `kid:secret,kid:secret`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKeys(pub Vec<SigningKey>);

impl Serialize for SigningKeys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

impl<'de> Deserialize<'de> for SigningKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Secret(text) = Secret::deserialize(deserializer)?;
        let mut keys = Vec::new();
        for entry in text.split(',') {
            let Some((kid, secret)) = entry.trim().split_once(':') else {
                return Err(D::Error::custom(
                    "signing_keys: write kid:secret,kid:secret",
                ));
            };
            let known = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if kid.is_empty() || !kid.chars().all(known) {
                return Err(D::Error::custom(
                    "signing_keys: a kid is made of letters, digits, - and _",
                ));
            }
            let secret = Secret::new(secret);
            check_key(&format!("signing_keys: the secret of {kid}"), Some(&secret))
                .map_err(D::Error::custom)?;
            keys.push(SigningKey {
                kid: kid.to_owned(),
                secret,
            });
        }
        Ok(Self(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_and_short_secrets_are_refused_without_being_told() {
        let told = |check: &dyn Fn(&str, Option<&Secret>) -> anyhow::Result<()>, text: &str| {
            check("some.key", Some(&Secret::new(text)))
                .err()
                .map(|error| error.to_string())
        };
        for text in [
            "",
            " ",
            "\t\n",
            " abcdefghijklmnop",
            "abcdefghijklmnop\n",
            "abcdefgh\0ijklmnop",
        ] {
            let error = told(&check_secret, text).unwrap();
            assert!(error.starts_with("some.key: "), "{error}");
            assert!(!error.contains("abc"), "{error}");
            assert!(told(&check_key, text).is_some());
        }
        assert_eq!(told(&check_secret, "x"), None);
        assert!(told(&check_key, "fifteen letters").unwrap().contains("16"));
        assert!(told(&check_key, &"\u{200b}".repeat(16)).is_some());
        assert_eq!(told(&check_key, "sixteen letters!"), None);
        assert!(check_key("some.key", None).is_ok());
    }

    #[test]
    fn a_ring_takes_no_blank_secret() {
        let ring = |text: &str| serde_json::from_value::<SigningKeys>(text.into());
        assert!(ring("a:0123456789abcdef,b:fedcba9876543210").is_ok());
        for text in [
            "a:                ",
            "a: 0123456789abcdef",
            "a:0123456789abcde",
            "a:0123456789abcdef,b:",
            "",
        ] {
            let error = ring(text).unwrap_err().to_string();
            assert!(error.contains("signing_keys"), "{error}");
            assert!(!error.contains("0123"), "{error}");
        }
        let error = serde_json::from_str::<SigningKeys>("1234567890123456.5").unwrap_err();
        assert!(!error.to_string().contains("1234"), "{error}");
    }
}
