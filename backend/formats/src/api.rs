//! What a model's server understands.

use serde::{Deserialize, Serialize};

/// Which of the public APIs a model speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelApi {
    /// Chat completions.
    #[default]
    Chat,
    /// Responses.
    Responses,
}

/// How a model is told how much to reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningStyle {
    /// `reasoning_effort` in chat completions, `reasoning.effort` in responses: OpenAI and most that follow it.
    #[default]
    Effort,
    /// `reasoning` with `effort` or `max_tokens`: OpenRouter.
    Object,
    /// `thinking` with `budget_tokens`: Anthropic's compatible API.
    Thinking,
    /// `chat_template_kwargs.enable_thinking` and `thinking_budget`: vLLM and Qwen.
    EnableThinking,
    /// It cannot be told.
    None,
}

/// The field that limits the answer of a chat completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitField {
    /// What the public API calls it now.
    #[default]
    MaxCompletionTokens,
    /// What many servers know alone.
    MaxTokens,
}

impl LimitField {
    /// The field's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxTokens => "max_tokens",
        }
    }
}
