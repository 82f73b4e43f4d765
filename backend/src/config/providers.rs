//! The outside services, each optional: without a base URL the embedded default answers.

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use url::Url;

use super::Secret;

fn check_url(setting: &str, url: Option<&Url>) -> anyhow::Result<()> {
    let known = url.is_none_or(|url| matches!(url.scheme(), "http" | "https"));
    ensure!(known, "{setting}.base_url: use an http or https URL");
    Ok(())
}

/// The chat model: an OpenAI-compatible server, or `builtin/extractive`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatConfig {
    /// The server's base URL, up to and including `/v1`.
    pub base_url: Option<Url>,
    /// The server's key.
    pub api_key: Option<Secret>,
    /// The model; required with a base URL.
    pub model: Option<String>,
}

impl ChatConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.base_url.is_none() || self.model.is_some(),
            "chat.model: required with chat.base_url"
        );
        check_url("chat", self.base_url.as_ref())
    }
}

/// Speech to text: an OpenAI-compatible server, or PocketSphinx.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TranscriberConfig {
    /// The server's base URL, up to and including `/v1`.
    pub base_url: Option<Url>,
    /// The server's key.
    pub api_key: Option<Secret>,
    /// The model; required with a base URL.
    pub model: Option<String>,
}

impl TranscriberConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.base_url.is_none() || self.model.is_some(),
            "transcriber.model: required with transcriber.base_url"
        );
        check_url("transcriber", self.base_url.as_ref())
    }
}

/// Text to speech: an OpenAI-compatible server, or espeak-ng.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SynthesizerConfig {
    /// The server's base URL, up to and including `/v1`.
    pub base_url: Option<Url>,
    /// The server's key.
    pub api_key: Option<Secret>,
    /// The model; required with a base URL.
    pub model: Option<String>,
    /// The voice of characters that name none.
    pub voice: Option<String>,
}

impl SynthesizerConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.base_url.is_none() || self.model.is_some(),
            "synthesizer.model: required with synthesizer.base_url"
        );
        check_url("synthesizer", self.base_url.as_ref())
    }
}
