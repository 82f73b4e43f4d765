//! Heartbeats, lost sockets and lost media.

use super::*;

#[test]
fn heartbeats_are_sent_and_three_silent_ones_are_a_loss() {
    let mut scene = Scene::talking();
    scene.pass(5_000);
    assert_eq!(scene.take(), ["send ping"]);
    scene.message(json!({"type": "pong", "t": 5000}));
    scene.pass(15_000);
    assert_eq!(scene.take(), ["send ping", "send ping", "send ping"]);
    scene.pass(5_000);
    assert_eq!(scene.take(), ["close socket", "status reconnecting"]);
    scene.pass(250);
    assert_eq!(scene.take(), ["socket"]);
}

#[test]
fn the_servers_ping_is_answered() {
    let mut scene = Scene::talking();
    scene.message(json!({"type": "ping", "t": 3}));
    assert_eq!(scene.take(), ["send pong"]);
}

#[test]
fn a_lost_socket_comes_back_with_the_resume_token() {
    let mut scene = Scene::talking();
    scene.input(Input::SocketClosed { code: 1006 });
    assert_eq!(scene.take(), ["status reconnecting"]);
    scene.pass(250);
    assert_eq!(scene.take(), ["socket"]);
    scene.input(Input::SocketClosed { code: 1006 });
    scene.input(Input::Text("hello".into()));
    scene.pass(500);
    assert_eq!(scene.take(), ["socket"]);
    scene.input(Input::SocketOpened);
    assert_eq!(scene.take(), ["send hello token-1"]);
    scene.frame(&WELCOME.replace("token-1", "token-2"));
    assert_eq!(scene.take(), ["send mute", "send text", "status ongoing"]);
    scene.input(Input::SocketClosed { code: 1006 });
    scene.pass(250);
    scene.input(Input::SocketOpened);
    assert_eq!(scene.take().last().unwrap(), "send hello token-2");
}

#[test]
fn what_is_typed_meanwhile_is_kept_or_refused() {
    let mut scene = Scene::talking();
    scene.input(Input::SocketClosed { code: 1006 });
    let taken = (0..100).filter(|_| {
        let taken = scene.call.accepts_text("hello");
        scene.call.handle(0, Input::Text("hello".into()));
        taken
    });
    let taken = taken.count();
    scene.take();
    scene.pass(250);
    scene.input(Input::SocketOpened);
    scene.frame(WELCOME);
    let log = scene.take();
    let sent = log.iter().filter(|line| *line == "send text").count();
    assert_eq!((taken, sent), (64, 64));
    assert!(scene.call.accepts_text("hello"));
}

