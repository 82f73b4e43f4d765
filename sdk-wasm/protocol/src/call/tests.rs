//! The call state machine along every path that a call can take.

mod losses;
mod microphone;

use serde_json::{Value, json};

use super::*;
use crate::{AgentState, Character, ClientMessage, NewCall, read_server_message};

const WELCOME: &str = r#"{"type":"welcome","call_id":"/v2/calls/1","character":"Guide","ice_servers":[],
    "resume":"token-1","time_limit_seconds":600,"heartbeat_seconds":5}"#;

/// A call, its clock, and what it has said so far in short words.
struct Scene {
    call: Call,
    now_ms: u64,
    log: Vec<String>,
}

impl Scene {
    fn start(start: Start, options: Options) -> Self {
        let mut scene = Self {
            call: Call::start(0, start, options),
            now_ms: 0,
            log: Vec::new(),
        };
        scene.drain();
        scene
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
        let mut scene = Self::server();
        scene.up();
        scene.log.clear();
        scene
    }

    fn up(&mut self) {
        self.input(Input::MicrophoneReady);
        self.input(Input::SocketOpened);
        self.frame(WELCOME);
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
            let kind = if *fatal { "error" } else { "trouble" };
            format!("{kind} {}", error.code.as_str())
        }
        Output::Event(Event::CallStart) => "onCallStart".into(),
        Output::Event(Event::CallStarting) => "onCallStarting".into(),
        Output::Event(Event::Connected) => "onConnected".into(),
        Output::Event(Event::HangUp) => "onHangUp".into(),
        Output::Event(Event::AudioBlockedChange(blocked)) => format!("blocked {blocked}"),
        Output::Event(event) => format!("{event:?}"),
        Output::Command(Command::Send(frame)) => format!("send {}", short_frame(frame)),
        Output::Command(Command::SayGoodbye(frames)) => {
            let frames: Vec<_> = frames.iter().map(|frame| short_frame(frame)).collect();
            format!("goodbye {}", frames.join(" "))
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

/// Every frame is a message of the definition.
fn short_frame(frame: &str) -> String {
    let message: ClientMessage = serde_json::from_str(frame).unwrap();
    let json = serde_json::to_value(message).unwrap();
    match &json["resume"] {
        Value::String(token) => format!("hello {token}"),
        _ => json["type"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn a_client_call_goes_through_the_documents_order() {
    let mut scene = Scene::client();
    assert_eq!(scene.take(), ["onCallStart", "create"]);
    scene.created(200, r#"{"data":{"signedUrl":"wss://h/s"}}"#);
    assert_eq!(scene.take(), ["status starting", "microphone"]);
    scene.input(Input::MicrophoneReady);
    assert_eq!(scene.take(), ["onCallStarting", "socket"]);
    scene.input(Input::SocketOpened);
    assert_eq!(scene.take(), ["send hello"]);
    scene.frame(WELCOME);
    assert_eq!(scene.take(), ["peer"]);
    scene.candidate("early");
    scene.input(Input::OfferCreated { sdp: "o".into() });
    assert_eq!(scene.take(), ["send offer", "send candidate"]);
    scene.message(json!({"type": "candidate", "candidate": "theirs"}));
    scene.frame(r#"{"type":"answer","sdp":"a"}"#);
    assert_eq!(scene.take(), ["apply answer", "add theirs"]);
    scene.candidate("late");
    scene.message(json!({"type": "candidate", "candidate": null}));
    assert_eq!(scene.take(), ["send candidate", "add end"]);
    scene.message(json!({"type": "status", "state": "ongoing"}));
    assert!(scene.take().is_empty());
    scene.input(Input::MediaChanged(MediaState::Connected));
    assert_eq!(scene.take(), ["onConnected", "status ongoing"]);
    scene.input(Input::HangUp);
    assert_eq!(
        scene.take(),
        ["goodbye hang_up", "close", "status completed", "onHangUp"]
    );
    scene.input(Input::HangUp);
    scene.input(Input::SocketClosed { code: 1000 });
    scene.pass(100_000);
    assert!(scene.take().is_empty());
    assert!(scene.call.is_over());
}

#[test]
fn a_server_call_needs_no_request() {
    let mut scene = Scene::server();
    assert_eq!(
        scene.take(),
        ["onCallStart", "status starting", "microphone"]
    );
    scene.up();
    assert_eq!(scene.call.status(), Some(SessionState::Ongoing));
}

#[test]
fn a_hang_up_at_any_moment_is_one_hang_up() {
    let mut during_creation = Scene::client();
    during_creation.take();
    during_creation.input(Input::HangUp);
    assert_eq!(during_creation.take(), ["close", "onHangUp"]);
    assert_eq!(during_creation.call.status(), Some(SessionState::Completed));
    during_creation.created(200, "{}");
    assert!(during_creation.take().is_empty());

    let mut during_permission = Scene::server();
    during_permission.take();
    during_permission.input(Input::HangUp);
    during_permission.input(Input::MicrophoneReady);
    assert_eq!(
        during_permission.take(),
        ["close", "status completed", "onHangUp"]
    );

    let mut during_connect = Scene::server();
    during_connect.input(Input::MicrophoneReady);
    during_connect.take();
    during_connect.input(Input::HangUp);
    during_connect.input(Input::SocketOpened);
    assert_eq!(
        during_connect.take(),
        [
            "goodbye hello hang_up",
            "close",
            "status completed",
            "onHangUp"
        ]
    );
}

#[test]
fn a_server_that_is_away_is_told_of_a_hang_up_all_the_same() {
    let mut waiting = Scene::talking();
    waiting.input(Input::SocketClosed { code: 1006 });
    waiting.take();
    waiting.input(Input::HangUp);
    let end = ["close", "status completed", "onHangUp"];
    assert_eq!(
        waiting.log[..2],
        ["socket", "goodbye hello token-1 hang_up"]
    );
    assert_eq!(waiting.log[2..], end);

    let mut coming_back = Scene::talking();
    coming_back.input(Input::SocketClosed { code: 1006 });
    coming_back.pass(250);
    coming_back.take();
    coming_back.input(Input::HangUp);
    assert_eq!(coming_back.log[0], "goodbye hello token-1 hang_up");
    assert_eq!(coming_back.log[1..], end);
}

#[test]
fn a_call_that_its_own_side_gives_up_is_hung_up() {
    let mut scene = Scene::talking();
    scene.input(Input::MediaFailed("bad answer".into()));
    assert_eq!(
        scene.take(),
        [
            "goodbye hang_up",
            "close",
            "error MEDIA",
            "status error",
            "onHangUp"
        ]
    );
    // Nobody has used the URL of a call that had no microphone.
    let mut scene = Scene::server();
    scene.take();
    scene.input(Input::MicrophoneFailed(ErrorCode::MicrophoneDenied));
    assert_eq!(scene.take()[0], "close");
}

#[test]
fn a_hang_up_inside_a_callback_drops_what_was_about_to_be_done() {
    let signed_url = "wss://h/s".to_owned();
    let mut call = Call::start(0, Start::Server { signed_url }, Options::default());
    assert_eq!(call.poll(), Some(Output::Event(Event::CallStart)));
    call.handle(0, Input::HangUp);
    let rest: Vec<_> = std::iter::from_fn(|| call.poll())
        .map(|o| short(&o))
        .collect();
    assert_eq!(
        rest,
        ["status starting", "close", "status completed", "onHangUp"]
    );
}

#[test]
fn failures_before_the_session_are_told_before_the_hang_up() {
    let mut refused = Scene::client();
    refused.take();
    refused.created(401, "");
    assert_eq!(refused.take(), ["close", "error INVALID_KEY", "onHangUp"]);
    assert_eq!(refused.call.status(), Some(SessionState::Error));

    let mut unreachable = Scene::client();
    unreachable.take();
    unreachable.input(Input::CreateFailed);
    assert_eq!(unreachable.take(), ["close", "error NETWORK", "onHangUp"]);

    let mut silent = Scene::client();
    silent.take();
    silent.pass(CREATE_TIMEOUT_MS);
    assert_eq!(silent.take(), ["close", "error NETWORK", "onHangUp"]);

    for (code, name) in [
        (ErrorCode::MicrophoneDenied, "MICROPHONE_DENIED"),
        (ErrorCode::MicrophoneMissing, "MICROPHONE_MISSING"),
        (ErrorCode::MicrophoneBusy, "MICROPHONE_BUSY"),
    ] {
        let mut scene = Scene::server();
        scene.take();
        scene.input(Input::MicrophoneFailed(code));
        assert_eq!(
            scene.take(),
            [
                "close",
                &format!("error {name}"),
                "status error",
                "onHangUp"
            ]
        );
    }
}

#[test]
fn a_call_known_to_be_impossible_still_has_a_start_and_an_end() {
    let mut call = Call::refused(ErrorCode::InsecureContext.into());
    let said: Vec<_> = std::iter::from_fn(|| call.poll())
        .map(|o| short(&o))
        .collect();
    assert_eq!(
        said,
        ["onCallStart", "close", "error INSECURE_CONTEXT", "onHangUp"]
    );
    let signed_url = "https://calls.example.org/page".to_owned();
    let scene = Scene::start(Start::Server { signed_url }, Options::default());
    assert_eq!(
        scene.log,
        ["onCallStart", "close", "error INVALID_ARGUMENT", "onHangUp"]
    );
    let metadata = Some(json!({"text": "x".repeat(MAX_FRAME_BYTES)}).to_string());
    let options = Options {
        metadata,
        ..Options::default()
    };
    let signed_url = "wss://h/s".to_owned();
    let scene = Scene::start(Start::Server { signed_url }, options);
    assert_eq!(
        scene.log,
        ["onCallStart", "close", "error INVALID_ARGUMENT", "onHangUp"]
    );
}

#[test]
fn close_codes_and_fatal_errors_become_stable_codes() {
    for (number, name) in [
        (4400, "PROTOCOL"),
        (4401, "INVALID_SIGNATURE"),
        (4404, "CALL_NOT_FOUND"),
        (4409, "CALL_IN_USE"),
        (4410, "URL_EXPIRED"),
        (4503, "CAPACITY"),
        (1006, "NETWORK"),
    ] {
        let mut scene = Scene::server();
        scene.input(Input::MicrophoneReady);
        scene.take();
        scene.input(Input::SocketClosed { code: number });
        assert_eq!(
            scene.take(),
            [
                "close",
                &format!("error {name}"),
                "status error",
                "onHangUp"
            ]
        );
    }
    let mut scene = Scene::server();
    scene.input(Input::MicrophoneReady);
    scene.input(Input::SocketOpened);
    scene.take();
    scene.message(
        json!({"type": "error", "code": "URL_EXPIRED", "message": "expired", "fatal": true}),
    );
    scene.input(Input::SocketClosed { code: 4410 });
    assert_eq!(
        scene.take(),
        ["close", "error URL_EXPIRED", "status error", "onHangUp"]
    );
}

#[test]
fn the_servers_bye_ends_the_call_by_its_reason() {
    for reason in ["hang_up", "time_limit", "shutdown"] {
        let mut scene = Scene::talking();
        scene.message(json!({"type": "bye", "reason": reason}));
        assert_eq!(scene.take(), ["close", "status completed", "onHangUp"]);
    }
    let mut scene = Scene::talking();
    scene.message(json!({"type": "bye", "reason": "error", "code": "RATE_LIMITED"}));
    assert_eq!(
        scene.take(),
        ["close", "error RATE_LIMITED", "status error", "onHangUp"]
    );
    let mut scene = Scene::talking();
    scene.message(json!({"type": "bye", "reason": "error", "code": "MODEL_DOWN"}));
    assert_eq!(scene.take()[1], "error SERVER");
    let mut scene = Scene::talking();
    scene.message(json!({"type": "bye", "reason": "replaced"}));
    assert_eq!(scene.take()[1], "error CALL_IN_USE");
}

#[test]
fn a_server_that_ends_without_bye_is_understood_too() {
    let mut scene = Scene::talking();
    scene.message(json!({"type": "status", "state": "completed"}));
    assert_eq!(scene.take(), ["close", "status completed", "onHangUp"]);
    let mut scene = Scene::talking();
    scene.input(Input::SocketClosed { code: 1000 });
    assert_eq!(scene.take(), ["close", "status completed", "onHangUp"]);
    let mut scene = Scene::talking();
    scene.message(json!({"type": "status", "state": "error"}));
    scene.input(Input::SocketClosed { code: 1006 });
    assert_eq!(
        scene.take(),
        ["close", "error SERVER", "status error", "onHangUp"]
    );
}

#[test]
fn a_passing_error_is_told_and_the_call_goes_on() {
    let mut scene = Scene::talking();
    scene.message(json!({"type": "error", "code": "SERVER", "message": "slow", "fatal": false}));
    assert_eq!(scene.take(), ["trouble SERVER"]);
    assert!(!scene.call.is_ended());
}

#[test]
fn a_newer_server_is_tolerated_and_something_else_is_not() {
    let mut scene = Scene::talking();
    scene.frame(r#"{"type":"weather"}"#);
    scene.frame(r#"{"type":"agent_state","state":"dreaming"}"#);
    assert!(scene.take().is_empty());
    scene.frame("<html>");
    assert_eq!(scene.take()[1], "error PROTOCOL");
}

#[test]
fn news_of_the_conversation_reach_the_application_with_roles() {
    let mut scene = Scene::talking();
    scene.message(
        json!({"type": "transcript", "id": "1", "originator": "bot", "text": "Hello.",
        "final": true, "at_ms": 7}),
    );
    scene.message(
        json!({"type": "transcript", "id": "2", "originator": "user", "text": "Hi",
        "final": false, "at_ms": 9}),
    );
    scene.message(json!({"type": "agent_state", "state": "thinking"}));
    scene.message(json!({"type": "user_info", "info": "likes tea"}));
    scene.message(json!({"type": "rag_info", "total_tokens": 12,
        "documents": [{"title": "Tea", "fusion_score": 0.5, "token_count": 12}]}));
    let log = scene.take();
    assert!(log[0].contains("role: \"Guide\""), "{}", log[0]);
    assert!(log[1].contains("role: \"You\""), "{}", log[1]);
    assert_eq!(
        log[2],
        format!("{:?}", Event::AgentStateChange(AgentState::Thinking))
    );
    assert!(log[3].contains("likes tea"));
    assert!(log[4].contains("count: 1"), "{}", log[4]);
}

#[test]
fn mute_is_told_once_and_again_after_a_reconnect() {
    let mut scene = Scene::talking();
    scene.input(Input::Mute(true));
    scene.input(Input::Mute(true));
    assert_eq!(scene.take(), ["mute true", "send mute"]);
    scene.input(Input::SocketClosed { code: 1006 });
    scene.input(Input::Mute(false));
    scene.input(Input::Mute(true));
    scene.take();
    scene.pass(250);
    scene.input(Input::SocketOpened);
    scene.call.handle(scene.now_ms, frame_input(WELCOME));
    let sent = std::iter::from_fn(|| scene.call.poll())
        .filter(|o| *o == Output::Command(Command::Send(frames::mute(true))));
    assert_eq!(sent.count(), 1);

    let options = Options {
        muted: true,
        ..Options::default()
    };
    let signed_url = "wss://h/s".to_owned();
    let mut scene = Scene::start(Start::Server { signed_url }, options);
    scene.up();
    assert!(scene.take().contains(&"send mute".to_owned()));
}

#[test]
fn typed_turns_are_sent_when_they_can_be() {
    let mut scene = Scene::talking();
    scene.input(Input::Text("hello".into()));
    scene.input(Input::Text("  ".into()));
    // Characters count, not bytes, and not the blanks around them.
    scene.input(Input::Text(format!(" {} ", "é".repeat(MAX_TEXT_CHARS))));
    scene.input(Input::Text("x".repeat(MAX_TEXT_CHARS + 1)));
    assert_eq!(scene.take(), ["send text", "send text"]);
    assert!(!Scene::server().call.accepts_text("hello"));
}
