//! The call state machine along every path that a call can take.

mod conversation;
mod endings;
mod losses;
mod microphone;
mod setup;

use serde_json::{Value, json};

use super::*;
use crate::{
    AgentState, Character, ClientMessage, CreateAnswer, MAX_FRAME_BYTES, NewCall, RagDocument,
    read_server_message,
};

const WELCOME: &str = r#"{"type":"welcome","call_id":"/v2/calls/1","character":"Guide","ice_servers":[],
    "resume":"token-1","time_limit_seconds":600,"heartbeat_seconds":5}"#;

/// A call, its clock, and what it has said so far in short words.
struct Harness {
    call: Call,
    now_ms: u64,
    log: Vec<String>,
}

impl Harness {
    fn start(start: Start, options: Options) -> Self {
        let mut harness = Self {
            call: Call::start(0, start, options),
            now_ms: 0,
            log: Vec::new(),
        };
        harness.drain();
        harness
    }

    fn server() -> Self {
        let signed_url = "wss://calls.example.org/s".to_owned();
        Self::start(Start::Server { signed_url }, Options::default())
    }

    fn client() -> Self {
        Self::start(
            Start::Client(NewCall {
                backend_url: "https://calls.example.org".into(),
                partner: Some("repo:acme".into()),
                character: Character::Saved("guide".into()),
                key: "key".into(),
                time_limit_seconds: 600,
                character_params: None,
            }),
            Options::default(),
        )
    }

    /// A call with media, its log cleared.
    fn talking() -> Self {
        let mut harness = Self::server();
        harness.up();
        harness.log.clear();
        harness
    }

    /// Brings a call to where its audio connection is being built.
    fn connecting(&mut self) {
        self.input(Input::SocketOpened);
        self.frame(WELCOME);
        self.input(Input::MicrophoneReady);
    }

    fn up(&mut self) {
        self.connecting();
        self.input(Input::OfferCreated { sdp: "o".into() });
        self.frame(r#"{"type":"answer","sdp":"a"}"#);
        self.input(Input::MediaChanged(MediaState::Connected));
    }

    fn input(&mut self, input: Input) {
        self.call.handle(self.now_ms, input);
        self.drain();
    }

    fn frame(&mut self, frame: &str) {
        self.input(frame_input(frame));
    }

    fn created(&mut self, status: u16, body: &str) {
        let body: Option<Value> = serde_json::from_str(body).ok();
        self.input(Input::CreateAnswered(CreateAnswer::read(
            status,
            body.as_ref(),
        )));
    }

    fn message(&mut self, message: Value) {
        self.frame(&message.to_string());
    }

    fn candidate(&mut self, candidate: &str) {
        self.input(Input::LocalCandidate {
            candidate: Some(candidate.to_owned()),
            sdp_mid: None,
            sdp_m_line_index: Some(0),
        });
    }

    /// Lets time pass, with every timeout at its time.
    fn pass(&mut self, ms: u64) {
        let end_ms = self.now_ms + ms;
        while let Some(at_ms) = self.call.next_timeout().filter(|at_ms| *at_ms <= end_ms) {
            self.now_ms = self.now_ms.max(at_ms);
            self.input(Input::Timeout);
        }
        self.now_ms = end_ms;
    }

    fn drain(&mut self) {
        while let Some(output) = self.call.poll() {
            self.log.push(short(&output));
        }
    }

    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

/// What the browser makes of a frame.
pub(super) fn frame_input(frame: &str) -> Input {
    match serde_json::from_str::<Value>(frame) {
        Ok(value) => Input::SocketMessage(read_server_message(&value)),
        Err(_) => Input::SocketGarbage,
    }
}

fn short(output: &Output) -> String {
    match output {
        Output::Event(Event::StatusUpdate(status)) => format!("status {}", status.as_str()),
        Output::Event(Event::CallError { error, fatal }) => {
            let kind = if *fatal { "error" } else { "non-fatal" };
            format!("{kind} {}", error.code.as_str())
        }
        Output::Event(Event::CallStart { call_id: None }) => "onCallStart".into(),
        Output::Event(Event::CallStart { call_id: Some(id) }) => format!("onCallStart {id}"),
        Output::Event(Event::CallStarting) => "onCallStarting".into(),
        Output::Event(Event::Connected) => "onConnected".into(),
        Output::Event(event @ Event::HangUp(_)) => format!("onHangUp {}", argument(event)),
        Output::Event(Event::AudioBlockedChange(blocked)) => format!("blocked {blocked}"),
        Output::Event(event) => format!("{event:?}"),
        Output::Command(Command::Send(frame)) => format!("send {}", short_frame(frame)),
        Output::Command(Command::SendAndClose(frames)) => {
            let frames: Vec<_> = frames.iter().map(|frame| short_frame(frame)).collect();
            format!("send and close {}", frames.join(" "))
        }
        Output::Command(Command::CreateCall(_)) => "create".into(),
        Output::Command(Command::AcquireMicrophone) => "microphone".into(),
        Output::Command(Command::ReplaceMicrophone) => "another microphone".into(),
        Output::Command(Command::OpenSocket(_)) => "socket".into(),
        Output::Command(Command::CreatePeer(_)) => "peer".into(),
        Output::Command(Command::ApplyAnswer(_)) => "apply answer".into(),
        Output::Command(Command::AddCandidate { candidate, .. }) => {
            format!("add {}", candidate.as_deref().unwrap_or("end"))
        }
        Output::Command(Command::RestartIce) => "restart".into(),
        Output::Command(Command::MuteMicrophone(muted)) => format!("mute {muted}"),
        Output::Command(Command::CloseSocket) => "close socket".into(),
        Output::Command(Command::CloseEverything) => "close".into(),
    }
}

/// A callback's argument, when it is a word.
fn argument(event: &Event) -> String {
    match serde_json::to_value(event).unwrap() {
        Value::String(word) => word,
        other => panic!("{other}"),
    }
}

/// Every frame is a message of the definition.
fn short_frame(frame: &str) -> String {
    let message: ClientMessage = serde_json::from_str(frame).unwrap();
    let json = serde_json::to_value(message).unwrap();
    match &json["resume"] {
        Value::String(token) => format!("hello {token}"),
        _ => json["type"].as_str().unwrap().to_owned(),
    }
}
