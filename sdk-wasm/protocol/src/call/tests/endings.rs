//! How a call ends: by the application, by a failure, by the server.

use super::*;

#[test]
fn a_hang_up_at_any_moment_is_one_hang_up() {
    let mut during_creation = Harness::client();
    during_creation.take();
    during_creation.input(Input::HangUp);
    assert_eq!(during_creation.take(), ["close", "onHangUp local"]);
    assert_eq!(during_creation.call.status(), Some(SessionState::Completed));
    during_creation.created(200, "{}");
    assert!(during_creation.take().is_empty());

    let mut during_permission = Harness::server();
    during_permission.input(Input::SocketOpened);
    during_permission.frame(WELCOME);
    during_permission.take();
    during_permission.input(Input::HangUp);
    during_permission.input(Input::MicrophoneReady);
    assert_eq!(
        during_permission.take(),
        [
            "send and close hang_up",
            "close",
            "status completed",
            "onHangUp local"
        ]
    );

    let mut during_connect = Harness::server();
    during_connect.take();
    during_connect.input(Input::HangUp);
    during_connect.input(Input::SocketOpened);
    assert_eq!(
        during_connect.take(),
        [
            "send and close hello hang_up",
            "close",
            "status completed",
            "onHangUp local"
        ]
    );
}

#[test]
fn a_server_that_is_away_is_told_of_a_hang_up_all_the_same() {
    let mut waiting = Harness::talking();
    waiting.input(Input::SocketClosed { code: 1006 });
    waiting.take();
    waiting.input(Input::HangUp);
    let end = ["close", "status completed", "onHangUp local"];
    assert_eq!(
        waiting.log[..2],
        ["socket", "send and close hello token-1 hang_up"]
    );
    assert_eq!(waiting.log[2..], end);

    let mut coming_back = Harness::talking();
    coming_back.input(Input::SocketClosed { code: 1006 });
    coming_back.pass(250);
    coming_back.take();
    coming_back.input(Input::HangUp);
    assert_eq!(coming_back.log[0], "send and close hello token-1 hang_up");
    assert_eq!(coming_back.log[1..], end);
}

#[test]
fn a_call_that_its_own_side_gives_up_is_hung_up() {
    let mut harness = Harness::talking();
    harness.input(Input::MediaFailed("bad answer".into()));
    assert_eq!(
        harness.take(),
        [
            "send and close hang_up",
            "close",
            "error MEDIA",
            "status error",
            "onHangUp error"
        ]
    );
    let mut harness = Harness::server();
    harness.input(Input::SocketOpened);
    harness.frame(WELCOME);
    harness.take();
    harness.input(Input::MicrophoneFailed(ErrorCode::MicrophoneDenied));
    assert_eq!(harness.take()[0], "send and close hang_up");
}

#[test]
fn a_hang_up_inside_a_callback_drops_what_was_about_to_be_done() {
    let signed_url = "wss://h/s".to_owned();
    let mut call = Call::start(0, Start::Server { signed_url }, Options::default());
    assert!(matches!(
        call.poll(),
        Some(Output::Event(Event::CallStart { .. }))
    ));
    call.handle(0, Input::HangUp);
    let rest: Vec<_> = std::iter::from_fn(|| call.poll())
        .map(|o| short(&o))
        .collect();
    assert_eq!(
        rest,
        [
            "status starting",
            "send and close hello hang_up",
            "close",
            "status completed",
            "onHangUp local"
        ]
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
        (4429, "RATE_LIMITED"),
        (4503, "CAPACITY"),
        (1006, "NETWORK"),
    ] {
        let mut harness = Harness::server();
        harness.take();
        harness.input(Input::SocketClosed { code: number });
        assert_eq!(
            harness.take(),
            [
                "close",
                &format!("error {name}"),
                "status error",
                "onHangUp error"
            ]
        );
    }
    let mut harness = Harness::server();
    harness.input(Input::SocketOpened);
    harness.take();
    harness.message(
        json!({"type": "error", "code": "URL_EXPIRED", "message": "expired", "fatal": true}),
    );
    harness.input(Input::SocketClosed { code: 4410 });
    assert_eq!(
        harness.take(),
        [
            "close",
            "error URL_EXPIRED",
            "status error",
            "onHangUp error"
        ]
    );
}

