//! Quotas and their keys: settings, who may do what, until when, and what was used.

mod calls;
mod keys;
mod usage;

use std::time::Duration;

use axum::{body::Body, extract::Request, http::Response, routing::get};
use colloquy::{
    accounts::{
        ledger::{Amounts, LedgerError, Measure, Outcome, UsageContext},
        quotas::{QuotaCaller, QuotaKind, QuotaUnusable},
    },
    characters::CharacterInput,
    http::ApiError,
    store::Executor as _,
};
use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, TestQuota},
    on_both_databases,
};
use reqwest::Method;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use usage::use_up;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn id(quota: &TestQuota) -> &str {
    quota.path.rsplit('/').next().unwrap()
}

on_both_databases!(
    a_quota_is_made_listed_read_and_changed,
    |builder| builder.manual_clock(),
    |app| {
        let acme = app.partner("acme").await;
        let body = json!({
            "name": "site", "kinds": ["speech", "text", "text"], "period": "day",
            "limits": {"tokens": 1_000, "dollars": "12.5", "seconds": null},
            "allowed_models": ["gpt"], "allowed_characters": ["repo:acme/*", "inline"], "expires_in_days": 3,
        });
        let made = app
            .post(&acme.key, "/api/quotas/acme", body)
            .await
            .expect(201);
        let (id, key) = (
            made["id"].as_str().unwrap(),
            made["api_key"].as_str().unwrap(),
        );
        assert!(key.starts_with(&format!("cqq_{id}_")), "{key}");
        let path = format!("/api/quotas/acme/{id}");
        let nothing = json!({"tokens": 0, "dollars": "0", "characters": 0, "seconds": 0});
        let limits =
            json!({"tokens": 1_000, "dollars": "12.5", "characters": null, "seconds": null});
        let expected = json!({
            "id": id, "name": "site", "kinds": ["text", "speech"], "limits": limits, "period": "day",
            "period_start": "2026-01-02T00:00:00Z", "period_end": "2026-01-03T00:00:00Z",
            "used": nothing, "reserved": nothing, "remaining": limits,
            "allowed_models": ["gpt"], "allowed_characters": ["repo:acme/*", "inline"], "disabled": false,
            "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:05Z",
            "expires_at": "2026-01-05T03:04:05Z", "last_used_at": null, "revoked_at": null,
        });
        let read = app.get(&acme.key, &path).await.expect(200);
        assert_eq!(read, expected);
        let second = app.post(&acme.key, "/api/quotas/acme", json!({"kinds": ["call"]}));
        let second = second.await.expect(201);
        assert_eq!(second["period"], "month");
        assert_eq!(second["limits"]["tokens"], Value::Null);
        let list = app.get(&acme.key, "/api/quotas/acme").await.expect(200);
        assert_eq!(list.as_array().unwrap().len(), 2);
        assert_eq!(list[1], expected);
        assert!(!list.to_string().contains(key), "the list shows a key");

        // Only what is named changes; null takes away.
        app.advance(Duration::from_secs(1));
        let changed = app
            .put(&acme.key, &path, json!({"name": "site 2"}))
            .await
            .expect(200);
        assert_eq!(changed["limits"], limits);
        assert_eq!(changed["updated_at"], "2026-01-02T03:04:06Z");
        let body = json!({
            "kinds": ["call"], "limits": {"characters": 7}, "period": "lifetime", "allowed_models": null,
            "allowed_characters": null, "expires_in_days": null, "disabled": true,
        });
        let changed = app.put(&acme.key, &path, body).await.expect(200);
        assert_eq!(changed, app.get(&acme.key, &path).await.expect(200));
        assert_eq!(changed["name"], "site 2");
        assert_eq!(changed["kinds"], json!(["call"]));
        assert_eq!(
            changed["limits"],
            json!({"tokens": null, "dollars": null, "characters": 7, "seconds": null})
        );
        assert_eq!(changed["disabled"], true);
        for field in [
            "period_start",
            "period_end",
            "allowed_models",
            "allowed_characters",
            "expires_at",
        ] {
            assert_eq!(changed[field], Value::Null, "{field}");
        }
    }
);

