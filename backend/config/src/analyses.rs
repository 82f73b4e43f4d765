//! Analyses of conversations.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::{ChatConfig, EMBEDDED_MODEL, ModelsConfig};

/// Analyses of conversations, of `/v2/dialog_analyses`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnalysesConfig {
    /// The model, a name of `models` or `builtin/extractive`; unset: the model of calls.
    pub model: Option<String>,
    /// The tokens of an answer at most.
    pub max_output_tokens: u32,
    /// How often a model is asked for one analysis whose answers do not fit its schemas.
    pub max_questions: u32,
    /// How long an answer may take, in milliseconds.
    pub answer_ms: u32,
    /// Analyses that a key may ask for in a minute.
    pub per_minute: u32,
    /// Analyses that all keys together may ask this node for in a minute.
    pub per_minute_of_all: u32,
    /// How many analyses a partner may have in progress.
    pub in_progress: u32,
    /// How long an analysis is kept once it ended, in hours.
    pub kept_hours: u32,
}

impl Default for AnalysesConfig {
    fn default() -> Self {
        Self {
            model: None,
            max_output_tokens: 4_096,
            max_questions: 3,
            answer_ms: 120_000,
            per_minute: 60,
            per_minute_of_all: 600,
            in_progress: 100,
            kept_hours: 24,
        }
    }
}

impl AnalysesConfig {
    pub(super) fn validate(&self, models: &ModelsConfig, chat: &ChatConfig) -> anyhow::Result<()> {
        if let Some(name) = &self.model {
            ensure!(
                models.contains_key(name)
                    || name == EMBEDDED_MODEL
                    || chat.model.as_ref() == Some(name),
                "analyses.model: {name} is not among models"
            );
        }
        for (name, value, least, most) in [
            ("max_output_tokens", self.max_output_tokens, 200, 1_000_000),
            ("max_questions", self.max_questions, 1, 10),
            ("answer_ms", self.answer_ms, 1_000, 3_600_000),
            ("per_minute", self.per_minute, 1, u32::MAX),
            ("per_minute_of_all", self.per_minute_of_all, 1, u32::MAX),
            ("in_progress", self.in_progress, 1, u32::MAX),
            ("kept_hours", self.kept_hours, 1, 24 * 365),
        ] {
            ensure!(
                (least..=most).contains(&value),
                "analyses.{name}: {least} to {most}"
            );
        }
        Ok(())
    }
}
