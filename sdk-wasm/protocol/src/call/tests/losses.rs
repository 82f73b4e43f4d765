//! Heartbeats, lost sockets and lost media.

use super::*;

#[test]
fn heartbeats_are_sent_and_three_silent_ones_are_a_loss() {
    let mut harness = Harness::talking();
    harness.pass(5_000);
    assert_eq!(harness.take(), ["send ping"]);
    harness.message(json!({"type": "pong", "t": 5000}));
    harness.pass(15_000);
    assert_eq!(harness.take(), ["send ping", "send ping", "send ping"]);
    harness.pass(5_000);
    assert_eq!(harness.take(), ["close socket", "status reconnecting"]);
    harness.pass(250);
    assert_eq!(harness.take(), ["socket"]);
}

#[test]
fn the_servers_ping_is_answered() {
    let mut harness = Harness::talking();
    harness.message(json!({"type": "ping", "t": 3}));
    assert_eq!(harness.take(), ["send pong"]);
}

#[test]
fn a_lost_socket_comes_back_with_the_resume_token() {
    let mut harness = Harness::talking();
    harness.input(Input::SocketClosed { code: 1006 });
    assert_eq!(harness.take(), ["status reconnecting"]);
    harness.pass(250);
    assert_eq!(harness.take(), ["socket"]);
    harness.input(Input::SocketClosed { code: 1006 });
    harness.input(Input::Text("hello".into()));
    harness.pass(500);
    assert_eq!(harness.take(), ["socket"]);
    harness.input(Input::SocketOpened);
    assert_eq!(harness.take(), ["send hello token-1"]);
    harness.frame(&WELCOME.replace("token-1", "token-2"));
    assert_eq!(harness.take(), ["send mute", "send text", "status ongoing"]);
    harness.input(Input::SocketClosed { code: 1006 });
    harness.pass(250);
    harness.input(Input::SocketOpened);
    assert_eq!(harness.take().last().unwrap(), "send hello token-2");
}

#[test]
fn what_is_typed_meanwhile_is_kept_or_refused() {
    let mut harness = Harness::talking();
    harness.input(Input::SocketClosed { code: 1006 });
    let taken = (0..100).filter(|_| {
        let taken = harness.call.accepts_text("hello");
        harness.call.handle(0, Input::Text("hello".into()));
        taken
    });
    let taken = taken.count();
    harness.take();
    harness.pass(250);
    harness.input(Input::SocketOpened);
    harness.frame(WELCOME);
    let log = harness.take();
    let sent = log.iter().filter(|line| *line == "send text").count();
    assert_eq!((taken, sent), (64, 64));
    assert!(harness.call.accepts_text("hello"));
}

