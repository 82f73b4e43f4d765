//! What administrators switch for a partner.

use super::*;

const PARTNER: &str = "/api/partners/acme";

async fn set(app: &TestApp, settings: Value) -> Value {
    let answer = app.put(ADMIN_KEY, PARTNER, json!({"settings": settings}));
    answer.await.expect(200)["settings"].clone()
}

on_both_databases!(
    a_setting_that_makes_no_sense_is_refused_by_its_name,
    |app| {
        app.partner("acme").await;
        for (settings, field) in [
            (json!({"transcription": true}), "settings.transcription"),
            (
                json!({"transcription_enabled": "no"}),
                "settings.transcription_enabled",
            ),
            (
                json!({"vectorstore_sync_enabled": 1}),
                "settings.vectorstore_sync_enabled",
            ),
            (
                json!({"vectorstore_sync_requests_per_minute": 6_001}),
                "settings.vectorstore_sync_requests_per_minute",
            ),
            (
                json!({"requests_per_minute": 0}),
                "settings.requests_per_minute",
            ),
            (
                json!({"requests_per_minute": 1_000_001}),
                "settings.requests_per_minute",
            ),
            (json!({"allowed_models": "a"}), "settings.allowed_models"),
            (
                json!({"allowed_models": ["a", ""]}),
                "settings.allowed_models[1]",
            ),
        ] {
            let body = json!({"settings": settings});
            let refused = app.put(ADMIN_KEY, PARTNER, body).await.expect(400);
            assert_eq!(refused["field"], field, "{refused}");
        }
        assert_eq!(
            app.get(ADMIN_KEY, PARTNER).await.expect(200)["settings"],
            json!({})
        );
        let all = json!({
            "transcription_enabled": false,
            "vectorstore_sync_enabled": true,
            "vectorstore_sync_requests_per_minute": 6_000,
            "requests_per_minute": 1_000_000,
            "allowed_models": [],
        });
        assert_eq!(set(&app, all.clone()).await, all);
        let partner = app.get(ADMIN_KEY, PARTNER).await.expect(200);
        assert_eq!(partner["settings"], all);
    }
);

on_both_databases!(all_keys_of_a_partner_share_its_rate, |app| {
    let (acme, other) = (app.partner("acme").await, app.partner("other").await);
    let second = app.post(&acme.key, "/api/keys/acme", json!({"name": "second"}));
    let second = second.await.expect(201)["api_key"]
        .as_str()
        .unwrap()
        .to_owned();
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let me = async |key: &str| app.get(key, "/api/auth/me").await;
    // It has been read a moment ago.
    me(&acme.key).await.expect(200);
    set(&app, json!({"requests_per_minute": 3})).await;
    me(&acme.key).await.expect(200);
    me(&second).await.expect(200);
    let models = app.get(&quota.key, "/v3/models").await;
    models.expect(200);
    for key in [&acme.key, &second] {
        let refused = me(key).await;
        assert_eq!(refused.headers["retry-after"], "20");
        assert_eq!(refused.expect(429)["code"], "rate_limited");
    }
    app.get(&quota.key, "/v3/models").await.expect(429);
    me(&other.key).await.expect(200);
    me(ADMIN_KEY).await.expect(200);
    set(&app, json!({})).await;
    me(&acme.key).await.expect(200);
});

on_both_databases!(quotas_use_the_models_of_their_partner, |app| {
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
});
