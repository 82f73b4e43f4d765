//! The messages of the call session: JSON text frames `{"type": "...", ...}` in `snake_case`.
//!
//! Unknown fields are ignored, and an unknown `type` parses as `Unknown`, so that either side can be newer.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ByeReason;

/// The version that `hello.protocol` carries.
pub const PROTOCOL_VERSION: u32 = 1;

/// The largest frame that either side accepts, in bytes.
pub const MAX_FRAME_BYTES: usize = 64 * 1024;

/// The longest typed turn, in characters; blanks around it do not count.
pub const MAX_TEXT_CHARS: usize = 4_000;

/// The number of messages a second, pings and pongs of the WebSocket among them, above which the server ends the session.
pub const MAX_MESSAGES_PER_SECOND: u32 = 100;

/// What the browser sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// The first message of every connection.
    Hello {
        /// The protocol version that the client speaks.
        protocol: u32,
        /// The version of the SDK, for logs and metrics.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sdk_version: Option<String>,
        /// The page's `customMetadata` object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Map<String, Value>>,
        /// The resume token of the last `welcome`, when this connection continues a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume: Option<String>,
        /// Whether the page listens to `user_info`. A call whose page does not asks no model what its visitor tells. The first
        /// connection of a call says it for all.
        #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
        user_info: bool,
    },
    /// An SDP offer.
    Offer {
        /// The session description.
        sdp: String,
        /// Whether the offer restarts ICE on a session that had media before.
        #[serde(default)]
        ice_restart: bool,
    },
    /// A local ICE candidate; a `candidate` of `None` ends the list.
    Candidate {
        /// The candidate line.
        candidate: Option<String>,
        /// The media stream identification tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sdp_mid: Option<String>,
        /// The index of the media description.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sdp_m_line_index: Option<u16>,
    },
    /// The visitor muted or unmuted the microphone.
    Mute {
        /// Whether the microphone is muted now.
        muted: bool,
    },
    /// A turn that the visitor typed.
    Text {
        /// The words.
        text: String,
    },
    /// The visitor ends the call.
    HangUp,
    /// A heartbeat, answered by `pong` with the same `t`.
    Ping {
        /// An opaque number chosen by the sender.
        t: f64,
    },
    /// The answer to a `ping`.
    Pong {
        /// The number of the `ping`.
        t: f64,
    },
    /// A message of a newer protocol.
    #[serde(other)]
    Unknown,
}

fn yes() -> bool {
    true
}

/// What the backend sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The answer to `hello`.
    Welcome {
        /// The call's identifier, path-style.
        call_id: String,
        /// The character's name to display.
        character: Option<String>,
        /// STUN and TURN servers for the client's peer connection.
        ice_servers: Vec<IceServer>,
        /// The token that opens this session again after a lost connection.
        resume: String,
        /// The longest the call may last.
        time_limit_seconds: u32,
        /// How often the client sends `ping`.
        heartbeat_seconds: u32,
    },
    /// An SDP answer.
    Answer {
        /// The session description.
        sdp: String,
    },
    /// A remote ICE candidate; a `candidate` of `None` ends the list.
    Candidate {
        /// The candidate line.
        candidate: Option<String>,
        /// The media stream identification tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sdp_mid: Option<String>,
        /// The index of the media description.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sdp_m_line_index: Option<u16>,
    },
    /// The call moved to another state.
    Status {
        /// The state.
        state: SessionState,
    },
    /// What the character is doing.
    AgentState {
        /// The state.
        state: AgentState,
    },
    /// A line of the transcript. A line with the same `id` replaces the earlier one; lines that a client may have missed
    /// are said again when it resumes.
    Transcript {
        /// Identifies the line within the call.
        id: String,
        /// Who said it.
        originator: Originator,
        /// The words; a bot line is cut to what was played.
        text: String,
        /// Whether the line may still change.
        #[serde(rename = "final")]
        is_final: bool,
        /// Milliseconds since the call's media connected.
        at_ms: u64,
    },
    /// What became known of the visitor.
    UserInfo {
        /// The information.
        info: String,
    },
    /// The character used retrieval documents.
    RagInfo {
        /// The documents.
        documents: Vec<RagDocument>,
        /// How many documents there are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u32>,
        /// The tokens of all documents together.
        total_tokens: u32,
    },
    /// Another node holds the call; the server closes this connection with `CALL_ELSEWHERE`. Only an answer to `hello`,
    /// with a resume token or without.
    Redirect {
        /// The URL of the session at that node.
        url: String,
    },
    /// The session ends.
    Bye {
        /// Why.
        reason: ByeReason,
        /// A stable code, when the reason is `error`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// Something failed; the session goes on unless `fatal`.
    Error {
        /// A stable code.
        code: String,
        /// What happened, in words for a developer.
        message: String,
        /// Whether the session is over.
        fatal: bool,
    },
    /// A heartbeat, answered by `pong` with the same `t`.
    Ping {
        /// An opaque number chosen by the sender.
        t: f64,
    },
    /// The answer to a `ping`.
    Pong {
        /// The number of the `ping`.
        t: f64,
    },
    /// A message of a newer protocol.
    #[serde(other)]
    Unknown,
}

