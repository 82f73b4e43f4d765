//! The outside services, each optional: without a base URL the embedded default answers.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use colloquy_base::money::Usd;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{ModelsConfig, Secret, secret::check_secret};

/// The public name of the model that answers without a server.
pub const EMBEDDED_MODEL: &str = "builtin/extractive";

/// The form of the address of a service.
pub(super) const SERVICE_URL: &str = "use an http or https URL";

pub(super) fn check_url(setting: &str, url: Option<&Url>) -> anyhow::Result<()> {
    let known = url.is_none_or(|url| matches!(url.scheme(), "http" | "https"));
    ensure!(known, "{setting}: {SERVICE_URL}");
    Ok(())
}

/// The model of calls: an OpenAI-compatible server, one of `models`, or `builtin/extractive`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatConfig {
    /// The server's base URL, up to and including `/v1`. The model is then offered to the text interfaces too.
    pub base_url: Option<Url>,
    /// The server's key.
    pub api_key: Option<Secret>,
    /// The model; required with a base URL. Without one, a name of `models`.
    pub model: Option<String>,
}

impl ChatConfig {
    pub(super) fn validate(&self, models: &ModelsConfig) -> anyhow::Result<()> {
        match (&self.base_url, &self.model) {
            (Some(_), None) => bail!("chat.model: required with chat.base_url"),
            (Some(_), Some(name)) => ensure!(
                !models.contains_key(name),
                "chat.base_url: models.{name} says already where the model is"
            ),
            (None, Some(name)) => ensure!(
                models.contains_key(name) || name == EMBEDDED_MODEL,
                "chat.model: {name} is not among models, and there is no chat.base_url"
            ),
            (None, None) => {}
        }
        check_secret("chat.api_key", self.api_key.as_ref())?;
        check_url("chat.base_url", self.base_url.as_ref())
    }
}

/// Speech to text: an OpenAI-compatible server, a model of the models folder, or PocketSphinx.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TranscriberConfig {
    /// The server's base URL, up to and including `/v1`.
    pub base_url: Option<Url>,
    /// The server's key.
    pub api_key: Option<Secret>,
    /// The model; required with a base URL. Without one, a model of the models folder, which has to be there, or `pocketsphinx`;
    /// unset: those of the folder, else `pocketsphinx`.
    pub model: Option<String>,
    /// Whether the server is asked for the words of an utterance in each pause that may be its end, and once a second. Answers of
    /// characters come earlier, for more requests. Models of the models folder always are.
    pub starts_early: bool,
    /// The price of an hour of sound, in USD, as knowledge bases count it; unset: not known, and those with a limit of dollars do not ask
    /// the server. One that costs nothing has 0.
    pub usd_per_hour: Option<Usd>,
}

impl TranscriberConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.base_url.is_none() || self.model.is_some(),
            "transcriber.model: required with transcriber.base_url"
        );
        check_secret("transcriber.api_key", self.api_key.as_ref())?;
        check_url("transcriber.base_url", self.base_url.as_ref())
    }
}

/// Text to speech: an OpenAI-compatible server, a voice of the models folder, or espeak-ng.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SynthesizerConfig {
    /// The server's base URL, up to and including `/v1`.
    pub base_url: Option<Url>,
    /// The server's key.
    pub api_key: Option<Secret>,
    /// The model; required with a base URL. Without one, a voice of the models folder, which has to be there, or `espeak-ng`;
    /// unset: those of the folder, else `espeak-ng`.
    pub model: Option<String>,
    /// The voice of characters that name none.
    pub voice: Option<String>,
    /// The voices that the speech interface offers, each with what the server calls it; none: whatever a request names is
    /// passed on. Only with a base URL; espeak-ng lists its own.
    pub voices: BTreeMap<String, String>,
    /// The field in which the server takes the language of the text (`lang_code` for one); unset: it is not told, since the
    /// public interface has no such field.
    pub language_field: Option<String>,
}

impl SynthesizerConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.base_url.is_none() || self.model.is_some(),
            "synthesizer.model: required with synthesizer.base_url"
        );
        ensure!(
            self.voices.is_empty() || self.base_url.is_some(),
            "synthesizer.voices: only with synthesizer.base_url"
        );
        check_secret("synthesizer.api_key", self.api_key.as_ref())?;
        check_url("synthesizer.base_url", self.base_url.as_ref())
    }
}

/// Texts as vectors, for search by meaning: an OpenAI-compatible server, or a model of the models folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmbedderConfig {
    /// The server's base URL, up to and including `/v1`.
    pub base_url: Option<Url>,
    /// The server's key.
    pub api_key: Option<Secret>,
    /// The model; required with a base URL. Without one, a model of the models folder, which has to be there, or `none`: texts are
    /// found by their words alone; unset: the one of the folder, else none.
    pub model: Option<String>,
    /// The numbers of a vector, for a model that leaves the choice; unset: its own.
    pub dimensions: Option<u32>,
    /// The tokens of a passage at most. Only with a base URL.
    pub max_tokens: u32,
    /// The texts of a request at most. Only with a base URL.
    pub max_texts: u32,
    /// The price of 1,000,000 tokens, in USD; unset: not known, and knowledge bases with a limit of dollars do not ask the server. One
    /// that costs nothing has 0.
    pub input_usd: Option<Usd>,
}

impl Default for EmbedderConfig {
    fn default() -> Self {
        Self {
            base_url: None,
            api_key: None,
            model: None,
            dimensions: None,
            max_tokens: 512,
            max_texts: 64,
            input_usd: None,
        }
    }
}

impl EmbedderConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.base_url.is_none() || self.model.is_some(),
            "embedder.model: required with embedder.base_url"
        );
        ensure!(
            self.dimensions.is_none_or(|it| (1..=4_096).contains(&it)),
            "embedder.dimensions: 1 to 4096"
        );
        ensure!(
            self.dimensions.is_none() || self.base_url.is_some(),
            "embedder.dimensions: only with embedder.base_url"
        );
        ensure!(
            (16..=32_768).contains(&self.max_tokens),
            "embedder.max_tokens: 16 to 32768"
        );
        ensure!(
            (1..=2_048).contains(&self.max_texts),
            "embedder.max_texts: 1 to 2048"
        );
        check_secret("embedder.api_key", self.api_key.as_ref())?;
        check_url("embedder.base_url", self.base_url.as_ref())
    }
}
