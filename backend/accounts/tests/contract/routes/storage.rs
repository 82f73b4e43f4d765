//! Keys and quotas count in the storage of their partner.

use colloquy_accounts::storage;
use test_routes::storage::counted;

use super::*;

const KEYS: &str = "/api/keys/acme";
const QUOTAS: &str = "/api/quotas/acme";

/// What an API key without origins counts, and a quota without lists.
const KEY_BYTES: u64 = 1_024;
const QUOTA_BYTES: u64 = 2_048;

on_each_database!(
    a_quota_counts_with_its_lists_and_grows_within_the_limit,
    |database| {
        let app = start(&database).await;
        let acme = app.partner("acme").await;
        let key = acme.key.as_str();
        assert_eq!(counted(&app).await, KEY_BYTES, "the first key");
        let quota = json!({"kinds": ["text"], "period": "lifetime"});
        let quota = app.quota(&acme, quota).await;
        let bare = KEY_BYTES + QUOTA_BYTES;
        assert_eq!(counted(&app).await, bare);
        let models = |count: usize| json!({"allowed_models": vec!["ü".repeat(200); count]});
        app.put(key, &quota.path, models(10)).await.expect(200);
        let characters = json!({"allowed_characters": ["inline", "repo:acme/*"]});
        app.put(key, &quota.path, characters).await.expect(200);
        // Each model with quotes and a comma or a bracket, and `["inline","repo:acme/*"]`.
        let grown = bare + 10 * 403 + 1 + 24;
        assert_eq!(counted(&app).await, grown);
        let listed = app.get(key, "/api/partners").await.expect(200);
        assert_eq!(listed[0]["storage"]["used_bytes"], grown);

        app.limit_storage("acme", grown + QUOTA_BYTES - 1).await;
        let new = json!({"kinds": ["text"]});
        let refused = app.post(key, QUOTAS, new.clone()).await.expect(413);
        assert_eq!(refused["code"], "storage_limit_reached", "{refused}");
        let refused = app.put(key, &quota.path, models(20)).await.expect(413);
        assert_eq!(refused["code"], "storage_limit_reached", "{refused}");
        let read = app.get(key, &quota.path).await.expect(200);
        assert_eq!(read["allowed_models"], models(10)["allowed_models"]);
        assert_eq!(counted(&app).await, grown);
        app.limit_storage("acme", grown + QUOTA_BYTES).await;
        app.post(key, QUOTAS, new).await.expect(201);

        // Beyond the limit, whatever does not grow passes.
        app.limit_storage("acme", 0).await;
        let switched = json!({"disabled": true, "name": "ü".repeat(100)});
        app.put(key, &quota.path, switched).await.expect(200);
        let rotate = format!("{}/rotate", quota.path);
        app.post(key, &rotate, Value::Null).await.expect(200);
        assert_eq!(counted(&app).await, grown + QUOTA_BYTES);
        app.put(key, &quota.path, models(5)).await.expect(200);
        let shrunk = grown + QUOTA_BYTES - 5 * 403;
        assert_eq!(counted(&app).await, shrunk);
        app.put(key, &quota.path, models(6)).await.expect(413);
        app.delete(key, &quota.path).await.expect(204);
        assert_eq!(counted(&app).await, shrunk, "its row stays");
        let recounted = storage::recount_texts(&app.state.store, &[storage::TEXTS]).await;
        assert_eq!(recounted.unwrap(), 0);
    }
);

on_each_database!(
    a_partner_at_its_limit_replaces_a_key_and_cannot_hoard_them,
    |database| {
        let app = start(&database).await;
        let acme = app.partner("acme").await;
        app.limit_storage("acme", 0).await;
        let leaked = app.get(&acme.key, "/api/auth/me").await.expect(200);
        let made = app.post(&acme.key, KEYS, json!({})).await.expect(201);
        let key = made["api_key"].as_str().unwrap();
        let path = format!("{KEYS}/{}", leaked["key_id"].as_str().unwrap());
        app.delete(key, &path).await.expect(204);
        app.get(&acme.key, "/api/auth/me").await.expect(401);
        assert_eq!(counted(&app).await, 2 * KEY_BYTES, "its row stays");

        let origin = format!(
            "https://{}example",
            format!("{}.", "x".repeat(60)).repeat(4)
        );
        let page = json!({"kind": "publishable", "allowed_origins": vec![origin.as_str(); 100]});
        // Each origin with quotes and a comma or a bracket.
        let page_bytes = KEY_BYTES + 100 * (origin.len() as u64 + 3) + 1;
        let most = (1_024 * 1_024 - 2 * KEY_BYTES) / page_bytes;
        for _ in 0..most {
            app.post(key, KEYS, page.clone()).await.expect(201);
        }
        let full = 2 * KEY_BYTES + most * page_bytes;
        assert_eq!(counted(&app).await, full);
        let refused = app.post(key, KEYS, page.clone()).await.expect(413);
        assert_eq!(refused["code"], "storage_limit_reached", "{refused}");
        assert_eq!(counted(&app).await, full);
        let admin = json!({"name": "made by an operator"});
        app.post(ADMIN_KEY, KEYS, admin).await.expect(201);

        app.limit_storage("acme", full + KEY_BYTES + page_bytes)
            .await;
        app.post(key, KEYS, page.clone()).await.expect(201);
        app.post(key, KEYS, page).await.expect(413);
        assert_eq!(counted(&app).await, full + KEY_BYTES + page_bytes);
        let recounted = storage::recount_texts(&app.state.store, &[storage::TEXTS]).await;
        assert_eq!(recounted.unwrap(), 0);
    }
);