#[test]
fn the_largest_metadata_leaves_room_to_come_back() {
    let around = frames::hello(Some(r#"{"a":""}"#), None).len();
    let metadata = json!({"a": "x".repeat(MAX_FRAME_BYTES - around)}).to_string();
    let options = Options {
        metadata: Some(metadata.clone()),
        ..Options::default()
    };
    let signed_url = "wss://h/s".to_owned();
    let mut scene = Scene::start(Start::Server { signed_url }, options);
    scene.input(Input::MicrophoneReady);
    let hello = |scene: &mut Scene| {
        scene.call.handle(scene.now_ms, Input::SocketOpened);
        match scene.call.poll() {
            Some(Output::Command(Command::Send(frame))) => frame,
            other => panic!("no hello but {other:?}"),
        }
    };
    let first = hello(&mut scene);
    assert_eq!(first.len(), MAX_FRAME_BYTES);
    assert!(first.contains(&metadata));
    scene.frame(WELCOME);
    scene.input(Input::SocketClosed { code: 1006 });
    scene.pass(250);
    let second = hello(&mut scene);
    assert_eq!(second, frames::hello(None, Some("token-1")));
}

#[test]
fn a_socket_that_stays_away_ends_the_call_after_thirty_seconds() {
    let mut scene = Scene::talking();
    scene.input(Input::SocketClosed { code: 1006 });
    for _ in 0..100 {
        scene.pass(290);
        scene.input(Input::SocketClosed { code: 1006 });
    }
    assert!(!scene.call.is_ended());
    scene.pass(1_000);
    let log = scene.take();
    assert_eq!(
        log[log.len() - 4..],
        ["close", "error NETWORK", "status error", "onHangUp"]
    );
    assert!(log.iter().filter(|line| *line == "socket").count() < 15);
}

#[test]
fn an_old_session_that_the_server_forgot_ends_the_call() {
    let mut scene = Scene::talking();
    scene.input(Input::SocketClosed { code: 1006 });
    scene.pass(250);
    scene.input(Input::SocketClosed { code: 4404 });
    assert!(scene.take().contains(&"error CALL_NOT_FOUND".to_owned()));
}

#[test]
fn lost_media_restarts_ice() {
    let mut scene = Scene::talking();
    scene.input(Input::MediaChanged(MediaState::Disconnected));
    assert!(scene.take().is_empty());
    scene.pass(3_000);
    assert_eq!(scene.take(), ["status reconnecting", "restart"]);
    scene.input(Input::OfferCreated { sdp: "o2".into() });
    scene.frame(r#"{"type":"answer","sdp":"a2"}"#);
    scene.input(Input::MediaChanged(MediaState::Connected));
    assert_eq!(
        scene.take(),
        ["send offer", "apply answer", "status ongoing"]
    );
    scene.input(Input::MediaChanged(MediaState::Failed));
    assert_eq!(scene.take(), ["status reconnecting", "restart"]);
}

#[test]
fn a_short_disturbance_of_the_media_is_nothing() {
    let mut scene = Scene::talking();
    scene.input(Input::MediaChanged(MediaState::Disconnected));
    scene.pass(2_000);
    scene.input(Input::MediaChanged(MediaState::Connected));
    scene.pass(2_000);
    assert!(scene.take().is_empty());
}

#[test]
fn media_that_stays_away_ends_the_call() {
    let mut scene = Scene::talking();
    scene.input(Input::MediaChanged(MediaState::Failed));
    for _ in 0..30 {
        scene.pass(999);
        scene.message(json!({"type": "pong", "t": 0}));
    }
    assert!(!scene.call.is_ended());
    scene.pass(31);
    assert!(scene.take().contains(&"error MEDIA".to_owned()));
}

#[test]
fn a_late_answer_to_a_replaced_offer_is_not_applied() {
    let mut scene = Scene::talking();
    scene.input(Input::MediaChanged(MediaState::Failed));
    scene.input(Input::OfferCreated { sdp: "o2".into() });
    scene.pass(4_000);
    scene.message(json!({"type": "pong", "t": 0}));
    scene.pass(4_000);
    scene.input(Input::OfferCreated { sdp: "o3".into() });
    scene.take();
    scene.frame(r#"{"type":"answer","sdp":"a2"}"#);
    assert!(scene.take().is_empty());
    scene.frame(r#"{"type":"answer","sdp":"a3"}"#);
    assert_eq!(scene.take(), ["apply answer"]);
}

#[test]
fn an_offer_that_a_lost_socket_swallowed_is_made_again() {
    let mut scene = Scene::server();
    scene.input(Input::MicrophoneReady);
    scene.input(Input::SocketOpened);
    scene.frame(WELCOME);
    scene.input(Input::OfferCreated { sdp: "o".into() });
    scene.input(Input::SocketClosed { code: 1006 });
    scene.pass(250);
    scene.input(Input::SocketOpened);
    scene.take();
    scene.frame(WELCOME);
    assert_eq!(scene.take(), ["send mute", "restart"]);
}

#[test]
fn a_lost_socket_and_lost_media_come_back_together() {
    let mut scene = Scene::talking();
    scene.input(Input::SocketClosed { code: 1006 });
    scene.input(Input::MediaChanged(MediaState::Failed));
    scene.pass(250);
    assert_eq!(scene.take(), ["status reconnecting", "socket"]);
    scene.input(Input::SocketOpened);
    scene.frame(WELCOME);
    assert_eq!(scene.take(), ["send hello token-1", "send mute", "restart"]);
    scene.input(Input::MediaChanged(MediaState::Connected));
    assert_eq!(scene.take(), ["status ongoing"]);
}

#[test]
fn media_that_never_comes_up_is_an_error() {
    let mut failed = Scene::server();
    failed.input(Input::MicrophoneReady);
    failed.input(Input::SocketOpened);
    failed.frame(WELCOME);
    failed.input(Input::MediaChanged(MediaState::Failed));
    assert!(failed.take().contains(&"error MEDIA".to_owned()));

    let mut stuck = Scene::server();
    stuck.input(Input::MicrophoneReady);
    stuck.input(Input::SocketOpened);
    stuck.frame(WELCOME);
    for _ in 0..20 {
        stuck.pass(1_000);
        stuck.message(json!({"type": "pong", "t": 0}));
    }
    assert!(stuck.take().contains(&"error MEDIA".to_owned()));

    let mut mute_server = Scene::server();
    mute_server.input(Input::MicrophoneReady);
    mute_server.input(Input::SocketOpened);
    mute_server.pass(10_000);
    assert!(mute_server.take().contains(&"error NETWORK".to_owned()));
}
