//! Rewriting of documents.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::{ChatConfig, EMBEDDED_MODEL, ModelsConfig};

/// Rewriting of documents by models of text generation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewritingConfig {
    /// The model of the tier `standard`, a name of `models`; unset: the model of calls, unless that is `builtin/extractive`, which does
    /// not rewrite.
    pub model: Option<String>,
    /// The model of the tier `economy`; unset: that of `standard`.
    pub economy_model: Option<String>,
    /// The model that is asked when no connection to the other one can be made; unset: none.
    pub backup_model: Option<String>,
    /// The tokens of a section at most: a longer text is rewritten section by section.
    pub section_tokens: u32,
    /// The tokens of a rewritten section at most.
    pub max_output_tokens: u32,
    /// How long a section may take, in milliseconds.
    pub section_ms: u32,
}

impl Default for RewritingConfig {
    fn default() -> Self {
        Self {
            model: None,
            economy_model: None,
            backup_model: None,
            section_tokens: 3_000,
            max_output_tokens: 8_192,
            section_ms: 300_000,
        }
    }
}

impl RewritingConfig {
    pub(super) fn validate(&self, models: &ModelsConfig, chat: &ChatConfig) -> anyhow::Result<()> {
        for (setting, name) in [
            ("model", &self.model),
            ("economy_model", &self.economy_model),
            ("backup_model", &self.backup_model),
        ] {
            let Some(name) = name else { continue };
            ensure!(
                name != EMBEDDED_MODEL,
                "rewriting.{setting}: {EMBEDDED_MODEL} does not rewrite"
            );
            ensure!(
                models.contains_key(name) || chat.model.as_ref() == Some(name),
                "rewriting.{setting}: {name} is not among models"
            );
        }
        ensure!(
            (200..=100_000).contains(&self.section_tokens),
            "rewriting.section_tokens: 200 to 100000"
        );
        ensure!(
            (200..=1_000_000).contains(&self.max_output_tokens),
            "rewriting.max_output_tokens: 200 to 1000000"
        );
        ensure!(
            (1_000..=3_600_000).contains(&self.section_ms),
            "rewriting.section_ms: 1000 to 3600000"
        );
        Ok(())
    }
}
