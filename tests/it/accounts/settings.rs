//! What administrators switch for a partner.

use super::*;

const PARTNER: &str = "/api/partners/acme";

async fn set(app: &TestApp, settings: Value) -> Value {
    let answer = app.put(ADMIN_KEY, PARTNER, json!({"settings": settings}));
    answer.await.expect(200)["settings"].clone()
}

#[tokio::test]
async fn quotas_use_the_models_of_their_partner() {
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let ask = async || {
        let message = json!({"role": "user", "content": "Hello!"});
        let body = json!({"model": "builtin/extractive", "messages": [message]});
        app.post(&quota.key, "/v3/chat/completions", body).await
    };
    let listed = async || {
        let models = app.get(&quota.key, "/v3/models").await.expect(200);
        models["data"].as_array().unwrap().len()
    };
    ask().await.expect(200);
    let all = listed().await;
    assert!(all >= 1);
    set(&app, json!({"allowed_models": ["another"]})).await;
    let refused = ask().await.expect(403);
    assert_eq!(refused["detail"]["code"], "model_not_allowed", "{refused}");
    assert_eq!(listed().await, 0);
    set(&app, json!({"allowed_models": ["builtin/extractive"]})).await;
    ask().await.expect(200);
    assert_eq!(listed().await, 1);
}

#[tokio::test]
async fn quotas_keep_to_the_rate_of_their_partner() {
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    set(&app, json!({"requests_per_minute": 2})).await;
    app.get(&acme.key, "/v2/calls").await.expect(200);
    app.get(&quota.key, "/v3/models").await.expect(200);
    for (key, path) in [(&quota.key, "/v3/models"), (&acme.key, "/v2/calls")] {
        let refused = app.get(key, path).await;
        assert_eq!(refused.headers["retry-after"], "30");
        refused.expect(429);
    }
}
