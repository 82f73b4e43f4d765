//! Values that must not be shown.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

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

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[redacted]")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The environment may hand a secret of digits over as a number.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Text {
            Text(String),
            Number(i64),
        }
        Ok(match Text::deserialize(deserializer)? {
            Text::Text(text) => Self(text),
            Text::Number(number) => Self(number.to_string()),
        })
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
        serializer.serialize_str("[redacted]")
    }
}

impl<'de> Deserialize<'de> for SigningKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
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
            if secret.len() < 16 {
                return Err(D::Error::custom(format!(
                    "signing_keys: the secret of {kid} is shorter than 16 characters"
                )));
            }
            keys.push(SigningKey {
                kid: kid.to_owned(),
                secret: Secret::new(secret),
            });
        }
        Ok(Self(keys))
    }
}
