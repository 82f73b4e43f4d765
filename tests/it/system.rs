//! The state of the system, for administrators: nodes, queues, models, settings, the version.

use std::{sync::Arc, time::Duration};

use colloquy::{
    clock::ManualClock,
    config::{ModelConfig, Secret},
    node,
};
use harness::{TestApp, TestDatabase, app::ADMIN_KEY};
use serde_json::{Value, json};

const PATHS: [&str; 5] = ["", "/nodes", "/queues", "/models", "/settings"];

async fn read(app: &TestApp, path: &str) -> Value {
    let answer = app.get(ADMIN_KEY, &format!("/api/system{path}")).await;
    let answer = answer.expect(200);
    let own = &app.app.kernel.node;
    let answered_by = json!({"id": own.id, "name": own.name});
    assert_eq!(answer["answered_by"], answered_by, "{path}");
    assert!(answer["at"].is_string(), "{path}");
    answer
}

fn find<'a>(list: &'a Value, field: &str, value: &str) -> &'a Value {
    let mut list = list.as_array().unwrap().iter();
    let found = list.find(|entry| entry[field] == value);
    found.unwrap_or_else(|| panic!("no {field} is {value}"))
}

#[tokio::test]
async fn the_system_is_for_administrators() {
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    let (acme, _) = app.acme_and_other().await;
    for path in PATHS {
        let path = format!("/api/system{path}");
        assert_eq!(app.get(&acme.key, &path).await.status, 403, "{path}");
        assert_eq!(app.get("", &path).await.status, 401, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_are_told_apart() {
    for database in TestDatabase::both().await {
        tell_nodes_apart(database).await;
    }
}

async fn tell_nodes_apart(database: TestDatabase) {
    let clock = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
    let node = |name: &str| {
        let builder = TestApp::builder(&database).node(name);
        builder.clock(clock.clone()).without_worker()
    };
    let first = node("first").start().await;
    let second = node("second").config(|config| {
        config.http.node_url = Some("https://node-2.example/".parse().unwrap());
    });
    let second = second.idle().await;
    let nodes = read(&first, "/nodes").await;
    assert_eq!(nodes["nodes"].as_array().unwrap().len(), 2, "{nodes}");
    assert_eq!(nodes["versions"].as_array().unwrap().len(), 1, "{nodes}");
    let (own, other) = (&first.app.kernel.node.id, &second.kernel.node.id);
    let own = find(&nodes["nodes"], "id", own);
    assert_eq!(own["is_answering"], true);
    assert_eq!(
        (&own["state"], &own["calls"]),
        (&json!("running"), &json!(0))
    );
    assert!(own["max_calls"].as_u64().unwrap() > 0, "{own}");
    let other = find(&nodes["nodes"], "id", other);
    assert_eq!(other["is_answering"], false);
    assert_eq!(other["url"], "https://node-2.example");

    clock.advance(Duration::from_secs(40));
    node::heartbeat(&first.app.kernel).await.unwrap();
    let nodes = read(&first, "/nodes").await;
    let other = find(&nodes["nodes"], "id", &second.kernel.node.id);
    assert_eq!(other["state"], "lost", "{nodes}");
    assert_eq!(other["heartbeat_age_ms"], 40_000);
    assert_eq!(other["calls"], Value::Null);

    let system = read(&first, "").await;
    let kinds = ["sqlite", "postgres"];
    assert!(
        kinds.contains(&system["database"].as_str().unwrap()),
        "{system}"
    );
    assert!(system["schema_version"].as_i64().unwrap() >= 59, "{system}");
    assert_eq!(system["uptime_seconds"], 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_kinds_of_jobs_have_a_queue() {
    for database in TestDatabase::both().await {
        read_queues(database).await;
    }
}

async fn read_queues(database: TestDatabase) {
    let app = TestApp::builder(&database).without_worker().start().await;
    let queues = read(&app, "/queues").await;
    let listed = queues["queues"].as_array().unwrap();
    assert!(listed.len() >= 16, "{queues}");
    for kind in [
        "bases.embed",
        "webhook.deliver",
        "transcripts.transcribe",
        "voices.split",
    ] {
        let queue = find(&queues["queues"], "kind", kind);
        assert_eq!(
            (&queue["later"], &queue["failed"]),
            (&json!(0), &json!(0)),
            "{queue}"
        );
    }
    assert_eq!(queues["waiting"], json!([]));
}

#[tokio::test]
async fn settings_are_told_without_secrets() {
    let app = TestApp::builder(&TestDatabase::sqlite())
        .config(|config| {
            config.webhooks.secret = Some(Secret::new("whsec_aHVudGVyLW9mLXNlY3JldHM="));
            config.traces.endpoint = Some(
                "http://user:hunter-2@127.0.0.1:9/v1?token=hunter-3"
                    .parse()
                    .unwrap(),
            );
        })
        .start()
        .await;
    let settings = read(&app, "/settings").await;
    let secret = find(&settings["settings"], "key", "webhooks.secret");
    assert_eq!(
        (&secret["is_secret"], &secret["is_set"], &secret["value"]),
        (&json!(true), &json!(true), &Value::Null)
    );
    let endpoint = find(&settings["settings"], "key", "traces.endpoint");
    assert_eq!(
        endpoint["value"],
        "http://hidden@127.0.0.1:9/v1?token=hidden"
    );
    let told = settings.to_string();
    for hidden in ["hunter", "aHVudGVy", ADMIN_KEY] {
        assert!(!told.contains(hidden), "{hidden} is told");
    }
    // The server chose it, as no source names it.
    assert_eq!(endpoint["origin"], "server");
    let bases = find(&settings["settings"], "key", "knowledge.max_bases");
    assert_eq!(bases["origin"], "default");
    assert_eq!(
        (&bases["value"], &bases["default"]),
        (&json!(1_000), &json!(1_000))
    );
}

#[tokio::test]
async fn models_tell_what_requests_found_out() {
    let away = ModelConfig {
        base_url: Some("http://user:hunter@127.0.0.1:9/v1".parse().unwrap()),
        input_usd: Some("2.5".parse().unwrap()),
        ..ModelConfig::default()
    };
    let app = TestApp::builder(&TestDatabase::sqlite())
        .config(|config| {
            config.models.insert("away".to_owned(), away);
        })
        .start()
        .await;
    let models = read(&app, "/models").await;
    let model = find(&models["models"], "name", "away");
    assert_eq!(model["host"], "127.0.0.1:9");
    assert_eq!(
        (&model["provider"], &model["api"]),
        (&json!("service"), &json!("chat"))
    );
    assert_eq!(
        model["prices"],
        json!([{"unit": "million_input_tokens", "usd": "2.5"}])
    );
    assert_eq!(model["reach"]["state"], "unused");
    assert!(!models.to_string().contains("hunter"));
    let embedded = find(&models["models"], "name", "builtin/extractive");
    assert_eq!(embedded["provider"], "embedded");

    let (acme, _) = app.acme_and_other().await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let body = json!({"model": "away", "messages": [{"role": "user", "content": "hello"}]});
    let answer = app.post(&quota.key, "/v3/chat/completions", body).await;
    assert!(answer.status.is_server_error(), "{}", answer.status);
    let models = read(&app, "/models").await;
    let reach = &find(&models["models"], "name", "away")["reach"];
    assert_eq!(
        (&reach["state"], &reach["failure"]),
        (&json!("failing"), &json!("connect")),
        "{reach}"
    );
    assert_eq!(reach["answered_at"], Value::Null);
}