/// The states of a call as its client sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Created; no media yet.
    Starting,
    /// Media flows.
    Ongoing,
    /// The connection was lost and may come back.
    Reconnecting,
    /// Ended as it should.
    Completed,
    /// Ended by a failure.
    Error,
}

impl SessionState {
    /// The state's name on the wire and in `onStatusUpdate`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ongoing => "ongoing",
            Self::Reconnecting => "reconnecting",
            Self::Completed => "completed",
            Self::Error => "error",
        }
    }
}

/// What the character is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// It waits for the visitor or hears the visitor speak.
    Listening,
    /// The visitor's turn is over and the reply is not audible yet.
    Thinking,
    /// Its voice is audible.
    Speaking,
}

impl AgentState {
    /// The state's name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Listening => "listening",
            Self::Thinking => "thinking",
            Self::Speaking => "speaking",
        }
    }
}

/// Who said a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Originator {
    /// The visitor.
    User,
    /// The character.
    Bot,
}

impl Originator {
    /// The name on the wire and in transcripts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Bot => "bot",
        }
    }
}

/// A STUN or TURN server, in the shape of the browser's `RTCIceServer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IceServer {
    /// The server's URLs.
    pub urls: Vec<String>,
    /// The TURN user name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The TURN password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// A document that a reply was based on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RagDocument {
    /// The document's title.
    pub title: String,
    /// The fused relevance score.
    pub fusion_score: f64,
    /// The tokens of the passage.
    pub token_count: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_type_and_unknown_fields_are_ignored() {
        let message: ServerMessage =
            serde_json::from_str(r#"{"type":"weather","sky":"blue"}"#).unwrap();
        assert_eq!(message, ServerMessage::Unknown);
        let message: ClientMessage =
            serde_json::from_str(r#"{"type":"mute","muted":true,"since":3}"#).unwrap();
        assert_eq!(message, ClientMessage::Mute { muted: true });
    }

    #[test]
    fn the_end_of_candidates_is_an_explicit_null() {
        let end = ClientMessage::Candidate {
            candidate: None,
            sdp_mid: None,
            sdp_m_line_index: None,
        };
        assert_eq!(
            serde_json::to_string(&end).unwrap(),
            r#"{"type":"candidate","candidate":null}"#
        );
    }

    #[test]
    fn a_transcript_line_spells_final_as_the_contract_does() {
        let line = ServerMessage::Transcript {
            id: "u1".into(),
            originator: Originator::User,
            text: "go forward ten meters".into(),
            is_final: true,
            at_ms: 1200,
        };
        let json = serde_json::to_value(&line).unwrap();
        assert_eq!(json["type"], "transcript");
        assert_eq!(json["originator"], "user");
        assert_eq!(json["final"], true);
    }
}
