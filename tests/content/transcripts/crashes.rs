//! Processes that die, and databases that are away, in the middle of transcripts.

use harness::{eventually, process::Server};

use super::{
    bounds::{long, post, read_ended},
    *,
};

/// A process that is killed in the middle costs at most the parts that were being asked for, and no word is lost or doubled.
#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_goes_on_where_its_process_was_killed() {
    let upstream = Upstream::start().await;
    let slow = Script::text("Forward.").delayed(Duration::from_millis(150), Duration::ZERO);
    upstream.set_default(Api::Transcription, slow);
    let database = TestDatabase::sqlite();
    // A process is given no key, and the upstream takes whatever it is given.
    let start = async || Server::start(&database, |config| upstream.listen(config)).await;
    let mut server = start().await;
    let key = server.partner("acme").await.key;
    let made = post(&server, &key, audio("long.mp3", long(12)))
        .await
        .expect(200);
    let asked = || upstream.requests(Api::Transcription).len();
    eventually("some of it is heard", async || asked() > 8).await;
    server.kill().await;
    server = start().await;
    let read = read_ended(&server, &key, &made).await;
    assert_eq!(read["status"], "completed", "{read}");
    let duration = read["audio_duration"].as_u64().unwrap();
    assert!(duration.abs_diff(12 * 60) <= 1, "{duration}");
    let parts = read["text"].as_str().unwrap().matches("Forward.").count();
    assert!(parts >= 12 * 60 / 12, "{parts}");
    let twice = asked() - parts;
    assert!(twice <= 4, "{} requests for {parts} parts", asked());
    server.kill().await;
}

/// Many at once, killed at every stage: each ends as it should, and nothing is left over.
#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_outlast_their_processes() {
    let (origin, _site) = site().await;
    let upstream = Upstream::start().await;
    let slow = Script::text("Forward.").delayed(Duration::from_millis(60), Duration::ZERO);
    upstream.set_default(Api::Transcription, slow);
    let database = TestDatabase::sqlite();
    let start = async || {
        let change = |config: &mut colloquy::Config| {
            upstream.listen(config);
            config.fetch.allow_private = true;
        };
        Server::start(&database, change).await
    };
    let mut server = start().await;
    let acme = server.partner("acme").await;
    let quota = server.quota(&acme, &json!({"kinds": ["transcript"]})).await;
    let key = acme.key.clone();
    let mut completed = 0;
    // A job whose process dies twice is not run any more, so each of them meets one death, at another stage in each round.
    for round in 0..4 {
        let mut made = Vec::new();
        for number in 0..6 {
            let one = match number % 3 {
                0 => {
                    let body = json!({"audio_url": format!("{origin}/a.wav")});
                    let request = server.request(&quota.key, Method::POST, PATH);
                    send(request.json(&body)).await.expect(200)
                }
                1 => {
                    let junk = [b"ID3\x04\0\0\0\0\0\x0a".to_vec(), vec![0x55; 4_000]].concat();
                    post(&server, &quota.key, audio("junk.mp3", junk))
                        .await
                        .expect(200)
                }
                _ => post(&server, &quota.key, audio("a.wav", recording()))
                    .await
                    .expect(200),
            };
            made.push(one);
        }
        // Each round ends it at another moment.
        sleep(Duration::from_millis(40 * round)).await;
        server.kill().await;
        server = start().await;
        for (number, made) in made.iter().enumerate() {
            let read = read_ended(&server, &key, made).await;
            match number % 3 {
                1 => assert_eq!(read["status"], "error", "{number}: {read}"),
                _ => {
                    assert_eq!(read["status"], "completed", "{number}: {read}");
                    assert_eq!(read["text"], "Forward.", "{number}: {read}");
                    completed += 1;
                }
            }
        }
    }
    let standing = server.get(&key, &quota.path).await;
    assert_eq!(standing["reserved"]["seconds"], 0, "{standing}");
    let used = standing["used"]["seconds"].as_u64().unwrap();
    server.kill().await;
    // The processes before it had the time of their machine.
    let app = TestApp::builder(&database)
        .real_time()
        .without_worker()
        .start()
        .await;
    // Each is three seconds; what a process had reserved that died is paid for, too, since nobody knows whether it was done. What is no
    // recording may have looked as if it was one of a second.
    let lost = "usage_records WHERE endpoint = 'transcripts' AND outcome = 'bound'";
    let seconds =
        format!("SELECT COALESCE(SUM(json_extract(amounts, '$.seconds')), 0) FROM {lost}");
    let seconds = app.app.store.db().fetch_count(seconds).await.unwrap();
    let lost = count(&app, lost).await;
    assert!(seconds <= 3 * lost, "{seconds} s of {lost}");
    assert_eq!(used, 3 * completed + seconds, "{completed} and {lost}");
    let asked = upstream.requests(Api::Transcription).len() as u64;
    assert!(
        (completed..=completed + lost).contains(&asked),
        "{asked} requests for {completed} and {lost}"
    );
    assert_eq!(count(&app, "transcript_parts").await, 0);
    assert_eq!(
        count(
            &app,
            "work WHERE kind = 'transcripts.transcribe' AND state <> 'done'"
        )
        .await,
        0
    );
    app.app.blobs.sweep().await.unwrap();
    let left = "blobs WHERE state <> 'pending'";
    assert_eq!(count(&app, left).await, 0);
}
