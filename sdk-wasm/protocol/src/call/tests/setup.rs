//! How a call comes to its session and to its audio connection, and what stops it on the way.

use super::*;

#[test]
fn a_client_call_goes_through_the_documents_order() {
    let mut harness = Harness::client();
    assert_eq!(harness.take(), ["onCallStart", "create"]);
    harness.created(200, r#"{"data":{"signedUrl":"wss://h/s"}}"#);
    assert_eq!(harness.take(), ["status starting", "socket"]);
    harness.input(Input::SocketOpened);
    assert_eq!(harness.take(), ["send hello"]);
    assert_eq!(harness.call.call_id(), None);
    harness.frame(WELCOME);
    assert_eq!(harness.call.call_id(), Some("/v2/calls/1"));
    assert_eq!(harness.take(), ["microphone"]);
    harness.input(Input::MicrophoneReady);
    assert_eq!(harness.take(), ["onCallStarting", "peer"]);
    harness.candidate("early");
    harness.input(Input::OfferCreated { sdp: "o".into() });
    assert_eq!(harness.take(), ["send offer", "send candidate"]);
    harness.message(json!({"type": "candidate", "candidate": "theirs"}));
    harness.frame(r#"{"type":"answer","sdp":"a"}"#);
    assert_eq!(harness.take(), ["apply answer", "add theirs"]);
    harness.candidate("late");
    harness.message(json!({"type": "candidate", "candidate": null}));
    assert_eq!(harness.take(), ["send candidate", "add end"]);
    harness.message(json!({"type": "status", "state": "ongoing"}));
    assert!(harness.take().is_empty());
    harness.input(Input::MediaChanged(MediaState::Connected));
    assert_eq!(harness.take(), ["onConnected", "status ongoing"]);
    harness.input(Input::HangUp);
    assert_eq!(
        harness.take(),
        [
            "send and close hang_up",
            "close",
            "status completed",
            "onHangUp local"
        ]
    );
    harness.input(Input::HangUp);
    harness.input(Input::SocketClosed { code: 1000 });
    harness.pass(100_000);
    assert!(harness.take().is_empty());
    assert!(harness.call.is_over());
}

#[test]
fn a_server_call_needs_no_request() {
    let mut harness = Harness::server();
    assert_eq!(harness.take(), ["onCallStart", "status starting", "socket"]);
    harness.up();
    assert_eq!(harness.call.status(), Some(SessionState::Ongoing));
}

#[test]
fn a_signed_url_tells_the_calls_id_from_the_start() {
    let signed_url = "wss://h/v2/calls/7/session?sig=1".to_owned();
    let harness = Harness::start(Start::Server { signed_url }, Options::default());
    assert_eq!(harness.log[0], "onCallStart /v2/calls/7");
    assert_eq!(harness.call.call_id(), Some("/v2/calls/7"));
}

#[test]
fn nobody_is_asked_for_the_microphone_of_a_call_that_cannot_be() {
    for code in [4401, 4404, 4409, 4410, 4503, 1006] {
        let mut harness = Harness::server();
        harness.input(Input::SocketOpened);
        harness.input(Input::SocketClosed { code });
        assert!(!harness.log.contains(&"microphone".to_owned()), "{code}");
        assert!(harness.call.is_over());
    }
}

#[test]
fn the_session_is_kept_while_the_visitor_is_asked() {
    let mut harness = Harness::server();
    harness.input(Input::SocketOpened);
    harness.frame(WELCOME);
    harness.take();
    for _ in 0..20 {
        harness.pass(5_000);
        assert_eq!(harness.take(), ["send ping"]);
        harness.message(json!({"type": "pong", "t": 0}));
    }
    harness.input(Input::SocketClosed { code: 1006 });
    harness.input(Input::MicrophoneReady);
    assert_eq!(harness.take(), ["onCallStarting"]);
    harness.pass(250);
    harness.input(Input::SocketOpened);
    harness.frame(WELCOME);
    assert_eq!(
        harness.take(),
        ["socket", "send hello token-1", "send mute", "peer"]
    );
}

#[test]
fn a_blocked_connection_is_named() {
    let blocked = |harness: &mut Harness, url: &str| {
        harness.call.handle(
            harness.now_ms,
            Input::ConnectionBlocked {
                directive: "connect-src".into(),
                url: url.into(),
            },
        );
        let error = std::iter::from_fn(|| harness.call.poll()).find_map(|output| match output {
            Output::Event(Event::CallError { error, .. }) => Some(error),
            _ => None,
        });
        error.map(|error| (error.code, error.message))
    };
    let named = |origin: &str| {
        let message = format!(
            "The page's Content-Security-Policy blocks the backend. Add {origin} to connect-src."
        );
        Some((ErrorCode::Network, message))
    };
    let socket = named("wss://calls.example.org");
    for url in [
        "wss://calls.example.org",
        "wss://calls.example.org:443/s?x=1",
        "wss",
    ] {
        assert_eq!(blocked(&mut Harness::server(), url), socket, "{url}");
    }
    let request = named("https://calls.example.org");
    let url = "https://calls.example.org/v2/calls";
    assert_eq!(blocked(&mut Harness::client(), url), request);
    // Other connections of the page are none of the call's business.
    for url in ["https://other.example.org/x", "inline", "eval", ""] {
        assert_eq!(blocked(&mut Harness::server(), url), None, "{url}");
        assert_eq!(blocked(&mut Harness::client(), url), None, "{url}");
    }
    let open = &mut Harness::talking();
    assert_eq!(blocked(open, "wss://calls.example.org"), None);
}

#[test]
fn failures_before_the_session_are_told_before_the_hang_up() {
    let mut refused = Harness::client();
    refused.take();
    refused.created(401, "");
    assert_eq!(
        refused.take(),
        ["close", "error INVALID_KEY", "onHangUp error"]
    );
    assert_eq!(refused.call.status(), Some(SessionState::Error));

    let mut unreachable = Harness::client();
    unreachable.take();
    unreachable.input(Input::CreateFailed);
    assert_eq!(
        unreachable.take(),
        ["close", "error NETWORK", "onHangUp error"]
    );

    let mut silent = Harness::client();
    silent.take();
    silent.pass(crate::call::setup::CREATE_TIMEOUT_MS);
    assert_eq!(silent.take(), ["close", "error NETWORK", "onHangUp error"]);

    for (code, name) in [
        (ErrorCode::MicrophoneDenied, "MICROPHONE_DENIED"),
        (ErrorCode::MicrophoneMissing, "MICROPHONE_MISSING"),
        (ErrorCode::MicrophoneBusy, "MICROPHONE_BUSY"),
    ] {
        let mut harness = Harness::server();
        harness.input(Input::SocketOpened);
        harness.frame(WELCOME);
        harness.take();
        harness.input(Input::MicrophoneFailed(code));
        assert_eq!(
            harness.take(),
            [
                "send and close hang_up",
                "close",
                &format!("error {name}"),
                "status error",
                "onHangUp error"
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
        [
            "onCallStart",
            "close",
            "error INSECURE_CONTEXT",
            "onHangUp error"
        ]
    );
    let signed_url = "https://calls.example.org/page".to_owned();
    let harness = Harness::start(Start::Server { signed_url }, Options::default());
    assert_eq!(
        harness.log,
        [
            "onCallStart",
            "close",
            "error INVALID_ARGUMENT",
            "onHangUp error"
        ]
    );
    let metadata = Some(json!({"text": "x".repeat(MAX_FRAME_BYTES)}).to_string());
    let options = Options {
        metadata,
        ..Options::default()
    };
    let signed_url = "wss://h/s".to_owned();
    let harness = Harness::start(Start::Server { signed_url }, options);
    assert_eq!(
        harness.log,
        [
            "onCallStart",
            "close",
            "error INVALID_ARGUMENT",
            "onHangUp error"
        ]
    );
}

#[test]
fn a_signed_url_without_its_scheme_blames_the_argument_and_not_the_network() {
    for signed_url in [
        "calls.example.org/v2/calls/1/session?sig=1",
        "//calls.example.org/v2/calls/1/session",
        "/v2/calls/1/session",
        "wss:calls.example.org",
        "",
    ] {
        let signed_url = signed_url.to_owned();
        let mut call = Call::start(0, Start::Server { signed_url }, Options::default());
        let outputs: Vec<_> = std::iter::from_fn(|| call.poll()).collect();
        let opens = |output: &Output| matches!(output, Output::Command(Command::OpenSocket(_)));
        assert!(!outputs.iter().any(opens));
        let error = outputs.into_iter().find_map(|output| match output {
            Output::Event(Event::CallError { error, .. }) => Some(error),
            _ => None,
        });
        let error = error.unwrap();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
        let named = "(the signed URL must begin with wss:// or ws://)";
        assert!(error.message.ends_with(named), "{}", error.message);
    }
}
