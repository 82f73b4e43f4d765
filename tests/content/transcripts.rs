//! Recordings that are written down: what is taken, what comes of it, and what it costs.

mod bounds;
mod crashes;
mod neural;
mod outages;
mod storage;

use std::{fs, time::Duration};

use colloquy::{providers, store::Executor as _};
use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, Answer, TestAppBuilder, send},
    client::go_forward,
    sounds::{converted, wav},
    upstream::{Api, Fault, Script, Upstream},
};
use reqwest::{Method, multipart::Form};
use serde_json::{Value, json};
use test_routes::transcripts::{PATH, audio, ended, is_over, post_form, recording, scripted, site};
use tokio::time::sleep;

const RATE_HZ: usize = 16_000;

/// A server whose recordings this upstream hears.
fn heard_by(upstream: &Upstream, builder: TestAppBuilder) -> TestAppBuilder {
    let mut settings = colloquy::Config::default();
    upstream.listen(&mut settings);
    let builder = builder.config(|config| upstream.listen(config));
    let builder = builder.providers(providers::from_config(&settings).unwrap());
    builder.with_decoder().quick_worker()
}

async fn transcribed(app: &TestApp, key: &str, form: Form) -> Value {
    let made = post_form(app, key, form).await.expect(200);
    assert_eq!(made["status"], "queued");
    assert_eq!(made.as_object().unwrap().len(), 2, "{made}");
    ended(app, key, &made).await
}

async fn count(app: &TestApp, what: &str) -> u64 {
    let sql = format!("SELECT COUNT(*) FROM {what}");
    app.app.store.db().fetch_count(sql).await.unwrap()
}

