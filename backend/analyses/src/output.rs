//! What a client gets: the state of an analysis, and its result.

use std::collections::BTreeMap;

use colloquy_store::stored;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Where an analysis stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AnalysisState {
    /// It is being worked on; poll again later.
    InProgress,
    /// `output` has the result.
    Completed,
    /// `error` says why there is none.
    Failed,
}

stored!(pub(super) AnalysisState: InProgress = "in-progress", Completed = "completed", Failed = "failed");

/// An analysis.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DialogAnalysis)]
pub(crate) struct AnalysisView {
    /// Its path.
    #[schema(example = "/v2/dialog_analyses/01890c5e-0000-7000-8000-000000000000")]
    pub(super) id: String,
    /// Where it stands.
    pub(super) state: AnalysisState,
    /// When it was taken, as ISO 8601 has it.
    #[schema(format = DateTime)]
    pub(super) created_at: String,
    /// How long it took, in whole seconds, once it is `completed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_runtime: Option<i64>,
    /// The result, once it is `completed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<Output>,
    /// Why it is `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Reason>,
    /// True if `POST ../retry` tries it again, as its input is kept; present when it is `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retryable: Option<bool>,
    /// When it ended, as ISO 8601 has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(super) ended_at: Option<String>,
}

/// A page of analyses.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DialogAnalysisList)]
pub(crate) struct AnalysisList {
    /// Newest first, without their outputs.
    pub(super) data: Vec<AnalysisView>,
    /// The `cursor` of the next page; null on the last.
    pub(super) next_cursor: Option<String>,
}

/// Why an analysis failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DialogAnalysisError)]
pub(super) struct Reason {
    /// `model_failed`, `answer_unfit`, `quota_exhausted`, `quota_unusable` or `interrupted`.
    pub(super) code: String,
    /// What happened, for a developer.
    pub(super) message: String,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DialogAnalysisOutput)]
pub(super) struct Output {
    /// The profile, with every field of `profile_schema`: what was known, unless the user says otherwise, and what the
    /// conversation tells; null where nothing is known.
    pub(super) profile: BTreeMap<String, Option<String>>,
    /// The feedback, with every field of `feedback_schema`, of the type that it names. `builtin/extractive`, which judges nothing,
    /// gives null.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub(super) feedback: BTreeMap<String, Value>,
}
