//! What a client gets: the state of a completion, and its result.

use std::collections::BTreeMap;

use axum::http::{HeaderName, HeaderValue};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use colloquy_http::WARNING;
use colloquy_store::stored;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::request::MessageKind;

/// The id of the generated audio.
const RESPONSE: &str = "response";

/// Where a completion stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CompletionState {
    /// It is being worked on.
    InProgress,
    /// `output` has the result.
    Completed,
    /// `error` has the reason.
    Failed,
}

stored!(pub(super) CompletionState: InProgress = "in-progress", Completed = "completed", Failed = "failed");

/// A completion.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Completion)]
pub(crate) struct CompletionView {
    /// Its path.
    #[schema(example = "/v2/completions/01890c5e-0000-7000-8000-000000000000")]
    pub(super) id: String,
    /// Where it stands.
    pub(super) state: CompletionState,
    /// The result, once it is `completed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<Output>,
    /// Why it is `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Reason>,
}

impl CompletionView {
    /// Takes the warning that an answer has no sound out of the result.
    pub(super) fn take_warning(&mut self) -> Option<(HeaderName, HeaderValue)> {
        let reason = self.output.as_mut()?.silence.take()?;
        let value = HeaderValue::try_from(format!("the answer has no sound: {reason}"));
        let value = value.unwrap_or(HeaderValue::from_static("the answer has no sound"));
        Some((WARNING, value))
    }

    /// A completion without a result.
    pub(super) fn new(id: &str, state: CompletionState) -> Self {
        Self {
            id: format!("/v2/completions/{id}"),
            state,
            output: None,
            error: None,
        }
    }
}

/// Why a completion failed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = CompletionError)]
pub(super) struct Reason {
    /// `audio_unreadable`, `audio_too_long`, `nothing_heard`, `transcription_failed`, `reply_failed`, `speech_failed`,
    /// `timed_out`, `interrupted` or `no_memory`: there was no memory for the documents of the character for ten minutes, or they take more
    /// than the server has for one request.
    pub(super) code: String,
    /// What happened, for a developer.
    pub(super) message: String,
}

/// The result.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = CompletionOutput)]
pub(super) struct Output {
    /// The new messages of the user with their words, then the answer.
    pub(super) messages: Vec<OutputMessage>,
    /// The answer's sound under the id `response`: Opus in Ogg, base64. Without sound it is empty.
    pub(super) audio_files: BTreeMap<String, String>,
    /// Why an answer that was to be spoken has no sound. It is stored with the result, and read as a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub(super) silence: Option<String>,
}

/// A message of the result.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(super) struct OutputMessage {
    /// The client's id of a new message; the answer has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// What sort it is of.
    #[serde(rename = "type")]
    pub(super) kind: MessageKind,
    /// The words: of the user, transcribed where they were spoken, or of the answer.
    pub(super) text: String,
    /// Where the answer's sound is in `audio_files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) audio_file_id: Option<String>,
    /// All variants of the answer, when more than one was asked for; `text` is the first one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) options: Option<Vec<ReplyOption>>,
}

/// A variant of the answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(super) struct ReplyOption {
    /// Its words.
    pub(super) text: String,
}

impl Output {
    /// The result that consists of the user's messages so far.
    pub(super) fn new(messages: Vec<OutputMessage>) -> Self {
        Self {
            messages,
            audio_files: BTreeMap::new(),
            silence: None,
        }
    }

    /// Adds the answer.
    pub(super) fn answer(&mut self, text: String, sound: Option<Vec<u8>>) {
        let (kind, audio_file_id) = match sound {
            Some(file) => {
                let file = STANDARD.encode(file);
                self.audio_files.insert(RESPONSE.to_owned(), file);
                (MessageKind::Audio, Some(RESPONSE.to_owned()))
            }
            None => (MessageKind::Text, None),
        };
        self.messages.push(OutputMessage {
            id: None,
            kind,
            text,
            audio_file_id,
            options: None,
        });
    }

    /// Adds the answer in its variants.
    pub(super) fn variants(&mut self, first: String, options: Vec<String>) {
        let options = options.into_iter().map(|text| ReplyOption { text });
        self.messages.push(OutputMessage {
            id: None,
            kind: MessageKind::Text,
            text: first,
            audio_file_id: None,
            options: Some(options.collect()),
        });
    }
}
