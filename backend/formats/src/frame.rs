//! One event of a stream, as clients of both APIs read it (`text/event-stream`).

use std::borrow::Cow;

use bytes::{BufMut as _, BytesMut};
use serde::Serialize;

/// An event for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The event's name; chat completions have none.
    pub event: Option<Cow<'static, str>>,
    /// The data: JSON on one line, or `[DONE]`.
    pub data: String,
}

impl Frame {
    /// A frame with JSON in it.
    pub(super) fn new(event: Option<Cow<'static, str>>, data: &impl Serialize) -> Self {
        // What is given here are JSON objects, and writing one to memory does not fail.
        let data = serde_json::to_string(data).unwrap_or_default();
        Self { event, data }
    }

    /// The end of a stream.
    pub(super) fn done() -> Self {
        Self {
            event: None,
            data: "[DONE]".to_owned(),
        }
    }

    /// The event as a message of its own, where each of them is one; `None` of what only ends a stream.
    #[must_use]
    pub fn into_message(self) -> Option<String> {
        (self.data != "[DONE]").then_some(self.data)
    }

    /// Writes the frame as a client reads it. There is never an `id:`.
    pub fn write(&self, out: &mut BytesMut) {
        let name = self.event.as_deref().unwrap_or_default();
        out.reserve(name.len() + self.data.len() + "event: \ndata: \n\n".len());
        if !name.is_empty() {
            out.put_slice(b"event: ");
            out.put_slice(name.as_bytes());
            out.put_slice(b"\n");
        }
        out.put_slice(b"data: ");
        out.put_slice(self.data.as_bytes());
        out.put_slice(b"\n\n");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn frames_as_clients_read_them() {
        let mut out = BytesMut::new();
        let text = json!({"a": "one\ntwo"});
        Frame::new(Some(Cow::Borrowed("response.created")), &text).write(&mut out);
        Frame::new(None, &text).write(&mut out);
        Frame::done().write(&mut out);
        let data = r#"data: {"a":"one\ntwo"}"#;
        let expected = format!("event: response.created\n{data}\n\n{data}\n\ndata: [DONE]\n\n");
        assert_eq!(out, expected.as_bytes());
        let message = Frame::new(None, &text).into_message();
        assert_eq!(message.as_deref(), Some(r#"{"a":"one\ntwo"}"#));
        assert_eq!(Frame::done().into_message(), None);
    }
}
