//! What the events of a streamed chat completion mean.

use serde::Deserialize;
use serde_json::Value;

use super::{super::ProviderErrorKind, error_code, sse::Event};

/// The meaning of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Chunk {
    /// A piece of the answer; `ends` when the model said that it is done.
    Text { delta: String, ends: bool },
    /// `[DONE]`: nothing follows.
    Done,
    /// The server failed after it had answered 200, or sent what is no chunk.
    Failed {
        kind: ProviderErrorKind,
        message: String,
    },
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    /// The next piece, in a stream.
    delta: Option<Content>,
    /// The whole answer, from a server that does not stream.
    message: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    content: Option<String>,
}

impl Chunk {
    pub(super) fn of_event(event: &Event) -> Self {
        let data = event.data.trim();
        if data == "[DONE]" {
            return Self::Done;
        }
        Self::of_json(data.as_bytes(), event.name == "error")
    }

    /// Reads a chunk, or a whole completion.
    pub(super) fn of_json(json: &[u8], is_error: bool) -> Self {
        let value = serde_json::from_slice::<Value>(json);
        if let Ok(value) = &value
            && (is_error || value.get("error").is_some_and(|error| !error.is_null()))
        {
            return Self::Failed {
                kind: ProviderErrorKind::Failed,
                message: match error_code(value) {
                    Some(code) => format!("the server reports {code}"),
                    None => "the server reports a failure".to_owned(),
                },
            };
        }
        let body = value.and_then(serde_json::from_value::<Body>);
        let Ok(body) = body else {
            return Self::Failed {
                kind: ProviderErrorKind::Malformed,
                message: "an answer that is not a chat completion".to_owned(),
            };
        };
        // The last chunk may have no choice at all, only the usage.
        let choice = body.choices.into_iter().next();
        let ends = choice
            .as_ref()
            .is_some_and(|choice| choice.finish_reason.is_some());
        let delta = choice
            .and_then(|choice| choice.delta.or(choice.message))
            .and_then(|content| content.content)
            .unwrap_or_default();
        Self::Text { delta, ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(data: &str) -> Chunk {
        Chunk::of_event(&Event {
            name: String::new(),
            data: data.to_owned(),
        })
    }

    fn text(delta: &str, ends: bool) -> Chunk {
        Chunk::Text {
            delta: delta.to_owned(),
            ends,
        }
    }

    #[test]
    fn chunks_of_servers() {
        let cases = [
            (
                r#"{"choices":[{"delta":{"role":"assistant"},"finish_reason":null}]}"#,
                text("", false),
            ),
            (
                r#"{"choices":[{"delta":{"content":"Hi"}}]}"#,
                text("Hi", false),
            ),
            (
                r#"{"choices":[{"delta":{"content":null},"finish_reason":"stop"}]}"#,
                text("", true),
            ),
            (
                r#"{"choices":[],"usage":{"total_tokens":3}}"#,
                text("", false),
            ),
            (
                r#"{"error":null,"choices":[{"delta":{"content":"Hi"}}]}"#,
                text("Hi", false),
            ),
            (
                r#"{"choices":[{"message":{"content":"All"},"finish_reason":"stop"}]}"#,
                text("All", true),
            ),
            ("[DONE]", Chunk::Done),
        ];
        for (data, expected) in cases {
            assert_eq!(chunk(data), expected, "{data}");
        }
    }

    #[test]
    fn failures_after_200() {
        let kind = |data: &str| match chunk(data) {
            Chunk::Failed { kind, message } => (kind, message),
            other => panic!("{other:?}"),
        };
        let (failed, message) =
            kind(r#"{"error":{"message":"about the visitor","code":"overloaded"}}"#);
        assert_eq!(failed, ProviderErrorKind::Failed);
        assert!(message.contains("overloaded") && !message.contains("visitor"));
        assert_eq!(kind("{not json").0, ProviderErrorKind::Malformed);
        assert_eq!(
            kind(r#"{"choices":"many"}"#).0,
            ProviderErrorKind::Malformed
        );
    }
}
