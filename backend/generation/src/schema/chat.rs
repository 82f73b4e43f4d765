//! Chat completions: requests, answers, chunks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    MetadataParam, OneOrMore, ReasoningParam, WordOrObject,
    messages::{AnswerRole, ChatMessageParam, ToolCall, ToolCallDelta},
};

/// A request for a chat completion.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "model": "gpt-4o-mini",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello!"}],
    "max_completion_tokens": 200,
    "fallback_model": "local",
    "metadata": {"svc": {"character": "repo:acme/ada", "character_params": {"visitor": "Ann"}}}
}))]
pub struct ChatCompletionRequest {
    /// The public name of the model.
    pub model: String,
    /// What was said so far, oldest first; at least one message.
    pub messages: Vec<ChatMessageParam>,
    /// Whether the answer is streamed.
    #[schema(default = false)]
    pub stream: Option<bool>,
    /// How it is streamed.
    pub stream_options: Option<StreamOptions>,
    /// The most tokens of the answer, with its reasoning. Without it the model's own limit holds; where the quota has a limit,
    /// the model's `max_output_tokens`, or what the quota has left for it.
    #[schema(minimum = 1)]
    pub max_completion_tokens: Option<u64>,
    /// The older name of `max_completion_tokens`, which comes first where both are given.
    #[schema(minimum = 1)]
    pub max_tokens: Option<u64>,
    /// The model that is asked when the first one cannot serve the request and nothing of the answer is there.
    pub fallback_model: Option<String>,
    /// How much the model reasons.
    pub reasoning: Option<ReasoningParam>,
    /// The same in the public API's own field.
    pub reasoning_effort: Option<String>,
    /// What the request says to this service (`svc`), and what goes to the model (all else).
    pub metadata: Option<MetadataParam>,
    /// How many answers are given; one alone by models that have responses only, and by `builtin/extractive`.
    #[schema(default = 1, minimum = 1, maximum = 128)]
    pub n: Option<u32>,
    /// Up to four sequences at which the answer ends.
    pub stop: Option<OneOrMore>,
    /// The randomness of the answer, 0 to 2.
    pub temperature: Option<f64>,
    /// The share of likely tokens that are drawn from.
    pub top_p: Option<f64>,
    /// How much tokens that were there are avoided.
    pub presence_penalty: Option<f64>,
    /// How much tokens that were there often are avoided.
    pub frequency_penalty: Option<f64>,
    /// For answers that repeat. Models that have responses only refuse it, unless they are set to drop it.
    pub seed: Option<i64>,
    /// How much more likely tokens become. Models that have responses only refuse it, unless they are set to drop it.
    pub logit_bias: Option<BTreeMap<String, f64>>,
    /// Whether the log probabilities of tokens are told.
    #[schema(default = false)]
    pub logprobs: Option<bool>,
    /// Of how many tokens at each place.
    pub top_logprobs: Option<u32>,
    /// The form of the answer: `{type: text | json_object | json_schema, json_schema: {name, schema, strict}}`.
    #[schema(value_type = Option<Object>)]
    pub response_format: Option<Map<String, Value>>,
    /// The tools that the model may call: `{type: function, function: {name, description, parameters, strict}}`.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Vec<Map<String, Value>>>,
    /// `none`, `auto`, `required`, or the tool to call.
    pub tool_choice: Option<WordOrObject>,
    /// Whether several tools may be called at once.
    #[schema(default = true)]
    pub parallel_tool_calls: Option<bool>,
}

/// How a chat completion is streamed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StreamOptions {
    /// Whether a last chunk tells the usage.
    #[schema(default = false)]
    pub include_usage: Option<bool>,
}