/// Nothing is left of what recordings were made of.
async fn is_tidy(app: &TestApp) {
    app.app.blobs.sweep().await.unwrap();
    assert_eq!(count(app, "blobs").await, 0);
    assert_eq!(count(app, "transcript_parts").await, 0);
    let kept = "transcripts WHERE blob_key IS NOT NULL OR audio_url IS NOT NULL";
    assert_eq!(count(app, kept).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_is_known_by_its_content() {
    let upstream = scripted().await;
    let app = heard_by(&upstream, TestApp::builder(&TestDatabase::sqlite()))
        .start()
        .await;
    let acme = app.partner("acme").await;
    let sound = recording();
    let of = |name: &str, arguments: &[&str]| converted(&sound, name, arguments);
    let files = [
        ("wav", sound.clone()),
        ("mp3", of("a.mp3", &[])),
        ("ogg", of("a.ogg", &["-c:a", "libopus"])),
        ("vorbis", of("v.ogg", &["-c:a", "libvorbis"])),
        ("flac", of("a.flac", &[])),
        ("m4a", of("a.m4a", &["-c:a", "aac"])),
        (
            "mp4",
            of(
                "a.mp4",
                &[
                    "-f",
                    "lavfi",
                    "-i",
                    "color=c=red:s=64x64:r=5",
                    "-shortest",
                    "-c:v",
                    "mpeg4",
                    "-c:a",
                    "aac",
                ],
            ),
        ),
        ("webm", of("a.webm", &["-c:a", "libopus"])),
    ];
    for (name, bytes) in files {
        // Whatever it is called.
        let read = transcribed(&app, &acme.key, audio("recording.bin", bytes)).await;
        assert_eq!(read["status"], "completed", "{name}: {read}");
        assert_eq!(read["text"], "Go forward ten meters.", "{name}");
        assert_eq!(read["audio_duration"], 3, "{name}");
        assert_eq!(read.as_object().unwrap().len(), 6, "{read}");
    }
    is_tidy(&app).await;
    // What the partner may not have is refused before anything is stored.
    for (name, bytes) in [
        ("text", b"Hello, this is no sound at all.".to_vec()),
        (
            "zip",
            b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        ),
        ("empty", Vec::new()),
    ] {
        let refused = post_form(&app, &acme.key, audio("a.mp3", bytes))
            .await
            .expect(422);
        assert!(
            refused["errors"]["audio"][0]
                .as_str()
                .unwrap()
                .contains("supported type"),
            "{name}: {refused}"
        );
    }
    let lies = [b"ID3\x04\0\0\0\0\0\x0a".to_vec(), vec![0x55; 4_000]].concat();
    let pictures = converted(
        &sound,
        "p.mp4",
        &[
            "-f",
            "lavfi",
            "-i",
            "color=c=red:s=64x64:r=5",
            "-map",
            "1:v",
            "-t",
            "1",
        ],
    );
    for (bytes, why) in [(lies, "not what its name says"), (pictures, "no sound")] {
        let read = transcribed(&app, &acme.key, audio("a.mp3", bytes)).await;
        assert_eq!(read["status"], "error");
        assert!(read["error"].as_str().unwrap().contains(why), "{read}");
        assert_eq!(read.as_object().unwrap().len(), 6, "{read}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_mean_what_the_document_says() {
    let upstream = scripted().await;
    let app = heard_by(&upstream, TestApp::builder(&TestDatabase::sqlite()))
        .start()
        .await;
    let acme = app.partner("acme").await;
    let last = || {
        upstream
            .requests(Api::Transcription)
            .last()
            .unwrap()
            .body
            .clone()
    };

    transcribed(&app, &acme.key, audio("a.wav", recording())).await;
    assert_eq!(
        (&last()["language"], &last()["prompt"]),
        (&json!("en"), &Value::Null)
    );
    let form = audio("a.wav", recording())
        .text("language_code", "de")
        .text("filler_words", "true")
        .text("format_text", "false")
        .text("boosted_words[]", "Colloquy")
        .text("boosted_words[]", "Grüße");
    let read = transcribed(&app, &acme.key, form).await;
    assert_eq!(read["text"], "um go forward ten meters");
    assert_eq!(
        (&last()["language"], &last()["prompt"]),
        (&json!("de"), &json!("Colloquy, Grüße"))
    );
    // Whoever hears it detects the language when none is named.
    let form = audio("a.wav", recording())
        .text("language_auto", "true")
        .text("language_code", "fr");
    transcribed(&app, &acme.key, form).await;
    assert_eq!(last()["language"], Value::Null);

    // Silence is nobody's words, and costs nothing.
    let asked = upstream.requests(Api::Transcription).len();
    let read = transcribed(&app, &acme.key, audio("a.wav", wav(&vec![3; 3 * RATE_HZ]))).await;
    assert_eq!(
        (&read["status"], &read["text"], &read["audio_duration"]),
        (&json!("completed"), &json!(""), &json!(3))
    );
    assert_eq!(upstream.requests(Api::Transcription).len(), asked);
    upstream.set_default(Api::Transcription, Script::fault(Fault::Status(400)));
    let read = transcribed(&app, &acme.key, audio("a.wav", recording())).await;
    assert_eq!(
        read["error"],
        "the transcription service refuses the recording"
    );
    is_tidy(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_fields_are_told_all_at_once() {
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    let acme = app.partner("acme").await;
    let told = async |body: Value| {
        let refused = app.post(&acme.key, PATH, body).await.expect(422);
        assert!(refused["message"].is_string() && refused.as_object().unwrap().len() == 2);
        refused["errors"].clone()
    };
    let errors = told(json!({})).await;
    assert!(
        errors["audio"].is_array() && errors["audio_url"].is_array(),
        "{errors}"
    );
    let errors = told(json!({
        "audio_url": "ftp://example.com/a.mp3", "language_code": "xx", "boosted_words": vec!["a"; 101],
    }))
    .await;
    assert_eq!(errors.as_object().unwrap().len(), 3, "{errors}");
    let errors = told(json!({"audio_url": "http://127.0.0.1/a.mp3"})).await;
    assert!(
        errors["audio_url"][0]
            .as_str()
            .unwrap()
            .contains("no public address")
    );
    let errors =
        told(json!({"audio_url": "https://example.com/a.mp3", "format_text": "maybe"})).await;
    assert!(errors["format_text"].is_array(), "{errors}");
    let all = json!({
        "audio_url": "https://example.com/a.mp3", "language_code": "xx", "filler_words": "no", "format_text": "no",
        "boosted_words": "w",
    });
    let errors = told(all).await;
    for field in [
        "language_code",
        "filler_words",
        "format_text",
        "boosted_words",
    ] {
        assert!(errors[field].is_array(), "{field}: {errors}");
    }
    assert_eq!(errors.as_object().unwrap().len(), 4, "{errors}");
    let all = audio("a.mp3", b"no sound".to_vec())
        .text("language_code", "xx")
        .text("filler_words", "no")
        .text("format_text", "no")
        .text("format_text", "yes")
        .text("boosted_words[]", " ");
    let refused = post_form(&app, &acme.key, all).await.expect(422);
    let errors = refused["errors"].as_object().unwrap();
    let told_of: Vec<&str> = errors.keys().map(String::as_str).collect();
    let expected = [
        "audio",
        "boosted_words.0",
        "filler_words",
        "format_text",
        "language_code",
    ];
    assert_eq!(told_of, expected, "{refused}");
    assert_eq!(
        refused["errors"]["format_text"],
        json!(["is given twice", "must be true or false"])
    );
    let both = audio("a.wav", recording()).text("audio_url", "https://example.com/a.mp3");
    let refused = post_form(&app, &acme.key, both).await.expect(422);
    assert!(refused["errors"]["audio_url"].is_array());
    let text = Form::new().text("audio", "not a file");
    post_form(&app, &acme.key, text).await.expect(422);

    // Who asks, and how.
    app.post("", PATH, json!({})).await.expect(401);
    let refused = app
        .post(
            ADMIN_KEY,
            PATH,
            json!({"audio_url": "https://example.com/a.mp3"}),
        )
        .await
        .expect(403);
    assert!(refused["error"].is_string() && refused.as_object().unwrap().len() == 1);
    let key = app.key("acme", json!({"scopes": ["calls"]})).await;
    app.post(key["api_key"].as_str().unwrap(), PATH, json!({}))
        .await
        .expect(403);
    let request = app
        .request(Method::POST, PATH)
        .header("x-api-key", &acme.key);
    send(request.header("content-type", "text/plain").body("hello"))
        .await
        .expect(415);
    let partner = app
        .request(Method::PUT, "/api/partners/acme")
        .bearer_auth(ADMIN_KEY);
    let off = json!({"settings": {"transcription_enabled": false}});
    send(partner.json(&off)).await.expect(200);
    post_form(&app, &acme.key, audio("a.wav", recording()))
        .await
        .expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_room_for_so_many() {
    let builder = TestApp::builder(&TestDatabase::sqlite()).without_worker();
    let builder = builder.config(|config| {
        config.transcripts.in_progress = 2;
        config.transcripts.max_file_bytes = 100_000;
    });
    let app = builder.start().await;
    let (acme, other) = app.acme_and_other().await;
    for _ in 0..2 {
        post_form(&app, &acme.key, audio("a.wav", recording()))
            .await
            .expect(200);
    }
    let refused = post_form(&app, &acme.key, audio("a.wav", recording())).await;
    assert_eq!(refused.headers["retry-after"], "10");
    let refused = refused.expect(429);
    assert!(
        refused["error"].as_str().unwrap().contains("10 s"),
        "{refused}"
    );
    post_form(&app, &other.key, audio("a.wav", recording()))
        .await
        .expect(200);
    let large = wav(&vec![100; 60_000]);
    let refused = post_form(&app, &other.key, audio("a.wav", large))
        .await
        .expect(422);
    assert!(refused["errors"]["audio"].is_array());
    // What was refused goes with its file, also when it goes with its partner.
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    app.delete(ADMIN_KEY, "/api/partners/other")
        .await
        .expect(204);
    assert_eq!(count(&app, "transcripts").await, 0);
    app.app.blobs.sweep().await.unwrap();
    assert_eq!(count(&app, "blobs").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_come_from_addresses() {
    let (origin, _site) = site().await;
    let upstream = scripted().await;
    let builder = heard_by(&upstream, TestApp::builder(&TestDatabase::sqlite()));
    let builder = builder.config(|config| {
        config.fetch.allow_private = true;
        config.transcripts.max_file_bytes = 1_000_000;
    });
    let app = builder.start().await;
    let acme = app.partner("acme").await;
    for (path, expected) in [
        ("/a.wav", Ok("Go forward ten meters.")),
        ("/moved", Ok("Go forward ten meters.")),
        // It is there the second time.
        ("/flaky.wav", Ok("Go forward ten meters.")),
        (
            "/page",
            Err("what is at audio_url is no recording of a supported type"),
        ),
        ("/nothing", Err("audio_url answers with status 404")),
        ("/endless", Err("audio_url: the answer is too large")),
        (
            "/loop",
            Err("audio_url: redirected too often, or to an invalid address"),
        ),
    ] {
        let body = json!({"audio_url": format!("{origin}{path}"), "language_code": "en_au"});
        let made = app.post(&acme.key, PATH, body).await.expect(200);
        app.advance_through("transcripts.transcribe").await;
        let read = ended(&app, &acme.key, &made).await;
        match expected {
            Ok(text) => assert_eq!(read["text"], text, "{path}: {read}"),
            Err(why) => assert_eq!(read["error"], why, "{path}: {read}"),
        }
    }
    app.app.blobs.sweep().await.unwrap();
    let left = "blobs WHERE state <> 'pending'";
    assert_eq!(count(&app, left).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_nobody_answers_at_fails_within_a_minute() {
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let builder = builder.config(|config| config.fetch.allow_private = true);
    let app = builder.with_decoder().quick_worker().start().await;
    let acme = app.partner("acme").await;
    let body = json!({"audio_url": "http://127.0.0.1:1/a.wav"});
    let made = app.post(&acme.key, PATH, body).await.expect(200);
    let (attempts, waits) = app.attempts("transcripts.transcribe").await;
    let waited: Duration = waits.iter().sum();
    assert_eq!(attempts, 3);
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    let read = ended(&app, &acme.key, &made).await;
    assert_eq!(read["status"], "error", "{read}");
    let told = read["error"].as_str().unwrap();
    assert!(told.contains("audio_url: no connection"), "{told}");
}

/// A server whose transcriber nobody answers for.
pub(super) fn heard_by_nobody(builder: TestAppBuilder) -> TestAppBuilder {
    let mut settings = colloquy::Config::default();
    settings.transcriber.base_url = Some("http://127.0.0.1:1/v1".parse().unwrap());
    settings.transcriber.model = Some("scripted-transcriber".to_owned());
    let transcriber = settings.transcriber.clone();
    let builder = builder.config(|config| config.transcriber = transcriber);
    let builder = builder.providers(providers::from_config(&settings).unwrap());
    builder.with_decoder().quick_worker()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcriber_that_nobody_answers_for_fails_within_a_minute() {
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let app = heard_by_nobody(builder).start().await;
    let acme = app.partner("acme").await;
    let made = post_form(&app, &acme.key, audio("a.wav", recording()))
        .await
        .expect(200);
    let (attempts, waits) = app.attempts("transcripts.transcribe").await;
    let waited: Duration = waits.iter().sum();
    assert_eq!(attempts, 3);
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    let read = ended(&app, &acme.key, &made).await;
    assert_eq!(read["status"], "error", "{read}");
    let told = "the transcription service failed, also when it was asked again: connection refused";
    assert_eq!(read["error"], told);
}

/// The address answers 503 at first.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_to_get_a_recording_are_none_to_hear_it() {
    let (origin, _site) = site().await;
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let builder = builder.config(|config| config.fetch.allow_private = true);
    let app = heard_by_nobody(builder).start().await;
    let acme = app.partner("acme").await;
    let body = json!({"audio_url": format!("{origin}/flaky.wav")});
    let made = app.post(&acme.key, PATH, body).await.expect(200);
    let (attempts, _) = app.attempts("transcripts.transcribe").await;
    assert_eq!(attempts, 2 + 3);
    let read = ended(&app, &acme.key, &made).await;
    let told = "the transcription service failed, also when it was asked again: connection refused";
    assert_eq!(read["error"], told, "{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_pays_by_the_second() {
    let upstream = scripted().await;
    let builder = heard_by(&upstream, TestApp::builder(&TestDatabase::sqlite()));
    let builder =
        builder.config(|config| config.transcriber.usd_per_hour = Some("3.6".parse().unwrap()));
    let app = builder.start().await;
    let acme = app.partner("acme").await;
    let quota = json!({"kinds": ["transcript"], "limits": {"seconds": 5}});
    let quota = app.quota(&acme, quota).await;
    let standing = async || app.get(&acme.key, &quota.path).await.expect(200);
    let read = transcribed(&app, &quota.key, audio("a.wav", recording())).await;
    assert_eq!(read["text"], "Go forward ten meters.", "{read}");
    // Its key reads what was asked for with it, the partner's key everything.
    let path = read["id"].as_str().unwrap();
    app.get(&acme.key, path).await.expect(200);
    let other = app.quota(&acme, json!({"kinds": ["transcript"]})).await;
    app.get(&other.key, path).await.expect(404);
    let used = standing().await;
    assert_eq!(
        (&used["used"]["seconds"], &used["used"]["dollars"]),
        (&json!(3), &json!("0.003")),
        "{used}"
    );
    assert_eq!(used["reserved"]["seconds"], 0);
    // There is no room for all of it, and nothing of it is asked for.
    let asked = upstream.requests(Api::Transcription).len();
    let read = transcribed(&app, &quota.key, audio("a.wav", recording())).await;
    assert_eq!(
        (&read["status"], &read["error"]),
        (&json!("error"), &json!("the quota is exhausted"))
    );
    assert_eq!(upstream.requests(Api::Transcription).len(), asked);
    assert_eq!(standing().await["reserved"]["seconds"], 0);
    app.put(&acme.key, &quota.path, json!({"limits": {"seconds": 3}}))
        .await
        .expect(200);
    let refused = post_form(&app, &quota.key, audio("a.wav", recording()))
        .await
        .expect(429);
    assert_eq!(refused["code"], "QUOTA_EXHAUSTED");
    // A service that refuses costs nothing; one that breaks off costs its bound.
    app.put(&acme.key, &quota.path, json!({"limits": {"seconds": 100}}))
        .await
        .expect(200);
    upstream.set_default(Api::Transcription, Script::fault(Fault::Status(400)));
    transcribed(&app, &quota.key, audio("a.wav", recording())).await;
    assert_eq!(standing().await["used"]["seconds"], 3);
    let key = app.quota(&acme, json!({"kinds": ["text"]})).await.key;
    post_form(&app, &key, audio("a.wav", recording()))
        .await
        .expect(403);
}
