//! Recordings and films, which are listened to.

use colloquy::providers;
use harness::{
    TestDatabase,
    app::{ADMIN_KEY, TestAppBuilder},
    client::go_forward,
    eventually,
    sounds::{converted, wav},
    upstream::{Api, Fault, Script, Upstream},
};
use test_routes::transcripts::site;

use super::*;
use crate::transcripts::heard_by_nobody;

const HEARD: &str = "go forward ten meters";
const RATE_HZ: usize = 16_000;

fn with(upstream: &Upstream) -> impl Fn(TestAppBuilder) -> TestAppBuilder {
    move |builder| {
        let mut settings = colloquy::Config::default();
        upstream.listen(&mut settings);
        let builder = builder.config(|config| upstream.listen(config));
        let builder = builder.providers(providers::from_config(&settings).unwrap());
        builder.with_decoder().quick_worker()
    }
}

const FILM: [&str; 5] = ["-f", "lavfi", "-i", "color=c=red:s=64x64:r=5", "-shortest"];

async fn text_of(app: &TestApp, key: &str, id: &str) -> String {
    let content = format!("/api/documents/{BASE}/{id}/content/digitized");
    let content = app.get(key, &content).await.expect(200);
    content["content"].as_str().unwrap().to_owned()
}

async fn count(app: &TestApp, what: &str) -> usize {
    let sql = format!("SELECT COUNT(*) FROM {what}");
    app.app.store.db().fetch_count(sql).await.unwrap() as usize
}

