//! What administrators switch for a partner.

use super::*;

const PARTNER: &str = "/api/partners/acme";

async fn set(app: &TestRoutes<Accounts>, settings: Value) -> Value {
    let answer = app.put(ADMIN_KEY, PARTNER, json!({"settings": settings}));
    answer.await.expect(200)["settings"].clone()
}

on_each_database!(
    a_setting_that_makes_no_sense_is_refused_by_its_name,
    |database| {
        let app = start(&database).await;
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

on_each_database!(all_keys_of_a_partner_share_its_rate, |database| {
    let app = start(&database).await;
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
    let usage = app.get(&quota.key, "/v3/usage").await;
    usage.expect(200);
    for key in [&acme.key, &second] {
        let refused = me(key).await;
        assert_eq!(refused.headers["retry-after"], "20");
        assert_eq!(refused.expect(429)["code"], "rate_limited");
    }
    app.get(&quota.key, "/v3/usage").await.expect(429);
    me(&other.key).await.expect(200);
    me(ADMIN_KEY).await.expect(200);
    set(&app, json!({})).await;
    me(&acme.key).await.expect(200);
});

on_each_database!(quotas_use_the_models_of_their_partner, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let ask = async || {
        let caller = quota.caller(&app.state).await.unwrap();
        caller.require_model("small").map_err(ApiError::from)
    };
    ask().await.unwrap();
    set(&app, json!({"allowed_models": ["another"]})).await;
    let refused = ask().await.unwrap_err();
    assert_eq!(
        (refused.status.as_u16(), refused.code),
        (403, "model_not_allowed")
    );
    set(&app, json!({"allowed_models": ["small"]})).await;
    ask().await.unwrap();
});
