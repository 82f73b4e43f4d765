//! Responses: requests, answers, events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    MetadataParam, PublicError, ReasoningParam, WordOrObject,
    items::{OutputItem, OutputPart, ResponseInput},
};

/// A request for a response.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "model": "gpt-4o-mini",
    "input": "When do you open?",
    "instructions": "Be brief.",
    "max_output_tokens": 200,
    "reasoning": {"effort": "low"},
    "metadata": {"svc": {"character": {"personality": "You are Max.", "parameters": {"rag_enabled": true, "documents": [
        {"title": "Opening hours", "text": "The museum opens at nine."}
    ]}}}}
}))]
pub struct ResponseRequest {
    /// The public name of the model.
    pub model: String,
    /// A text of the user, or items such as messages and the output of earlier responses.
    pub input: ResponseInput,
    /// A system text; a character's prompt stands before it.
    pub instructions: Option<String>,
    /// Whether the answer is streamed.
    #[schema(default = false)]
    pub stream: Option<bool>,
    /// The most tokens of the answer, with its reasoning. Without it the model's own limit holds; where the quota has a limit,
    /// the model's `max_output_tokens`, or what the quota has left for it.
    #[schema(minimum = 1)]
    pub max_output_tokens: Option<u64>,
    /// The model that is asked when the first one cannot serve the request and nothing of the answer is there.
    pub fallback_model: Option<String>,
    /// How much the model reasons.
    pub reasoning: Option<ReasoningParam>,
    /// What the request says to this service (`svc`), and what goes to the model (all else).
    pub metadata: Option<MetadataParam>,
    /// Whether the response is kept, for `limits.response_days`. It counts against the partner's storage limit meanwhile;
    /// once that is reached, requests are refused unless this is `false`.
    #[schema(default = true)]
    pub store: Option<bool>,
    /// The kept response that this one goes on from.
    pub previous_response_id: Option<String>,
    /// The randomness of the answer, 0 to 2.
    pub temperature: Option<f64>,
    /// The share of likely tokens that are drawn from.
    pub top_p: Option<f64>,
    /// The form of the text: `{format: {type: text | json_object | json_schema, name, schema, strict}, verbosity}`.
    #[schema(value_type = Option<Object>)]
    pub text: Option<Map<String, Value>>,
    /// The tools that the model may call: `{type: function, name, description, parameters, strict}`.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Vec<Map<String, Value>>>,
    /// `none`, `auto`, `required`, or the tool to call.
    pub tool_choice: Option<WordOrObject>,
    /// Whether several tools may be called at once.
    #[schema(default = true)]
    pub parallel_tool_calls: Option<bool>,
    /// What else is told, such as `message.output_text.logprobs`.
    pub include: Option<Vec<String>>,
}

/// A response.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename = "Response")]
#[schema(as = Response)]
pub struct ResponseObject {
    /// `resp_..`.
    pub id: String,
    /// `response`.
    pub object: String,
    /// When the request came, in seconds since 1970.
    pub created_at: i64,
    /// When the answer was complete.
    pub completed_at: Option<i64>,
    /// How far it is.
    pub status: ResponseStatus,
    /// Why it failed: `{code, message}`.
    #[schema(value_type = Option<Object>)]
    pub error: Option<Map<String, Value>>,
    /// Why it is incomplete: `{reason: max_output_tokens | content_filter}`.
    #[schema(value_type = Option<Object>)]
    pub incomplete_details: Option<Map<String, Value>>,
    /// As in the request.
    pub instructions: Option<Value>,
    /// As in the request.
    pub max_output_tokens: Option<u64>,
    /// As in the request.
    pub max_tool_calls: Option<u64>,
    /// The public name of the model that answered.
    pub model: String,
    /// What came of it, in order: items of the types `reasoning`, `message`, `function_call` and others. A character with
    /// knowledge puts a `file_search_call` with its sources in front, between two items of `reasoning`.
    pub output: Vec<OutputItem>,
    /// As in the request.
    pub parallel_tool_calls: bool,
    /// As in the request.
    pub previous_response_id: Option<String>,
    /// As in the request.
    pub prompt_cache_key: Option<String>,
    /// As in the request: `{effort, summary}`.
    #[schema(value_type = Option<Object>)]
    pub reasoning: Option<Map<String, Value>>,
    /// As in the request.
    pub safety_identifier: Option<String>,
    /// Which tier answered.
    pub service_tier: Option<String>,
    /// Whether it is kept.
    pub store: bool,
    /// Always false.
    pub background: bool,
    /// As in the request, or the model's default.
    pub temperature: Option<f64>,
    /// As in the request.
    #[schema(value_type = Object)]
    pub text: Map<String, Value>,
    /// As in the request.
    pub tool_choice: WordOrObject,
    /// As in the request.
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Map<String, Value>>,
    /// As in the request, or the model's default.
    pub top_p: Option<f64>,
    /// As in the request.
    pub top_logprobs: Option<u64>,
    /// As in the request.
    pub presence_penalty: Option<f64>,
    /// As in the request.
    pub frequency_penalty: Option<f64>,
    /// `disabled`, unless the request says otherwise.
    pub truncation: Option<String>,
    /// What was used; null while it is in progress.
    pub usage: Option<ResponseUsage>,
    /// As in the request.
    pub user: Option<String>,
    /// As in the request, without `svc`.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
}

/// How far a response is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    /// It has begun.
    InProgress,
    /// It is complete.
    Completed,
    /// It came to a limit or a filter.
    Incomplete,
    /// It failed.
    Failed,
}

/// The tokens of a response.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ResponseUsage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the answer, with its reasoning.
    pub output_tokens: u64,
    /// All of them.
    pub total_tokens: u64,
    /// `cached_tokens` of the request.
    pub input_tokens_details: BTreeMap<String, u64>,
    /// `reasoning_tokens` of the answer.
    pub output_tokens_details: BTreeMap<String, u64>,
}

/// An event of a streamed response, as `event: TYPE` and `data: JSON`. `response.created` comes first; `response.completed`,
/// `response.incomplete`, `response.failed` or `error` is the last one, after which the stream ends with `data: [DONE]`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "type": "response.output_text.delta", "sequence_number": 4, "item_id": "msg_7f_0", "output_index": 0,
    "content_index": 0, "delta": "Hello", "logprobs": []
}))]
pub struct ResponseEvent {
    /// What happened, such as `response.output_text.delta`; also the event's name.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its number, from 0, without a gap.
    pub sequence_number: u64,
    /// The response as it stands, in the events about all of it.
    pub response: Option<ResponseObject>,
    /// The place of the item in the output that the event is about.
    pub output_index: Option<u64>,
    /// The item's id.
    pub item_id: Option<String>,
    /// The item, in the events that begin and end it.
    pub item: Option<OutputItem>,
    /// The place of the part in the item's content.
    pub content_index: Option<u64>,
    /// The part, in the events that begin and end it.
    pub part: Option<OutputPart>,
    /// What is added to the text, the arguments or the reasoning.
    pub delta: Option<String>,
    /// The whole text, at its end.
    pub text: Option<String>,
    /// The arguments of a call, at their end.
    pub arguments: Option<String>,
    /// The code of an `error`.
    pub code: Option<String>,
    /// The message of an `error`.
    pub message: Option<String>,
    /// The same as an object, for clients that look for one.
    pub error: Option<PublicError>,
}
