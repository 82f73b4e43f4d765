//! The promises that hold for every sequence of events.

use proptest::prelude::*;

use super::*;
use crate::{Character, ClientMessage, CreateAnswer, NewCall};

#[derive(Debug, Clone)]
enum Step {
    Input(Input),
    Pass(u64),
}

fn frame(text: &str) -> Input {
    super::tests::frame_input(text)
}

fn created(status: u16, body: &str) -> Input {
    let body: Option<serde_json::Value> = serde_json::from_str(body).ok();
    Input::CreateAnswered(CreateAnswer::read(status, body.as_ref()))
}

fn step() -> impl Strategy<Value = Step> {
    let welcome = r#"{"type":"welcome","call_id":"c","character":null,"ice_servers":[],"resume":"r",
        "time_limit_seconds":600,"heartbeat_seconds":5}"#;
    let inputs = vec![
        created(200, r#"{"data":{"signedUrl":"wss://h/s"}}"#),
        Input::MicrophoneReady,
        Input::MicrophoneLost,
        Input::DevicesChanged,
        Input::SpeakerFailed,
        Input::PlaybackBlocked,
        Input::PlaybackStarted,
        Input::SocketOpened,
        frame(welcome),
        Input::OfferCreated { sdp: "o".into() },
        frame(r#"{"type":"answer","sdp":"a"}"#),
        Input::MediaChanged(MediaState::Connected),
        Input::MediaChanged(MediaState::Connecting),
        Input::MediaChanged(MediaState::PathFound),
        Input::MediaChanged(MediaState::Disconnected),
        Input::MediaChanged(MediaState::Failed),
        Input::SocketClosed { code: 1006 },
        Input::LocalCandidate {
            candidate: None,
            sdp_mid: None,
            sdp_m_line_index: None,
        },
        frame(r#"{"type":"candidate","candidate":"c"}"#),
        frame(r#"{"type":"status","state":"ongoing"}"#),
        frame(r#"{"type":"status","state":"reconnecting"}"#),
        frame(r#"{"type":"redirect","url":"wss://n/s"}"#),
        frame(r#"{"type":"pong","t":1}"#),
        frame(r#"{"type":"ping","t":1}"#),
        frame(r#"{"type":"error","code":"SERVER","message":"","fatal":false}"#),
        Input::Mute(true),
        Input::Mute(false),
        Input::Text("hello".into()),
        Input::Timeout,
    ];
    let endings = vec![
        Input::HangUp,
        Input::CreateFailed,
        created(500, ""),
        Input::MicrophoneFailed(ErrorCode::MicrophoneDenied),
        Input::ConnectionBlocked {
            directive: "connect-src".into(),
            url: "wss://h".into(),
        },
        Input::SocketClosed { code: 1000 },
        Input::SocketClosed { code: 4409 },
        Input::MediaFailed("bad answer".into()),
        frame(r#"{"type":"bye","reason":"hang_up"}"#),
        frame(r#"{"type":"bye","reason":"error","code":"SERVER"}"#),
        frame(r#"{"type":"status","state":"completed"}"#),
        frame(r#"{"type":"error","code":"CAPACITY","message":"","fatal":true}"#),
        frame("?"),
    ];
    prop_oneof![
        20 => proptest::sample::select(inputs).prop_map(Step::Input),
        1 => proptest::sample::select(endings).prop_map(Step::Input),
        4 => (0_u64..12_000).prop_map(Step::Pass),
    ]
}

fn begin(client: bool) -> Start {
    if client {
        Start::Client(NewCall {
            backend_url: "https://h".into(),
            partner: Some("repo:p".into()),
            character: Character::Saved("c".into()),
            key: "k".into(),
            time_limit_seconds: 60,
            character_params: None,
        })
    } else {
        let signed_url = "wss://h/s".to_owned();
        Start::Server { signed_url }
    }
}

/// What the browser side holds, and what it checks about every output.
#[derive(Default)]
struct Witness {
    events: Vec<Event>,
    closed: bool,
    socket_opened: bool,
    greeted: bool,
    has_socket: bool,
    peers: u32,
    asked: bool,
}

impl Witness {
    fn see(&mut self, output: Output) {
        match output {
            Output::Event(event) => {
                assert!(!self.is_hung_up(), "{event:?} after the hang-up");
                let first = self.events.is_empty();
                let is_start = matches!(event, Event::CallStart { .. });
                assert_eq!(first, is_start, "{event:?}");
                if matches!(event, Event::HangUp(_)) {
                    assert!(self.closed, "a hang-up before everything was closed");
                }
                if event == Event::Connected {
                    assert!(!self.events.contains(&Event::Connected));
                }
                self.events.push(event);
            }
            Output::Command(command) => {
                assert!(!self.closed, "{command:?} after everything was closed");
                self.execute(command);
            }
        }
    }

    fn is_hung_up(&self) -> bool {
        self.events.iter().any(|e| matches!(e, Event::HangUp(_)))
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::OpenSocket(_) => {
                self.has_socket = true;
                self.socket_opened = false;
                self.greeted = false;
            }
            Command::CloseSocket => self.has_socket = false,
            Command::SendAndClose(frames) => {
                let messages = frames.iter().map(|f| serde_json::from_str(f).unwrap());
                let messages: Vec<ClientMessage> = messages.collect();
                let greets = matches!(messages[0], ClientMessage::Hello { .. });
                // Without a socket it is not said.
                assert!(!self.has_socket || greets != self.greeted, "{messages:?}");
                assert_eq!(messages.last(), Some(&ClientMessage::HangUp));
            }
            Command::Send(message) => {
                assert!(self.has_socket && self.socket_opened, "{message:?}");
                let message: ClientMessage = serde_json::from_str(&message).unwrap();
                let is_hello = matches!(message, ClientMessage::Hello { .. });
                assert_eq!(is_hello, !self.greeted, "{message:?}");
                self.greeted = true;
            }
            Command::CreatePeer(_) => {
                self.peers += 1;
                assert!(self.peers <= 2, "a third peer connection");
                assert!(self.asked, "a peer connection before the microphone");
            }
            Command::ApplyAnswer(_) | Command::AddCandidate { .. } | Command::RestartIce => {
                assert!(self.peers > 0, "{command:?} without a peer connection");
            }
            Command::CloseEverything => self.closed = true,
            Command::AcquireMicrophone => {
                assert!(self.greeted && !self.asked, "asked before the session");
                self.asked = true;
            }
            Command::CreateCall(_) | Command::ReplaceMicrophone | Command::MuteMicrophone(_) => {}
        }
    }

    fn drain(&mut self, call: &mut Call) {
        while let Some(output) = call.poll() {
            self.see(output);
        }
    }

    fn happened(&mut self, input: &Input) {
        match input {
            Input::SocketOpened if self.has_socket => self.socket_opened = true,
            Input::SocketClosed { .. } => self.has_socket = false,
            _ => {}
        }
    }

    /// A browser reports only about a socket and a peer connection that it has.
    fn possible(&self, input: &Input) -> bool {
        match input {
            Input::SocketOpened => self.has_socket && !self.socket_opened,
            Input::SocketClosed { .. } => self.has_socket,
            Input::SocketMessage(_) => self.has_socket && self.socket_opened,
            Input::OfferCreated { .. }
            | Input::LocalCandidate { .. }
            | Input::MediaChanged(_)
            | Input::MediaFailed(_) => self.peers > 0,
            _ => true,
        }
    }

    fn check_end(&self) {
        let ends = self.events.iter().filter_map(|event| match event {
            Event::HangUp(reason) => Some(*reason),
            _ => None,
        });
        let ends: Vec<_> = ends.collect();
        assert_eq!(ends.len(), 1);
        assert!(matches!(self.events.last(), Some(Event::HangUp(_))));
        if self
            .events
            .contains(&Event::StatusUpdate(SessionState::Error))
        {
            let told = self
                .events
                .iter()
                .any(|e| matches!(e, Event::CallError { fatal: true, .. }));
            assert!(told, "an end in error without an error");
            assert_eq!(ends, [HangUpReason::Error]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_call_has_one_start_and_one_end(
        client: bool,
        steps in proptest::collection::vec(step(), 0..80),
    ) {
        let mut now_ms = 0;
        let mut call = Call::start(now_ms, begin(client), Options::default());
        let mut witness = Witness::default();
        witness.drain(&mut call);
        for step in steps {
            match step {
                Step::Pass(ms) => {
                    now_ms += ms;
                    call.handle(now_ms, Input::Timeout);
                }
                Step::Input(input) if witness.possible(&input) => {
                    witness.happened(&input);
                    call.handle(now_ms, input);
                }
                Step::Input(_) => {}
            }
            witness.drain(&mut call);
            prop_assert_eq!(call.is_over(), witness.closed);
        }
        call.handle(now_ms, Input::HangUp);
        witness.drain(&mut call);
        witness.check_end();
        prop_assert!(call.is_over());
        prop_assert_eq!(call.next_timeout(), None);
    }

    #[test]
    fn a_call_that_hears_nothing_more_ends_by_itself(
        client: bool,
        steps in proptest::collection::vec(step(), 0..40),
    ) {
        let mut now_ms = 0;
        let mut call = Call::start(now_ms, begin(client), Options::default());
        let mut witness = Witness::default();
        witness.drain(&mut call);
        for step in steps {
            if let Step::Input(input) = step && witness.possible(&input) {
                witness.happened(&input);
                call.handle(now_ms, input);
                witness.drain(&mut call);
            }
        }
        let mut turns = 0;
        while let Some(at_ms) = call.next_timeout() {
            turns += 1;
            prop_assert!(turns < 200, "timers that never end the call");
            now_ms = now_ms.max(at_ms);
            call.handle(now_ms, Input::Timeout);
            witness.drain(&mut call);
        }
        prop_assert!(call.is_over());
        prop_assert!(now_ms < 120_000);
    }
}