async fn heard(database: TestDatabase) {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Transcription, Script::text(HEARD));
    let app = with(&upstream)(TestApp::builder(&database)).start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let sound = wav(&go_forward());
    let film = |name: &str, codec: &str| {
        let arguments = [&FILM[..], &["-c:v", "mpeg4", "-c:a", codec]].concat();
        converted(&sound, name, &arguments)
    };
    let files = [
        ("a.wav", sound.clone()),
        ("a.mp3", converted(&sound, "a.mp3", &[])),
        ("a.m4a", converted(&sound, "a.m4a", &["-c:a", "aac"])),
        ("a.mp4", film("a.mp4", "aac")),
        ("a.m4v", film("a.m4v", "aac")),
        ("a.mov", film("a.mov", "pcm_s16le")),
        ("pcm.avi", film("pcm.avi", "pcm_s16le")),
        ("mp3.avi", film("mp3.avi", "libmp3lame")),
    ];
    let mut asked = 0;
    for (name, bytes) in files {
        let made = upload(&app, key, name, bytes).await.expect(201);
        let id = made["id"].as_str().unwrap();
        let document = digitized(&app, key, id).await;
        assert_eq!(document["status"], "digitized", "{name}: {document}");
        assert_eq!(
            text_of(&app, key, id).await,
            format!("[00:00] {HEARD}\n"),
            "{name}"
        );
        let path = format!("/api/document-transcript/{BASE}/{id}");
        let said = app.get(key, &path).await.expect(200);
        let segment = &said["segments"][0];
        assert_eq!(
            (&segment["begin_ms"], &segment["text"]),
            (&json!(0), &json!(HEARD)),
            "{name}"
        );
        let end = segment["end_ms"].as_i64().unwrap();
        let length = (sound.len() / 2 * 1_000 / RATE_HZ) as i64;
        assert!(
            (length - 300..length + 300).contains(&end),
            "{name}: {end} of {length}"
        );
        asked += 1;
        assert_eq!(upstream.requests(Api::Transcription).len(), asked, "{name}");
        // What was paid for is not paid for again.
        let body = json!({"document": {"id": id}});
        app.post(key, "/api/queue/process?partner=acme&kb=manual", body)
            .await
            .expect(200);
        digitized(&app, key, id).await;
        assert_eq!(upstream.requests(Api::Transcription).len(), asked, "{name}");
    }
    let rows = "knowledge_usage WHERE kind = 'transcribe' AND outcome = 'success' AND seconds BETWEEN 1 AND bound_seconds";
    assert_eq!(count(&app, rows).await, asked);

    // What cannot be heard says why.
    let silence = wav(&vec![3; 3 * RATE_HZ]);
    let ac3 = film("ac3.avi", "ac3");
    let pictures = converted(
        &sound,
        "p.mp4",
        &[&FILM[..4], &["-map", "1:v", "-t", "1"]].concat(),
    );
    let lie = [b"ID3\x04\0\0\0\0\0\x0a", &[0x55; 4_000][..]].concat();
    for (name, bytes, why) in [
        ("silence.wav", silence, "nobody speaks"),
        ("ac3.avi", ac3, "not supported: AC-3 (0x2000) in AVI"),
        ("pictures.mp4", pictures, "no sound"),
        ("lie.mp3", lie, "not what its name says"),
    ] {
        let made = upload(&app, key, name, bytes).await.expect(201);
        let document = digitized(&app, key, made["id"].as_str().unwrap()).await;
        assert_eq!(document["status"], "failed", "{name}: {document}");
        let error = document["processing_error"].as_str().unwrap();
        assert!(error.contains(why), "{name}: {error}");
    }
    assert_eq!(
        upstream.requests(Api::Transcription).len(),
        asked,
        "silence costs nothing"
    );
    upstream.set_default(Api::Transcription, Script::fault(Fault::Status(400)));
    let other = wav(&go_forward()[2_000..]);
    let made = upload(&app, key, "refused.wav", other).await.expect(201);
    let document = digitized(&app, key, made["id"].as_str().unwrap()).await;
    let error = document["processing_error"].as_str().unwrap();
    assert_eq!(error, "scripted-transcriber refuses the recording");

    // A partner may switch it off.
    let partner = "/api/partners/acme";
    let settings = |value: Value| json!({"settings": {"transcription_enabled": value}});
    let change = async |value: Value| {
        let request = app.request(Method::PUT, partner).bearer_auth(ADMIN_KEY);
        send(request.json(&settings(value))).await
    };
    change(json!("no")).await.expect(400);
    change(json!(false)).await.expect(200);
    let made = upload(&app, key, "off.wav", sound).await.expect(201);
    let document = digitized(&app, key, made["id"].as_str().unwrap()).await;
    assert_eq!(document["status"], "failed");
    assert_eq!(
        document["processing_error"],
        "transcription is switched off for this partner"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_is_written_down_sqlite() {
    heard(TestDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_is_written_down_postgres() {
    heard(TestDatabase::postgres().await).await;
}

/// Speech without pauses of more than a moment, so many minutes of it.
fn long(minutes: usize) -> Vec<u8> {
    let mut spoken = go_forward();
    spoken.truncate(spoken.len() / 320 * 320);
    let length = minutes * 60 * RATE_HZ;
    let samples: Vec<i16> = spoken.iter().copied().cycle().take(length).collect();
    converted(&wav(&samples), "long.mp3", &["-b:a", "32k"])
}

/// The marks of a text, in seconds.
fn marks(text: &str) -> Vec<u64> {
    let marks = text
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.split_once(']'));
    let second = |(mark, _): (&str, &str)| {
        mark.split(':')
            .fold(0, |sum, part| 60 * sum + part.parse::<u64>().unwrap())
    };
    marks.map(second).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_recording_is_heard_window_by_window() {
    const MINUTES: usize = 12;
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Transcription, Script::text(HEARD));
    let app = with(&upstream)(TestApp::builder(&TestDatabase::sqlite()))
        .start()
        .await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let made = upload(&app, key, "long.mp3", long(MINUTES))
        .await
        .expect(201);
    let id = made["id"].as_str().unwrap();
    let document = digitized(&app, key, id).await;
    assert_eq!(document["status"], "digitized", "{document}");
    let marks = marks(&text_of(&app, key, id).await);
    assert!(marks.len() > 15 && marks.is_sorted(), "{marks:?}");
    assert!(
        marks
            .windows(2)
            .all(|pair| (30..46).contains(&(pair[1] - pair[0]))),
        "{marks:?}"
    );
    // Each part was asked for once, and nothing was left out between windows.
    let parts = count(&app, "knowledge_transcripts").await;
    assert_eq!(upstream.requests(Api::Transcription).len(), parts);
    assert!(parts >= MINUTES * 4, "{parts}");
    let gaps = "knowledge_transcripts a WHERE begin_sample > 0 AND NOT EXISTS \
                (SELECT 1 FROM knowledge_transcripts b WHERE b.end_sample = a.begin_sample)";
    assert_eq!(count(&app, gaps).await, 0);
    let end = MINUTES * 60 * RATE_HZ - RATE_HZ;
    assert_eq!(
        count(
            &app,
            &format!("knowledge_transcripts WHERE end_sample > {end}")
        )
        .await,
        1
    );

    let short = with(&upstream)(TestApp::builder(&TestDatabase::sqlite()));
    let short = short.config(|config| config.knowledge.max_sound_seconds = 60);
    let app = short.start().await;
    let acme = furnished(&app).await;
    let before = upstream.requests(Api::Transcription).len();
    let made = upload(&app, &acme.key, "long.mp3", long(2))
        .await
        .expect(201);
    let document = digitized(&app, &acme.key, made["id"].as_str().unwrap()).await;
    assert_eq!(
        document["processing_error"],
        "the recording lasts longer than 60 s"
    );
    assert_eq!(upstream.requests(Api::Transcription).len(), before);
}

/// A process that is killed in the middle costs at most the part that was being asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_recording_goes_on_where_its_process_was_killed() {
    let upstream = Upstream::start().await;
    let slow = Script::text(HEARD).delayed(Duration::from_millis(40), Duration::ZERO);
    upstream.set_default(Api::Transcription, slow);
    let database = TestDatabase::sqlite();
    // A process is given no key, and the upstream takes whatever it is given.
    let start = async || Server::start(&database, |config| upstream.listen(config)).await;
    let server = start().await;
    let acme = furnished_server(&server).await;
    let key = acme.key.as_str();
    let form = fields(&[("type", "file"), ("folder", "texts")]);
    let form = form.part("file", file("long.mp3", long(8)));
    let request = server.request(key, Method::POST, &format!("/api/documents/{BASE}"));
    let made = send(request.multipart(form)).await.expect(201);
    let path = format!("/api/document/{BASE}/{}", made["id"].as_str().unwrap());
    let asked = || upstream.requests(Api::Transcription).len();
    eventually("half of it is heard", async || asked() > 15).await;
    server.kill().await;
    let server = start().await;
    let is_over = |document: &Value| document["status"] != "digitizing";
    let document = until("it goes on", is_over, async || server.get(key, &path).await).await;
    assert_eq!(document["status"], "digitized", "{document}");
    let content = format!(
        "/api/documents/{BASE}/{}/content/digitized",
        made["id"].as_str().unwrap()
    );
    let text = server.get(key, &content).await["content"].clone();
    let parts = text.as_str().unwrap().matches(HEARD).count();
    assert!(parts >= 32, "{parts}");
    assert!(
        (parts..=parts + 1).contains(&asked()),
        "{} requests for {parts} parts",
        asked()
    );
    server.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_says_that_its_transcriber_is_not_there_and_fails_within_a_minute() {
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let app = heard_by_nobody(builder).start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let sound = converted(&wav(&go_forward()), "a.mp3", &[]);
    let made = upload(&app, key, "a.mp3", sound).await.expect(201);
    let path = format!("/api/document/{BASE}/{}", made["id"].as_str().unwrap());
    eventually("the document says why it waits", async || {
        let document = app.get(key, &path).await.expect(200);
        let error = &document["processing_error"];
        error == "the transcription service failed and is asked again: connection refused"
    })
    .await;
    let (attempts, waits) = app.attempts("bases.digitize").await;
    let waited: Duration = waits.iter().sum();
    assert_eq!(attempts, 3);
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    let document = app.get(key, &path).await.expect(200);
    assert_eq!(document["digitize_status"], "failed", "{document}");
    let told = "the transcription service failed, also when it was asked again: connection refused";
    let error = document["processing_error"].as_str().unwrap();
    assert!(error.starts_with(told), "{error}");
}

/// The address answers 503 at first.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_to_get_a_recording_are_none_to_hear_it() {
    let (origin, _site) = site().await;
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let builder = builder.config(|config| config.fetch.allow_private = true);
    let app = heard_by_nobody(builder).start().await;
    let acme = furnished(&app).await;
    let url = format!("{origin}/flaky.wav");
    let form = fields(&[("type", "url"), ("folder", "texts"), ("url", &url)]);
    let made = post(&app, &acme.key, &format!("/api/documents/{BASE}"), form).await;
    made.expect(201);
    let (attempts, _) = app.attempts("bases.digitize").await;
    assert_eq!(attempts, 2 + 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_keeps_the_reason_while_its_transcriber_is_asked_again() {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Transcription, Script::fault(Fault::Status(500)));
    let app = with(&upstream)(TestApp::builder(&TestDatabase::sqlite()));
    let app = app.start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let made = upload(&app, key, "a.wav", wav(&go_forward())).await;
    let made = made.expect(201);
    let id = made["id"].as_str().unwrap();
    let path = format!("/api/document/{BASE}/{id}");
    let tells = async |step: &str| {
        let document = app.get(key, &path).await.expect(200);
        let waits = "the transcription service failed and is asked again: answered 500";
        document["digitize_status"] == step && document["processing_error"] == waits
    };
    eventually("it waits for another attempt", async || {
        tells("queued").await
    })
    .await;
    upstream.set_default(Api::Transcription, Script::text(HEARD));
    let held = upstream.hold(Api::Transcription);
    app.run_due_jobs().await;
    app.advance(Duration::from_secs(300));
    eventually("the next attempt runs", async || tells("running").await).await;
    drop(held);
    let document = digitized(&app, key, id).await;
    assert_eq!(document["status"], "digitized", "{document}");
    assert_eq!(document["processing_error"], Value::Null);
}
