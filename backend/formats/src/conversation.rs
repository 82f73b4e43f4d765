//! The conversation in a request: what was said, what is put in front of it, and how much of it there is.

use serde_json::Value;

use super::{
    FormatError, ModelApi, Object, Request, client_calls,
    fields::{entries, str_of},
    items, messages,
};

/// What a picture counts, in tokens: more than the public models of today make of one at high detail.
const IMAGE_TOKENS: u64 = 2_048;
/// What a file, a sound or a film counts, in tokens. What it really takes is known to the model alone.
const FILE_TOKENS: u64 = 16_384;
/// What a number, a boolean or null counts; longer numbers than this are not written.
const SCALAR_BYTES: u64 = 24;

/// A turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Who said it.
    pub role: ChatRole,
    /// The words.
    pub content: String,
}

/// Who said a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatRole {
    /// The visitor.
    User,
    /// The character.
    Assistant,
}

impl ChatRole {
    /// The name in both APIs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

impl Request {
    /// The last turns of the user and the assistant that have text, oldest first: those before the first, from the last one back, that is
    /// not wanted. No others are copied.
    pub fn turns(&self, is_wanted: impl FnMut(&ChatMessage) -> bool) -> Vec<ChatMessage> {
        let text = match (self.api, self.body.get("input")) {
            (ModelApi::Responses, Some(Value::String(text))) => Some(ChatMessage {
                role: ChatRole::User,
                content: text.clone(),
            }),
            _ => None,
        };
        let items = self.history.iter().chain(self.conversation());
        let turns = text.into_iter().chain(items.rev().filter_map(turn_of));
        let mut turns: Vec<ChatMessage> = turns.take_while(is_wanted).collect();
        turns.reverse();
        turns
    }

    /// Puts system text in front of the client's own, and of what was put there before.
    pub fn prepend_system(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.system = Some(match self.system.take() {
            None => text.to_owned(),
            Some(behind) => format!("{text}\n\n{behind}"),
        });
    }

    /// Puts the items of a stored conversation in front of the input; responses only.
    pub fn prepend_items(&mut self, items: Vec<Value>) {
        let behind = std::mem::replace(&mut self.history, items);
        self.history.extend(behind);
    }

    /// Refuses outputs of tools whose calls do not stand before them in the conversation, which no model takes, second outputs of a call in
    /// a response, and calls in a chat completion that the user's next message leaves without an output. Where an item stands for a part of
    /// the conversation, the calls in that part are not known.
    ///
    /// # Errors
    /// [`FormatError`] that names the output, or the call.
    pub fn check_calls(&self) -> Result<(), FormatError> {
        let input = self.conversation();
        if self.api == ModelApi::Chat {
            return messages::check_calls(input);
        }
        if self.has_compactions() {
            return Ok(());
        }
        client_calls::check(&self.history, input, &self.places)
    }

    /// Returns true if the conversation has a call of a client's tool or the output of one, so that a model reads more than its turns;
    /// responses only.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        client_calls::any(self.history.iter().chain(self.conversation()))
    }

    /// The input as items, for storing; without what was put in front of it.
    pub fn input_items(&self) -> Vec<Value> {
        items::of_input(self.body.get("input")).into_owned()
    }

    /// An upper bound of the input's tokens: the UTF-8 bytes of everything that goes to the model, since a token of a
    /// byte-level vocabulary has at least one byte. The names and brackets around the texts are counted too; they stand
    /// for the tokens that a model's template adds. A picture counts 2,048 and a file 16,384, whatever their size.
    pub fn bound_bytes(&self) -> u64 {
        let system = self.system.as_ref().map_or(0, String::len) as u64;
        let history = self.history.iter().map(bytes_of).sum::<u64>();
        system + history + object_bytes(&self.body)
    }

    /// Whether the answer is to have sound.
    #[must_use]
    pub fn wants_sound(&self) -> bool {
        self.body.get("audio").is_some_and(|audio| !audio.is_null())
    }

    /// The messages, or the items of the input.
    fn conversation(&self) -> &[Value] {
        match self.api {
            ModelApi::Chat => entries(&self.body, "messages"),
            ModelApi::Responses => entries(&self.body, "input"),
        }
    }
}

fn turn_of(message: &Value) -> Option<ChatMessage> {
    let message = message.as_object()?;
    let role = match str_of(message, "role")? {
        "user" => ChatRole::User,
        "assistant" => ChatRole::Assistant,
        _ => return None,
    };
    let content = messages::texts(message.get("content")).join("\n");
    (!content.trim().is_empty()).then_some(ChatMessage { role, content })
}

fn bytes_of(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 + 2,
        Value::Array(values) => values.iter().map(|value| bytes_of(value) + 1).sum::<u64>() + 2,
        Value::Object(object) => match str_of(object, "type") {
            Some("image_url" | "input_image" | "computer_screenshot") => IMAGE_TOKENS,
            Some("file" | "input_file" | "input_audio" | "video_url" | "input_video") => {
                FILE_TOKENS
            }
            _ => object_bytes(object),
        },
        _ => SCALAR_BYTES,
    }
}

fn object_bytes(object: &Object) -> u64 {
    let entries = object
        .iter()
        .map(|(key, value)| key.len() as u64 + 4 + bytes_of(value));
    entries.sum::<u64>() + 2
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
