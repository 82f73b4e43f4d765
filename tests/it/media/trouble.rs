//! Providers that fail, bad networks, strangers on the media port.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use colloquy_protocol::{AgentState, ClientMessage, SessionState};
use harness::{
    client::{ClientOptions, Conditions},
    upstream::Fault,
};
use rand::RngExt as _;
use tokio::net::UdpSocket;

use super::*;

/// Breaks a provider for one turn: the visitor is told, hears an apology, and the next turn is answered.
async fn survives(api: Api, fault: Fault, code: &str) {
    let stage = Stage::with(|config| config.calls.provider_timeout_ms = 1_200).await;
    let (call, client) = stage.join().await;
    let healthy = Script::text(if api == Api::Chat { REPLY } else { HEARD });
    stage.upstream.set_default(
        api,
        Script {
            fault: Some(fault),
            ..healthy.clone()
        },
    );
    let before = now();
    let spoken = client.speak(&Speech::go_forward().unwrap()).await.unwrap();
    assert_eq!(
        client.message(before, soon(), mild_error).await.unwrap(),
        code
    );
    stage.upstream.set_default(api, healthy);
    assert!(
        client.reply_audio(spoken.ended, soon()).await.is_some(),
        "no apology was audible"
    );
    let apology = "Sorry, I can't answer right now.";
    client
        .line(Originator::Bot, soon(), |text| text.starts_with(apology))
        .await
        .unwrap();
    client
        .silence(Duration::from_millis(600), soon())
        .await
        .unwrap();
    converse(&client).await;
    client
        .line(Originator::Bot, soon(), |text| text == REPLY)
        .await
        .unwrap();
    client.hang_up().await.unwrap();
    stage.reaches(&call, "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_fails_does_not_end_the_call() {
    survives(Api::Chat, Fault::Status(500), "MODEL_FAILED").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_stalls_does_not_end_the_call() {
    survives(Api::Chat, Fault::Stall { after: 0 }, "MODEL_FAILED").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transcriber_that_fails_does_not_end_the_call() {
    survives(Api::Transcription, Fault::Status(500), "TRANSCRIBER_FAILED").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transcriber_that_stalls_does_not_end_the_call() {
    survives(
        Api::Transcription,
        Fault::Stall { after: 0 },
        "TRANSCRIBER_FAILED",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synthesizer_that_fails_does_not_end_the_call() {
    let stage = Stage::new().await;
    let (call, client) = stage.join().await;
    // Both sentences may be asked for at once, each with its retry; the apology may be tried as well.
    stage
        .upstream
        .set_default(Api::Speech, Script::fault(Fault::Status(500)));
    let before = now();
    client.speak(&Speech::go_forward().unwrap()).await.unwrap();
    assert_eq!(
        client.message(before, soon(), mild_error).await.unwrap(),
        "SYNTHESIZER_FAILED"
    );
    let listens = |message: &ServerMessage| {
        let state = AgentState::Listening;
        (*message == ServerMessage::AgentState { state }).then_some(())
    };
    client.message(before, soon(), listens).await.unwrap();
    stage.upstream.set_default(Api::Speech, Script::default());
    converse(&client).await;
    client.hang_up().await.unwrap();
    stage.reaches(&call, "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_cut_is_spoken_as_far_as_it_came() {
    let stage = Stage::new().await;
    let (_, client) = stage.join().await;
    stage.upstream.script(
        Api::Chat,
        Script {
            fault: Some(Fault::Cut { after: 6 }),
            ..Script::text(REPLY)
        },
    );
    let before = now();
    converse(&client).await;
    assert_eq!(
        client.message(before, soon(), mild_error).await.unwrap(),
        "MODEL_FAILED"
    );
    let said = client
        .line(Originator::Bot, soon(), |_| true)
        .await
        .unwrap();
    assert!(said.starts_with("The library opens at nine."), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lossy_and_jittery_network_still_carries_a_conversation() {
    converse_on_bad_networks(Stack::Rtc).await;
}

pub(super) async fn converse_on_bad_networks(stack: Stack) {
    let bad = [
        Conditions {
            loss: 0.1,
            ..Conditions::default()
        },
        Conditions {
            jitter: Duration::from_millis(50),
            ..Conditions::default()
        },
    ];
    for conditions in bad {
        let stage = Stage::new().await;
        let options = ClientOptions {
            stack,
            conditions,
            ..ClientOptions::default()
        };
        let client = NativeClient::connect_with(&stage.call().await.url, options)
            .await
            .unwrap();
        converse(&client).await;
        // 1.65 s of speech and what stands before it, as a WAV file of 16-bit samples at 16,000 Hz.
        let asked = stage.upstream.requests(Api::Transcription);
        assert_eq!(asked.len(), 1, "{conditions:?}: the utterance fell apart");
        let bytes = asked[0].body["file_bytes"].as_u64().unwrap();
        assert!(
            (48_000..100_000).contains(&bytes),
            "{conditions:?}: {bytes}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_set_up_on_networks_that_lose_any_datagram() {
    set_up_on_networks_that_lose(Stack::Rtc, 0.2).await;
}

/// Sets calls up on networks that lose this part of all datagrams, each way.
pub(super) async fn set_up_on_networks_that_lose(stack: Stack, loss_of_all: f64) {
    let stage = Stage::new().await;
    let set_up = |seed| {
        let stage = &stage;
        async move {
            let conditions = Conditions {
                loss_of_all,
                ..Conditions::default()
            };
            let options = ClientOptions {
                stack,
                conditions,
                seed,
                ..ClientOptions::default()
            };
            let url = stage.call().await.url;
            let client = NativeClient::connect_with(&url, options).await;
            client.unwrap_or_else(|error| panic!("{seed}: {error:#}"))
        }
    };
    futures_util::future::join_all((0..16).map(set_up)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn candidates_of_a_client_are_sent_nothing() {
    let stage = Stage::new().await;
    let (_, client) = stage.join().await;
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    for number in 0..50 {
        let line = format!("candidate:{number} 1 udp 2130706431 127.0.0.1 {port} typ host");
        client
            .say(&ClientMessage::Candidate {
                candidate: Some(line),
                sdp_mid: Some("0".to_owned()),
                sdp_m_line_index: None,
            })
            .await
            .unwrap();
    }
    client.restart_ice(false).await.unwrap();
    converse(&client).await;
    let got = silent.try_recv_from(&mut [0; 64]);
    assert!(got.is_err(), "{got:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_was_cut_comes_back() {
    cut_the_network_and_come_back(Stack::Rtc).await;
}

pub(super) async fn cut_the_network_and_come_back(stack: Stack) {
    let stage = Stage::new().await;
    let (_, client) = stage.join_on(stack).await;
    let before = now();
    client
        .conditions(Conditions {
            cut: true,
            ..Conditions::default()
        })
        .await
        .unwrap();
    let lost = ServerMessage::Status {
        state: SessionState::Reconnecting,
    };
    client
        .message(before, 2 * soon(), |message| {
            (*message == lost).then_some(())
        })
        .await
        .unwrap();
    let back = now();
    client.conditions(Conditions::default()).await.unwrap();
    client.restart_ice(false).await.unwrap();
    let ongoing = ServerMessage::Status {
        state: SessionState::Ongoing,
    };
    client
        .message(back, soon(), |message| (*message == ongoing).then_some(()))
        .await
        .unwrap();
    converse(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_on_the_media_port_disturbs_nobody() {
    let stage = Stage::new().await;
    let (_, client) = stage.join().await;
    let media = client.server_media_address().unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let garbage = async {
        for length in (0..1_500).step_by(3) {
            let mut bytes: Vec<u8> = (0..length).map(|_| rand::rng().random()).collect();
            // What begins like STUN, DTLS and SRTP goes deeper than what does not.
            if let Some(first) = bytes.first_mut() {
                *first = [0, 20, 22, 128, 144, 255][length / 3 % 6];
            }
            stranger.send_to(&bytes, media).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let mut request = b"\0\x01\0\x0c\x21\x12\xa4\x42abcdefghijkl\0\x06\0\x08some:one".to_vec();
        for length in (0..=request.len()).rev() {
            request.truncate(length);
            stranger.send_to(&request, media).await.unwrap();
        }
    };
    tokio::join!(garbage, converse(&client));
    client
        .line(Originator::Bot, soon(), |text| text == REPLY)
        .await
        .unwrap();
}

/// A check of connectivity for this user name, which another password signed.
fn forged_check(user: &str) -> Vec<u8> {
    let mut user = format!("{user}:stranger").into_bytes();
    let length = u16::try_from(user.len()).unwrap();
    user.resize(user.len().next_multiple_of(4), 0);
    let mut attributes = [[0, 6], length.to_be_bytes()].concat();
    attributes.extend(user);
    attributes.extend([0, 8, 0, 20]);
    attributes.extend([7; 20]);
    let mut check = vec![0, 1];
    check.extend(u16::try_from(attributes.len()).unwrap().to_be_bytes());
    check.extend(b"\x21\x12\xa4\x42abcdefghijkl");
    check.extend(attributes);
    check
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_forged_checks_starves_neither_the_call_nor_its_signalling() {
    let stage = Stage::new().await;
    let before = now();
    let (_, client) = stage.join().await;
    let user = client.message(before, soon(), |message| match message {
        ServerMessage::Answer { sdp } => {
            let (_, rest) = sdp.split_once("a=ice-ufrag:")?;
            Some(rest.lines().next()?.trim().to_owned())
        }
        _ => None,
    });
    let check = forged_check(&user.await.unwrap());
    let media = client.server_media_address().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&over);
    // As fast as the machine sends.
    let flood = std::thread::spawn(move || {
        let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sent = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            sent += u64::from(stranger.send_to(&check, media).is_ok());
        }
        let mut answer = [0; 64];
        stranger.set_nonblocking(true).unwrap();
        (sent, stranger.recv(&mut answer).is_ok())
    });
    let mut times = Vec::new();
    for round in 0..10 {
        let t = f64::from(round);
        let asked = now();
        client.say(&ClientMessage::Ping { t }).await.unwrap();
        let pong = client.message(asked, soon(), |message| {
            (*message == ServerMessage::Pong { t }).then_some(())
        });
        pong.await.unwrap();
        times.push(now() - asked);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    converse(&client).await;
    client.hang_up().await.unwrap();
    over.store(true, Ordering::Relaxed);
    // Whatever else the machine does may hold one of them up; the flood holds all of them up, or none.
    times.sort();
    let most = patience(Duration::from_millis(500));
    assert!(times[8] < most, "{times:?}");
    assert!(times[9] < 4 * most, "{times:?}");
    let (sent, answered) = flood.join().unwrap();
    assert!(sent > 100_000, "{sent} is no flood");
    assert!(!answered, "a forged check was answered");
}
