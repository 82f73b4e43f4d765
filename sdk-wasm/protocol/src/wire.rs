//! The client's side of the wire without a JSON library, which would be most of the SDK's download.
//!
//! A browser has a JSON parser; [`Fields`] is what is needed of its result. Frames are written by [`Frame`]. The
//! definition of the wire stays the one in `messages`: the tests hold both against it.

use crate::{
    AgentState, ByeReason, IceServer, Originator, RagDocument, ServerMessage, SessionState,
};

/// A parsed JSON object. Every getter gives `None` for a field that is absent or of another type.
pub trait Fields: Sized {
    /// A string.
    fn text(&self, key: &str) -> Option<String>;
    /// A number.
    fn number(&self, key: &str) -> Option<f64>;
    /// A Boolean.
    fn flag(&self, key: &str) -> Option<bool>;
    /// An object.
    fn object(&self, key: &str) -> Option<Self>;
    /// A list of objects.
    fn objects(&self, key: &str) -> Option<Vec<Self>>;
    /// A list of strings.
    fn texts(&self, key: &str) -> Option<Vec<String>>;
}

/// The message in a frame; [`ServerMessage::Unknown`] when this version cannot read it.
#[must_use]
pub fn read_server_message(frame: &impl Fields) -> ServerMessage {
    read(frame).unwrap_or(ServerMessage::Unknown)
}

fn read<F: Fields>(frame: &F) -> Option<ServerMessage> {
    Some(match frame.text("type")?.as_str() {
        "welcome" => ServerMessage::Welcome {
            call_id: frame.text("call_id")?,
            character: frame.text("character"),
            ice_servers: read_all(frame.objects("ice_servers")?, read_ice_server)?,
            resume: frame.text("resume")?,
            time_limit_seconds: integer(frame, "time_limit_seconds")?,
            heartbeat_seconds: integer(frame, "heartbeat_seconds")?,
        },
        "answer" => ServerMessage::Answer {
            sdp: frame.text("sdp")?,
        },
        "candidate" => ServerMessage::Candidate {
            candidate: frame.text("candidate"),
            sdp_mid: frame.text("sdp_mid"),
            sdp_m_line_index: frame.number("sdp_m_line_index").map(|index| index as u16),
        },
        "status" => ServerMessage::Status {
            state: read_session_state(&frame.text("state")?)?,
        },
        "agent_state" => ServerMessage::AgentState {
            state: match frame.text("state")?.as_str() {
                "listening" => AgentState::Listening,
                "thinking" => AgentState::Thinking,
                "speaking" => AgentState::Speaking,
                _ => return None,
            },
        },
        "transcript" => ServerMessage::Transcript {
            id: frame.text("id")?,
            originator: match frame.text("originator")?.as_str() {
                "user" => Originator::User,
                "bot" => Originator::Bot,
                _ => return None,
            },
            text: frame.text("text")?,
            is_final: frame.flag("final")?,
            at_ms: frame.number("at_ms")? as u64,
        },
        "user_info" => ServerMessage::UserInfo {
            info: frame.text("info")?,
        },
        "rag_info" => ServerMessage::RagInfo {
            documents: read_all(frame.objects("documents")?, read_document)?,
            count: integer(frame, "count"),
            total_tokens: integer(frame, "total_tokens")?,
        },
        "redirect" => ServerMessage::Redirect {
            url: frame.text("url")?,
        },
        "bye" => ServerMessage::Bye {
            reason: match frame.text("reason")?.as_str() {
                "hang_up" => ByeReason::HangUp,
                "time_limit" => ByeReason::TimeLimit,
                "replaced" => ByeReason::Replaced,
                "shutdown" => ByeReason::Shutdown,
                // An end for a reason that this version does not know is still an end.
                _ => ByeReason::Error,
            },
            code: frame.text("code"),
        },
        "error" => ServerMessage::Error {
            code: frame.text("code")?,
            message: frame.text("message")?,
            fatal: frame.flag("fatal")?,
        },
        "ping" => ServerMessage::Ping {
            t: frame.number("t")?,
        },
        "pong" => ServerMessage::Pong {
            t: frame.number("t")?,
        },
        _ => return None,
    })
}

fn integer(fields: &impl Fields, key: &str) -> Option<u32> {
    fields.number(key).map(|number| number as u32)
}

fn read_all<F, T>(items: Vec<F>, read: fn(&F) -> Option<T>) -> Option<Vec<T>> {
    items.iter().map(read).collect()
}

fn read_session_state(name: &str) -> Option<SessionState> {
    use SessionState::{Completed, Error, Ongoing, Reconnecting, Starting};
    [Starting, Ongoing, Reconnecting, Completed, Error]
        .into_iter()
        .find(|state| state.as_str() == name)
}

fn read_ice_server<F: Fields>(server: &F) -> Option<IceServer> {
    Some(IceServer {
        urls: server.texts("urls")?,
        username: server.text("username"),
        credential: server.text("credential"),
    })
}

fn read_document<F: Fields>(document: &F) -> Option<RagDocument> {
    Some(RagDocument {
        title: document.text("title")?,
        fusion_score: document.number("fusion_score")?,
        token_count: integer(document, "token_count")?,
    })
}

/// Writes one JSON object field by field.
pub(crate) struct Frame(String);

impl Frame {
    /// A client message of this type.
    pub(crate) fn of_type(name: &str) -> Self {
        Self::object().text("type", name)
    }

    /// An object without fields.
    pub(crate) fn object() -> Self {
        Self("{".to_owned())
    }

    /// A field whose value is JSON already.
    pub(crate) fn json(mut self, key: &str, json: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        write_string(&mut self.0, key);
        self.0.push(':');
        self.0.push_str(json);
        self
    }

