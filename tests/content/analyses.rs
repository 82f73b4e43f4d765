//! Conversations that are analyzed: what is taken, what comes of it, and what it costs.

use std::time::Duration;

use colloquy::{Config, providers};
use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, TestAppBuilder, send},
    eventually,
    process::Server,
    until,
    upstream::{Api, Fault, Script, Upstream},
};
use reqwest::Method;
use serde_json::{Value, json};
use test_routes::analyses::{PATH, analyzed, conversation};

fn answer() -> Value {
    json!({
        "profile": {"name": "Ada", "city": "Berlin", "job": null, "pet": null},
        "contradicted": [], "feedback": {"mood": "glad", "stars": 4},
    })
}

/// What comes of it: what was known stays, since nothing contradicts it.
fn expected() -> Value {
    json!({
        "profile": {"name": "Ada", "city": "Berlin", "job": "clerk", "pet": null},
        "feedback": {"mood": "glad", "stars": 4},
    })
}

/// A server that asks one of this upstream's models.
fn asking(upstream: &Upstream, model: &str, builder: TestAppBuilder) -> TestAppBuilder {
    let set = |config: &mut Config| {
        upstream.offer(config);
        config.analyses.model = Some(model.to_owned());
    };
    let mut settings = Config::default();
    set(&mut settings);
    let builder = builder.config(set);
    let builder = builder.providers(providers::from_config(&settings).unwrap());
    builder.quick_worker()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_kept_for_a_day() {
    let builder = TestApp::builder(&TestDatabase::sqlite()).quick_worker();
    let builder =
        builder.config(|config| config.analyses.model = Some("builtin/extractive".to_owned()));
    let app = builder.start().await;
    let acme = app.partner("acme").await;
    let read = analyzed(&app, &acme.key, conversation()).await;
    let path = read["id"].as_str().unwrap();
    app.advance(Duration::from_secs(24 * 3_600 - 1));
    app.get(&acme.key, path).await.expect(200);
    app.advance(Duration::from_secs(1));
    app.get(&acme.key, path).await.expect(404);
    assert_eq!(colloquy::analyses::purge(&app.app).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn models_of_either_api_are_asked_with_the_schema() {
    let upstream = Upstream::start().await;
    for (model, api) in [
        ("scripted-chat", Api::Chat),
        ("scripted-responses", Api::Responses),
    ] {
        upstream.set_default(api, Script::text(answer().to_string()));
        let builder = TestApp::builder(&TestDatabase::sqlite());
        let app = asking(&upstream, model, builder).start().await;
        let acme = app.partner("acme").await;
        let read = analyzed(&app, &acme.key, conversation()).await;
        assert_eq!(
            (&read["state"], &read["output"]),
            (&json!("completed"), &expected()),
            "{read}"
        );
        let asked = upstream.requests(api);
        assert_eq!(asked.len(), 1);
        let asked = &asked[0].body;
        let schema = match api {
            Api::Chat => &asked["response_format"]["json_schema"]["schema"],
            _ => &asked["text"]["format"]["schema"],
        };
        assert_eq!(
            schema["properties"]["profile"]["required"],
            json!(["city", "job", "name", "pet"])
        );
        let all = asked.to_string();
        assert!(all.contains("Be brief.") && all.contains("I live in Berlin now"));
        // A model that has no schemas is asked without.
        upstream.forget_scripts();
        upstream.script(api, Script::fault(Fault::Status(400)));
        let read = analyzed(&app, &acme.key, conversation()).await;
        assert_eq!(read["output"], expected(), "{read}");
        let asked = upstream.requests(api);
        assert_eq!(asked.len(), 3);
        assert!(asked[2].body["response_format"].is_null() && asked[2].body["text"].is_null());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_fit_is_asked_for_again_and_paid_for() {
    let upstream = Upstream::start().await;
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let app = asking(&upstream, "scripted-chat", builder).start().await;
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let analyzed = async |key: &str| {
        let made = app.post(key, PATH, conversation()).await.expect(200);
        app.advance_through("analyses.analyze").await;
        let path = made["id"].as_str().unwrap();
        app.get(key, path).await.expect(200)
    };
    let used = async || {
        let standing = app.get(&acme.key, &quota.path).await.expect(200);
        assert_eq!(standing["reserved"]["tokens"], 0, "{standing}");
        standing["used"]["tokens"].as_u64().unwrap()
    };
    let mut unfit = answer();
    unfit["feedback"]["stars"] = json!("many");
    upstream.script(Api::Chat, Script::text(unfit.to_string()));
    // Thoughts, which name other braces, stand before the second answer.
    let thoughts = "<think>\nIt wants {\"profile\": {}}.\n</think>\n\n";
    upstream.script(
        Api::Chat,
        Script::text(format!("{thoughts}Here it is: {}", answer())),
    );
    let read = analyzed(&quota.key).await;
    assert_eq!(read["output"], expected(), "{read}");
    let asked = upstream.requests(Api::Chat);
    assert_eq!(asked.len(), 2);
    let messages = asked[1].body["messages"].as_array().unwrap();
    assert!(
        messages.last().unwrap()["content"]
            .as_str()
            .unwrap()
            .contains("feedback.stars is no integer")
    );
    let path = read["id"].as_str().unwrap();
    let other = app.quota(&acme, json!({"kinds": ["text"]})).await;
    app.get(&other.key, path).await.expect(404);
    app.get(&acme.key, path).await.expect(200);
    let of_two = used().await;
    assert!(of_two > 0);

    // It ends at some time, and says why.
    upstream.set_default(Api::Chat, Script::text("I would rather not."));
    let read = analyzed(&quota.key).await;
    assert_eq!(
        (&read["state"], &read["error"]["code"]),
        (&json!("failed"), &json!("answer_unfit")),
        "{read}"
    );
    assert_eq!(upstream.requests(Api::Chat).len(), 5);
    assert!(used().await > of_two);
    // A model that is away is asked again later.
    upstream.script(Api::Chat, Script::fault(Fault::Status(500)));
    upstream.set_default(Api::Chat, Script::text(answer().to_string()));
    let read = analyzed(&acme.key).await;
    assert_eq!(read["output"], expected(), "{read}");

    // Without room nothing is asked.
    let tight = app
        .quota(&acme, json!({"kinds": ["text"], "limits": {"tokens": 50}}))
        .await;
    let before = upstream.requests(Api::Chat).len();
    let read = analyzed(&tight.key).await;
    assert_eq!(read["error"]["code"], "quota_exhausted", "{read}");
    assert_eq!(upstream.requests(Api::Chat).len(), before);
    app.put(&acme.key, &tight.path, json!({"limits": {"tokens": 0}}))
        .await
        .expect(200);
    let refused = app.post(&tight.key, PATH, conversation()).await.expect(429);
    assert!(
        refused["message"].is_string() && refused.as_object().unwrap().len() == 1,
        "{refused}"
    );
}

/// Analyses cost much, so that all partners together may ask for so many.
#[tokio::test(flavor = "multi_thread")]
async fn all_keys_together_have_a_rate() {
    let builder = TestApp::builder(&TestDatabase::sqlite()).without_worker();
    let builder = builder.config(|config| config.analyses.per_minute_of_all = 3);
    let app = builder.start().await;
    let (acme, other) = app.acme_and_other().await;
    for key in [&acme.key, &other.key, &acme.key] {
        app.post(key, PATH, conversation()).await.expect(200);
    }
    for key in [&acme.key, &other.key] {
        let refused = app.post(key, PATH, conversation()).await;
        let wait: u64 = refused.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        let refused = refused.expect(429);
        assert_eq!(refused.as_object().unwrap().len(), 1, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains("try again"));
    }
    app.advance(Duration::from_secs(60));
    app.post(&other.key, PATH, conversation()).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_fields_and_too_many_requests_have_the_bodies_of_the_document() {
    let builder = TestApp::builder(&TestDatabase::sqlite()).without_worker();
    let builder = builder.config(|config| {
        config.analyses.per_minute = 6;
        config.analyses.in_progress = 2;
    });
    let app = builder.start().await;
    let (acme, other) = app.acme_and_other().await;
    let mut wrong = conversation();
    wrong["input"]["profile_schema"]["pet"]["type"] = json!("integer");
    wrong["input"]["messages"][0]["originator"] = json!("me");
    let refused = app.post(&acme.key, PATH, wrong).await.expect(422);
    let errors = refused["errors"].as_object().unwrap();
    assert!(refused["message"].is_string());
    assert!(
        errors.contains_key("input.profile_schema.pet.type")
            && errors.contains_key("input.messages.0.originator"),
        "{refused}"
    );
    for length in [100_000, 1_300_000] {
        let mut large = conversation();
        large["input"]["prompt_extra_text"] = json!("a".repeat(length));
        let refused = app.post(&acme.key, PATH, large).await.expect(422);
        assert!(refused["errors"]["input"].is_array(), "{refused}");
    }
    app.post(&acme.key, PATH, conversation()).await.expect(200);
    app.post(&acme.key, PATH, conversation()).await.expect(200);
    let refused = app.post(&acme.key, PATH, conversation()).await;
    assert!(refused.headers.contains_key("retry-after"));
    assert!(
        refused.expect(429)["message"]
            .as_str()
            .unwrap()
            .contains("in progress")
    );
    let refused = app.post(&acme.key, PATH, conversation()).await.expect(429);
    assert!(
        refused["message"].as_str().unwrap().contains("Rate limit"),
        "{refused}"
    );
    // It is that key's rate.
    app.post(&other.key, PATH, conversation()).await.expect(200);
    app.post("", PATH, conversation()).await.expect(401);
    let refused = app.post(ADMIN_KEY, PATH, conversation()).await.expect(403);
    assert!(refused["message"].is_string() && refused.as_object().unwrap().len() == 1);
    let key = app.key("acme", json!({"scopes": ["transcripts"]})).await;
    app.post(key["api_key"].as_str().unwrap(), PATH, conversation())
        .await
        .expect(403);
    let request = app
        .request(Method::POST, PATH)
        .header("x-api-key", &other.key);
    send(request.header("content-type", "text/plain").body("hello"))
        .await
        .expect(415);
    app.get(&acme.key, &format!("{PATH}/not-one"))
        .await
        .expect(404);
}

/// A process that is killed while a model is asked: the analysis goes on, and what may have been paid for is.
#[tokio::test(flavor = "multi_thread")]
async fn an_analysis_outlasts_its_processes() {
    let upstream = Upstream::start().await;
    let slow =
        Script::text(answer().to_string()).delayed(Duration::from_millis(400), Duration::ZERO);
    upstream.set_default(Api::Chat, slow);
    let database = TestDatabase::sqlite();
    let start = async || {
        let change = |config: &mut Config| {
            upstream.offer(config);
            config.analyses.model = Some("scripted-chat".to_owned());
        };
        Server::start(&database, change).await
    };
    let server = start().await;
    let acme = server.partner("acme").await;
    let quota = server.quota(&acme, &json!({"kinds": ["text"]})).await;
    let mut all = Vec::new();
    for _ in 0..6 {
        let request = server
            .request(&quota.key, Method::POST, PATH)
            .json(&conversation());
        all.push(send(request).await.expect(200));
    }
    eventually("they are asked", async || {
        upstream.requests(Api::Chat).len() >= 3
    })
    .await;
    server.kill().await;
    let server = start().await;
    for made in &all {
        let path = made["id"].as_str().unwrap();
        let is_over = |read: &Value| read["state"] != "in-progress";
        let read = until("the analysis ends", is_over, async || {
            server.get(&acme.key, path).await
        })
        .await;
        assert_eq!(read["output"], expected(), "{read}");
    }
    let standing = server.get(&acme.key, &quota.path).await;
    assert_eq!(standing["reserved"]["tokens"], 0, "{standing}");
    server.kill().await;
}