on_both_databases!(a_bad_setting_is_named, |app| {
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let long = "x".repeat(201);
    let many = vec!["m"; 101];
    for (body, field) in [
        (json!({"kinds": []}), "kinds"),
        (json!({"kinds": ["video"]}), "kinds[0]"),
        (json!({"name": long}), "name"),
        (json!({"period": "week"}), "period"),
        (json!({"limits": {"tokens": -1}}), "limits.tokens"),
        (json!({"limits": {"tokens": 1.5}}), "limits.tokens"),
        (
            json!({"limits": {"tokens": 1_000_000_000_000_001_u64}}),
            "limits.tokens",
        ),
        (
            json!({"limits": {"dollars": "1.000000001"}}),
            "limits.dollars",
        ),
        (json!({"limits": {"dollars": "12 USD"}}), "limits.dollars"),
        (
            json!({"limits": {"dollars": 1_000_000_001}}),
            "limits.dollars",
        ),
        (json!({"limits": {"euros": 1}}), "limits.euros"),
        (json!({"allowed_models": []}), "allowed_models"),
        (json!({"allowed_models": many}), "allowed_models"),
        (
            json!({"allowed_models": ["gpt", long]}),
            "allowed_models[1]",
        ),
        (json!({"allowed_characters": []}), "allowed_characters"),
        (
            json!({"allowed_characters": ["inline", "ada"]}),
            "allowed_characters[1]",
        ),
        (
            json!({"allowed_characters": ["repo:other/*"]}),
            "allowed_characters[0]",
        ),
        (json!({"expires_in_days": 0}), "expires_in_days"),
        (json!({"models": ["gpt"]}), "models"),
    ] {
        let refused = app
            .put(&acme.key, &quota.path, body.clone())
            .await
            .expect(400);
        assert_eq!(refused["field"], field, "{body}");
    }
    let refused = app
        .post(&acme.key, "/api/quotas/acme", json!({}))
        .await
        .expect(400);
    assert_eq!(refused["field"], "kinds");
});

on_both_databases!(only_a_partner_s_own_keys_reach_its_quotas, |app| {
    let (acme, other) = (app.partner("acme").await, app.partner("other").await);
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let without = app
        .key("acme", json!({"scopes": ["calls", "characters"]}))
        .await;
    let with = app.key("acme", json!({"scopes": ["keys"]})).await;
    let rotate = format!("{}/rotate", quota.path);
    let usage = format!("{}/usage", quota.path);
    for (method, path) in [
        (Method::GET, "/api/quotas/acme"),
        (Method::POST, "/api/quotas/acme"),
        (Method::GET, &quota.path),
        (Method::PUT, &quota.path),
        (Method::POST, &rotate),
        (Method::GET, &usage),
        (Method::DELETE, &quota.path),
    ] {
        let body = json!({"kinds": ["text"]});
        for key in [&other.key, without["api_key"].as_str().unwrap()] {
            let refused = app.call(key, method.clone(), path, body.clone()).await;
            assert_eq!(
                refused.expect(403)["code"],
                "access_denied",
                "{method} {path}"
            );
        }
        // A quota's key manages nothing.
        app.call(&quota.key, method.clone(), path, body.clone())
            .await
            .expect(401);
        // Under its own name the other partner finds nothing.
        let elsewhere = path.replace("acme", "other");
        if elsewhere != "/api/quotas/other" {
            app.call(&other.key, method.clone(), &elsewhere, body)
                .await
                .expect(404);
        }
    }
    for key in [&acme.key, ADMIN_KEY, with["api_key"].as_str().unwrap()] {
        app.get(key, &quota.path).await.expect(200);
        app.get(key, &usage).await.expect(200);
    }
    // Nothing stands in a query that is not known.
    let refused = app.get(&acme.key, &format!("{usage}?colour=red")).await;
    let refused = refused.expect(400);
    assert!(refused.to_string().contains("colour"), "{refused}");
    app.post(ADMIN_KEY, "/api/quotas/nobody", json!({"kinds": ["text"]}))
        .await
        .expect(404);
});

