//! Quotas: settings, and who may do what with them.

use colloquy_accounts::{
    ledger::{Amounts, LedgerError, Outcome, UsageContext},
    quotas::QuotaUnusable,
};

use super::{usage::use_up, *};

on_each_database!(a_quota_is_made_listed_read_and_changed, |database| {
    let app = start_by(builder(&database)).await;
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
    let limits = json!({"tokens": 1_000, "dollars": "12.5", "characters": null, "seconds": null});
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
});

on_each_database!(a_bad_setting_is_named, |database| {
    let app = start(&database).await;
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

on_each_database!(only_a_partner_s_own_keys_reach_its_quotas, |database| {
    let app = start(&database).await;
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

on_each_database!(a_quota_does_not_grow_while_the_disk_is_low, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let key = acme.key.as_str();
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let longer =
        |models: usize| json!({"limits": {"tokens": 1}, "allowed_models": vec!["gpt"; models]});
    let before = app.get(key, &quota.path).await.expect(200);
    app.edge.set_disk_low(true);
    let refused = app.put(key, &quota.path, longer(10)).await.expect(507);
    assert_eq!(refused["code"], "insufficient_storage");
    assert_eq!(app.get(key, &quota.path).await.expect(200), before);
    app.edge.set_disk_low(false);
    app.put(key, &quota.path, longer(60)).await.expect(200);
    // Limits change, and shorter lists make room.
    for change in [
        json!({"limits": {"tokens": 2}, "disabled": true, "name": "site"}),
        json!({"limits": {"tokens": 3}, "allowed_models": ["other"]}),
    ] {
        app.edge.set_disk_low(true);
        let changed = app.put(key, &quota.path, change.clone()).await.expect(200);
        assert_eq!(changed["limits"]["tokens"], change["limits"]["tokens"]);
    }
});

on_each_database!(a_deleted_partner_takes_its_quotas_along, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let usage = Amounts::tokens(0, 1);
    use_up(&app, &quota, "gpt", None, usage).await;
    let caller = quota.caller(&app.state).await.unwrap();
    let about = || UsageContext {
        endpoint: "responses",
        model: "gpt".to_owned(),
        character: None,
        request_id: "request-1".to_owned(),
    };
    let bound = Amounts::default();
    let reserve = async || app.state.ledger.reserve(&caller, bound, about()).await;
    let open = reserve().await.unwrap();
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    assert!(quota.caller(&app.state).await.is_err());
    let refused = reserve().await.unwrap_err();
    assert_eq!(refused, LedgerError::Unusable(QuotaUnusable::Ended));
    // What still runs is settled into nothing.
    open.settled(usage, Outcome::Completed).await;
    for table in ["quotas", "quota_amounts", "reservations", "usage_days"] {
        let db = app.state.store.db();
        let rows = db.fetch_count(format!("SELECT COUNT(*) FROM {table}"));
        assert_eq!(rows.await.unwrap(), 0, "{table}");
    }
});
