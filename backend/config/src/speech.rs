//! The speech interface.

use anyhow::ensure;
use colloquy_base::money::Usd;
use serde::{Deserialize, Serialize};

/// The speech interface, `/v2/audio`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpeechConfig {
    /// The one model that requests may name.
    pub model: String,
    /// What a million characters cost, in US dollars, such as `"15"`.
    pub usd_per_1m_characters: Usd,
    /// How many answers are kept to repeat them to identical requests; 0: none.
    pub cache_entries: usize,
    /// How large these answers may be together, in bytes; 0: none are kept.
    pub cache_bytes: usize,
}

impl Default for SpeechConfig {
    fn default() -> Self {
        Self {
            model: "colloquy-tts".to_owned(),
            usd_per_1m_characters: Usd(0),
            cache_entries: 0,
            cache_bytes: 64 * 1024 * 1024,
        }
    }
}

impl SpeechConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(!self.model.is_empty(), "speech.model: name the model");
        Ok(())
    }
}
