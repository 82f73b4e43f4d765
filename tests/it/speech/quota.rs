//! Who pays, and how much.

use harness::{
    app::{ADMIN_KEY, TestQuota},
    eventually,
    upstream::{Fault, Script},
};

use super::*;

const TEXT: &str = "Here are three sentences. They have some characters each. The synthesizer gets one after the other.";

async fn read(app: &TestApp, quota: &TestQuota) -> Value {
    app.get(ADMIN_KEY, &quota.path).await.expect(200)
}

/// Waits until the quota has these characters used and none reserved.
async fn used(app: &TestApp, quota: &TestQuota, characters: usize) {
    eventually("the usage is settled", || async {
        let state = read(app, quota).await;
        state["used"]["characters"] == characters && state["reserved"]["characters"] == 0
    })
    .await;
}

#[tokio::test]
async fn characters_are_counted_and_priced() {
    let (app, partner, _upstream) = remote(|config| {
        config.speech.usd_per_1m_characters = "15".parse().unwrap();
    })
    .await;
    let quota = app.quota(&partner, json!({"kinds": ["speech"]})).await;
    let text = "Grüße 你好 🙂!";
    assert_eq!(text.chars().count(), 11);
    for (format, characters) in [("mp3", 11), ("wav", 22)] {
        sound(ask(
            &app,
            &quota.key,
            text,
            json!({"response_format": format}),
        ))
        .await;
        used(&app, &quota, characters).await;
    }
    assert_eq!(read(&app, &quota).await["used"]["dollars"], "0.00033");
}

#[tokio::test]
async fn an_exhausted_quota_says_so() {
    let (app, partner, upstream) = remote(|_| ()).await;
    let limits = json!({"characters": 30});
    let quota = app
        .quota(&partner, json!({"kinds": ["speech"], "limits": limits}))
        .await;
    sound(ask(&app, &quota.key, &"x".repeat(20), json!({}))).await;
    used(&app, &quota, 20).await;
    let refused = send(ask(&app, &quota.key, &"x".repeat(11), json!({}))).await;
    let body = refused.expect(429);
    assert_eq!(body["code"], "QUOTA_EXHAUSTED");
    assert!(
        body["error"].is_string() && body.as_object().unwrap().len() == 2,
        "{body}"
    );
    assert_eq!(refused.header("x-ratelimit-limit-characters"), "30");
    assert_eq!(refused.header("x-ratelimit-remaining-characters"), "10");
    assert!(
        refused
            .header("x-svc-tts-request-id")
            .parse::<i64>()
            .is_ok()
    );
    assert_eq!(upstream.requests(Api::Speech).len(), 1);
    let last = ask(&app, &quota.key, &"x".repeat(10), json!({}))
        .send()
        .await
        .unwrap();
    assert_eq!(last.headers()["x-ratelimit-remaining-characters"], "0");
    last.bytes().await.unwrap();
    used(&app, &quota, 30).await;
    let counted = r#"colloquy_speech_characters_total{outcome="completed"} 30"#;
    assert!(app.app.metrics.render().contains(counted));
}

#[tokio::test]
async fn quotas_are_for_their_kind_and_models() {
    let (app, partner, _upstream) = remote(|_| ()).await;
    for body in [
        json!({"kinds": ["text", "call"]}),
        json!({"kinds": ["speech"], "allowed_models": ["another"]}),
    ] {
        let quota = app.quota(&partner, body.clone()).await;
        let refused = send(ask(&app, &quota.key, "Hi", json!({})))
            .await
            .expect(403);
        assert!(refused["error"].is_string(), "{body}: {refused}");
    }
    let body = json!({"kinds": ["speech"], "allowed_models": ["colloquy-tts"]});
    let quota = app.quota(&partner, body).await;
    sound(ask(&app, &quota.key, "Hi", json!({}))).await;
    used(&app, &quota, 2).await;
    app.get(&quota.key, "/v2/audio/voices").await.expect(200);
}

#[tokio::test]
async fn refused_requests_cost_nothing() {
    let (app, partner, upstream) = remote(|config| {
        config.synthesizer.voices = [("anna".to_owned(), "a".to_owned())].into();
    })
    .await;
    let quota = app.quota(&partner, json!({"kinds": ["speech"]})).await;
    assert_eq!(
        send(ask(&app, &quota.key, "Hi", json!({}))).await.status,
        400
    );
    assert_eq!(
        send(ask(&app, &quota.key, "", json!({"voice": "anna"})))
            .await
            .status,
        400
    );
    upstream.set_default(Api::Speech, Script::fault(Fault::Status(500)));
    assert_eq!(
        send(ask(&app, &quota.key, TEXT, json!({"voice": "anna"})))
            .await
            .status,
        502
    );
    used(&app, &quota, 0).await;
}