    pub(crate) fn text(self, key: &str, text: &str) -> Self {
        let mut json = String::with_capacity(text.len() + 2);
        write_string(&mut json, text);
        self.json(key, &json)
    }

    /// A field that is left out when there is no text.
    pub(crate) fn optional(self, key: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    pub(crate) fn flag(self, key: &str, flag: bool) -> Self {
        self.json(key, if flag { "true" } else { "false" })
    }

    pub(crate) fn integer(self, key: &str, number: u32) -> Self {
        self.json(key, &number.to_string())
    }

    /// A number exact to a millionth, which is enough for a clock and spares the code that prints any float.
    pub(crate) fn clock(self, key: &str, number: f64) -> Self {
        let whole = number.trunc();
        let mut json = (whole as i64).to_string();
        let millionths = ((number - whole).abs() * 1e6) as u32;
        if millionths > 0 {
            let digits = (1_000_000 + millionths).to_string();
            json.push('.');
            json.push_str(digits.get(1..).unwrap_or_default());
        }
        self.json(key, &json)
    }

    /// The finished object.
    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Appends a JSON string.
fn write_string(json: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    json.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                json.push('\\');
                json.push(character);
            }
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\0'..='\x1f' => {
                let code = character as usize;
                json.push_str("\\u00");
                json.push(char::from(HEX[code >> 4]));
                json.push(char::from(HEX[code & 15]));
            }
            _ => json.push(character),
        }
    }
    json.push('"');
}

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    impl Fields for Value {
        fn text(&self, key: &str) -> Option<String> {
            self.get(key)?.as_str().map(str::to_owned)
        }

        fn number(&self, key: &str) -> Option<f64> {
            self.get(key)?.as_f64()
        }

        fn flag(&self, key: &str) -> Option<bool> {
            self.get(key)?.as_bool()
        }

        fn object(&self, key: &str) -> Option<Self> {
            self.get(key).filter(|value| value.is_object()).cloned()
        }

        fn objects(&self, key: &str) -> Option<Vec<Self>> {
            self.get(key)?.as_array().cloned()
        }

        fn texts(&self, key: &str) -> Option<Vec<String>> {
            let texts = self.get(key)?.as_array()?.iter();
            texts.map(|text| text.as_str().map(str::to_owned)).collect()
        }
    }

    /// One message of every type, and of every variation that has a name.
    fn samples() -> Vec<Value> {
        let mut samples = vec![
            json!({"type": "welcome", "call_id": "/v2/calls/1", "character": "Guide", "resume": "r",
                "ice_servers": [{"urls": ["turn:h"], "username": "u", "credential": "c"}, {"urls": []}],
                "time_limit_seconds": 600, "heartbeat_seconds": 5}),
            json!({"type": "welcome", "call_id": "c", "character": null, "resume": "r",
                "ice_servers": [], "time_limit_seconds": 1, "heartbeat_seconds": 1}),
            json!({"type": "answer", "sdp": "v=0\r\n"}),
            json!({"type": "candidate", "candidate": "c", "sdp_mid": "0", "sdp_m_line_index": 0}),
            json!({"type": "candidate", "candidate": null}),
            json!({"type": "transcript", "id": "1", "originator": "user", "text": "Hi",
                "final": false, "at_ms": 12}),
            json!({"type": "transcript", "id": "2", "originator": "bot", "text": "Hello",
                "final": true, "at_ms": 4_000_000_000_u64}),
            json!({"type": "user_info", "info": "likes tea"}),
            json!({"type": "rag_info", "total_tokens": 12, "count": 1,
                "documents": [{"title": "Tea", "fusion_score": 0.25, "token_count": 12}]}),
            json!({"type": "rag_info", "total_tokens": 0, "documents": []}),
            json!({"type": "redirect", "url": "wss://h/s"}),
            json!({"type": "bye", "reason": "error", "code": "SERVER"}),
            json!({"type": "error", "code": "SERVER", "message": "m", "fatal": true}),
            json!({"type": "ping", "t": 1.5}),
            json!({"type": "pong", "t": 7}),
            json!({"type": "weather", "sky": "blue"}),
        ];
        for state in ["starting", "ongoing", "reconnecting", "completed", "error"] {
            samples.push(json!({"type": "status", "state": state}));
        }
        for state in ["listening", "thinking", "speaking"] {
            samples.push(json!({"type": "agent_state", "state": state}));
        }
        for reason in ["hang_up", "time_limit", "replaced", "shutdown"] {
            samples.push(json!({"type": "bye", "reason": reason}));
        }
        samples
    }

    #[test]
    fn every_message_reads_as_its_definition_does() {
        for sample in samples() {
            let defined: ServerMessage = serde_json::from_value(sample.clone()).unwrap();
            assert_eq!(read_server_message(&sample), defined, "{sample}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        for sample in [
            json!({}),
            json!({"type": "answer"}),
            json!({"type": "status", "state": "dreaming"}),
            json!({"type": "agent_state", "state": "dreaming"}),
            json!([1]),
        ] {
            assert_eq!(read_server_message(&sample), ServerMessage::Unknown);
        }
    }

    #[test]
    fn clocks_are_numbers() {
        for number in [0.0, 5.0, 1_790_000_000_000.0, 1.5, 12.000_001, 0.25] {
            let frame = Frame::object().clock("t", number).end();
            let value: Value = serde_json::from_str(&frame).unwrap();
            assert!(
                (value["t"].as_f64().unwrap() - number).abs() < 2e-6,
                "{frame}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_survives(text: String, key: String) {
            let frame = Frame::of_type("text").text(&key, &text).end();
            let value: Value = serde_json::from_str(&frame).unwrap();
            prop_assert!(key == "type" || value[&key] == text);
        }
    }
}
