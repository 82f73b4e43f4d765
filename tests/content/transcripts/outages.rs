//! Outages: transcripts and analyses that were accepted come through them, and nobody is told anything but "later".

use harness::{disk::SmallDisk, elsewhere::until, process::Server};

use super::{
    bounds::{post, read_ended},
    *,
};

/// Longer than a request waits for the database.
const SHORT: Duration = Duration::from_secs(6);

fn analysis() -> Value {
    json!({"input": {
        "messages": [{"text": "My name is Ada.", "originator": "user"}], "language": "English",
        "current_profile": {}, "profile_schema": {"name": {"type": "string"}}, "feedback_schema": {},
    }})
}

async fn analyze(server: &Server, key: &str) -> Answer {
    let request = server.request(key, Method::POST, "/v2/dialog_analyses");
    send(request.json(&analysis())).await
}

/// What was accepted, or nothing, where it is to be brought later.
fn accepted(answer: Answer) -> Option<Value> {
    match answer.status.as_u16() {
        200 => Some(answer.json()),
        // 507 where the disk is what is full.
        503 | 507 => {
            assert!(!answer.header("retry-after").is_empty());
            None
        }
        status => panic!("{status}: {}", answer.text),
    }
}

/// Somebody else holds the lock of the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_loses_nothing() {
    let upstream = Upstream::start().await;
    let slow = Script::text("Forward.").delayed(Duration::from_millis(500), Duration::ZERO);
    upstream.set_default(Api::Transcription, slow);
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |config| upstream.listen(config)).await;
    let key = server.partner("acme").await.key;
    let (mut transcripts, mut analyses, mut refused) = (Vec::new(), Vec::new(), 0);
    for _ in 0..6 {
        transcripts.extend(accepted(
            post(&server, &key, audio("a.wav", recording())).await,
        ));
        analyses.extend(accepted(analyze(&server, &key).await));
    }
    assert_eq!((transcripts.len(), analyses.len()), (6, 6));
    let held = database.hold().await;
    let end = std::time::Instant::now() + SHORT;
    while std::time::Instant::now() < end {
        for taken in [
            post(&server, &key, audio("a.wav", recording())).await,
            analyze(&server, &key).await,
        ] {
            let taken = accepted(taken);
            refused += usize::from(taken.is_none());
        }
        // Not a flood.
        sleep(Duration::from_millis(200)).await;
    }
    held.release().await;
    assert!(refused > 0, "there was no outage");
    for made in &transcripts {
        let read = read_ended(&server, &key, made).await;
        assert_eq!(read["text"], "Forward.", "{read}");
    }
    for made in &analyses {
        let path = made["id"].as_str().unwrap();
        let is_over = |read: &Value| read["state"] != "in-progress";
        let read = until("the analysis ends", is_over, async || {
            server.get(&key, path).await
        })
        .await;
        assert_eq!(read["output"]["profile"]["name"], "Ada", "{read}");
    }
    server.kill().await;
}

/// Files have no room: uploads are refused, and what is to be got from an address is got later.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing() {
    let Some(disk) = SmallDisk::mount("4m") else {
        return;
    };
    let (origin, _site) = site().await;
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Transcription, Script::text("Forward."));
    let place = url::Url::from_directory_path(disk.path("blobs")).unwrap();
    let change = |config: &mut colloquy::Config| {
        upstream.listen(config);
        config.fetch.allow_private = true;
        config.store.blob_url = Some(place);
    };
    let server = Server::start(&TestDatabase::sqlite(), change).await;
    let key = server.partner("acme").await.key;
    let before = post(&server, &key, audio("a.wav", recording()))
        .await
        .expect(200);
    read_ended(&server, &key, &before).await;
    let ballast = disk.fill();
    let upload = post(&server, &key, audio("a.wav", recording())).await;
    assert!(accepted(upload).is_none(), "there was room");
    let body = json!({"audio_url": format!("{origin}/a.wav")});
    let request = server.request(&key, Method::POST, PATH).json(&body);
    let made = send(request).await.expect(200);
    // So long it is full.
    sleep(SHORT).await;
    let waits = server.get(&key, made["id"].as_str().unwrap()).await;
    assert_eq!(waits["status"], "processing", "{waits}");
    drop(ballast);
    let read = read_ended(&server, &key, &made).await;
    assert_eq!(read["text"], "Forward.", "{read}");
    server.kill().await;
}
