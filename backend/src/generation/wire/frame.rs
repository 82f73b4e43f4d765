//! One event of a stream, as clients of both APIs read it (`text/event-stream`).

use std::borrow::Cow;

use bytes::{BufMut as _, BytesMut};
use serde::Serialize;

/// An event for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The event's name; chat completions have none.
    pub(crate) event: Option<Cow<'static, str>>,
    /// The data: JSON on one line, or `[DONE]`.
    pub(crate) data: String,
}

impl Frame {
    /// A frame with JSON in it.
    pub(super) fn new(event: Option<Cow<'static, str>>, data: &impl Serialize) -> Self {
        // What is given here are JSON objects, and writing one to memory does not fail.
        let data = serde_json::to_string(data).unwrap_or_default();
        Self { event, data }
    }

    /// The end of a stream of chat completions.
    pub(super) fn done() -> Self {
        Self {
            event: None,
            data: "[DONE]".to_owned(),
        }
    }

    /// Writes the frame as a client reads it. There is never an `id:`.
    pub(crate) fn write(&self, out: &mut BytesMut) {
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
    }
}
