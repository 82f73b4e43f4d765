//! Secrets that are handed out once, and of which the server keeps a hash alone: ids of sessions and tokens of links.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// The random bytes of a token, which is too long to be guessed, so that its hash needs no salt.
const BYTES: usize = 32;
/// The length of its text.
const TEXT: usize = 43;

/// A secret; hidden from `Debug`.
pub(crate) struct Token(String);

impl Token {
    /// Makes a random one.
    pub(crate) fn make() -> Self {
        Self(URL_SAFE_NO_PAD.encode(rand::random::<[u8; BYTES]>()))
    }

    /// Reads one that somebody shows; returns `None` for text that cannot be one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        (text.len() == TEXT && text.chars().all(plain)).then(|| Self(text.to_owned()))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns what is stored of it, hexadecimal.
    pub(crate) fn sha256(&self) -> String {
        let hash = Sha256::digest(self.0.as_bytes());
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
