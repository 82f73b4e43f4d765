//! The items and parts of responses, of their input and of their output.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{messages::InputSound, open::open_union};

/// A text of the user, or items.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ResponseInput {
    /// A text.
    Text(String),
    /// Items, also those of the output of earlier responses.
    Items(Vec<InputItem>),
}

open_union! {
    /// An item of the input.
    InputItem: InputMessage, KnownInputItem, ItemReference
}

/// A message.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct InputMessage {
    /// `message`, which may be left out.
    #[serde(rename = "type")]
    pub kind: Option<MessageType>,
    /// Who speaks.
    pub role: InputRole,
    /// What is said.
    pub content: InputContent,
}

/// The type of a message.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageType {
    /// A message.
    Message,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputRole {
    /// Who made the application.
    Developer,
    /// The same, by its older name.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A text, or parts.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum InputContent {
    /// A text.
    Text(String),
    /// Parts.
    Parts(Vec<InputPart>),
}

/// The items of an input, besides messages, that every server of the public API knows.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KnownInputItem {
    /// A function that the model called.
    FunctionCall {
        /// The item's id.
        id: Option<String>,
        /// What its output refers to.
        call_id: String,
        /// The function's name.
        name: String,
        /// The arguments, as JSON in a text.
        arguments: String,
        /// How far it is.
        status: Option<String>,
    },
    /// What a function gave.
    FunctionCallOutput {
        /// The item's id.
        id: Option<String>,
        /// The call.
        call_id: String,
        /// What it gave.
        output: InputContent,
        /// How far it is.
        status: Option<String>,
    },
    /// A tool that the model called with a text.
    CustomToolCall {
        /// What its output refers to.
        call_id: String,
        /// The tool's name.
        name: String,
        /// The text.
        input: String,
    },
    /// What such a tool gave.
    CustomToolCallOutput {
        /// The call.
        call_id: String,
        /// What it gave.
        output: InputContent,
    },
    /// What the model thought.
    Reasoning {
        /// The item's id.
        id: Option<String>,
        /// A summary of it.
        summary: Option<Vec<OutputPart>>,
        /// The thinking itself.
        content: Option<Vec<OutputPart>>,
        /// The thinking, for the model that thought it alone.
        encrypted_content: Option<String>,
        /// How far it is.
        status: Option<String>,
    },
    /// What stands for a conversation that was compacted.
    Compaction {
        /// The item's id.
        id: Option<String>,
        /// The conversation, for whoever compacted it alone.
        encrypted_content: String,
    },
}

/// An item of a stored response of the same quota, by the id that its output or `input_items` show; input items that clients gave ids are not
/// found by these. The item takes the place of the reference; each item is sent to the model once. At most 1,000 in a request.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemReference {
    /// `item_reference`, which may be left out.
    #[serde(rename = "type")]
    pub kind: Option<ReferenceType>,
    /// The item's id. An id that is not found is answered with 404.
    pub id: String,
}

/// The type of a reference.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceType {
    /// A reference to an item.
    ItemReference,
}

open_union! {
    /// A part of an item of the input.
    InputPart: KnownInputPart
}

/// The parts of an input that every server of the public API knows.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KnownInputPart {
    /// A text.
    InputText {
        /// The text.
        text: String,
    },
    /// A text of the model.
    OutputText {
        /// The text.
        text: String,
        /// The sources that it names.
        #[schema(value_type = Option<Vec<Object>>)]
        annotations: Option<Vec<Map<String, Value>>>,
        /// The log probabilities of its tokens.
        #[schema(value_type = Option<Vec<Object>>)]
        logprobs: Option<Vec<Map<String, Value>>>,
    },
    /// Why the model did not answer.
    Refusal {
        /// The words.
        refusal: String,
    },
    /// A picture, by its address or its id where the model is served.
    InputImage {
        /// The address, also one that begins with `data:`.
        image_url: Option<String>,
        /// The id.
        file_id: Option<String>,
        /// `auto`, `low` or `high`.
        detail: Option<String>,
    },
    /// A file, by its address, its id where the model is served, or with its bytes.
    InputFile {
        /// The id.
        file_id: Option<String>,
        /// The address.
        file_url: Option<String>,
        /// The bytes, as an address that begins with `data:`.
        file_data: Option<String>,
        /// The name.
        filename: Option<String>,
    },
    /// A sound.
    InputAudio {
        /// The sound.
        input_audio: InputSound,
    },
}

open_union! {
    /// An item of the output.
    OutputItem: KnownOutputItem
}

/// How far an item is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// It has begun.
    InProgress,
    /// It is complete.
    Completed,
    /// It broke off.
    Incomplete,
}

/// The items of an output that this service writes whatever the model's API is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KnownOutputItem {
    /// What the model says.
    Message {
        /// The item's id.
        id: String,
        /// How far it is.
        status: ItemStatus,
        /// `assistant`.
        role: InputRole,
        /// The parts of it.
        content: Vec<OutputPart>,
    },
    /// What the model thinks.
    Reasoning {
        /// The item's id.
        id: String,
        /// How far it is.
        status: Option<ItemStatus>,
        /// A summary of it.
        summary: Vec<OutputPart>,
        /// The thinking itself, where the model tells it.
        content: Option<Vec<OutputPart>>,
    },
    /// A function that the model calls.
    FunctionCall {
        /// The item's id.
        id: String,
        /// How far it is.
        status: ItemStatus,
        /// What its output refers to.
        call_id: String,
        /// The function's name.
        name: String,
        /// The arguments, as JSON in a text.
        arguments: String,
    },
    /// A tool that the model calls with a text.
    CustomToolCall {
        /// The item's id.
        id: String,
        /// How far it is.
        status: ItemStatus,
        /// What its output refers to.
        call_id: String,
        /// The tool's name.
        name: String,
        /// The text.
        input: String,
    },
    /// A search in the character's knowledge.
    FileSearchCall {
        /// The item's id.
        id: String,
        /// How far it is.
        status: ItemStatus,
        /// What was looked for.
        queries: Vec<String>,
        /// What was found, best first; null while it is looked for.
        results: Option<Vec<FoundSource>>,
    },
}

/// A source that was found.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FoundSource {
    /// The same for the same document of the same character.
    pub file_id: String,
    /// The title.
    pub filename: String,
    /// The relevance; larger is better.
    pub score: Option<f64>,
    /// The beginning of the passage.
    pub text: String,
    /// `chunk_index` and `retrievers`.
    #[schema(value_type = Object)]
    pub attributes: Map<String, Value>,
}

open_union! {
    /// A part of an item of the output.
    OutputPart: KnownOutputPart
}

/// The parts of an output that this service writes whatever the model's API is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KnownOutputPart {
    /// A text.
    OutputText {
        /// The text.
        text: String,
        /// The sources that it names.
        #[schema(value_type = Vec<Object>)]
        annotations: Vec<Map<String, Value>>,
        /// The log probabilities of its tokens, where they were asked for.
        #[schema(value_type = Vec<Object>)]
        logprobs: Vec<Map<String, Value>>,
    },
    /// Why the model does not answer.
    Refusal {
        /// The words.
        refusal: String,
    },
    /// Thinking.
    ReasoningText {
        /// The words.
        text: String,
    },
    /// A part of a summary of the thinking.
    SummaryText {
        /// The words.
        text: String,
    },
}
