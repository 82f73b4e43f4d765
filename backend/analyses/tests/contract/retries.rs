//! Analyses that failed and are tried again.

use colloquy_analyses::{TEXTS, purge};
use colloquy_providers::from_config;
use serde_json::Value;
use test_routes::{
    analyses::{PATH, ended},
    bases::rows,
    storage::{counted, recount_texts},
    upstream::{Api, Script, Upstream},
};

use super::*;

/// Starts with a worker and a model of this upstream.
async fn asking(upstream: &Upstream, builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let builder = builder.config(|config| {
        upstream.offer(config);
        config.analyses.model = Some("scripted-chat".to_owned());
    });
    let providers = from_config(builder.settings()).unwrap();
    let place = async |accounts: Accounts, _: Edge| Place(Analyses::new(accounts, providers));
    let app = builder.start(|_| Vec::new(), place, &CAPABILITIES).await;
    app.start_background(&CAPABILITIES).await;
    app.start_worker(&CAPABILITIES, quick()).await;
    app
}

fn answer() -> Value {
    json!({
        "profile": {"name": "Ada", "city": "Berlin", "job": null, "pet": null},
        "contradicted": [], "feedback": {"mood": "glad", "stars": 4},
    })
}

on_each_database!(a_failed_analysis_is_tried_again, |database| {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Chat, Script::text(answer().to_string()));
    let app = asking(&upstream, builder(&database)).await;
    let (acme, other) = (app.partner("acme").await, app.partner("other").await);
    let tight = json!({"kinds": ["text"], "limits": {"tokens": 50}});
    let quota = app.quota(&acme, tight).await;
    let another = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let before = counted(&app).await;
    let made = app.post(&quota.key, PATH, conversation()).await.expect(200);
    let path = made["id"].as_str().unwrap();
    let retry = format!("{path}/retry");
    let read = ended(&app, &quota.key, &made).await;
    assert_eq!(read["error"]["code"], "quota_exhausted", "{read}");
    assert_eq!(read["retryable"], true);
    assert_eq!(upstream.requests(Api::Chat).len(), 0);
    let input = app
        .get(&acme.key, &format!("{path}/input"))
        .await
        .expect(200);
    let sent = conversation();
    for field in [
        "messages",
        "language",
        "profile_schema",
        "feedback_schema",
        "prompt_extra_text",
    ] {
        assert_eq!(input[field], sent["input"][field], "{field}");
    }
    assert!(counted(&app).await > before);
    assert_eq!(recount_texts(&app, TEXTS).await.unwrap(), 0);

    let limit = async |tokens: u64| {
        let change = json!({"limits": {"tokens": tokens}});
        app.put(&acme.key, &quota.path, change).await.expect(200);
    };
    limit(0).await;
    for (key, status) in [
        (other.key.as_str(), 404),
        (another.key.as_str(), 404),
        ("", 401),
        (acme.key.as_str(), 429),
    ] {
        app.post(key, &retry, json!({})).await.expect(status);
    }
    limit(100_000).await;
    // A model that the quota may not use any more.
    for (models, status) in [(json!(["other"]), 403), (Value::Null, 0)] {
        let change = json!({"allowed_models": models});
        app.put(&acme.key, &quota.path, change).await.expect(200);
        if status > 0 {
            let refused = app.post(&acme.key, &retry, json!({})).await;
            refused.expect(status);
        }
    }
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
    assert_eq!(read["output"]["profile"]["name"], "Ada", "{read}");
    assert_eq!(upstream.requests(Api::Chat).len(), 1);
    let used = app.get(&acme.key, &quota.path).await.expect(200);
    assert!(used["used"]["tokens"].as_u64().unwrap() > 0, "{used}");
    assert_eq!(used["reserved"]["tokens"], 0, "{used}");
    app.post(&acme.key, &retry, json!({})).await.expect(409);
    app.get(&acme.key, &format!("{path}/input"))
        .await
        .expect(404);
    assert_eq!(recount_texts(&app, TEXTS).await.unwrap(), 0);
    counted(&app).await;
});

on_each_database!(a_kept_input_goes_with_its_analysis, |database| {
    let upstream = Upstream::start().await;
    let app = asking(&upstream, builder(&database)).await;
    let acme = app.partner("acme").await;
    let tight = json!({"kinds": ["text"], "limits": {"tokens": 50}});
    let quota = app.quota(&acme, tight).await;
    let before = counted(&app).await;
    let made = app.post(&quota.key, PATH, conversation()).await.expect(200);
    let read = ended(&app, &quota.key, &made).await;
    assert_eq!(read["state"], "failed", "{read}");
    assert_eq!(purge(&app.state).await.unwrap(), 0);
    let old = "UPDATE dialog_analyses SET ended_at = 1";
    app.state.store.db().execute(old).await.unwrap();
    let path = made["id"].as_str().unwrap();
    app.post(&acme.key, &format!("{path}/retry"), json!({}))
        .await
        .expect(404);
    app.get(&acme.key, &format!("{path}/input"))
        .await
        .expect(404);
    assert_eq!(purge(&app.state).await.unwrap(), 1);
    assert_eq!(rows(&app, "dialog_analyses").await, 0);
    assert_eq!(counted(&app).await, before);
});

on_each_database!(a_retry_needs_a_place_and_an_input, |database| {
    let upstream = Upstream::start().await;
    let builder = builder(&database).config(|config| config.analyses.in_progress = 1);
    let app = asking(&upstream, builder).await;
    let acme = app.partner("acme").await;
    let tight = json!({"kinds": ["text"], "limits": {"tokens": 50}});
    let quota = app.quota(&acme, tight).await;
    let made = app.post(&quota.key, PATH, conversation()).await.expect(200);
    ended(&app, &quota.key, &made).await;
    let retry = format!("{}/retry", made["id"].as_str().unwrap());
    let copy = "INSERT INTO dialog_analyses (id, partner, state, input, asked, created_at) VALUES ('open', 'acme', 'in-progress', '', 0, 0)";
    app.state.store.db().execute(copy).await.unwrap();
    app.post(&acme.key, &retry, json!({})).await.expect(429);
    // One that failed before inputs were kept.
    for sql in [
        "DELETE FROM dialog_analyses WHERE id = 'open'",
        "UPDATE dialog_analyses SET input = NULL",
    ] {
        app.state.store.db().execute(sql).await.unwrap();
    }
    let refused = app.post(&acme.key, &retry, json!({})).await.expect(409);
    let told = refused["message"].as_str().unwrap();
    assert!(told.contains("not kept"), "{told}");
});
