//! Workers elsewhere: what they are given, what is taken of them, and how they fail.

use std::time::Duration;

use axum::http::Method;
use colloquy_store::Executor as _;
use serde_json::{Value, json};
use support::{TestDatabase, eventually, on_each_database, patience};
use test_routes::{
    TestPartner, TestRoutes, TestRoutesBuilder, send,
    sounds::{go_forward, wav},
    voice_workers::VoiceWorkers,
    voices::{create, file, make_empty, path, post, post_form, processed, put, spoken},
};
use tokio::time::sleep;

use crate::{Place, builder, bytes, start, tidy};

/// Routes with a worker elsewhere, and a voice with one sample.
async fn with_voice(
    worker: &VoiceWorkers,
    builder: TestRoutesBuilder,
) -> (TestRoutes<Place>, TestPartner) {
    let app = start(builder.config(|config| worker.offer(config))).await;
    let acme = app.partner("acme").await;
    make_empty(&app, &acme.key, "Anna").await;
    let sound = file("a.wav", wav(&go_forward()));
    let samples = format!("{}/samples", path("Anna"));
    post_form(&app, &acme.key, &samples, sound)
        .await
        .expect(201);
    (app, acme)
}

async fn embed(app: &TestRoutes<Place>, key: &str, fields: &[(&str, &str)]) -> Value {
    let asked = post(app, key, &format!("{}/embed", path("Anna")), fields).await;
    let asked = asked.expect(202);
    assert_eq!(asked["status"]["embedding"], "in_progress", "{asked}");
    app.advance_through("voices.embed").await;
    processed(app, key, "Anna").await
}

