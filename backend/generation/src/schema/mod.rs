//! The bodies of text generation as `openapi.json` describes them: what is acted on here, its defaults and meaning, and what is
//! passed on to models most often. Bodies are read and written by `colloquy-formats`; fields that are not described pass, and so
//! do items and parts of other types.
//!
//! Nothing but the description is made of these types. The tests read what the encoders write with them, and give the parsers
//! what they require, so that the description cannot leave it.

mod chat;
mod compaction;
mod items;
mod messages;
mod open;
mod responses;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

pub use self::{
    chat::{ChatCompletion, ChatCompletionChunk, ChatCompletionRequest},
    compaction::{Compaction, CompactionRequest},
    responses::{ResponseEvent, ResponseObject, ResponseRequest},
};

/// How much a model reasons. Without it nothing is said about it to the model.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReasoningParam {
    /// `none`, `low`, `medium`, `high`, or what else the model knows.
    pub effort: Option<String>,
    /// The most tokens of reasoning, where the model takes such a number.
    #[schema(minimum = 1)]
    pub max_tokens: Option<u64>,
}

/// What a request says to this service, and what it says to the model.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MetadataParam {
    /// What is for this service alone.
    pub svc: Option<SvcParam>,
    /// What goes to the model.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// What is for this service alone; nothing else may stand in it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SvcParam {
    /// Who answers: `repo:<partner>/<name>`, or `{personality, parameters}`.
    pub character: Option<WordOrObject>,
    /// What is filled into the character's templates: strings, numbers, booleans and nulls. `context` is reserved.
    #[schema(value_type = Option<Object>)]
    pub character_params: Option<Map<String, Value>>,
}

/// A text, or a list of texts.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum OneOrMore {
    /// One.
    One(String),
    /// Several.
    More(Vec<String>),
}

/// A word, or an object that says more.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum WordOrObject {
    /// A word.
    Word(String),
    /// An object.
    #[schema(value_type = Object)]
    Object(Map<String, Value>),
}

/// An error of text generation.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "detail": {
        "code": "invalid_parameters", "message": "stream must be a boolean",
        "context": {"request_id": "0198b1d6", "endpoint": "/v3/responses", "field": "stream"}
    },
    "error": {
        "type": "invalid_request_error", "code": "invalid_parameters", "message": "stream must be a boolean", "param": "stream",
        "request_id": "0198b1d6"
    }
}))]
pub struct TextError {
    /// What this service says; errors of models have none.
    pub detail: Option<TextErrorDetail>,
    /// The same where the clients of the public APIs look for it, or what the model says.
    pub error: PublicError,
}

/// What this service says about an error.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TextErrorDetail {
    /// A stable code.
    pub code: String,
    /// What happened and what to do.
    pub message: String,
    /// Where it happened.
    pub context: TextErrorContext,
}

/// Where an error happened.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TextErrorContext {
    /// The request's id.
    pub request_id: String,
    /// The path.
    pub endpoint: String,
    /// The field that is wrong.
    pub field: Option<String>,
}

/// An error as the public APIs write it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PublicError {
    /// `invalid_request_error`, `authentication_error`, `permission_error`, `rate_limit_error`, `server_error`, or the model's word.
    #[serde(rename = "type")]
    pub kind: String,
    /// A stable code.
    pub code: Option<String>,
    /// What happened and what to do.
    pub message: String,
    /// The field that is wrong.
    pub param: Option<String>,
    /// The request's id, as the header `X-Request-Id` has it.
    pub request_id: Option<String>,
}

#[cfg(test)]
mod tests;