/// A chat completion.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "id": "chatcmpl-7f", "object": "chat.completion", "created": 1800000000, "model": "gpt-4o-mini",
    "choices": [{
        "index": 0, "finish_reason": "stop", "logprobs": null,
        "message": {"role": "assistant", "content": "Hello, Ann!", "refusal": null}
    }],
    "usage": {
        "prompt_tokens": 21, "completion_tokens": 4, "total_tokens": 25,
        "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}
    }
}))]
pub struct ChatCompletion {
    /// `chatcmpl-..`.
    pub id: String,
    /// `chat.completion`.
    pub object: String,
    /// When the request came, in seconds since 1970.
    pub created: i64,
    /// The public name of the model that answered.
    pub model: String,
    /// The answers.
    pub choices: Vec<ChatChoice>,
    /// What was used.
    pub usage: Option<ChatUsage>,
}

/// An answer of a chat completion.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ChatChoice {
    /// Its place, from 0.
    pub index: u32,
    /// What the model says.
    pub message: ChatMessageAnswer,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The log probabilities, where they were asked for.
    #[schema(value_type = Option<Object>)]
    pub logprobs: Option<Map<String, Value>>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model was done, or came to a `stop`.
    Stop,
    /// It came to a limit.
    Length,
    /// It calls tools.
    ToolCalls,
    /// It calls a function, as the older field has it.
    FunctionCall,
    /// A filter ended it.
    ContentFilter,
}

/// What a model says.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ChatMessageAnswer {
    /// `assistant`.
    pub role: AnswerRole,
    /// The text.
    pub content: Option<String>,
    /// Why the model does not answer.
    pub refusal: Option<String>,
    /// What the model thinks, where it tells.
    pub reasoning_content: Option<String>,
    /// The tools that it calls.
    pub tool_calls: Option<Vec<ToolCall>>,
    /// The sources that it names.
    #[schema(value_type = Option<Vec<Object>>)]
    pub annotations: Option<Vec<Map<String, Value>>>,
}

/// A piece of what a model says.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ChatMessageDelta {
    /// `assistant`, in the first piece.
    pub role: Option<AnswerRole>,
    /// More of the text.
    pub content: Option<String>,
    /// More of why the model does not answer.
    pub refusal: Option<String>,
    /// More of what the model thinks, where it tells.
    pub reasoning_content: Option<String>,
    /// More of the tools that it calls.
    pub tool_calls: Option<Vec<ToolCallDelta>>,
    /// The sources that it names.
    #[schema(value_type = Option<Vec<Object>>)]
    pub annotations: Option<Vec<Map<String, Value>>>,
}

/// A chunk of a streamed chat completion. The stream ends with `data: [DONE]`, or with `data: {"error": {..}}` when it fails.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ChatCompletionChunk {
    /// `chatcmpl-..`, the same in all chunks.
    pub id: String,
    /// `chat.completion.chunk`.
    pub object: String,
    /// When the request came, in seconds since 1970.
    pub created: i64,
    /// The public name of the model that answers.
    pub model: String,
    /// The pieces; none in the chunk of usage.
    pub choices: Vec<ChatChunkChoice>,
    /// What was used, in the last chunk, with `stream_options.include_usage`.
    pub usage: Option<ChatUsage>,
}

/// A piece of an answer.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ChatChunkChoice {
    /// The place of the answer, from 0.
    pub index: u32,
    /// What is added.
    pub delta: ChatMessageDelta,
    /// As in a whole answer, in the last piece.
    pub finish_reason: Option<FinishReason>,
    /// The log probabilities, where they were asked for.
    #[schema(value_type = Option<Object>)]
    pub logprobs: Option<Map<String, Value>>,
}

/// The tokens of a chat completion.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ChatUsage {
    /// Tokens of the request.
    pub prompt_tokens: u64,
    /// Tokens of the answer, with its reasoning.
    pub completion_tokens: u64,
    /// All of them.
    pub total_tokens: u64,
    /// `cached_tokens` of the request.
    pub prompt_tokens_details: BTreeMap<String, u64>,
    /// `reasoning_tokens` of the answer.
    pub completion_tokens_details: BTreeMap<String, u64>,
}
