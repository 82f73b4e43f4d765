//! Transcripts that failed and are tried again.

use colloquy_providers::from_config;
use colloquy_transcripts::{give_up_recordings, purge};
use test_routes::{
    TestQuota,
    bases::rows,
    sounds::{go_forward, wav},
    transcripts::{scripted, site},
    upstream::{Api, Upstream},
};

use super::*;

/// Starts with a decoder, a worker, and recordings that this upstream hears.
async fn heard_by(upstream: &Upstream, builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let builder = builder.config(|config| {
        upstream.listen(config);
        config.fetch.allow_private = true;
    });
    let providers = from_config(builder.settings()).unwrap();
    let app = start_with(builder.with_decoder(), providers).await;
    app.start_worker(&CAPABILITIES, quick()).await;
    app
}

/// A quota for so many seconds.
async fn quota(
    app: &TestRoutes<Place>,
    acme: &test_routes::TestPartner,
    seconds: u64,
) -> TestQuota {
    let quota = json!({"kinds": ["transcript"], "limits": {"seconds": seconds}});
    app.quota(acme, quota).await
}

/// Waits for the end of a transcript, and moves the clock to attempts that wait.
async fn failed(app: &TestRoutes<Place>, key: &str, path: &str) -> serde_json::Value {
    loop {
        app.run_due_jobs().await;
        let read = app.get(key, path).await.expect(200);
        if is_over(&read) {
            assert_eq!(read["status"], "error", "{read}");
            return read;
        }
        app.advance(Duration::from_secs(120));
    }
}

// A quota has room for the first part of a recording. What was heard of it is not paid for again.
on_each_database!(what_was_heard_before_the_failure_is_kept, |database| {
    let upstream = scripted().await;
    let app = heard_by(&upstream, builder(&database)).await;
    let (acme, other) = (app.partner("acme").await, app.partner("other").await);
    let quota = quota(&app, &acme, 12).await;
    let samples = go_forward().repeat(5);
    let seconds = samples.len().div_ceil(16_000) as u64;
    assert!(seconds > 12);
    let before = counted(&app).await;
    let form = audio("a.wav", wav(&samples));
    let made = post_form(&app, &quota.key, form).await.expect(200);
    let path = made["id"].as_str().unwrap();
    let retry = format!("{path}/retry");
    let read = failed(&app, &quota.key, path).await;
    assert_eq!(read["error"], "the quota is exhausted");
    assert_eq!(read["retryable"], true);
    assert_eq!(upstream.requests(Api::Transcription).len(), 1);
    assert_eq!(rows(&app, "transcript_parts").await, 1);
    assert_eq!(rows(&app, "blobs").await, 1);
    assert!(counted(&app).await > before);
    assert_eq!(recount_texts(&app, TEXTS).await.unwrap(), 0);

    let limit = async |seconds: u64| {
        let change = json!({"limits": {"seconds": seconds}});
        app.put(&acme.key, &quota.path, change).await.expect(200)
    };
    let used = app.get(&acme.key, &quota.path).await.expect(200);
    limit(used["used"]["seconds"].as_u64().unwrap()).await;
    let another = app.quota(&acme, json!({"kinds": ["transcript"]})).await;
    for (key, status) in [
        (other.key.as_str(), 404),
        (another.key.as_str(), 404),
        ("", 401),
        // There is no room yet.
        (acme.key.as_str(), 429),
    ] {
        app.post(key, &retry, json!({})).await.expect(status);
    }
    limit(100).await;
    // Twice at a time.
    let (first, second) = tokio::join!(
        app.post(&acme.key, &retry, json!({})),
        app.post(&acme.key, &retry, json!({}))
    );
    for answer in [first, second] {
        let status = answer.status.as_u16();
        assert!([200, 409].contains(&status), "{}", answer.text);
    }
    let read = ended(&app, &acme.key, &made).await;
    let text = "Go forward ten meters. Go forward ten meters.";
    assert_eq!(read["text"], text, "{read}");
    assert_eq!(upstream.requests(Api::Transcription).len(), 2);
    let used = app.get(&acme.key, &quota.path).await.expect(200);
    assert_eq!(used["used"]["seconds"], seconds, "{used}");
    assert_eq!(used["reserved"]["seconds"], 0, "{used}");
    app.state.blobs.sweep().await.unwrap();
    assert_eq!(rows(&app, "blobs").await, 0);
    assert_eq!(rows(&app, "transcript_parts").await, 0);
    assert_eq!(recount_texts(&app, TEXTS).await.unwrap(), 0);
    counted(&app).await;
    let refused = app.post(&acme.key, &retry, json!({})).await.expect(409);
    let told = refused["error"].as_str().unwrap();
    assert!(told.contains("has not failed"), "{told}");
});

