//! Processes that die in the middle of splitting and embedding.

use std::time::Instant;

use harness::{by_length, elsewhere::eventually, process::Server};

use super::*;

pub(super) async fn processed_by(server: &Server, key: &str, voice: &str) -> Value {
    let begun = Instant::now();
    loop {
        let read = server.get(key, &path(voice)).await;
        let status = &read["status"];
        if status["splitting"] != "in_progress" && status["embedding"] != "in_progress" {
            return read;
        }
        let waited = begun.elapsed();
        assert!(
            waited < patience(Duration::from_secs(135)),
            "it does not end: {read}"
        );
        // A key may ask ten times a second.
        sleep(Duration::from_millis(150)).await;
    }
}

/// Voices at once, killed at every stage: each ends as it should, no sample is there twice, and nothing is left over.
#[tokio::test(flavor = "multi_thread")]
async fn voices_outlast_their_processes() {
    let worker = VoiceWorkers::start().await;
    let database = TestDatabase::sqlite();
    let start = async || Server::start(&database, |config| worker.offer(config)).await;
    let mut server = start().await;
    let key = server.partner("acme").await.key;
    let (sound, _) = spoken(1);
    // Several windows long.
    let long = converted(&wav(&sound.repeat(4)), "a.mp3", &[]);
    let mut expected: Option<Value> = None;
    for round in 0..3_u64 {
        let mut names = Vec::new();
        for number in 0..3 {
            let name = format!("voice {round} {number}");
            let junk = [b"ID3\x04\0\0\0\0\0\x0a".to_vec(), vec![0x55; 4_000]].concat();
            let sound = if number == 2 { junk } else { long.clone() };
            let form = file("a.mp3", sound).text("name", name.clone());
            let form = form.text("creator_name", "Carla");
            let request = server.request(&key, Method::POST, "/api/voices/acme");
            send(request.multipart(form)).await.expect(201);
            names.push(name.replace(' ', "%20"));
        }
        // Each round ends it at another moment.
        sleep(Duration::from_millis(700 * round)).await;
        server.kill().await;
        server = start().await;
        for (number, name) in names.iter().enumerate() {
            let voice = processed_by(&server, &key, name).await;
            if number == 2 {
                assert_eq!(voice["status"]["splitting"], "failed", "{voice}");
                continue;
            }
            let status = json!({"splitting": "completed", "embedding": "completed"});
            assert_eq!(voice["status"], status, "{name}");
            // The same samples, whenever the process died.
            let samples = expected.get_or_insert_with(|| voice["samples"].clone());
            assert_eq!(&voice["samples"], samples, "{name}");
            let scores = voice["embedding_info"]["sample_scores"].as_array().unwrap();
            assert_eq!(scores.len(), samples.as_array().unwrap().len());
        }
    }
    server.kill().await;
    // The last jobs may not have ended when their voices had. The processes before it had the time of their machine.
    let app = TestApp::builder(&database)
        .real_time()
        .quick_worker()
        .start()
        .await;
    let count = async |what: &str| {
        let sql = format!("SELECT COUNT(*) FROM {what}");
        app.app.store.db().fetch_count(sql).await.unwrap()
    };
    let open = "work WHERE kind LIKE 'voices.%' AND state <> 'done'";
    eventually("all jobs end", async || count(open).await == 0).await;
    app.app.blobs.sweep().await.unwrap();
    // What was being written when a process died goes by itself, two hours later.
    let left = format!("blobs WHERE state <> 'pending' AND key NOT IN ({KEYS})");
    assert_eq!(count(&left).await, 0);
    let missing = format!(
        "({KEYS}) AS keys WHERE blob_key NOT IN (SELECT key FROM blobs WHERE state = 'kept')"
    );
    assert_eq!(count(&missing).await, 0);
}

/// However large what is uploaded, the server holds little of it.
#[tokio::test(flavor = "multi_thread")]
async fn recordings_take_little_memory() {
    let database = TestDatabase::sqlite();
    let server = Server::start_measured(&database, |_| {}).await;
    let key = server.partner("acme").await.key;
    let (sound, _) = spoken(1);
    let form = file("a.wav", wav(&sound)).text("name", "first");
    let request = server.request(&key, Method::POST, "/api/voices/acme");
    send(request.multipart(form)).await.expect(201);
    processed_by(&server, &key, "first").await;
    let before = server.peak_bytes();
    // An hour of speech at full length, which nobody holds whole, nor the third of it.
    let times = by_length(38, 112);
    let hour = converted(&wav(&sound.repeat(times)), "a.mp3", &["-b:a", "32k"]);
    for number in 0..2 {
        let name = format!("hour{number}");
        let form = file("a.mp3", hour.clone()).text("name", name);
        let request = server.request(&key, Method::POST, "/api/voices/acme");
        send(request.multipart(form)).await.expect(201);
    }
    for number in 0..2 {
        let voice = processed_by(&server, &key, &format!("hour{number}")).await;
        assert_eq!(voice["samples"].as_array().unwrap().len(), 25, "{voice}");
        let duration = voice["original_duration"].as_f64().unwrap();
        assert!(
            (duration - (sound.len() * times) as f64 / 16_000.0).abs() < 3.0,
            "{duration}"
        );
    }
    let more = server.peak_bytes().saturating_sub(before) / 1_048_576;
    assert!(more < 96, "{more} MiB");
    server.kill().await;
}
