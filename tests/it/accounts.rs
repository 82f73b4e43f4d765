//! What partners and keys are to other capabilities: what is refused, what is counted, what goes along. What they do themselves,
//! `backend/accounts/tests/contract` says.

mod deletion;
mod settings;

use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, send},
};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_publishable_key_reads_no_calls() {
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    let (acme, _) = app.acme_and_other().await;
    let origin = "https://www.example.com";
    let page = json!({"kind": "publishable", "allowed_origins": [origin]});
    let page = app.key("acme", page).await;
    let page = page["api_key"].as_str().unwrap();
    let ask = |method: Method, path: &str| {
        app.request(method, path)
            .header("x-api-key", page)
            .header("origin", origin)
    };
    let body = json!({"character": "repo:acme/ada", "call_time_limit_seconds": "60"});
    let made = send(ask(Method::POST, "/v2/calls").json(&body))
        .await
        .expect(200);
    let id = made["data"]["id"].as_str().unwrap();
    app.get(&acme.key, id).await.expect(200);
    for path in [
        id.to_owned(),
        format!("{id}/transcript"),
        "/v2/calls/none".to_owned(),
    ] {
        let refused = send(ask(Method::GET, &path)).await.expect(403);
        assert_eq!(refused["error"]["code"], "ACCESS_DENIED", "{path}");
    }
}

#[tokio::test]
async fn a_partner_with_open_calls_stays() {
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    let acme = app.partner("acme").await;
    let character = json!({"personality": "You are Ada."});
    let call = json!({"character": character, "call_time_limit_seconds": 60});
    app.post(&acme.key, "/v2/calls", call).await.expect(200);
    let refused = app.delete(ADMIN_KEY, "/api/partners/acme").await;
    assert_eq!(refused.expect(409)["code"], "conflict");
    app.get(&acme.key, "/api/auth/me").await.expect(200);
}

/// Calls are counted like the routes with which `colloquy-accounts` proves the bounds.
#[tokio::test]
async fn calls_count_against_the_bounds_of_networks() {
    let app = TestApp::builder(&TestDatabase::sqlite())
        .config(|config| {
            config.limits.requests_per_minute = 60;
            config.limits.request_burst = 40;
            config.limits.attempts_per_minute = 2;
            config.http.trusted_proxies = 1;
        })
        .start()
        .await;
    app.acme_and_other().await;
    let origin = "https://www.example.com";
    let page = json!({"kind": "publishable", "allowed_origins": [origin]});
    let page = app.key("acme", page).await;
    let page = page["api_key"].as_str().unwrap();
    let call = json!({"character": "repo:acme/ada", "call_time_limit_seconds": 60});
    let from = |method: Method, path: &str, key: &str, address: &str| {
        app.request(method, path)
            .header("x-api-key", key)
            .header("origin", origin)
            .header("x-forwarded-for", address)
    };
    let place = |address: &str| send(from(Method::POST, "/v2/calls", page, address).json(&call));
    for _ in 0..10 {
        place("9.9.9.9").await.expect(200);
    }
    let refused = place("9.9.9.9").await;
    assert_eq!(refused.expect(429)["error"]["code"], "RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), "4");
    place("8.8.8.8").await.expect(200);

    let guess = |nth: usize| {
        let key = format!("cqq_{nth:032x}_{}", "a".repeat(43));
        send(from(Method::GET, "/v2/calls/none", &key, "7.7.7.7"))
    };
    for (nth, status) in [401, 401, 429].into_iter().enumerate() {
        guess(nth).await.expect(status);
    }
}

#[tokio::test]
async fn operators_may_lock_metrics_and_health() {
    let secret = colloquy::config::Secret::new;
    let app = TestApp::builder(&TestDatabase::sqlite())
        .config(|config| {
            config.http.metrics_key = Some(secret("key-of-the-scraper"));
            config.http.health_key = Some(secret("key-of-the-monitor"));
        })
        .start()
        .await;
    let acme = app.partner("acme").await;
    for (path, own, others) in [
        ("/metrics", "key-of-the-scraper", "key-of-the-monitor"),
        ("/health/deep", "key-of-the-monitor", "key-of-the-scraper"),
    ] {
        let with = |key: &str| app.request(Method::GET, path).bearer_auth(key);
        send(app.request(Method::GET, path)).await.expect(401);
        send(with(others)).await.expect(401);
        send(with(&acme.key)).await.expect(403);
        assert_eq!(send(with(own)).await.status, 200, "{path}");
        assert_eq!(send(with(ADMIN_KEY)).await.status, 200, "{path}");
    }
    send(app.request(Method::GET, "/health")).await.expect(200);
}
