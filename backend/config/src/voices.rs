//! The voice library, and what makes voices of recordings.

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Secret, check_secret, providers::check_url};

/// The voice library, of `/api/voices`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VoicesConfig {
    /// The largest recording, in bytes.
    pub max_file_bytes: u64,
    /// The longest recording, in seconds.
    pub max_seconds: u32,
    /// How many voices a partner may have.
    pub max_voices: u32,
    /// How many voices of a partner may be split or embedded at a time.
    pub in_progress: u32,
}

impl Default for VoicesConfig {
    fn default() -> Self {
        Self {
            max_file_bytes: 100 * 1024 * 1024,
            max_seconds: 3 * 3_600,
            max_voices: 1_000,
            in_progress: 50,
        }
    }
}

impl VoicesConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        for (name, value, most) in [
            ("max_seconds", self.max_seconds, 24 * 3_600),
            ("max_voices", self.max_voices, 100_000),
            ("in_progress", self.in_progress, u32::MAX),
        ] {
            ensure!((1..=most).contains(&value), "voices.{name}: 1 to {most}");
        }
        ensure!(
            (1..=4 * 1024 * 1024 * 1024).contains(&self.max_file_bytes),
            "voices.max_file_bytes: 1 to 4294967296"
        );
        Ok(())
    }
}

/// What makes voices of recordings: a service elsewhere, or this server, where it has the model `ge2e`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VoiceWorkerConfig {
    /// The service's base URL; unset: this server does it.
    pub base_url: Option<Url>,
    /// The service's key.
    pub api_key: Option<Secret>,
    /// The type of the voices that the service makes where none is asked for.
    pub default_type: String,
    /// How long a voice may take, in seconds.
    pub seconds: u32,
    /// What is spoken with each sample, so that somebody can hear what it is worth.
    pub sentences: Vec<String>,
}

impl Default for VoiceWorkerConfig {
    fn default() -> Self {
        Self {
            base_url: None,
            api_key: None,
            default_type: "default".to_owned(),
            seconds: 24 * 3_600,
            sentences: [
                "Good morning! How can I help you today?",
                "The old lighthouse keeper counted seven ships before the fog came in.",
                "Are you quite sure about that? I would not have thought so.",
            ]
            .map(str::to_owned)
            .to_vec(),
        }
    }
}

impl VoiceWorkerConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            (1..=7 * 86_400).contains(&self.seconds),
            "voice_worker.seconds: 1 to 604800"
        );
        ensure!(
            is_voice_type(&self.default_type),
            "voice_worker.default_type: 1 to 64 letters, digits, '-' and '_'"
        );
        let is_sentence = |text: &String| (1..=500).contains(&text.trim().chars().count());
        ensure!(
            self.sentences.len() <= 10 && self.sentences.iter().all(is_sentence),
            "voice_worker.sentences: 10 at most, of 1 to 500 characters each"
        );
        check_secret("voice_worker.api_key", self.api_key.as_ref())?;
        check_url("voice_worker.base_url", self.base_url.as_ref())
    }
}

/// Whether a text is the name of a type of voices: it stands in paths.
#[must_use]
pub fn is_voice_type(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&name.len()) && name.chars().all(is_allowed)
}
