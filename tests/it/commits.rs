//! Commits whose answers are lost: they were made, and nobody knows. Work that was accepted ends all the same, once.

use colloquy::store::Executor as _;
use harness::{
    TestApp,
    app::{ADMIN_KEY, send},
    database::OwnPostgres,
    elsewhere, eventually,
    lost_commits::LostCommits,
    process::Server,
    sounds::wav,
    upstream::{Api, Script, Upstream},
    voice_workers::VoiceWorkers,
};
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};

const RATE_HZ: usize = 16_000;

/// After how many lost commits the others come through.
const LOST: usize = 12;

/// Minutes in which somebody speaks now and then: two windows of a voice.
fn sound() -> Vec<u8> {
    let speech = harness::client::go_forward();
    let pause = vec![0; RATE_HZ];
    let spoken: Vec<i16> = [speech, pause].concat();
    let rounds = (150 * RATE_HZ).div_ceil(spoken.len());
    wav(&spoken.repeat(rounds))
}

fn file(field: &'static str, sound: &[u8]) -> Form {
    let part = Part::bytes(sound.to_vec()).file_name("a.wav");
    Form::new().part(field, part)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_ends_once_whatever_its_commits_say() {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Transcription, Script::text("Forward."));
    let worker = VoiceWorkers::start().await;
    let postgres = OwnPostgres::start();
    let database = postgres.database().await;
    let commits = LostCommits::before(&database);
    let server = Server::start(&commits.database, |config| {
        upstream.listen(config);
        worker.offer(config);
    })
    .await;
    let partner = server.partner("acme").await;
    let quota = json!({"kinds": ["transcript"], "period": "lifetime"});
    let quota = server.quota(&partner, &quota).await;
    let (key, sound) = (&partner.key, sound());
    let (mut voices, mut transcripts, mut analyses) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..2 {
        let name = format!("voice-{number}");
        let form = file("file", &sound).text("name", name.clone());
        let request = server.request(key, Method::POST, "/api/voices/acme");
        send(request.multipart(form)).await.expect(201);
        voices.push(format!("/api/voices/acme/{name}"));
    }
    for _ in 0..3 {
        let request = server.request(&quota.key, Method::POST, "/v2/transcript");
        let made = send(request.multipart(file("audio", &sound))).await;
        let made = made.expect(200);
        transcripts.push(made["id"].as_str().unwrap().to_owned());
        let body = json!({"input": {
            "messages": [{"text": "My name is Ada.", "originator": "user"}], "language": "English",
            "current_profile": {}, "profile_schema": {"name": {"type": "string"}}, "feedback_schema": {},
        }});
        let request = server.request(key, Method::POST, "/v2/dialog_analyses");
        let made = send(request.json(&body)).await.expect(200);
        analyses.push(made["id"].as_str().unwrap().to_owned());
    }
    commits.lose_one_of(3);
    eventually("many commits are lost", async || commits.lost() >= LOST).await;
    commits.lose_one_of(0);

    let ended = async |key: &str, path: &str, is_over: fn(&Value) -> bool| {
        elsewhere::until(path, is_over, async || server.get(key, path).await).await
    };
    let mut samples = None;
    for voice in &voices {
        let is_over = |read: &Value| {
            let status = &read["status"];
            status["splitting"] != "in_progress" && status["embedding"] != "in_progress"
        };
        let read = ended(key, voice, is_over).await;
        let status = json!({"splitting": "completed", "embedding": "completed"});
        assert_eq!(read["status"], status, "{read}");
        // The same ones, and none of them twice.
        let found = read["samples"].as_array().unwrap().clone();
        assert!(found.len() > 5, "{read}");
        assert_eq!(samples.get_or_insert_with(|| found.clone()), &found);
    }
    let mut seconds = 0;
    for transcript in &transcripts {
        let is_over = |read: &Value| read["status"] != "queued" && read["status"] != "processing";
        let read = ended(&quota.key, transcript, is_over).await;
        assert_eq!(read["status"], "completed", "{read}");
        seconds += read["audio_duration"].as_u64().unwrap();
    }
    for analysis in &analyses {
        let read = ended(key, analysis, |read| read["state"] != "in-progress").await;
        assert_eq!(read["output"]["profile"]["name"], "Ada", "{read}");
    }
    server.kill().await;

    // The processes before it had the time of their machine.
    let app = TestApp::builder(&database)
        .real_time()
        .quick_worker()
        .start()
        .await;
    let db = app.app.store.db();
    let open = "SELECT COUNT(*) FROM work WHERE state <> 'done' AND (kind LIKE 'voices.%' \
        OR kind LIKE 'transcripts.%' OR kind LIKE 'analyses.%')";
    elsewhere::eventually("all jobs end", async || {
        db.fetch_count(open).await.unwrap() == 0
    })
    .await;
    // All was settled. What was reserved in a commit that seemed to fail may have been asked for, so it is paid as well.
    let standing = app.get(ADMIN_KEY, &quota.path).await.expect(200);
    let used = standing["used"]["seconds"].as_u64().unwrap();
    assert!(
        (seconds..=2 * seconds).contains(&used),
        "{standing} of {seconds}"
    );
    assert_eq!(standing["reserved"]["seconds"], 0);
}