on_each_database!(a_worker_makes_something_of_the_samples, |database| {
    let worker = VoiceWorkers::start().await;
    let builder = builder(&database);
    let app = start(builder.config(|config| worker.offer(config))).await;
    let acme = app.partner("acme").await;
    let (sound, _) = spoken(1);
    create(&app, &acme, "Anna", wav(&sound)).await;
    app.advance_through("voices.%").await;
    let voice = processed(&app, &acme.key, "Anna").await;
    assert_eq!(
        voice["status"],
        json!({"splitting": "completed", "embedding": "completed"})
    );
    let count = voice["samples"].as_array().unwrap().len();
    let info = &voice["embedding_info"];
    assert_eq!(
        (&info["tts_type"], &voice["embedding_type"]),
        (&json!("xtts"), &json!("xtts"))
    );
    assert_eq!(info["last_update_status"], "completed");
    assert!(
        info["last_update_time"].as_str().unwrap().ends_with('Z'),
        "{info}"
    );
    assert_eq!(info["synthesizer_voice"], "made");
    // What speaks is shown; that it does is seen in `speaking`.
    let place = format!("{}/preferred-sample", path("Anna"));
    let prefer = async |index: &str| {
        let set = put(&app, &acme.key, &place, &[("sample_index", index)]).await;
        set.expect(200)["embedding_info"]["synthesizer_voice"].clone()
    };
    assert_eq!(prefer("0").await, "made of 0");
    assert_eq!(prefer("").await, "made");
    let scores = info["sample_scores"].as_array().unwrap();
    assert_eq!(scores.len(), count, "{scores:?}");
    assert_eq!(scores[0], json!({"sample_index": 0, "score": 0.5}));
    let tests = app
        .get(&acme.key, &format!("{}/test-samples", path("Anna")))
        .await
        .expect(200);
    assert_eq!(tests, info["test_samples"]);
    let first = json!({"sample_index": 0, "sentence_index": 0, "filename": "test_0_0.opus"});
    assert_eq!(
        (tests.as_array().unwrap().len(), &tests[0]),
        (count, &first)
    );
    let of_type = format!("{}/test-samples?tts_type=other", path("Anna"));
    assert_eq!(app.get(&acme.key, &of_type).await.expect(200), json!([]));
    let said = format!("{}/test-samples/test_0_0.opus?tts_type=xtts", path("Anna"));
    assert_eq!(
        bytes(&app, &acme.key, &said).await,
        b"the file test_0_0.opus"
    );
    let url = voice["embedding_zip_url"].as_str().unwrap();
    assert!(
        url.ends_with("/api/voices/acme/Anna/embedding.zip?tts_type=xtts"),
        "{url}"
    );
    let place = url.split_once("/api/").unwrap().1;
    let zip = bytes(&app, &acme.key, &format!("/api/{place}")).await;
    assert_eq!(zip, b"the file embedding.zip");
    let listed = app.get(&acme.key, "/api/voices/acme").await.expect(200);
    assert_eq!(listed[0]["embedding_status"], "completed");
    assert!(worker.jobs().is_empty(), "it forgets what was taken");
    let given = worker
        .asked()
        .iter()
        .filter(|asked| asked.contains("/samples/"))
        .count();
    assert_eq!(given, count);
    tidy(&app).await;
    let files = format!("{}/test-files/xtts", path("Anna"));
    app.delete(&acme.key, &files).await.expect(204);
    app.delete(&acme.key, &files).await.expect(404);
    let voice = app.get(&acme.key, &path("Anna")).await.expect(200);
    assert_eq!(
        (&voice["embedding_info"], &voice["embedding_zip_url"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(voice["samples"].as_array().unwrap().len(), count);
    tidy(&app).await;
});

on_each_database!(a_worker_that_fails_is_asked_again, |database| {
    let worker = VoiceWorkers::start().await;
    let (app, acme) = with_voice(&worker, builder(&database)).await;
    for (method, status) in [("GET", 503), ("PUT", 500), ("POST", 429), ("GET", 502)] {
        worker.fail(method, status);
    }
    let voice = embed(&app, &acme.key, &[("tts_type", "other_type")]).await;
    assert_eq!(voice["status"]["embedding"], "completed", "{voice}");
    assert_eq!(voice["embedding_type"], "other_type");
    // The type that it was last made for, where none is named.
    let voice = embed(&app, &acme.key, &[]).await;
    assert_eq!(voice["embedding_type"], "other_type");
    tidy(&app).await;
});

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_be_reached_is_given_up_within_a_minute() {
    let app = builder(&TestDatabase::sqlite());
    let app = app.config(|config| {
        config.voice_worker.base_url = Some("http://127.0.0.1:1/".parse().unwrap());
    });
    let app = start(app).await;
    let acme = app.partner("acme").await;
    let key = acme.key.as_str();
    make_empty(&app, key, "Anna").await;
    let samples = format!("{}/samples", path("Anna"));
    let sound = file("a.wav", wav(&go_forward()));
    post_form(&app, key, &samples, sound).await.expect(201);
    let embed = format!("{}/embed", path("Anna"));
    post(&app, key, &embed, &[]).await.expect(202);
    let (attempts, waits) = app.attempts("voices.embed").await;
    let waited: Duration = waits.iter().sum();
    assert_eq!(attempts, 3);
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    let voice = app.get(key, &path("Anna")).await.expect(200);
    assert_eq!(voice["status"]["embedding"], "failed", "{voice}");
    let told = voice["status"]["embedding_error"].as_str().unwrap();
    assert!(told.contains("cannot be reached"), "{told}");
}

on_each_database!(what_a_worker_refuses_has_failed, |database| {
    let worker = VoiceWorkers::start().await;
    let (app, acme) = with_voice(&worker, builder(&database)).await;
    worker.fail("PUT", 400);
    let voice = embed(&app, &acme.key, &[]).await;
    assert_eq!(voice["status"]["embedding"], "failed", "{voice}");
    let told = voice["status"]["embedding_error"].as_str().unwrap();
    assert!(told.contains("400"), "{told}");
    assert_eq!(voice["embedding_info"]["last_update_status"], "failed");
    worker.set_state(Some(json!({"state": "failed", "reason": "too noisy"})));
    let voice = embed(&app, &acme.key, &[]).await;
    let told = voice["status"]["embedding_error"].as_str().unwrap();
    assert!(told.contains("too noisy"), "{told}");
    worker.set_state(None);
    let voice = embed(&app, &acme.key, &[]).await;
    assert_eq!(voice["status"]["embedding"], "completed", "{voice}");
    let wrong = post(
        &app,
        &acme.key,
        &format!("{}/embed", path("Anna")),
        &[("tts_type", "a/b")],
    )
    .await;
    assert_eq!(wrong.expect(400)["field"], "tts_type");
});

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_lost_is_given_again_and_one_that_never_ends_fails() {
    let worker = VoiceWorkers::start().await;
    let database = TestDatabase::sqlite();
    let seconds = 8;
    let impatient = builder(&database).config(|config| config.voice_worker.seconds = seconds);
    let (app, acme) = with_voice(&worker, impatient).await;
    worker.set_state(Some(json!({"state": "running", "progress": 0.5})));
    let embed_path = format!("{}/embed", path("Anna"));
    post(&app, &acme.key, &embed_path, &[]).await.expect(202);
    eventually("it is begun", async || worker.begun() == 1).await;
    eventually("it has started", async || {
        worker.jobs().iter().all(|job| job.is_started)
    })
    .await;
    let locked = app.delete(&acme.key, &path("Anna")).await.expect(409);
    assert_eq!(locked["detail"], "Voice is currently being processed");
    worker.lose();
    app.advance_through("voices.embed").await;
    assert_eq!(worker.begun(), 2);
    let voice = processed(&app, &acme.key, "Anna").await;
    assert_eq!(voice["status"]["embedding"], "failed", "{voice}");
    let told = voice["status"]["embedding_error"].as_str().unwrap();
    assert!(told.contains(&format!("longer than {seconds} s")), "{told}");
    assert!(worker.jobs().is_empty(), "it forgets");
}

// A worker that says that it is done is asked at once; whoever does not know the address says nothing.
on_each_database!(a_call_back_saves_the_waiting, |database| {
    let worker = VoiceWorkers::start().await;
    // The clock stands, so that nobody asks by the time.
    let standing = builder(&database);
    let (app, acme) = with_voice(&worker, standing).await;
    worker.set_state(Some(json!({"state": "running"})));
    post(&app, &acme.key, &format!("{}/embed", path("Anna")), &[])
        .await
        .expect(202);
    let is_started = async || worker.jobs().iter().any(|job| job.is_started);
    eventually("it has started", is_started).await;
    let job = worker.jobs().remove(0);
    assert_eq!(job.body["type"], "xtts");
    assert_eq!(job.body["sentences"].as_array().unwrap().len(), 3);
    assert!(job.samples[&0].starts_with(b"OggS"));
    let url = job.body["callback_url"].as_str().unwrap();
    let place = &url[url.find("/api/").unwrap()..];
    let (without, token) = place.split_once("?token=").unwrap();
    assert_eq!(token.len(), 32);
    for wrong in [
        without.to_owned(),
        format!("{without}?token=x"),
        format!("{without}x?token={token}"),
    ] {
        send(app.request(Method::POST, &wrong)).await.expect(401);
    }
    let waits = format!(
        "SELECT COUNT(*) FROM work WHERE kind = 'voices.embed' AND state = 'queued' AND run_at > {}",
        app.state.clock.now_ms()
    );
    eventually("its job waits for its time", async || {
        app.state
            .store
            .db()
            .fetch_count(waits.clone())
            .await
            .unwrap()
            == 1
    })
    .await;
    worker.set_state(None);
    let before = worker.asked().len();
    // Neither by the clock of the test nor by another one.
    sleep(patience(Duration::from_secs(1))).await;
    assert_eq!(worker.asked().len(), before, "nobody asks");
    let call_back = async || app.request(Method::POST, place).send().await.status();
    assert_eq!(call_back().await, 204);
    let voice = processed(&app, &acme.key, "Anna").await;
    assert_eq!(voice["status"]["embedding"], "completed", "{voice}");
    assert_eq!(call_back().await, 204, "it may come twice");
});

// A worker that loses whatever it is given is not given it for ever.
on_each_database!(a_worker_that_has_no_memory_is_given_up, |database| {
    let worker = VoiceWorkers::start().await;
    let (app, acme) = with_voice(&worker, builder(&database)).await;
    worker.set_state(Some(json!({"state": "waiting"})));
    let voice = embed(&app, &acme.key, &[]).await;
    assert_eq!(voice["status"]["embedding"], "failed", "{voice}");
    let told = voice["status"]["embedding_error"].as_str().unwrap();
    assert!(told.contains("lost the job"), "{told}");
    assert_eq!(worker.begun(), 10);
});

// What is lost between two requests is given again.
on_each_database!(
    a_job_that_is_lost_while_it_is_given_is_given_again,
    |database| {
        let worker = VoiceWorkers::start().await;
        let (app, acme) = with_voice(&worker, builder(&database)).await;
        worker.fail("POST", 404);
        let voice = embed(&app, &acme.key, &[]).await;
        assert_eq!(voice["status"]["embedding"], "completed", "{voice}");
        assert_eq!(worker.begun(), 2);
    }
);
