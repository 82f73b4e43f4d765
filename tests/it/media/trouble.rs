//! Providers that fail, bad networks, strangers on the media port.

use colloquy_protocol::SessionState;
use harness::{
    client::{ClientOptions, Conditions},
    upstream::Fault,
};
use rand::RngExt as _;
use tokio::net::UdpSocket;

use super::*;

/// Breaks a provider for one turn: the visitor is told, hears an apology, and the next turn is answered.
async fn survives(api: Api, fault: Fault, code: &str) {
    let stage = Stage::with(|config| config.calls.provider_timeout_ms = 700).await;
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
        client.message(before, SOON, mild_error).await.unwrap(),
        code
    );
    stage.upstream.set_default(api, healthy);
    assert!(
        client.reply_audio(spoken.ended, SOON).await.is_some(),
        "no apology was audible"
    );
    let apology = "Sorry, I can't answer right now.";
    client
        .line(Originator::Bot, SOON, |text| text.starts_with(apology))
        .await
        .unwrap();
    client
        .silence(Duration::from_millis(600), SOON)
        .await
        .unwrap();
    converse(&client).await;
    client
        .line(Originator::Bot, SOON, |text| text == REPLY)
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
        client.message(before, SOON, mild_error).await.unwrap(),
        "SYNTHESIZER_FAILED"
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
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
        client.message(before, SOON, mild_error).await.unwrap(),
        "MODEL_FAILED"
    );
    let said = client.line(Originator::Bot, SOON, |_| true).await.unwrap();
    assert!(said.starts_with("The library opens at nine."), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lossy_and_jittery_network_still_carries_a_conversation() {
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
async fn a_network_that_was_cut_comes_back() {
    let stage = Stage::new().await;
    let (_, client) = stage.join().await;
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
        .message(before, 2 * SOON, |message| (*message == lost).then_some(()))
        .await
        .unwrap();
    client.conditions(Conditions::default()).await.unwrap();
    let back = now();
    client.restart_ice(false).await.unwrap();
    let ongoing = ServerMessage::Status {
        state: SessionState::Ongoing,
    };
    client
        .message(back, SOON, |message| (*message == ongoing).then_some(()))
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
        .line(Originator::Bot, SOON, |text| text == REPLY)
        .await
        .unwrap();
}