#[test]
fn the_servers_bye_ends_the_call_by_its_reason() {
    for (reason, told) in [
        ("hang_up", "onHangUp remote"),
        ("time_limit", "onHangUp time_limit"),
        ("shutdown", "onHangUp shutdown"),
    ] {
        let mut harness = Harness::talking();
        harness.message(json!({"type": "bye", "reason": reason}));
        assert_eq!(harness.take(), ["close", "status completed", told]);
    }
    let mut harness = Harness::talking();
    harness.message(json!({"type": "bye", "reason": "error", "code": "RATE_LIMITED"}));
    assert_eq!(
        harness.take(),
        [
            "close",
            "error RATE_LIMITED",
            "status error",
            "onHangUp error"
        ]
    );
    let mut harness = Harness::talking();
    harness.message(json!({"type": "bye", "reason": "error", "code": "MODEL_DOWN"}));
    assert_eq!(harness.take()[1], "error SERVER");
    let mut harness = Harness::talking();
    harness.message(json!({"type": "bye", "reason": "replaced"}));
    assert_eq!(harness.take()[1], "error CALL_IN_USE");
}

#[test]
fn a_server_that_ends_without_bye_is_understood_too() {
    let mut harness = Harness::talking();
    harness.message(json!({"type": "status", "state": "completed"}));
    assert_eq!(
        harness.take(),
        ["close", "status completed", "onHangUp remote"]
    );
    let mut harness = Harness::talking();
    harness.input(Input::SocketClosed { code: 1000 });
    assert_eq!(
        harness.take(),
        ["close", "status completed", "onHangUp remote"]
    );
    let mut harness = Harness::talking();
    harness.message(json!({"type": "status", "state": "error"}));
    harness.input(Input::SocketClosed { code: 1006 });
    assert_eq!(
        harness.take(),
        ["close", "error SERVER", "status error", "onHangUp error"]
    );
}

#[test]
fn a_line_that_is_open_when_the_call_ends_becomes_final_before_its_log_is_closed() {
    let line = |id: &str, is_final: bool| json!({"type": "transcript", "id": id, "originator": "bot", "text": id, "final": is_final, "at_ms": 7});
    for (end, told) in [
        (Input::HangUp, "onHangUp local"),
        (Input::SocketClosed { code: 4503 }, "onHangUp error"),
    ] {
        let mut harness = Harness::talking();
        harness.message(line("first", false));
        harness.message(line("first", true));
        harness.message(line("second", false));
        harness.message(line("second", false));
        harness.take();
        harness.input(end);
        let log = harness.take();
        let finals = log.iter().filter(|event| event.contains("is_final"));
        let finals: Vec<_> = finals.collect();
        assert_eq!(finals.len(), 1, "{log:?}");
        assert!(finals[0].contains("\"second\"") && finals[0].contains("is_final: true"));
        let place = |wanted: &str| log.iter().position(|event| event == wanted).unwrap();
        let shown = log.iter().position(|event| event == finals[0]).unwrap();
        assert!(
            shown < place("close") && place("close") < place(told),
            "{log:?}"
        );
    }
}

#[test]
fn a_backend_that_cannot_be_reached_is_named() {
    let message = |call: &mut Call| {
        let errors = std::iter::from_fn(|| call.poll()).filter_map(|output| match output {
            Output::Event(Event::CallError { error, .. }) => Some(error),
            _ => None,
        });
        let errors: Vec<_> = errors.collect();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].code, ErrorCode::Network);
        errors[0].message.clone()
    };
    let mut created = Harness::client().call;
    created.handle(0, Input::CreateFailed);
    let failed = message(&mut created);
    assert!(
        failed.ends_with("(POST https://calls.example.org/v2/calls)"),
        "{failed}"
    );

    let mut late = Harness::client().call;
    late.handle(20_000, Input::Timeout);
    assert_eq!(message(&mut late), failed);

    // What signs the URL is not told.
    let signed_url = "wss://h/v2/calls/1/session?expires=1&signature=hidden".to_owned();
    let mut call = Harness::start(Start::Server { signed_url }, Options::default()).call;
    call.handle(0, Input::SocketClosed { code: 1006 });
    let failed = message(&mut call);
    assert!(
        failed.contains("at wss://h/v2/calls/1/session. Check"),
        "{failed}"
    );
    assert!(
        failed.contains("Upgrade") && !failed.contains("hidden"),
        "{failed}"
    );
}
