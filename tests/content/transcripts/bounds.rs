//! What recordings cost the server, in memory of the real process.

use futures_util::future::join_all;
use harness::{app::streamed, elsewhere::until, patience, process::Server};

use super::*;

const MIB: u64 = 1024 * 1024;

/// Speech without pauses of more than a moment, so many minutes of it.
pub(super) fn long(minutes: usize) -> Vec<u8> {
    let spoken = go_forward();
    let length = minutes * 60 * RATE_HZ;
    let samples: Vec<i16> = spoken.iter().copied().cycle().take(length).collect();
    converted(&wav(&samples), "long.mp3", &["-b:a", "32k"])
}

pub(super) async fn post(server: &Server, key: &str, form: Form) -> Answer {
    let request = server.request(key, Method::POST, PATH);
    send(
        request
            .timeout(patience(Duration::from_secs(100)))
            .multipart(form),
    )
    .await
}

pub(super) async fn read_ended(server: &Server, key: &str, made: &Value) -> Value {
    let path = made["id"].as_str().unwrap();
    until("the transcript ends", is_over, async || {
        server.get(key, path).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_take_little_memory() {
    let server = Server::start_measured(&TestDatabase::sqlite(), |_| {}).await;
    let key = server.partner("acme").await.key;
    let idle = server.peak_bytes();
    let recording = |mebibytes| Form::new().part("audio", streamed("a.mp3", b"ID3", mebibytes));
    // The largest that is taken, and one that is larger.
    let made = post(&server, &key, recording(99)).await.expect(200);
    let refused = post(&server, &key, recording(101)).await.expect(422);
    assert!(refused["errors"]["audio"].is_array(), "{refused}");
    let many = (0..24).map(|_| post(&server, &key, recording(2)));
    for answer in join_all(many).await {
        answer.expect(200);
    }
    assert_eq!(read_ended(&server, &key, &made).await["status"], "error");
    let grown = server.peak_bytes().saturating_sub(idle) / MIB;
    assert!(grown < 64, "{grown} MiB");
    server.kill().await;
}

/// However many recordings are there, and however long they are, a few windows of them are in memory.
#[tokio::test(flavor = "multi_thread")]
async fn long_recordings_take_the_memory_of_windows() {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Transcription, Script::text("Forward."));
    let server =
        Server::start_measured(&TestDatabase::sqlite(), |config| upstream.listen(config)).await;
    let key = server.partner("acme").await.key;
    let idle = server.peak_bytes();
    let file = long(12);
    let mut made = Vec::new();
    for _ in 0..8 {
        made.push(
            post(&server, &key, audio("long.mp3", file.clone()))
                .await
                .expect(200),
        );
    }
    for made in &made {
        let read = read_ended(&server, &key, made).await;
        assert_eq!(read["status"], "completed", "{read}");
    }
    // A window has 18 MiB. One partner gets four places of eight, and two children decode at a time.
    let grown = server.peak_bytes().saturating_sub(idle) / MIB;
    assert!(grown < 200, "{grown} MiB");
    server.kill().await;
}
