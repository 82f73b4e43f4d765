//! Admission, loss and return.

mod endings;

use colloquy::calls;
use colloquy_protocol::{ByeReason, ClientMessage, CloseCode, SessionState};
use harness::client::{Check, ClientOptions, Conditions, FromServer, Refused, Socket};
use sqlx::{Connection as _, Executor as _};
use sqlx_sqlite::SqliteConnection;

use super::*;

fn refused(code: CloseCode) -> Refused {
    Refused {
        close: Some(code.number()),
        code: Some(code.code().to_owned()),
    }
}

/// How the server refuses a new client at this URL.
async fn refusal(url: &str) -> Refused {
    let mut socket = Socket::open(url).await.unwrap();
    // A server that has refused already may have closed.
    let _ = socket.begin(false).await;
    socket.refusal().await.unwrap()
}

/// Replaces the value of a parameter of the URL.
fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let (before, rest) = url.split_once(&format!("{name}=")).unwrap();
    let after = rest.find('&').map_or("", |at| &rest[at..]);
    format!("{before}{name}={value}{after}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_url_is_spent_once_a_client_has_connected() {
    let stage = Stage::new().await;
    let (call, client) = stage.join().await;
    assert_eq!(refusal(&call.url).await, refused(CloseCode::CallInUse));
    client.hang_up().await.unwrap();
    stage.reaches(&call, "completed").await;
    assert_eq!(refusal(&call.url).await, refused(CloseCode::CallNotFound));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_that_was_tampered_with_is_refused() {
    let stage = Stage::new().await;
    let (call, other) = (stage.call().await, stage.call().await);
    let strangers = [
        with_parameter(&call.url, "sig", &"0".repeat(64)),
        with_parameter(&call.url, "sig", ""),
        with_parameter(&call.url, "exp", "99999999999"),
        with_parameter(&call.url, "kid", "other"),
        call.url.split_once('?').unwrap().0.to_owned(),
        call.url.replace(&call.id, &other.id),
    ];
    for url in strangers {
        assert_eq!(
            refusal(&url).await,
            refused(CloseCode::InvalidSignature),
            "{url}"
        );
    }
    NativeClient::connect(&call.url).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_url_is_refused() {
    let stage = Stage::new().await;
    let call = stage.call().await;
    let expired = stage.app.app.clock.now_ms() / 1_000 - 1;
    let id = call.id.rsplit('/').next().unwrap();
    let url = calls::session_url(&stage.app.app.calls, id, expired).unwrap();
    assert_eq!(refusal(&url).await, refused(CloseCode::UrlExpired));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_never_was_is_not_found() {
    let stage = Stage::new().await;
    let expires = stage.app.app.clock.now_ms() / 1_000 + 60;
    let id = stage.app.app.clock.new_id().to_string();
    let url = calls::session_url(&stage.app.app.calls, &id, expires).unwrap();
    assert_eq!(refusal(&url).await, refused(CloseCode::CallNotFound));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_node_refuses_and_has_room_again_later() {
    let stage = Stage::with(|config| config.media.max_calls = 1).await;
    let (first, second) = (stage.call().await, stage.call().await);
    let client = NativeClient::connect(&first.url).await.unwrap();
    assert_eq!(refusal(&second.url).await, refused(CloseCode::Capacity));
    client.hang_up().await.unwrap();
    stage.reaches(&first, "completed").await;
    NativeClient::connect(&second.url).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_break_the_protocol_end_the_session() {
    let stage = Stage::new().await;
    let candidate = ClientMessage::Candidate {
        candidate: None,
        sdp_mid: None,
        sdp_m_line_index: None,
    };
    let hello = r#"{"type":"hello","protocol":1}"#.to_owned();
    let too_large = format!(r#"{{"type":"text","text":"{}"}}"#, "x".repeat(64 * 1024));
    let wrong = [
        serde_json::to_string(&candidate).unwrap(),
        hello,
        "not JSON".to_owned(),
        r#"{"type":"mute"}"#.to_owned(),
        too_large,
    ];
    for message in wrong {
        let call = stage.call().await;
        let mut socket = Socket::open(&call.url).await.unwrap();
        socket.begin(false).await.unwrap();
        socket.welcome().await.unwrap();
        socket.say_text(message.clone()).await.unwrap();
        let shown = &message[..message.len().min(60)];
        assert_eq!(
            socket.refusal().await.unwrap(),
            refused(CloseCode::Protocol),
            "{shown}"
        );
        stage.reaches(&call, "error").await;
    }
    let mut socket = Socket::open(&stage.call().await.url).await.unwrap();
    socket.say(&ClientMessage::HangUp).await.unwrap();
    assert_eq!(
        socket.refusal().await.unwrap(),
        refused(CloseCode::Protocol)
    );
    let mut socket = Socket::open(&stage.call().await.url).await.unwrap();
    socket.say_bytes(vec![1, 2, 3]).await.unwrap();
    assert_eq!(
        socket.refusal().await.unwrap(),
        refused(CloseCode::Protocol)
    );
}

/// Whatever the size of a frame, the client is told, and the call has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_above_the_limit_end_the_session_whatever_their_size() {
    let stage = Stage::new().await;
    for kilobytes in [65, 128, 200, 5_000] {
        let call = stage.call().await;
        let mut socket = Socket::open(&call.url).await.unwrap();
        socket.begin(false).await.unwrap();
        socket.welcome().await.unwrap();
        let text = "x".repeat(kilobytes * 1024);
        let message = ClientMessage::Text { text };
        socket.say(&message).await.unwrap();
        assert_eq!(
            socket.refusal().await.unwrap(),
            refused(CloseCode::Protocol),
            "{kilobytes} KiB"
        );
        stage.reaches(&call, "error").await;
    }
    // Before `hello`, too.
    let call = stage.call().await;
    let mut socket = Socket::open(&call.url).await.unwrap();
    socket.say_text("x".repeat(300_000)).await.unwrap();
    assert_eq!(
        socket.refusal().await.unwrap(),
        refused(CloseCode::Protocol)
    );
    assert_eq!(stage.status(&call).await["state"], "starting");
}

/// Sockets of one call that say nothing are few, and the client of another call gets in beside them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_sockets_of_one_call_are_few() {
    let stage = Stage::new().await;
    let call = stage.call().await;
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.push(Socket::open(&call.url).await.unwrap());
    }
    // Each of them waits once the server has looked at its URL.
    let mut beyond = Socket::open(&call.url).await.unwrap();
    while let Err(error) = tokio::time::timeout(soon() / 20, beyond.refusal()).await {
        silent.push(std::mem::replace(
            &mut beyond,
            Socket::open(&call.url).await.unwrap(),
        ));
        assert!(silent.len() < 8, "{error}");
    }
    assert_eq!(refusal(&call.url).await, refused(CloseCode::RateLimited));
    let mut other = Socket::open(&stage.call().await.url).await.unwrap();
    other.begin(false).await.unwrap();
    other.welcome().await.unwrap();
    drop(silent);
    // They leave their places when they are gone.
    let deadline = now() + soon();
    loop {
        let mut socket = Socket::open(&call.url).await.unwrap();
        // A server that has refused already may have closed.
        let _ = socket.begin(false).await;
        match socket.welcome().await {
            Ok(_) => break,
            Err(error) => assert!(now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_messages_and_fields_are_passed_over() {
    let stage = Stage::new().await;
    let (_, client) = stage.join().await;
    client
        .say_text(r#"{"type":"weather","sky":"blue"}"#)
        .await
        .unwrap();
    client
        .say_text(r#"{"type":"ping","t":7,"sky":"blue"}"#)
        .await
        .unwrap();
    let pong = ServerMessage::Pong { t: 7.0 };
    client
        .message(now() - soon(), soon(), |message| {
            (*message == pong).then_some(())
        })
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_messages_ends_the_session() {
    let stage = Stage::new().await;
    let mut socket = Socket::open(&stage.call().await.url).await.unwrap();
    socket.begin(false).await.unwrap();
    socket.welcome().await.unwrap();
    for _ in 0..=110 {
        // The server may close before all of them are sent.
        if socket
            .say(&ClientMessage::Mute { muted: true })
            .await
            .is_err()
        {
            break;
        }
    }
    assert_eq!(
        socket.refusal().await.unwrap(),
        refused(CloseCode::Protocol)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_and_pongs_of_the_websocket_count_like_messages() {
    let stage = Stage::new().await;
    for is_ping in [true, false] {
        let call = stage.call().await;
        let mut socket = Socket::open(&call.url).await.unwrap();
        socket.begin(false).await.unwrap();
        socket.welcome().await.unwrap();
        for _ in 0..300 {
            let sent = match is_ping {
                true => socket.send_ping().await,
                false => socket.send_pong().await,
            };
            // The server may close before all of them are sent.
            if sent.is_err() {
                break;
            }
        }
        assert_eq!(
            socket.refusal().await.unwrap(),
            refused(CloseCode::Protocol),
            "pings: {is_ping}"
        );
        stage.reaches(&call, "error").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_offers_ends_the_session() {
    let stage = Stage::new().await;
    let call = stage.call().await;
    let sdp = Check::new().await.unwrap().offer;
    let mut socket = Socket::open(&call.url).await.unwrap();
    socket.begin(false).await.unwrap();
    socket.welcome().await.unwrap();
    for _ in 0..11 {
        let offer = ClientMessage::Offer {
            sdp: sdp.clone(),
            ice_restart: false,
        };
        socket.say(&offer).await.unwrap();
    }
    assert_eq!(
        socket.refusal().await.unwrap(),
        refused(CloseCode::Protocol)
    );
    stage.reaches(&call, "error").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offer_that_is_refused_is_not_repeated_at_length() {
    let stage = Stage::new().await;
    let long = "x".repeat(8_000);
    let broken = format!(
        "v=0\r\no={long}\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=ice-ufrag:abcd\r\n\
         a=ice-pwd:abcdefghijklmnopqrstuv\r\na=fingerprint:sha-256 AA\r\n"
    );
    for sdp in [broken, format!("v=0\r\n{long}{long}{long}")] {
        let mut socket = Socket::open(&stage.call().await.url).await.unwrap();
        socket.begin(false).await.unwrap();
        socket.welcome().await.unwrap();
        let ice_restart = false;
        socket
            .say(&ClientMessage::Offer { sdp, ice_restart })
            .await
            .unwrap();
        let message = loop {
            match socket.next().await {
                FromServer::Message(ServerMessage::Error { code, message, .. }) => {
                    assert_eq!(code, "BAD_OFFER");
                    break message;
                }
                FromServer::Message(_) => {}
                FromServer::Closed(code) => panic!("closed with {code:?}"),
            }
        };
        assert!(message.len() < 300, "{message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_socket_leaves_the_media_alone_and_comes_back_with_its_token() {
    lose_the_socket_and_come_back(Stack::Rtc).await;
}

pub(super) async fn lose_the_socket_and_come_back(stack: Stack) {
    let stage = Stage::new().await;
    let (call, client) = stage.join_on(stack).await;
    let first_token = client.resume_token().unwrap();
    client.drop_socket().await.unwrap();
    let spoken = client.speak(&Speech::go_forward().unwrap()).await.unwrap();
    assert!(
        client.reply_audio(spoken.ended, soon()).await.is_some(),
        "media did not go on"
    );
    let back = now();
    client.resume().await.unwrap();
    assert_ne!(client.resume_token().unwrap(), first_token);
    let ongoing = ServerMessage::Status {
        state: SessionState::Ongoing,
    };
    client
        .message(back, soon(), |message| (*message == ongoing).then_some(()))
        .await
        .unwrap();
    // What was said while nobody could read it is told now.
    client
        .message(back, soon(), |message| match message {
            ServerMessage::Transcript { text, .. } => (text == HEARD).then_some(()),
            _ => None,
        })
        .await
        .unwrap();
    client
        .silence(Duration::from_millis(600), soon())
        .await
        .unwrap();
    converse(&client).await;
    client.hang_up().await.unwrap();
    stage.reaches(&call, "completed").await;
    // It is stored once.
    assert_eq!(
        stage
            .transcript(&call)
            .await
            .iter()
            .filter(|(who, _)| who == "user")
            .count(),
        2
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_last_token_opens_the_session() {
    let stage = Stage::new().await;
    let (call, client) = stage.join().await;
    let first = client.resume_token().unwrap();
    client.drop_socket().await.unwrap();
    client.resume().await.unwrap();
    for token in [first.as_str(), "", "guess"] {
        let mut socket = Socket::open(&call.url).await.unwrap();
        socket.resume(token).await.unwrap();
        assert_eq!(
            socket.refusal().await.unwrap(),
            refused(CloseCode::InvalidSignature),
            "{token:?}"
        );
    }
    // A token of one call does not open another.
    let other = stage.call().await;
    let mut socket = Socket::open(&other.url).await.unwrap();
    socket
        .resume(&client.resume_token().unwrap())
        .await
        .unwrap();
    assert_eq!(
        socket.refusal().await.unwrap(),
        refused(CloseCode::CallNotFound)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_from_one_address_are_limited_and_coming_back_is_none() {
    let stage = Stage::with(|config| config.limits.attempts_per_minute = 2).await;
    let (call, client) = stage.join().await;
    for _ in 0..3 {
        client.drop_socket().await.unwrap();
        client.resume().await.unwrap();
    }
    let guess = with_parameter(&call.url, "sig", "guess");
    assert_eq!(refusal(&guess).await, refused(CloseCode::InvalidSignature));
    let limited = refused(CloseCode::RateLimited);
    assert_eq!(refusal(&guess).await, limited);
    assert_eq!(refusal(&call.url).await, limited);
    let mut socket = Socket::open(&call.url).await.unwrap();
    socket.resume("guess").await.unwrap();
    assert_eq!(socket.refusal().await.unwrap(), limited);
    client.drop_socket().await.unwrap();
    client.resume().await.unwrap();
    client.hang_up().await.unwrap();
    stage.reaches(&call, "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_connection_with_the_token_replaces_the_first() {
    let stage = Stage::new().await;
    let (call, client) = stage.join().await;
    let mut socket = Socket::open(&call.url).await.unwrap();
    socket
        .resume(&client.resume_token().unwrap())
        .await
        .unwrap();
    socket.welcome().await.unwrap();
    let bye = client.bye(soon()).await.unwrap();
    assert_eq!(
        bye,
        ServerMessage::Bye {
            reason: ByeReason::Replaced,
            code: None
        }
    );
    socket.say(&ClientMessage::HangUp).await.unwrap();
    stage.reaches(&call, "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_lost_before_media_may_use_the_url_again() {
    let stage = Stage::new().await;
    let call = stage.call().await;
    drop(
        NativeClient::join(&call.url, ClientOptions::default())
            .await
            .unwrap(),
    );
    // Until the server has noticed that the first one is gone, the call is in use.
    let again = async {
        loop {
            if let Ok(client) = NativeClient::connect(&call.url).await {
                break client;
            }
        }
    };
    let client = tokio::time::timeout(soon(), again).await.unwrap();
    converse(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stays_away_has_ended_the_call() {
    let stage = Stage::with(|config| config.calls.reconnect_seconds = 1).await;
    let joined = now();
    let (call, client) = stage.join().await;
    let token = client.resume_token().unwrap();
    stage.reaches(&call, "ongoing").await;
    let gone = now();
    let most = (gone - joined + Duration::from_millis(100))
        .as_secs_f64()
        .round();
    drop(client);
    assert_eq!(stage.status(&call).await["state"], "ongoing");
    let ended = stage.reaches(&call, "completed").await;
    assert!(
        now() - gone >= Duration::from_secs(1),
        "ended before its client could come back"
    );
    // Nobody pays for the wait, which is a part of the server's time.
    let duration = |field: &str| ended["duration"][field].as_f64().unwrap();
    let charged = duration("call_seconds");
    assert!(charged <= most, "{charged} of {most} s: {ended}");
    assert!(duration("server_runtime_seconds") > charged, "{ended}");
    let mut socket = Socket::open(&call.url).await.unwrap();
    socket.resume(&token).await.unwrap();
    assert_eq!(
        socket.refusal().await.unwrap(),
        refused(CloseCode::CallNotFound)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn media_moves_to_another_address_by_an_ice_restart() {
    restart_ice_and_converse(Stack::Rtc).await;
}

pub(super) async fn restart_ice_and_converse(stack: Stack) {
    let stage = Stage::new().await;
    let (_, client) = stage.join_on(stack).await;
    for rebind in [false, true] {
        client.restart_ice(rebind).await.unwrap();
        client.packet(now()).await.unwrap();
        converse(&client).await;
        client
            .silence(Duration::from_millis(600), soon())
            .await
            .unwrap();
    }
}
