//! The inputs and outputs of the call state machine.

use std::rc::Rc;

use serde::Serialize;

use crate::{
    AgentState, CallError, CreateAnswer, CreateRequest, ErrorCode, IceServer, NewCall, Originator,
    RagDocument, ServerMessage, SessionState,
};

/// How a call begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// The browser creates the call with an API key.
    Client(NewCall),
    /// A server created the call; the browser has its signed URL.
    Server {
        /// The `signedUrl` of the create response.
        signed_url: String,
    },
}

/// What a call is told about its page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// The page's `customMetadata`: the JSON text of an object.
    pub metadata: Option<String>,
    /// The name shown for the character; the character's own name otherwise.
    pub character_role: Option<String>,
    /// The name shown for the visitor; `You` otherwise.
    pub person_role: Option<String>,
    /// Whether the call begins muted.
    pub muted: bool,
    /// Whether the page does not want to be told what its visitor tells of themselves.
    pub without_user_info: bool,
}

/// Something that happened outside the state machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The time of `next_timeout` has come.
    Timeout,
    /// `POST /v2/calls` was answered.
    CreateAnswered(CreateAnswer),
    /// `POST /v2/calls` got no answer.
    CreateFailed,
    /// The microphone is open: the first one, or one in place of a lost one.
    MicrophoneReady,
    /// The microphone cannot be had.
    MicrophoneFailed(ErrorCode),
    /// The microphone was unplugged, or the visitor took the permission back.
    MicrophoneLost,
    /// Devices were plugged or unplugged.
    DevicesChanged,
    /// The chosen speaker cannot be used; the system's plays.
    SpeakerFailed,
    /// The browser plays nothing before the visitor does something on the page.
    PlaybackBlocked,
    /// The character can be heard, perhaps again.
    PlaybackStarted,
    /// The WebSocket opened.
    SocketOpened,
    /// The WebSocket received a message.
    SocketMessage(ServerMessage),
    /// The WebSocket received something that is no JSON.
    SocketGarbage,
    /// The WebSocket closed, or could not be opened.
    SocketClosed {
        /// The number in the close frame, 1006 when there was none.
        code: u16,
    },
    /// The peer connection made an offer and set it as its local description.
    OfferCreated {
        /// The session description.
        sdp: String,
    },
    /// The peer connection found a candidate; `candidate` of `None` ends the list.
    LocalCandidate {
        /// The candidate line.
        candidate: Option<String>,
        /// The media stream identification tag.
        sdp_mid: Option<String>,
        /// The index of the media description.
        sdp_m_line_index: Option<u16>,
    },
    /// The peer connection's state changed.
    MediaChanged(MediaState),
    /// The peer connection failed to do what a command asked.
    MediaFailed(String),
    /// A policy of the page blocked a connection.
    ConnectionBlocked {
        /// The directive of the policy, such as `connect-src`.
        directive: String,
        /// What was blocked: a URL or its origin.
        url: String,
    },
    /// The application or the page ends the call.
    HangUp,
    /// The application mutes or unmutes the microphone.
    Mute(bool),
    /// The visitor typed a turn.
    Text(String),
}

/// The states of a peer connection that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaState {
    /// New or connecting.
    Connecting,
    /// ICE found a path; the DTLS handshake over it is under way.
    PathFound,
    /// ICE and DTLS are up.
    Connected,
    /// The path is gone and may come back by itself.
    Disconnected,
    /// The path is gone.
    Failed,
}

/// Something the environment does next, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Tell the application.
    Event(Event),
    /// Act on the browser.
    Command(Command),
}

/// What the application hears. An event serializes as the argument of its callback.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// `onCallStart`.
    #[serde(rename_all = "camelCase")]
    CallStart {
        /// The call's id, where its URL is known already.
        call_id: Option<String>,
    },
    /// `onCallStarting`.
    CallStarting,
    /// `onConnected`.
    Connected,
    /// `onStatusUpdate`.
    StatusUpdate(SessionState),
    /// `onUserInfo`.
    UserInfo(String),
    /// `onRagInfo`.
    RagInfo {
        /// The documents.
        documents: Vec<RagDocument>,
        /// How many documents there are.
        count: u32,
        /// The tokens of all documents together.
        total_tokens: u32,
    },
    /// `onTranscript`.
    Transcript(TranscriptLine),
    /// `onAgentStateChange`.
    AgentStateChange(AgentState),
    /// `onAudioBlockedChange`.
    AudioBlockedChange(bool),
    /// `onError` and `onCallError`, whose argument is a JavaScript `Error`.
    #[serde(skip)]
    CallError {
        /// What happened.
        error: CallError,
        /// Whether it ends the call.
        fatal: bool,
    },
    /// `onHangUp`: the last event of every call.
    HangUp(HangUpReason),
}

/// Why a call is over. It serializes as the name that applications compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HangUpReason {
    /// The application hung up, or its page was left.
    Local,
    /// The other side hung up.
    Remote,
    /// The call reached its time limit.
    TimeLimit,
    /// The server is shutting down.
    Shutdown,
    /// The call failed, which an error told before.
    Error,
}

/// A line of the running transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptLine {
    /// A line with the same `id` replaces the earlier one.
    pub id: String,
    /// Who said it.
    pub originator: Originator,
    /// The name to show for who said it.
    pub role: String,
    /// The words.
    pub text: String,
    /// Whether the line will not change any more.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// Milliseconds since the call's media connected.
    pub at_ms: u32,
}

/// What the browser is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Send `POST /v2/calls`; answer with `CreateAnswered` or `CreateFailed`.
    CreateCall(CreateRequest),
    /// Open the microphone; answer with `MicrophoneReady` or `MicrophoneFailed`.
    AcquireMicrophone,
    /// Open any microphone in place of the lost one; answer as above.
    ReplaceMicrophone,
    /// Open a WebSocket in place of any earlier one, whose events count no more.
    OpenSocket(String),
    /// Close the WebSocket; its events count no more.
    CloseSocket,
    /// Send a text frame: a [`crate::ClientMessage`] as JSON.
    Send(String),
    /// Send these frames as soon as the WebSocket is open and close it then, or after a few seconds. Its events count no
    /// more, and `CloseEverything` leaves it alone.
    SendAndClose(Vec<String>),
    /// Create a peer connection with the microphone's track in place of any earlier one, whose events count no more, then
    /// an offer; answer with `OfferCreated`.
    CreatePeer(Rc<[IceServer]>),
    /// Set the remote description.
    ApplyAnswer(String),
    /// Add a remote candidate; `candidate` of `None` ends the list.
    AddCandidate {
        /// The candidate line.
        candidate: Option<String>,
        /// The media stream identification tag.
        sdp_mid: Option<String>,
        /// The index of the media description.
        sdp_m_line_index: Option<u16>,
    },
    /// Restart ICE and create an offer; answer with `OfferCreated`.
    RestartIce,
    /// Silence the microphone or let it through again.
    MuteMicrophone(bool),
    /// Release everything: request, microphone, socket, peer connection, timers.
    CloseEverything,
}