on_each_database!(a_kept_recording_goes_with_its_transcript, |database| {
    let upstream = scripted().await;
    let app = heard_by(&upstream, builder(&database)).await;
    let acme = app.partner("acme").await;
    let quota = quota(&app, &acme, 1).await;
    let before = counted(&app).await;
    let mut paths = Vec::new();
    for _ in 0..2 {
        let form = audio("a.wav", recording());
        let made = post_form(&app, &quota.key, form).await.expect(200);
        let path = made["id"].as_str().unwrap().to_owned();
        failed(&app, &acme.key, &path).await;
        paths.push(path);
    }
    let files = async || {
        app.state.blobs.sweep().await.unwrap();
        rows(&app, "blobs").await
    };
    assert_eq!(files().await, 2);
    app.delete(&acme.key, &paths[0]).await.expect(204);
    assert_eq!(files().await, 1);
    give_up_recordings(&app.state).await.unwrap();
    assert_eq!(purge(&app.state).await.unwrap(), 0);
    assert_eq!(files().await, 1);
    let old = "UPDATE transcripts SET ended_at = 1";
    app.state.store.db().execute(old).await.unwrap();
    app.post(&acme.key, &format!("{}/retry", paths[1]), json!({}))
        .await
        .expect(404);
    // No file is left behind, whatever comes first.
    assert_eq!(purge(&app.state).await.unwrap(), 0);
    give_up_recordings(&app.state).await.unwrap();
    assert_eq!(purge(&app.state).await.unwrap(), 1);
    assert_eq!(files().await, 0);
    assert_eq!(counted(&app).await, before);
});

on_each_database!(what_fails_for_good_keeps_nothing, |database| {
    let (origin, _site) = site().await;
    let upstream = scripted().await;
    let app = heard_by(&upstream, builder(&database)).await;
    let acme = app.partner("acme").await;
    let failed_at = async |url: String| {
        let body = json!({"audio_url": url});
        let made = app.post(&acme.key, PATH, body).await.expect(200);
        let path = made["id"].as_str().unwrap().to_owned();
        (failed(&app, &acme.key, &path).await, path)
    };
    let (read, path) = failed_at(format!("{origin}/page")).await;
    assert_eq!(read["retryable"], false, "{read}");
    let retry = format!("{path}/retry");
    let refused = app.post(&acme.key, &retry, json!({})).await.expect(409);
    let told = refused["error"].as_str().unwrap();
    assert!(told.contains("Nothing is kept"), "{told}");
    // The address may answer another time.
    let (read, path) = failed_at("http://127.0.0.1:1/a.wav".to_owned()).await;
    assert_eq!(read["retryable"], true, "{read}");
    let retry = format!("{path}/retry");
    let again = app.post(&acme.key, &retry, json!({})).await.expect(200);
    assert_eq!(again["status"], "queued");
    assert!(failed(&app, &acme.key, &path).await["retryable"] == true);
    counted(&app).await;
});

on_each_database!(a_retry_needs_a_place_and_the_switch, |database| {
    let upstream = scripted().await;
    let builder = builder(&database).config(|config| config.transcripts.in_progress = 1);
    let app = heard_by(&upstream, builder).await;
    let acme = app.partner("acme").await;
    let quota = quota(&app, &acme, 1).await;
    let form = audio("a.wav", recording());
    let made = post_form(&app, &quota.key, form).await.expect(200);
    let path = made["id"].as_str().unwrap();
    let retry = format!("{path}/retry");
    failed(&app, &acme.key, path).await;
    let open = json!({"audio_url": "http://127.0.0.1:1/a.wav"});
    app.post(&acme.key, PATH, open).await.expect(200);
    app.post(&acme.key, &retry, json!({})).await.expect(429);
    let end = "UPDATE transcripts SET status = 'completed', text = 'x', ended_at = created_at WHERE ended_at IS NULL";
    app.state.store.db().execute(end).await.unwrap();
    let switch = async |enabled: bool| {
        let body = json!({"settings": {"transcription_enabled": enabled}});
        app.put(ADMIN_KEY, "/api/partners/acme", body)
            .await
            .expect(200);
    };
    switch(false).await;
    app.post(&acme.key, &retry, json!({})).await.expect(403);
    switch(true).await;
    app.post(&quota.key, &retry, json!({})).await.expect(200);
});

// The model that hears recordings is one that the quota, or its partner, lost since.
on_each_database!(a_retry_needs_the_model, |database| {
    let upstream = scripted().await;
    let app = heard_by(&upstream, builder(&database)).await;
    let acme = app.partner("acme").await;
    let quota = quota(&app, &acme, 1).await;
    let form = audio("a.wav", recording());
    let made = post_form(&app, &quota.key, form).await.expect(200);
    let path = made["id"].as_str().unwrap();
    let retry = format!("{path}/retry");
    failed(&app, &acme.key, path).await;
    let of_quota = async |models: serde_json::Value| {
        let change = json!({"allowed_models": models});
        app.put(&acme.key, &quota.path, change).await.expect(200);
    };
    let of_partner = async |models: serde_json::Value| {
        let change = json!({"settings": {"allowed_models": models}});
        let changed = app.put(ADMIN_KEY, "/api/partners/acme", change).await;
        changed.expect(200);
    };
    let refused = async || {
        for key in [&acme.key, &quota.key] {
            let refused = app.post(key, &retry, json!({})).await.expect(403);
            let told = refused["error"].as_str().unwrap();
            assert!(told.contains("model"), "{told}");
        }
        let read = app.get(&acme.key, path).await.expect(200);
        assert_eq!(
            (&read["status"], &read["retryable"]),
            (&json!("error"), &json!(true))
        );
    };
    of_quota(json!(["other"])).await;
    refused().await;
    of_quota(json!(["scripted-transcriber"])).await;
    of_partner(json!(["other"])).await;
    refused().await;
    of_partner(json!(["other", "scripted-transcriber"])).await;
    app.post(&quota.key, &retry, json!({})).await.expect(200);
    failed(&app, &acme.key, path).await;
});
