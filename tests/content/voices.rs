//! The voice library: voices of recordings, their samples, and what workers make of them.

mod crashes;
mod neural;
mod outages;
mod speaking;
mod workers;

use std::{fs, io::Read as _, time::Duration};

use colloquy::store::Executor as _;
use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, Answer, TestAppBuilder, TestPartner, send, streamed},
    client::go_forward,
    eventually, on_both_databases, patience,
    sounds::{converted, decoded_by_ffmpeg, wav},
    until,
    voice_workers::VoiceWorkers,
};
use reqwest::{
    Method, RequestBuilder,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use tokio::time::sleep;

const RATE_HZ: usize = 16_000;
/// Where Debian has recordings of a novel.
const FOLDER: &str = "/usr/share/pocketsphinx/test/data/librivox";

/// The keys of all files that voices refer to.
const KEYS: &str = "SELECT blob_key FROM voices WHERE blob_key IS NOT NULL \
    UNION ALL SELECT blob_key FROM voice_samples UNION ALL SELECT blob_key FROM voice_test_samples \
    UNION ALL SELECT blob_key FROM voice_embeddings WHERE blob_key IS NOT NULL";

/// The recordings of a novel, by one person.
fn novel() -> Vec<Vec<i16>> {
    ["0870", "0880", "0890", "0920", "0930"]
        .iter()
        .map(|number| {
            let name = format!("{FOLDER}/sense_and_sensibility_01_austen_64kb-{number}.wav");
            let bytes = fs::read(name).unwrap();
            // Behind a header of 44 bytes.
            let (samples, _) = bytes[44..].as_chunks::<2>();
            samples.iter().copied().map(i16::from_le_bytes).collect()
        })
        .collect()
}

/// The recordings one after the other, with pauses of so many seconds, and when each of them begins and ends.
fn spoken(pause: usize) -> (Vec<i16>, Vec<(f64, f64)>) {
    let (mut sound, mut times) = (Vec::new(), Vec::new());
    let seconds = |samples: usize| samples as f64 / RATE_HZ as f64;
    for recording in novel() {
        sound.extend(vec![0; pause * RATE_HZ]);
        let begin = seconds(sound.len());
        sound.extend(recording);
        times.push((begin, seconds(sound.len())));
    }
    sound.extend(vec![0; pause * RATE_HZ]);
    (sound, times)
}

fn builder(database: &TestDatabase) -> TestAppBuilder {
    TestApp::builder(database).with_decoder().quick_worker()
}

fn path(voice: &str) -> String {
    format!("/api/voices/acme/{voice}")
}

fn file(name: &str, bytes: Vec<u8>) -> Form {
    Form::new().part("file", Part::bytes(bytes).file_name(name.to_owned()))
}

async fn post_form(app: &TestApp, key: &str, path: &str, form: Form) -> Answer {
    let request = app.request(Method::POST, path).header("x-api-key", key);
    send(request.multipart(form)).await
}

/// The fields of a form in the body of a request.
fn fields(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(fields);
    let kind = "application/x-www-form-urlencoded";
    request.header("content-type", kind).body(body.finish())
}

/// Sends the fields of a form.
async fn post(app: &TestApp, key: &str, path: &str, with: &[(&str, &str)]) -> Answer {
    let request = app.request(Method::POST, path).header("x-api-key", key);
    send(fields(request, with)).await
}

async fn put(app: &TestApp, key: &str, path: &str, with: &[(&str, &str)]) -> Answer {
    let request = app.request(Method::PUT, path).header("x-api-key", key);
    send(fields(request, with)).await
}

/// Makes a voice of a recording.
async fn create(app: &TestApp, partner: &TestPartner, name: &str, bytes: Vec<u8>) -> Value {
    let form = file("take one.mp3", bytes).text("name", name.to_owned());
    let made = post_form(app, &partner.key, "/api/voices/acme", form).await;
    made.expect(201)
}

/// The voice, once nothing of it is in progress.
async fn processed(app: &TestApp, key: &str, voice: &str) -> Value {
    let is_over = |read: &Value| {
        let status = &read["status"];
        status["splitting"] != "in_progress" && status["embedding"] != "in_progress"
    };
    until("the voice is processed", is_over, async || {
        app.get(key, &path(voice)).await.expect(200)
    })
    .await
}

async fn bytes(app: &TestApp, key: &str, path: &str) -> Vec<u8> {
    let request = app.request(Method::GET, path).header("x-api-key", key);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.bytes().await.unwrap().to_vec()
}

/// Where a sample begins in its recording, in seconds.
fn source(sample: &Value) -> f64 {
    let text = sample["source_timestamp"].as_str().unwrap();
    let (minutes, seconds) = text.split_once(':').unwrap();
    assert_eq!((minutes.len(), seconds.len()), (2, 2), "{text}");
    minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
}

/// Nothing is stored but what voices refer to, and all of that is.
async fn is_tidy(app: &TestApp) {
    app.app.blobs.sweep().await.unwrap();
    let count = async |what: String| {
        let sql = format!("SELECT COUNT(*) FROM {what}");
        app.app.store.db().fetch_count(sql).await.unwrap()
    };
    assert_eq!(count(format!("blobs WHERE key NOT IN ({KEYS})")).await, 0);
    let missing = format!(
        "({KEYS}) AS keys WHERE blob_key NOT IN (SELECT key FROM blobs WHERE state = 'kept')"
    );
    assert_eq!(count(missing).await, 0);
}

on_both_databases!(
    a_recording_becomes_samples,
    |builder| builder.with_decoder().quick_worker(),
    |app| {
        let (acme, other) = app.acme_and_other().await;
        let (sound, times) = spoken(2);
        let sound = converted(&wav(&sound), "a.mp3", &[]);
        let made = create(&app, &acme, "Anna", sound).await;
        assert_eq!(made["status"]["splitting"], "in_progress", "{made}");
        assert_eq!(made["original_filename"], "original.mp3");
        assert_eq!(made["original_uploaded_name"], "take one.mp3");
        let voice = processed(&app, &acme.key, "Anna").await;
        assert_eq!(
            voice["status"],
            json!({"splitting": "completed", "embedding": "idle"})
        );
        let duration = voice["original_duration"].as_f64().unwrap();
        assert!((duration - times[4].1 - 2.0).abs() < 0.2, "{duration}");
        let samples = voice["samples"].as_array().unwrap();
        assert!((2..=5).contains(&samples.len()), "{samples:?}");
        for (number, sample) in samples.iter().enumerate() {
            assert_eq!(sample["index"], number);
            let begin = source(sample);
            // Each begins with a recording, in whole seconds.
            let begins = times
                .iter()
                .any(|time| (-0.2..1.2).contains(&(time.0 - begin)));
            assert!(begins, "{begin} {times:?}");
            let duration = sample["duration"].as_f64().unwrap();
            assert!((1.0..=15.0).contains(&duration), "{sample}");
            let opus = bytes(
                &app,
                &acme.key,
                &format!("{}/samples/{number}", path("Anna")),
            )
            .await;
            let heard = decoded_by_ffmpeg(&opus, 48_000).len() as f64 / 48_000.0;
            assert!((heard - duration).abs() < 0.05, "{heard} {duration}");
            let rate = opus.len() as f64 * 8.0 / duration;
            assert!(
                (60_000.0..130_000.0).contains(&rate),
                "{rate} bits a second"
            );
        }
        let heard: f64 = samples
            .iter()
            .map(|it| it["duration"].as_f64().unwrap())
            .sum();
        let said: f64 = times.iter().map(|time| time.1 - time.0).sum();
        assert!(
            (said * 0.85..said + 3.0).contains(&heard),
            "{heard} of {said}"
        );

        let listed = app.get(&acme.key, "/api/voices/acme").await.expect(200);
        let expected = json!([{
            "name": "Anna", "has_original": true, "sample_count": samples.len(), "splitting_status": "completed",
            "embedding_status": "idle", "creator_name": null, "creator_email": null,
        }]);
        assert_eq!(listed, expected);
        let bundle = bytes(&app, &acme.key, &format!("{}/samples-bundle", path("Anna"))).await;
        let mut zip = zip::ZipArchive::new(std::io::Cursor::new(bundle)).unwrap();
        assert_eq!(zip.len(), samples.len() + 1);
        let mut info = String::new();
        zip.by_name("voice_info.json")
            .unwrap()
            .read_to_string(&mut info)
            .unwrap();
        assert_eq!(serde_json::from_str::<Value>(&info).unwrap(), voice);
        assert!(zip.by_name("0.opus").is_ok());

        // Nobody else reaches it.
        let denied = app.get(&other.key, &path("Anna")).await.expect(403);
        assert_eq!(denied["detail"], "Access denied", "{denied}");
        app.get(&other.key, "/api/voices/other/Anna")
            .await
            .expect(404);
        let missing = app.get(&acme.key, &path("Bert")).await.expect(404);
        assert_eq!(missing["detail"], "Voice not found", "{missing}");
        let wrong = app.get("nonsense", &path("Anna")).await.expect(401);
        assert_eq!(wrong["detail"], "Invalid API key", "{wrong}");
        let by_query = app.request(
            Method::GET,
            &format!("{}?api_key={}", path("Anna"), acme.key),
        );
        send(by_query).await.expect(200);
        let page = json!({"kind": "publishable", "allowed_origins": ["https://www.example.com"]});
        for key in [json!({"name": "calls", "scopes": ["calls"]}), page] {
            let made = app.key("acme", key).await;
            let key = made["api_key"].as_str().unwrap();
            let denied = app.get(key, &path("Anna")).await.expect(403);
            assert_eq!(denied["detail"], "Access denied", "{denied}");
        }

        // What no database stores is nowhere.
        let strange = [
            path("%00"),
            format!("{}/test-files/%00", path("Anna")),
            "/api/voice-worker/jobs/%00".to_owned(),
            "/api/kb-data/acme/%00".to_owned(),
        ];
        for place in strange {
            for method in [Method::GET, Method::POST, Method::DELETE] {
                let request = app.request(method, &place).header("x-api-key", &acme.key);
                let status = request.send().await.unwrap().status();
                assert!(status.is_client_error(), "{place}: {status}");
            }
        }

        // Split anew, into shorter ones, of which there are fewer.
        let how = [("max_samples", "3"), ("sample_duration", "5")];
        post(&app, &acme.key, &format!("{}/split", path("Anna")), &how)
            .await
            .expect(202);
        let voice = processed(&app, &acme.key, "Anna").await;
        let samples = voice["samples"].as_array().unwrap();
        assert_eq!(samples.len(), 3, "{samples:?}");
        assert!(
            samples
                .iter()
                .all(|it| it["duration"].as_f64().unwrap() <= 5.0),
            "{samples:?}"
        );
        is_tidy(&app).await;
        app.delete(&acme.key, &path("Anna")).await.expect(204);
        app.get(&acme.key, &path("Anna")).await.expect(404);
        app.app.blobs.sweep().await.unwrap();
        is_tidy(&app).await;
    }
);

/// Nothing is cut in the midst of a word: between the samples, and in what was left out of the recording, nobody speaks.
#[tokio::test(flavor = "multi_thread")]
async fn samples_together_are_all_that_was_said() {
    let app = builder(&TestDatabase::sqlite()).start().await;
    let acme = app.partner("acme").await;
    let (sound, _) = spoken(1);
    create(&app, &acme, "Anna", wav(&sound)).await;
    let voice = processed(&app, &acme.key, "Anna").await;
    let count = voice["samples"].as_array().unwrap().len();
    let energy = |samples: &[i16], quiet: f64| -> (f64, f64) {
        let loudest = samples
            .iter()
            .map(|it| f64::from(*it).abs())
            .fold(1.0, f64::max);
        let moments = samples.chunks(samples.len().div_ceil(1_000).max(1));
        let loud = |moment: &&[i16]| {
            let squares = moment.iter().map(|it| (f64::from(*it) / loudest).powi(2));
            (squares.sum::<f64>() / moment.len() as f64).sqrt() > quiet
        };
        (
            moments.clone().filter(loud).count() as f64,
            moments.count() as f64,
        )
    };
    for number in 0..count {
        let opus = bytes(
            &app,
            &acme.key,
            &format!("{}/samples/{number}", path("Anna")),
        )
        .await;
        let sound = decoded_by_ffmpeg(&opus, 48_000);
        // The first and the last 30 ms are quiet beside the rest: no word begins or ends there.
        let border = 48 * 30;
        let ends = [&sound[..border], &sound[sound.len() - border..]];
        let loudest = sound.iter().map(|it| it.unsigned_abs()).max().unwrap();
        for end in ends {
            let loud = end.iter().map(|it| it.unsigned_abs()).max().unwrap();
            assert!(loud < loudest / 5, "{number}: {loud} of {loudest}");
        }
        let (loud, all) = energy(&sound, 0.02);
        assert!(loud / all > 0.6, "{number}: {loud} of {all} moments");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn voices_are_named_and_refused_by_their_fields() {
    let app = builder(&TestDatabase::sqlite()).start().await;
    let acme = app.partner("acme").await;
    let empty = "/api/voices/acme/empty";
    let refused = |answer: Answer, field: &str| {
        let body = answer.expect(400);
        assert_eq!(body["field"], field, "{body}");
    };
    for name in ["", " ", "a/b", "..", "empty", &"x".repeat(256)] {
        refused(
            post(&app, &acme.key, empty, &[("name", name)]).await,
            "name",
        );
    }
    refused(
        post(&app, &acme.key, empty, &[("name", "a"), ("other", "b")]).await,
        "other",
    );
    let bad_email = [("name", "a"), ("creator_email", "nobody")];
    refused(
        post(&app, &acme.key, empty, &bad_email).await,
        "creator_email",
    );
    let long = "é".repeat(255);
    for name in ["a voice & more", "声", &long] {
        let made = post(&app, &acme.key, empty, &[("name", name)])
            .await
            .expect(201);
        assert_eq!(made["name"], name);
        assert_eq!(
            made["status"],
            json!({"splitting": "idle", "embedding": "idle"})
        );
        assert_eq!(made["samples"], json!([]));
        for field in [
            "original_filename",
            "embedding_info",
            "embedding_zip_url",
            "preferred_sample_index",
        ] {
            assert_eq!(made[field], Value::Null, "{field}");
        }
        let encoded: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
        let encoded = encoded.replace('+', "%20");
        app.get(&acme.key, &path(&encoded)).await.expect(200);
    }
    let twice = post(&app, &acme.key, empty, &[("name", "声")])
        .await
        .expect(409);
    assert!(
        twice["detail"].as_str().unwrap().contains("name"),
        "{twice}"
    );
    let renamed = put(
        &app,
        &acme.key,
        &format!("{}/name", path("声")),
        &[("name", "音")],
    )
    .await;
    assert_eq!(renamed.expect(200)["name"], "音");
    app.get(&acme.key, &path("声")).await.expect(404);
    let taken = [("name", "a voice & more")];
    put(&app, &acme.key, &format!("{}/name", path("音")), &taken)
        .await
        .expect(409);
    put(
        &app,
        &acme.key,
        &format!("{}/name", path("音")),
        &[("name", "音")],
    )
    .await
    .expect(200);

    for (field, value) in [
        ("max_samples", "0"),
        ("max_samples", "101"),
        ("max_samples", "x"),
        ("sample_duration", "4"),
        ("sample_duration", "61"),
        ("sample_duration", "5.5"),
    ] {
        let split = format!("{}/split", path("音"));
        refused(
            post(&app, &acme.key, &split, &[(field, value)]).await,
            field,
        );
    }
    let split = post(&app, &acme.key, &format!("{}/split", path("音")), &[]).await;
    refused(split, "voice");
    let embed = post(&app, &acme.key, &format!("{}/embed", path("音")), &[]).await;
    let embed = embed.expect(503);
    assert!(
        embed["detail"].as_str().unwrap().contains("ge2e"),
        "{embed}"
    );
    for (what, status) in [
        ("samples/0", 404),
        ("samples/x", 404),
        ("test-samples/test_0_0.opus", 404),
        ("test-samples", 200),
        ("test-samples?tts_type=a%2Fb", 400),
        ("embedding.zip", 404),
        ("samples-bundle", 200),
    ] {
        let request = app.request(Method::GET, &format!("{}/{what}", path("音")));
        let response = request.header("x-api-key", &acme.key).send().await.unwrap();
        assert_eq!(response.status(), status, "{what}");
    }
    let limited = app.key("acme", json!({"scopes": ["speech"]})).await;
    let denied = app
        .get(limited["api_key"].as_str().unwrap(), "/api/voices/acme")
        .await;
    denied.expect(403);
}

/// Makes a voice without samples.
async fn make_empty(app: &TestApp, key: &str, name: &str) {
    let name = [("name", name)];
    let made = post(app, key, "/api/voices/acme/empty", &name).await;
    made.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_come_one_by_one() {
    let app = builder(&TestDatabase::sqlite()).start().await;
    let acme = app.partner("acme").await;
    make_empty(&app, &acme.key, "Anna").await;
    let samples = format!("{}/samples", path("Anna"));
    let sound = wav(&go_forward());
    let forms = [
        file("a.wav", sound.clone()),
        file("a.bin", converted(&sound, "a.mp3", &[])),
        Form::new().part(
            "sample",
            Part::bytes(converted(&sound, "a.webm", &[])).file_name("x"),
        ),
    ];
    for (number, form) in forms.into_iter().enumerate() {
        let made = post_form(&app, &acme.key, &samples, form).await.expect(201);
        assert_eq!(made["index"], number);
        let duration = made["duration"].as_f64().unwrap();
        assert!(
            (duration - go_forward().len() as f64 / 16_000.0).abs() < 0.1,
            "{made}"
        );
        let opus = bytes(&app, &acme.key, &format!("{samples}/{number}")).await;
        let heard = decoded_by_ffmpeg(&opus, 48_000).len() as f64 / 48_000.0;
        assert!((heard - duration).abs() < 0.05, "{heard} {duration}");
    }
    let junk = [b"ID3\x04\0\0\0\0\0\x0a".to_vec(), vec![0x55; 4_000]].concat();
    for (form, reason) in [
        (file("a.mp3", b"no sound at all".to_vec()), "file"),
        (file("a.mp3", junk), "file"),
        (
            file("a.wav", wav(&vec![0; 3 * RATE_HZ])),
            "nothing is to be heard",
        ),
        (
            file("a.wav", wav(&go_forward()[..RATE_HZ / 2])),
            "1 s at least",
        ),
        (file("a.wav", wav(&vec![900; 61 * RATE_HZ])), "60 s at most"),
        (Form::new().text("name", "x"), "name"),
        (Form::new().text("x", ""), "x"),
        (Form::new(), "body"),
    ] {
        let refused = post_form(&app, &acme.key, &samples, form).await.expect(400);
        let told =
            [&refused["field"], &refused["detail"]].map(|told| told.as_str().unwrap_or_default());
        let is_told = told.iter().any(|told| told.contains(reason));
        assert!(is_told, "{reason}: {refused}");
    }
    let preferred = format!("{}/preferred-sample", path("Anna"));
    let set = put(&app, &acme.key, &preferred, &[("sample_index", "1")])
        .await
        .expect(200);
    assert_eq!(set["preferred_sample_index"], 1);
    put(&app, &acme.key, &preferred, &[("sample_index", "9")])
        .await
        .expect(400);
    put(&app, &acme.key, &preferred, &[("sample_index", "x")])
        .await
        .expect(400);
    let cleared = put(&app, &acme.key, &preferred, &[("sample_index", "")])
        .await
        .expect(200);
    assert_eq!(cleared["preferred_sample_index"], Value::Null);
    put(&app, &acme.key, &preferred, &[("sample_index", "1")])
        .await
        .expect(200);
    app.delete(&acme.key, &format!("{samples}/1"))
        .await
        .expect(204);
    app.delete(&acme.key, &format!("{samples}/1"))
        .await
        .expect(404);
    let voice = app.get(&acme.key, &path("Anna")).await.expect(200);
    assert_eq!(voice["preferred_sample_index"], Value::Null);
    let left = voice["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["index"].as_i64().unwrap());
    assert_eq!(left.collect::<Vec<_>>(), [0, 2]);
    let next = post_form(&app, &acme.key, &samples, file("a.wav", sound.clone())).await;
    assert_eq!(next.expect(201)["index"], 3);
    is_tidy(&app).await;
    // Those of a recording are its own.
    create(&app, &acme, "Bert", sound.clone()).await;
    processed(&app, &acme.key, "Bert").await;
    let of_recording = format!("{}/samples", path("Bert"));
    let added = post_form(&app, &acme.key, &of_recording, file("a.wav", sound)).await;
    added.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_split_says_why() {
    let database = TestDatabase::sqlite();
    let app = builder(&database).config(|config| config.voices.max_seconds = 60);
    let app = app.start().await;
    let acme = app.partner("acme").await;
    let junk = [b"ID3\x04\0\0\0\0\0\x0a".to_vec(), vec![0x55; 40_000]].concat();
    let cases = [
        ("silence", wav(&vec![0; 10 * RATE_HZ]), "nobody speaks"),
        ("junk", junk, "damaged"),
        ("long", wav(&vec![0; 61 * RATE_HZ]), "longer than 60 s"),
    ];
    for (name, sound, reason) in cases {
        create(&app, &acme, name, sound).await;
        let voice = processed(&app, &acme.key, name).await;
        assert_eq!(voice["status"]["splitting"], "failed", "{voice}");
        let told = voice["status"]["splitting_error"].as_str().unwrap();
        assert!(told.contains(reason), "{told}");
        assert_eq!(voice["samples"], json!([]));
    }
    let text = file("a.mp3", b"no sound".to_vec()).text("name", "text");
    let refused = post_form(&app, &acme.key, "/api/voices/acme", text)
        .await
        .expect(400);
    assert!(
        refused["detail"].as_str().unwrap().contains("file"),
        "{refused}"
    );
    app.get(&acme.key, &path("text")).await.expect(404);
    is_tidy(&app).await;
    // A name that is wrong, or taken, leaves no file behind.
    let (sound, _) = spoken(1);
    let wrong = file("a.wav", wav(&sound)).text("name", "a/b");
    post_form(&app, &acme.key, "/api/voices/acme", wrong)
        .await
        .expect(400);
    let taken = file("a.wav", wav(&sound)).text("name", "junk");
    post_form(&app, &acme.key, "/api/voices/acme", taken)
        .await
        .expect(409);
    is_tidy(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_library_has_bounds() {
    let database = TestDatabase::sqlite();
    let app = builder(&database).without_worker().config(|config| {
        config.voices.max_voices = 3;
        config.voices.in_progress = 1;
        config.voices.max_file_bytes = 1_000_000;
    });
    let app = app.start().await;
    let acme = app.partner("acme").await;
    let sound = wav(&go_forward());
    let large = Form::new()
        .text("name", "large")
        .part("file", streamed("a.wav", b"RIFF\0\0\0\0WAVE", 2));
    let large = post_form(&app, &acme.key, "/api/voices/acme", large).await;
    large.expect(413);
    create(&app, &acme, "one", sound.clone()).await;
    let busy = file("a.wav", sound).text("name", "two");
    let busy = post_form(&app, &acme.key, "/api/voices/acme", busy).await;
    assert_eq!(busy.header("retry-after"), "10");
    busy.expect(429);
    for name in ["two", "three"] {
        make_empty(&app, &acme.key, name).await;
    }
    let full = post(
        &app,
        &acme.key,
        "/api/voices/acme/empty",
        &[("name", "four")],
    )
    .await;
    assert!(
        full.expect(409)["detail"]
            .as_str()
            .unwrap()
            .contains("3 voices")
    );
    // What is processed is locked.
    let locked = "Voice is currently being processed";
    for answer in [
        app.delete(&acme.key, &path("one")).await,
        put(
            &app,
            &acme.key,
            &format!("{}/name", path("one")),
            &[("name", "x")],
        )
        .await,
        post(&app, &acme.key, &format!("{}/split", path("one")), &[]).await,
        put(
            &app,
            &acme.key,
            &format!("{}/preferred-sample", path("one")),
            &[],
        )
        .await,
        app.delete(&acme.key, &format!("{}/samples/0", path("one")))
            .await,
        app.delete(&acme.key, &format!("{}/test-files/builtin", path("one")))
            .await,
    ] {
        assert_eq!(answer.expect(409)["detail"], locked);
    }
    is_tidy(&app).await;
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    app.app.blobs.sweep().await.unwrap();
    is_tidy(&app).await;
}
