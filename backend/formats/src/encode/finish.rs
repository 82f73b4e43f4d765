//! Why a model stopped.

use super::super::Ending;

/// Why a choice of a chat completion ended, in the words of the public API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
    FunctionCall,
}

impl Finish {
    /// Reads a reason. Servers have words of their own; what is not known is an end like others. Reasons that mean a failure
    /// are found before (see `failure`).
    pub(super) fn read(reason: &str) -> Self {
        match reason {
            "length" | "max_tokens" | "model_length" | "max_output_tokens" => Self::Length,
            "content_filter" => Self::ContentFilter,
            "tool_calls" => Self::ToolCalls,
            "function_call" => Self::FunctionCall,
            _ => Self::Stop,
        }
    }

    /// The reason as clients know it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::ToolCalls => "tool_calls",
            Self::FunctionCall => "function_call",
        }
    }

    /// Why a response is incomplete; `None` when it is not.
    pub(super) fn incomplete(self) -> Option<&'static str> {
        match self {
            Self::Length => Some("max_output_tokens"),
            Self::ContentFilter => Some("content_filter"),
            Self::Stop | Self::ToolCalls | Self::FunctionCall => None,
        }
    }

    /// What this means for accounting.
    pub(super) fn ending(self) -> Ending {
        match self.incomplete() {
            Some(_) => Ending::Incomplete,
            None => Ending::Completed,
        }
    }
}
