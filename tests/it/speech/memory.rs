//! The memory of sounds that the server holds until they are sent.

use harness::{app::ADMIN_KEY, elsewhere, eventually};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

use super::*;

/// The longest text. The scripted upstream makes 5.8 MB of sound of it.
fn longest() -> String {
    "This is a sentence of forty characters. ".repeat(50)
}

fn limit(config: &mut Config, body_memory_bytes: usize) {
    config.limits.body_bytes = 50_000;
    config.limits.text_body_bytes = 50_000;
    config.limits.body_memory_bytes = body_memory_bytes;
}

/// A client that reads the first line of its answer and nothing more. Its system takes little on its behalf.
async fn unread(app: &TestApp, key: &str, input: &str, format: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    let mut stream = socket.connect(app.address).await.unwrap();
    let body =
        json!({"model": "colloquy-tts", "voice": "en", "input": input, "response_format": format})
            .to_string();
    let head = format!(
        "POST /v2/audio/speech HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut line = [0; 15];
    stream.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"HTTP/1.1 200 OK");
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sound_that_is_held_counts_until_it_is_sent() {
    let text = longest();
    let wav = || json!({"response_format": "wav"});
    // Made for each request, and repeated from the cache.
    for cache_entries in [0, 2] {
        let (app, partner, _upstream) = remote(|config| {
            config.speech.cache_entries = cache_entries;
            limit(config, 14_000_000);
        })
        .await;
        let quota = app.quota(&partner, json!({"kinds": ["speech"]})).await;
        let held = unread(&app, &quota.key, &text, "wav").await;
        let refused = send(ask(&app, &quota.key, &text, wav())).await;
        assert!(refused.expect(503)["error"].is_string());
        assert_eq!(refused.header("retry-after"), "2");
        // It costs nothing.
        eventually("the usage is settled", || async {
            let state = app.get(ADMIN_KEY, &quota.path).await.expect(200);
            state["used"]["characters"] == text.len() && state["reserved"]["characters"] == 0
        })
        .await;
        // A format that is sent while it is made takes none of the memory, and others have a part of their own.
        let pcm = json!({"response_format": "pcm"});
        sound(ask(&app, &quota.key, &text[..80], pcm)).await;
        let other = app.partner("other").await;
        sound(ask(&app, &other.key, &text[..400], wav())).await;

        drop(held);
        elsewhere::eventually("the memory is given back", || async {
            let answer = ask(&app, &quota.key, &text, wav()).send().await.unwrap();
            answer.status() == 200
        })
        .await;
        // What is read gives its memory back as well.
        for _ in 0..2 {
            elsewhere::eventually("there is memory for another one", || async {
                let answer = ask(&app, &quota.key, &text, wav()).send().await.unwrap();
                answer.status() == 200
                    && answer
                        .bytes()
                        .await
                        .is_ok_and(|file| file.len() > 5_000_000)
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_sound_for_which_there_can_never_be_memory_is_refused() {
    let (app, partner, _upstream) = remote(|config| limit(config, 1_000_000)).await;
    let wav = json!({"response_format": "wav"});
    let refused = send(ask(&app, &partner.key, &longest(), wav.clone())).await;
    let error = refused.expect(413)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("ask for another format"), "{error}");
    assert!(!refused.headers.contains_key("retry-after"));
    for (text, format) in [(longest(), "pcm"), ("A short one.".to_owned(), "wav")] {
        sound(ask(
            &app,
            &partner.key,
            &text,
            json!({"response_format": format}),
        ))
        .await;
    }
}