#[tokio::test]
async fn what_broke_off_costs_what_was_heard_of_it() {
    let (app, partner, upstream) = remote(|_| ()).await;
    let quota = app.quota(&partner, json!({"kinds": ["speech"]})).await;
    let first = "Here are three sentences.".len();
    for (format, characters) in [("pcm", TEXT.len()), ("wav", TEXT.len())] {
        upstream.script(Api::Speech, Script::default());
        upstream.script(Api::Speech, Script::fault(Fault::Cut { after: 2 }));
        let request = ask(&app, &quota.key, TEXT, json!({"response_format": format}));
        let response = request.send().await.unwrap();
        // An error in place of the sound costs nothing.
        assert_eq!(response.status().is_success(), format == "pcm");
        let _ = response.bytes().await;
        used(&app, &quota, characters).await;
    }
    // Nothing was heard of the second piece.
    upstream.script(Api::Speech, Script::default());
    upstream.script(Api::Speech, Script::fault(Fault::Status(400)));
    let request = ask(&app, &quota.key, TEXT, json!({"response_format": "pcm"}));
    assert!(request.send().await.unwrap().bytes().await.is_err());
    used(&app, &quota, TEXT.len() + first).await;
}

#[tokio::test]
async fn a_server_that_stops_ends_speech_and_settles_it() {
    let (app, partner, upstream) = remote(|_| ()).await;
    let slow = Script::default().delayed(Duration::ZERO, Duration::from_millis(100));
    upstream.set_default(Api::Speech, slow);
    let quota = app.quota(&partner, json!({"kinds": ["speech"]})).await;
    let pcm = json!({"response_format": "pcm"});
    let mut begun = ask(&app, &quota.key, TEXT, pcm).send().await.unwrap();
    begun.chunk().await.unwrap().unwrap();
    let whole = send(ask(
        &app,
        &quota.key,
        TEXT,
        json!({"response_format": "wav"}),
    ));
    let stop = async {
        eventually("both are made", async || app.app.ledger.open() == 2).await;
        app.app.kernel.drain_over.cancel();
        tokio::time::Instant::now()
    };
    let (whole, stopped) = tokio::join!(whole, stop);
    assert!(whole.expect(503)["error"].is_string());
    assert_eq!(whole.header("retry-after"), "1");
    assert!(begun.bytes().await.is_err(), "a part is no whole");
    assert!(stopped.elapsed() < patience(Duration::from_secs(1)));
    eventually("both are settled", async || app.app.ledger.open() == 0).await;
    let used = read(&app, &quota).await["used"]["characters"]
        .as_u64()
        .unwrap();
    assert!(used > 0 && used <= TEXT.len() as u64, "{used}");
}

#[tokio::test]
async fn who_hangs_up_pays_for_what_was_asked_for() {
    let (app, partner, upstream) = remote(|_| ()).await;
    // The first sentence lasts until the client has left: three seconds.
    let slow = Script::default().delayed(Duration::ZERO, limit() / 10);
    upstream.set_default(Api::Speech, slow);
    let quota = app.quota(&partner, json!({"kinds": ["speech"]})).await;
    let request = ask(&app, &quota.key, TEXT, json!({"response_format": "pcm"}));
    let mut response = request.send().await.unwrap();
    response.chunk().await.unwrap().unwrap();
    assert_eq!(
        read(&app, &quota).await["reserved"]["characters"],
        TEXT.len()
    );
    drop(response);
    let first = "Here are three sentences.".len();
    used(&app, &quota, first).await;
}

#[tokio::test]
async fn what_is_repeated_from_the_cache_is_counted() {
    let (app, partner, upstream) = remote(|config| config.speech.cache_entries = 2).await;
    let quota = app.quota(&partner, json!({"kinds": ["speech"]})).await;
    for times in 1..=2 {
        sound(ask(&app, &quota.key, "Hello", json!({}))).await;
        used(&app, &quota, 5 * times).await;
    }
    assert_eq!(upstream.requests(Api::Speech).len(), 1);
}