on_both_databases!(a_quota_checks_kind_model_and_character, |app| {
    let (acme, _) = app.acme_and_other().await;
    let character = |text: &str| CharacterInput::parse(&json!(text)).unwrap();
    let inline = CharacterInput::parse(&json!({"personality": "You are Ada."})).unwrap();

    let open = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let open = open.caller(&app.app).await.unwrap();
    open.require_kind(QuotaKind::Text).unwrap();
    let refused = ApiError::from(open.require_kind(QuotaKind::Speech).unwrap_err());
    assert_eq!(
        (refused.status.as_u16(), refused.code),
        (403, "quota_kind_not_allowed")
    );
    open.require_model("anything").unwrap();
    open.require_character(inline.saved()).unwrap();
    open.require_character(character("repo-force:acme/ada").saved())
        .unwrap();
    let refused = open.require_character(character("repo:other/ada").saved());
    let refused = ApiError::from(refused.unwrap_err());
    assert_eq!(
        (refused.status.as_u16(), refused.code),
        (403, "character_not_allowed")
    );

    let body = json!({"kinds": ["call"], "allowed_models": ["gpt", "small"], "allowed_characters": ["repo:acme/bob"]});
    let narrow = app.quota(&acme, body).await.caller(&app.app).await.unwrap();
    narrow.require_model("small").unwrap();
    let refused = ApiError::from(narrow.require_model("smal").unwrap_err());
    assert_eq!(
        (refused.status.as_u16(), refused.code),
        (403, "model_not_allowed")
    );
    narrow
        .require_character(character("repo:acme/bob").saved())
        .unwrap();
    narrow
        .require_character(character("repo:acme/ada").saved())
        .unwrap_err();
    narrow.require_character(inline.saved()).unwrap_err();

    // Characters are looked up with the reach of the partner, and with no scope for anything else.
    let principal = open.principal();
    assert!(principal.require_admin().is_err());
    assert_eq!(principal.own_tenant().as_ref(), Some(&open.tenant));
    assert_eq!(principal.scopes, Some(Vec::new()));
});

on_both_databases!(a_quota_does_not_grow_while_the_disk_is_low, |app| {
    let acme = app.partner("acme").await;
    let key = acme.key.as_str();
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let longer =
        |models: usize| json!({"limits": {"tokens": 1}, "allowed_models": vec!["gpt"; models]});
    // The server measures the disk of the test as well, which may come between.
    for attempt in 1.. {
        assert!(attempt <= 5, "the disk was not low");
        let before = app.get(key, &quota.path).await.expect(200);
        app.app.edge.set_disk_low(true);
        let refused = app.put(key, &quota.path, longer(10 * attempt)).await;
        if refused.status == 507 {
            assert_eq!(refused.json()["code"], "insufficient_storage");
            assert_eq!(app.get(key, &quota.path).await.expect(200), before);
            break;
        }
    }
    app.app.edge.set_disk_low(false);
    app.put(key, &quota.path, longer(60)).await.expect(200);
    // Limits change, and shorter lists make room.
    for change in [
        json!({"limits": {"tokens": 2}, "disabled": true, "name": "site"}),
        json!({"limits": {"tokens": 3}, "allowed_models": ["other"]}),
    ] {
        app.app.edge.set_disk_low(true);
        let changed = app.put(key, &quota.path, change.clone()).await.expect(200);
        assert_eq!(changed["limits"]["tokens"], change["limits"]["tokens"]);
    }
});

on_both_databases!(a_deleted_partner_takes_its_quotas_along, |app| {
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let usage = Amounts::tokens(0, 1);
    use_up(&app, &quota, "gpt", None, usage).await;
    let caller = quota.caller(&app.app).await.unwrap();
    let about = || UsageContext {
        endpoint: "responses",
        model: "gpt".to_owned(),
        character: None,
        request_id: "request-1".to_owned(),
    };
    let bound = Amounts::default();
    let open = app
        .app
        .ledger
        .reserve(&caller, bound, about())
        .await
        .unwrap();
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    assert!(quota.caller(&app.app).await.is_err());
    let refused = app
        .app
        .ledger
        .reserve(&caller, bound, about())
        .await
        .unwrap_err();
    assert_eq!(refused, LedgerError::Unusable(QuotaUnusable::Ended));
    // What still runs is settled into nothing.
    open.settled(usage, Outcome::Completed).await;
    for table in ["quotas", "quota_amounts", "reservations", "usage_days"] {
        let db = app.app.store.db();
        let rows = db.fetch_count(format!("SELECT COUNT(*) FROM {table}"));
        assert_eq!(rows.await.unwrap(), 0, "{table}");
    }
});
