//! The models that text can be generated with: where each is, what it understands, what it costs, how long it may take.

use std::{collections::BTreeMap, time::Duration};

use anyhow::ensure;
use colloquy_formats::ModelApi;
pub use colloquy_formats::{LimitField, ReasoningStyle};
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Secret, providers::check_url, secret::check_secret};
use colloquy_base::money::Usd;

/// The models by their public names.
pub type ModelsConfig = BTreeMap<String, ModelConfig>;

/// A model behind an OpenAI-compatible server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Which API the server has: `chat` (default) or `responses`. Clients use either with any model.
    pub api: ModelApi,
    /// The server's base URL, up to and including `/v1`.
    pub base_url: Option<Url>,
    /// The server's key.
    pub api_key: Option<Secret>,
    /// What the server calls the model; the public name when it is left out.
    pub model: Option<String>,
    /// How the model is told how much to reason.
    pub reasoning: ReasoningStyle,
    /// The field that limits the answer of a chat completion.
    pub limit_field: LimitField,
    /// Whether the server understands `stream_options.include_usage`. Without it usage is estimated.
    pub stream_usage: bool,
    /// Where `api` is `responses` and a client sends a chat completion: whether `n`, `seed`, `logit_bias`, `prediction` and
    /// the `name` of a message, which responses have no word for, are left out; there is one choice then. Without it they are
    /// refused. `stop` is kept to in any case.
    pub drop_unsupported: bool,
    /// What is reserved for an answer for which the client sets no limit, in tokens. Where the quota has a limit, it is also
    /// the answer's: name what the model can give at most.
    pub max_output_tokens: u64,
    /// The price of 1,000,000 input tokens, in USD. Without this price and that of output, what the model costs is not known: text
    /// generation counts nothing for it, and knowledge bases with a limit of dollars do not ask it. One that costs nothing has 0.
    pub input_usd: Option<Usd>,
    /// The price of 1,000,000 input tokens that the model had cached; the input's price when it is left out.
    pub cached_input_usd: Option<Usd>,
    /// The price of 1,000,000 output tokens.
    pub output_usd: Option<Usd>,
    /// The price of 1,000,000 output tokens of reasoning; the output's price when it is left out.
    pub reasoning_usd: Option<Usd>,
    /// How long connecting may take, in milliseconds.
    pub connect_ms: u32,
    /// How long the first content may take, in milliseconds: of a stream, and of an answer in one piece while another model
    /// waits to take over, since the model is asked for events then.
    pub first_token_ms: u32,
    /// How long an answer in one piece that cannot be put together of events may take before another model is asked in its
    /// place, in milliseconds: one with sound, of a compaction, or of a chat model without `stream_usage`. It is a bound on
    /// all of the answer, since most servers send nothing of it before. Without another model `total_ms` holds.
    pub whole_ms: u32,
    /// How long the model may be silent between two events, in milliseconds.
    pub between_tokens_ms: u32,
    /// How long an answer may take in all, in milliseconds.
    pub total_ms: u32,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            api: ModelApi::default(),
            base_url: None,
            api_key: None,
            model: None,
            reasoning: ReasoningStyle::default(),
            limit_field: LimitField::default(),
            stream_usage: true,
            drop_unsupported: false,
            max_output_tokens: 4_096,
            input_usd: None,
            cached_input_usd: None,
            output_usd: None,
            reasoning_usd: None,
            connect_ms: 5_000,
            first_token_ms: 30_000,
            whole_ms: 60_000,
            between_tokens_ms: 30_000,
            total_ms: 600_000,
        }
    }
}

impl ModelConfig {
    /// How long connecting may take.
    #[must_use]
    pub fn connect(&self) -> Duration {
        Duration::from_millis(self.connect_ms.into())
    }

    pub(super) fn validate(&self, name: &str) -> anyhow::Result<()> {
        let setting = |field: &str| format!("models.{name}.{field}");
        ensure!(!name.is_empty(), "models: a model has a name");
        ensure!(self.base_url.is_some(), "{}: required", setting("base_url"));
        check_url(&setting("base_url"), self.base_url.as_ref())?;
        check_secret(&setting("api_key"), self.api_key.as_ref())?;
        ensure!(
            self.max_output_tokens >= 1,
            "{}: at least 1",
            setting("max_output_tokens")
        );
        for (field, value) in [
            ("connect_ms", self.connect_ms),
            ("first_token_ms", self.first_token_ms),
            ("whole_ms", self.whole_ms),
            ("between_tokens_ms", self.between_tokens_ms),
            ("total_ms", self.total_ms),
        ] {
            ensure!(value >= 1, "{}: at least 1", setting(field));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_needs_its_server() {
        let error = ModelConfig::default().validate("gpt").unwrap_err();
        assert_eq!(error.to_string(), "models.gpt.base_url: required");
    }
}