#[test]
fn the_largest_metadata_leaves_room_to_come_back() {
    let around = frames::hello(Some(r#"{"a":""}"#), false).len();
    let metadata = json!({"a": "x".repeat(MAX_FRAME_BYTES - around)}).to_string();
    let options = Options {
        metadata: Some(metadata.clone()),
        ..Options::default()
    };
    let signed_url = "wss://h/s".to_owned();
    let mut harness = Harness::start(Start::Server { signed_url }, options);
    let hello = |harness: &mut Harness| {
        harness.call.handle(harness.now_ms, Input::SocketOpened);
        match harness.call.poll() {
            Some(Output::Command(Command::Send(frame))) => frame,
            other => panic!("no hello but {other:?}"),
        }
    };
    let first = hello(&mut harness);
    assert_eq!(first.len(), MAX_FRAME_BYTES);
    assert!(first.contains(&metadata));
    harness.frame(WELCOME);
    harness.input(Input::SocketClosed { code: 1006 });
    harness.pass(250);
    let second = hello(&mut harness);
    assert_eq!(second, frames::resume("token-1"));
}

#[test]
fn a_socket_that_stays_away_ends_the_call_after_thirty_seconds() {
    let mut harness = Harness::talking();
    harness.input(Input::SocketClosed { code: 1006 });
    for _ in 0..100 {
        harness.pass(290);
        harness.input(Input::SocketClosed { code: 1006 });
    }
    assert!(!harness.call.is_ended());
    harness.pass(1_000);
    let log = harness.take();
    assert_eq!(
        log[log.len() - 4..],
        ["close", "error NETWORK", "status error", "onHangUp error"]
    );
    assert!(log.iter().filter(|line| *line == "socket").count() < 15);
}

#[test]
fn an_old_session_that_the_server_forgot_ends_the_call() {
    let mut harness = Harness::talking();
    harness.input(Input::SocketClosed { code: 1006 });
    harness.pass(250);
    harness.input(Input::SocketClosed { code: 4404 });
    assert!(harness.take().contains(&"error CALL_NOT_FOUND".to_owned()));
}

#[test]
fn lost_media_restarts_ice() {
    let mut harness = Harness::talking();
    harness.input(Input::MediaChanged(MediaState::Disconnected));
    assert!(harness.take().is_empty());
    harness.pass(3_000);
    assert_eq!(harness.take(), ["status reconnecting", "restart"]);
    harness.input(Input::OfferCreated { sdp: "o2".into() });
    harness.frame(r#"{"type":"answer","sdp":"a2"}"#);
    harness.input(Input::MediaChanged(MediaState::Connected));
    assert_eq!(
        harness.take(),
        ["send offer", "apply answer", "status ongoing"]
    );
    harness.input(Input::MediaChanged(MediaState::Failed));
    assert_eq!(harness.take(), ["status reconnecting", "restart"]);
}

#[test]
fn a_short_disturbance_of_the_media_is_nothing() {
    let mut harness = Harness::talking();
    harness.input(Input::MediaChanged(MediaState::Disconnected));
    harness.pass(2_000);
    harness.input(Input::MediaChanged(MediaState::Connected));
    harness.pass(2_000);
    assert!(harness.take().is_empty());
}

#[test]
fn media_that_stays_away_ends_the_call() {
    let mut harness = Harness::talking();
    harness.input(Input::MediaChanged(MediaState::Failed));
    for _ in 0..30 {
        harness.pass(999);
        harness.message(json!({"type": "pong", "t": 0}));
    }
    assert!(!harness.call.is_ended());
    harness.pass(31);
    assert!(harness.take().contains(&"error MEDIA".to_owned()));
}

#[test]
fn a_late_answer_to_a_replaced_offer_is_not_applied() {
    let mut harness = Harness::talking();
    harness.input(Input::MediaChanged(MediaState::Failed));
    harness.input(Input::OfferCreated { sdp: "o2".into() });
    harness.pass(4_000);
    harness.message(json!({"type": "pong", "t": 0}));
    harness.pass(4_000);
    harness.input(Input::OfferCreated { sdp: "o3".into() });
    harness.take();
    harness.frame(r#"{"type":"answer","sdp":"a2"}"#);
    assert!(harness.take().is_empty());
    harness.frame(r#"{"type":"answer","sdp":"a3"}"#);
    assert_eq!(harness.take(), ["apply answer"]);
}

#[test]
fn an_offer_that_a_lost_socket_swallowed_is_made_again() {
    let mut harness = Harness::server();
    harness.connecting();
    harness.input(Input::OfferCreated { sdp: "o".into() });
    harness.input(Input::SocketClosed { code: 1006 });
    harness.pass(250);
    harness.input(Input::SocketOpened);
    harness.take();
    harness.frame(WELCOME);
    assert_eq!(harness.take(), ["send mute", "restart"]);
}

#[test]
fn a_lost_socket_and_lost_media_come_back_together() {
    let mut harness = Harness::talking();
    harness.input(Input::SocketClosed { code: 1006 });
    harness.input(Input::MediaChanged(MediaState::Failed));
    harness.pass(250);
    assert_eq!(harness.take(), ["status reconnecting", "socket"]);
    harness.input(Input::SocketOpened);
    harness.frame(WELCOME);
    assert_eq!(
        harness.take(),
        ["send hello token-1", "send mute", "restart"]
    );
    harness.input(Input::MediaChanged(MediaState::Connected));
    assert_eq!(harness.take(), ["status ongoing"]);
}

/// A call whose first peer connection has made its offer and got an answer.
fn negotiated() -> Harness {
    let mut harness = Harness::server();
    harness.connecting();
    harness.input(Input::OfferCreated { sdp: "o".into() });
    harness.frame(r#"{"type":"answer","sdp":"a"}"#);
    harness.take();
    harness
}

/// Lets time pass in which the server is heard.
fn hold(harness: &mut Harness, ms: u64) {
    for _ in 0..ms / 1_000 {
        harness.pass(1_000);
        harness.message(json!({"type": "pong", "t": 0}));
    }
    harness.log.retain(|line| line != "send ping");
}

/// The message of a call that failed.
fn error_after(harness: &mut Harness, input: Input) -> CallError {
    harness.call.handle(harness.now_ms, input);
    let error = std::iter::from_fn(|| harness.call.poll()).find_map(|output| match output {
        Output::Event(Event::CallError { error, .. }) => Some(error),
        _ => None,
    });
    error.unwrap()
}

#[test]
fn a_first_connection_that_does_not_come_up_is_replaced_once() {
    for failed in [true, false] {
        let mut harness = negotiated();
        if failed {
            harness.input(Input::MediaChanged(MediaState::Failed));
        } else {
            hold(&mut harness, 7_000);
            assert!(harness.take().is_empty());
            hold(&mut harness, 1_000);
        }
        assert_eq!(harness.take(), ["peer"]);
        harness.candidate("early");
        harness.input(Input::OfferCreated { sdp: "o2".into() });
        harness.frame(r#"{"type":"answer","sdp":"a2"}"#);
        assert_eq!(
            harness.take(),
            ["send offer", "send candidate", "apply answer"]
        );
        hold(&mut harness, 11_000);
        assert!(harness.take().is_empty());
        harness.input(Input::MediaChanged(MediaState::Connected));
        assert_eq!(harness.take(), ["onConnected", "status ongoing"]);
    }
}

#[test]
fn an_offer_in_place_of_the_first_one_does_not_restart_ice() {
    let mut harness = negotiated();
    harness.input(Input::MediaChanged(MediaState::Failed));
    harness
        .call
        .handle(0, Input::OfferCreated { sdp: "o2".into() });
    let offer = Output::Command(Command::Send(frames::offer("o2", false)));
    assert!(std::iter::from_fn(|| harness.call.poll()).any(|output| output == offer));
}

#[test]
fn a_late_answer_to_the_first_connection_is_not_the_second_ones() {
    let mut harness = Harness::server();
    harness.connecting();
    harness.input(Input::OfferCreated { sdp: "o".into() });
    hold(&mut harness, 8_000);
    harness.input(Input::OfferCreated { sdp: "o2".into() });
    harness.take();
    harness.frame(r#"{"type":"answer","sdp":"a"}"#);
    assert!(harness.take().is_empty());
    harness.frame(r#"{"type":"answer","sdp":"a2"}"#);
    assert_eq!(harness.take(), ["apply answer"]);
}

#[test]
fn an_offer_that_the_browser_does_not_make_is_asked_for_again() {
    let mut harness = Harness::server();
    harness.connecting();
    harness.take();
    hold(&mut harness, 8_000);
    assert_eq!(harness.take(), ["peer"]);
}

#[test]
fn the_second_connection_waits_for_a_lost_link() {
    let mut harness = negotiated();
    harness.input(Input::SocketClosed { code: 1006 });
    harness.input(Input::MediaChanged(MediaState::Failed));
    harness.pass(250);
    assert_eq!(harness.take(), ["socket"]);
    harness.input(Input::SocketOpened);
    harness.frame(WELCOME);
    assert_eq!(harness.take(), ["send hello token-1", "send mute", "peer"]);
}

#[test]
fn media_that_never_comes_up_is_an_error_after_two_tries() {
    let mut failed = negotiated();
    failed.input(Input::MediaChanged(MediaState::Failed));
    assert_eq!(failed.take(), ["peer"]);
    let error = error_after(&mut failed, Input::MediaChanged(MediaState::Failed));
    assert_eq!(error.code, ErrorCode::Media);
    assert!(error.message.contains("firewall"), "{}", error.message);
    assert!(error.message.ends_with("(two tries found no path)"));

    let mut stuck = negotiated();
    hold(&mut stuck, 19_000);
    assert_eq!(stuck.take(), ["peer"]);
    hold(&mut stuck, 1_000);
    assert!(stuck.take().contains(&"error MEDIA".to_owned()));

    let mut mute_server = Harness::server();
    mute_server.input(Input::SocketOpened);
    mute_server.pass(10_000);
    assert!(mute_server.take().contains(&"error NETWORK".to_owned()));
}

#[test]
fn a_handshake_that_does_not_finish_is_not_put_down_to_a_firewall() {
    let mut harness = negotiated();
    harness.input(Input::MediaChanged(MediaState::PathFound));
    harness.input(Input::MediaChanged(MediaState::Failed));
    harness.input(Input::MediaChanged(MediaState::PathFound));
    assert_eq!(harness.take(), ["peer"]);
    let error = error_after(&mut harness, Input::MediaChanged(MediaState::Failed));
    assert_eq!(error.code, ErrorCode::Media);
    assert!(error.message.contains("DTLS"), "{}", error.message);
    assert!(!error.message.contains("firewall") && !error.message.contains("  "));
}

/// The address of the socket that is opened next.
fn next_socket(harness: &mut Harness) -> String {
    while let Some(due_ms) = harness.call.next_timeout() {
        harness.now_ms = harness.now_ms.max(due_ms);
        harness.call.handle(harness.now_ms, Input::Timeout);
        while let Some(output) = harness.call.poll() {
            if let Output::Command(Command::OpenSocket(url)) = output {
                return url;
            }
        }
    }
    panic!("no socket is opened");
}

#[test]
fn a_redirect_leads_to_the_node_that_holds_the_call() {
    let home = "wss://calls.example.org/s";
    let node = "wss://node-2.example.org/s";
    let mut harness = Harness::talking();
    harness.input(Input::SocketClosed { code: 1006 });
    assert_eq!(next_socket(&mut harness), home);
    harness.input(Input::SocketOpened);
    harness.take();
    harness.message(json!({"type": "redirect", "url": node}));
    assert_eq!(harness.take(), ["close socket"]);
    assert_eq!(next_socket(&mut harness), node);
    harness.input(Input::SocketOpened);
    assert_eq!(harness.take(), ["send hello token-1"]);
    harness.frame(WELCOME);
    assert_eq!(harness.take().last().unwrap(), "status ongoing");
    // The node still holds the call; when it is away, the address of all nodes is asked again.
    harness.input(Input::SocketClosed { code: 1006 });
    assert_eq!(next_socket(&mut harness), node);
    harness.input(Input::SocketClosed { code: 1006 });
    assert_eq!(next_socket(&mut harness), home);
}

#[test]
fn a_call_that_another_node_holds_is_asked_for_again() {
    let mut harness = Harness::talking();
    harness.input(Input::SocketClosed { code: 1006 });
    harness.pass(250);
    harness.input(Input::SocketOpened);
    harness.take();
    harness.input(Input::SocketClosed { code: 4421 });
    harness.pass(500);
    assert_eq!(harness.take(), ["socket"]);
}

/// The page was reloaded, or opened twice.
#[test]
fn a_signed_url_that_is_opened_again_leads_to_the_node_that_holds_the_call() {
    let home = "wss://calls.example.org/s";
    let node = "wss://node-2.example.org/s";
    let mut harness = Harness::server();
    harness.input(Input::SocketOpened);
    harness.take();
    harness.message(json!({"type": "redirect", "url": node}));
    assert_eq!(harness.take(), ["close socket"]);
    assert_eq!(next_socket(&mut harness), node);
    // When the node is away, the address of all nodes is asked again.
    harness.input(Input::SocketClosed { code: 1006 });
    assert_eq!(next_socket(&mut harness), home);
    harness.input(Input::SocketOpened);
    harness.message(json!({"type": "redirect", "url": node}));
    assert_eq!(next_socket(&mut harness), node);
    harness.take();
    harness.input(Input::SocketOpened);
    assert_eq!(harness.take(), ["send hello"]);
    harness.frame(WELCOME);
    assert_eq!(harness.take(), ["microphone"]);

    let mut second = Harness::server();
    second.input(Input::SocketOpened);
    second.message(json!({"type": "redirect", "url": node}));
    assert_eq!(next_socket(&mut second), node);
    second.input(Input::SocketOpened);
    second.input(Input::SocketClosed { code: 4409 });
    assert!(second.take().contains(&"error CALL_IN_USE".to_owned()));
}

#[test]
fn the_node_that_holds_the_call_is_looked_for_during_thirty_seconds() {
    let mut harness = Harness::server();
    harness.input(Input::SocketOpened);
    harness.input(Input::SocketClosed { code: 4421 });
    harness.take();
    harness.pass(250);
    assert_eq!(harness.take(), ["socket"]);
    for _ in 0..100 {
        harness.pass(290);
        harness.input(Input::SocketOpened);
        harness.input(Input::SocketClosed { code: 4421 });
    }
    assert!(!harness.call.is_ended());
    harness.pass(1_000);
    assert!(harness.take().contains(&"error NETWORK".to_owned()));
}
