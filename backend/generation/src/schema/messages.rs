//! The messages of chat completions, with their parts and the tools that are called in them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::open::open_union;

/// A message of a chat completion.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ChatMessageParam {
    /// Who speaks.
    pub role: MessageRole,
    /// What is said. An assistant that calls tools or refuses may say nothing.
    pub content: Option<ChatContent>,
    /// Who speaks, among several of a role.
    pub name: Option<String>,
    /// Why the assistant did not answer.
    pub refusal: Option<String>,
    /// The tools that the assistant called. Their outputs stand before the user's next message.
    pub tool_calls: Option<Vec<ToolCall>>,
    /// The call that this message of a tool answers, which stands before it.
    pub tool_call_id: Option<String>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// Who made the application.
    Developer,
    /// The same, by its older name.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool that was called.
    Tool,
    /// A function that was called, as the older field has it.
    Function,
}

/// Who answers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerRole {
    /// The model.
    Assistant,
}

/// A text, or parts.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ChatContent {
    /// A text.
    Text(String),
    /// Parts.
    Parts(Vec<ChatPart>),
}

open_union! {
    /// A part of a message.
    ChatPart: KnownChatPart
}

/// The parts of messages that every server of the public API knows.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KnownChatPart {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// Why the assistant did not answer.
    Refusal {
        /// The words.
        refusal: String,
    },
    /// A picture.
    ImageUrl {
        /// Where it is.
        image_url: ImageUrl,
    },
    /// A sound.
    InputAudio {
        /// The sound.
        input_audio: InputSound,
    },
    /// A file.
    File {
        /// The file.
        file: FileParam,
    },
}

/// Where a picture is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ImageUrl {
    /// Its address, also one that begins with `data:`.
    pub url: String,
    /// `auto`, `low` or `high`.
    pub detail: Option<String>,
}

/// A sound.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct InputSound {
    /// The bytes, in base64.
    pub data: String,
    /// `wav` or `mp3`.
    pub format: String,
}

/// A file, by its id where the model is served, or with its bytes.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FileParam {
    /// The id.
    pub file_id: Option<String>,
    /// The bytes, as an address that begins with `data:`.
    pub file_data: Option<String>,
    /// The name.
    pub filename: Option<String>,
}

/// A tool that a model calls.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ToolCall {
    /// What its output refers to.
    pub id: String,
    /// Which of the two follows.
    #[serde(rename = "type")]
    pub kind: ToolKind,
    /// A function.
    pub function: Option<CalledFunction>,
    /// A tool that takes any text.
    pub custom: Option<CalledCustom>,
}

/// The kinds of tools that a client runs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// It takes an object.
    Function,
    /// It takes a text.
    Custom,
}

/// A function that is called.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CalledFunction {
    /// Its name.
    pub name: String,
    /// Its arguments, as JSON in a text.
    pub arguments: String,
}

/// A tool that is called with a text.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CalledCustom {
    /// Its name.
    pub name: String,
    /// The text.
    pub input: String,
}

/// More of a tool call in a stream.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ToolCallDelta {
    /// Which call it is, from 0.
    pub index: u64,
    /// The call's id, in its first piece.
    pub id: Option<String>,
    /// Its kind, in its first piece.
    #[serde(rename = "type")]
    pub kind: Option<ToolKind>,
    /// More of a function.
    pub function: Option<CalledFunctionDelta>,
    /// More of a tool that takes any text.
    pub custom: Option<CalledCustomDelta>,
}

/// More of a function that is called.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CalledFunctionDelta {
    /// Its name, in its first piece.
    pub name: Option<String>,
    /// More of its arguments.
    pub arguments: Option<String>,
}

/// More of a tool that is called with a text.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CalledCustomDelta {
    /// Its name, in its first piece.
    pub name: Option<String>,
    /// More of the text.
    pub input: Option<String>,
}
