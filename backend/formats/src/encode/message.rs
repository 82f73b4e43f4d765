//! A whole response as the message of a chat completion.

use serde_json::{Value, json};

use super::{
    super::{
        Object,
        fields::{entries, str_of, text_of},
        shapes::annotation_to_chat,
    },
    calls::{Kind, input_text},
    finish::Finish,
};

/// What an item of a response says, in the words of chat completions.
#[derive(Default)]
pub(super) struct MessageText {
    pub(super) content: String,
    pub(super) refusal: String,
    pub(super) thinking: String,
    pub(super) annotations: Vec<Value>,
    pub(super) logprobs: Vec<Value>,
    pub(super) calls: Vec<Value>,
}

impl MessageText {
    /// Adds an item; those without counterpart add nothing.
    pub(super) fn add(&mut self, item: &Object) {
        match str_of(item, "type") {
            Some("message") => {
                for part in entries(item, "content").iter().filter_map(Value::as_object) {
                    self.content
                        .push_str(str_of(part, "text").unwrap_or_default());
                    self.refusal
                        .push_str(str_of(part, "refusal").unwrap_or_default());
                    let annotations = entries(part, "annotations").iter();
                    self.annotations
                        .extend(annotations.filter_map(annotation_to_chat));
                    self.logprobs.extend_from_slice(entries(part, "logprobs"));
                }
            }
            Some("reasoning") => {
                let content = entries(item, "content");
                let (parts, separator) = match content.is_empty() {
                    true => (entries(item, "summary"), "\n\n"),
                    false => (content, ""),
                };
                let texts = parts
                    .iter()
                    .filter_map(Value::as_object)
                    .filter_map(|part| text_of(part, "text"))
                    .collect::<Vec<_>>();
                self.thinking.push_str(&texts.join(separator));
            }
            Some(kind) => {
                if let Some(kind) = Kind::of_item(kind) {
                    let mut call = announced(kind, item);
                    call[kind.as_str()][kind.input()] = json!(input_text(item.get(kind.input())));
                    self.calls.push(call);
                }
            }
            None => {}
        }
    }
}

/// A tool call without its input, as an item of a response tells it.
pub(super) fn announced(kind: Kind, item: &Object) -> Value {
    let id = text_of(item, "call_id").or_else(|| text_of(item, "id"));
    json!({
        "id": id.unwrap_or_default(),
        "type": kind.as_str(),
        kind.as_str(): {"name": str_of(item, "name").unwrap_or_default(), kind.input(): ""},
    })
}

/// Why a response ended. Calls of tools are seen in its output only.
pub(super) fn finish_of(response: &Object, has_calls: bool) -> Finish {
    let incomplete = str_of(response, "status") == Some("incomplete");
    let reason = response
        .get("incomplete_details")
        .and_then(Value::as_object)
        .and_then(|details| str_of(details, "reason"));
    match (incomplete, reason) {
        (true, Some("content_filter")) => Finish::ContentFilter,
        (true, _) => Finish::Length,
        (false, _) if has_calls => Finish::ToolCalls,
        (false, _) => Finish::Stop,
    }
}
