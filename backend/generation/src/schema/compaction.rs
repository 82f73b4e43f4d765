//! Compactions: the request and the answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    items::{InputItem, ResponseInput},
    responses::ResponseUsage,
};

/// A request for the compaction of a conversation: an input, a response that it goes on from, or both.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CompactionRequest {
    /// The public name of the model that compacts.
    pub model: String,
    /// The conversation, or what comes behind the response.
    pub input: Option<ResponseInput>,
    /// The system text of the conversation.
    pub instructions: Option<String>,
    /// The kept response that the conversation leads to.
    pub previous_response_id: Option<String>,
    /// The model that is asked when the first one cannot serve the request.
    pub fallback_model: Option<String>,
}

/// A conversation that was compacted.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Compaction {
    /// `resp_..`.
    pub id: String,
    /// `response.compaction`.
    pub object: String,
    /// When the request came, in seconds since 1970.
    pub created_at: i64,
    /// The input of the next response: the user's messages, and a `compaction` in place of everything else.
    pub output: Vec<InputItem>,
    /// What was used.
    pub usage: ResponseUsage,
}
