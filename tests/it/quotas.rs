//! Quotas and their keys: settings, who may do what, until when, and what was used.

use std::time::Duration;

use axum::{body::Body, extract::Request, http::Response, routing::get};
use colloquy::{
    accounts::{
        ledger::{About, Amounts, Outcome, Usage},
        quotas::{QuotaCaller, QuotaKind},
    },
    characters::CharacterInput,
    store::statement,
};
use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, TestQuota},
    on_both_databases,
};
use reqwest::Method;
use sea_orm::ConnectionTrait as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

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
    app.post(ADMIN_KEY, "/api/quotas/nobody", json!({"kinds": ["text"]}))
        .await
        .expect(404);
});

/// A route that a quota's key opens, behind the server's layers.
fn whoami(app: &TestApp) -> axum::Router {
    async fn handler(QuotaCaller(quota): QuotaCaller) -> String {
        quota.id.clone()
    }
    let router = axum::Router::new().route("/v3/whoami", get(handler));
    colloquy::http::router::with_layers(router, app.app.clone())
}

/// The status with these headers.
async fn status(router: &axum::Router, headers: &[(&str, &str)]) -> u16 {
    let mut request = Request::get("/v3/whoami");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).unwrap();
    let response: Response<Body> = router.clone().oneshot(request).await.unwrap();
    response.status().as_u16()
}

on_both_databases!(a_quota_s_key_is_looked_for_in_authorization_first, |app| {
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let router = whoami(&app);
    let bearer = format!("Bearer {}", quota.key);
    let basic = format!("Basic {}", quota.key);
    let mut flipped = quota.key.clone();
    flipped.pop();
    flipped.push(if quota.key.ends_with('A') { 'B' } else { 'A' });
    for (headers, expected) in [
        (vec![("authorization", bearer.as_str())], 200),
        (
            vec![("authorization", &bearer.replace("Bearer", "bearer"))],
            200,
        ),
        (vec![("X-API-Key", &quota.key)], 200),
        (vec![("X-Api-Key", &quota.key)], 200),
        (
            vec![("authorization", &bearer), ("x-api-key", "wrong")],
            200,
        ),
        (
            vec![("authorization", "Bearer wrong"), ("x-api-key", &quota.key)],
            401,
        ),
        (
            vec![("authorization", "Basic dTpw"), ("x-api-key", &quota.key)],
            200,
        ),
        (vec![("authorization", &basic)], 401),
        (vec![("x-api-key", &flipped)], 401),
        (
            vec![("x-api-key", &quota.key.replacen("cqq_", "cqk_", 1))],
            401,
        ),
        (vec![("x-api-key", &acme.key)], 401),
        (
            vec![("x-api-key", &acme.key.replacen("cqk_", "cqq_", 1))],
            401,
        ),
        (vec![("x-api-key", ADMIN_KEY)], 401),
        (vec![], 401),
    ] {
        assert_eq!(status(&router, &headers).await, expected, "{headers:?}");
    }
});

on_both_databases!(
    a_quota_s_key_ends_by_rotation_revocation_and_expiry,
    |builder| builder.manual_clock(),
    |app| {
        let acme = app.partner("acme").await;
        let make = async || {
            app.quota(&acme, json!({"kinds": ["text"], "expires_in_days": 2}))
                .await
        };
        let router = whoami(&app);
        let passes = async |key: &str| status(&router, &[("x-api-key", key)]).await;

        let quota = make().await;
        assert_eq!(passes(&quota.key).await, 200);
        let rotate = format!("{}/rotate", quota.path);
        let rotated = app.post(&acme.key, &rotate, Value::Null).await.expect(200);
        let new = rotated["api_key"].as_str().unwrap();
        assert_eq!(rotated["id"], id(&quota));
        assert_eq!((passes(&quota.key).await, passes(new).await), (401, 200));

        app.put(&acme.key, &quota.path, json!({"disabled": true}))
            .await
            .expect(200);
        assert_eq!(passes(new).await, 403);
        app.put(&acme.key, &quota.path, json!({"disabled": false}))
            .await
            .expect(200);
        assert_eq!(passes(new).await, 200);

        app.delete(&acme.key, &quota.path).await.expect(204);
        assert_eq!(passes(new).await, 401);
        app.delete(&acme.key, &quota.path).await.expect(204);
        let read = app.get(&acme.key, &quota.path).await.expect(200);
        assert_eq!(read["revoked_at"], "2026-01-02T03:04:05Z");
        for (method, path) in [(Method::PUT, &quota.path), (Method::POST, &rotate)] {
            let refused = app.call(&acme.key, method, path, json!({})).await;
            assert_eq!(refused.expect(409)["code"], "conflict");
        }
        app.delete(&acme.key, "/api/quotas/acme/nothing")
            .await
            .expect(404);

        let quota = make().await;
        app.advance(DAY * 2 - Duration::from_millis(1));
        assert_eq!(passes(&quota.key).await, 200);
        app.advance(Duration::from_millis(1));
        assert_eq!(passes(&quota.key).await, 401);
    }
);

/// Two servers on one database: what one changes, the other knows within five seconds.
async fn changes_reach_the_other_node(database: TestDatabase) {
    let first = TestApp::builder(&database).node("first").start().await;
    let second = TestApp::builder(&database).node("second").manual_clock();
    let second = second.start().await;
    let acme = first.partner("acme").await;
    let router = whoami(&second);
    for change in ["revoke", "rotate", "disable"] {
        let quota = first.quota(&acme, json!({"kinds": ["text"]})).await;
        let key = [("x-api-key", quota.key.as_str())];
        assert_eq!(status(&router, &key).await, 200);
        let expected = match change {
            "revoke" => {
                first.delete(&acme.key, &quota.path).await.expect(204);
                401
            }
            "rotate" => {
                let path = format!("{}/rotate", quota.path);
                first.post(&acme.key, &path, Value::Null).await.expect(200);
                401
            }
            _ => {
                let body = json!({"disabled": true});
                first.put(&acme.key, &quota.path, body).await.expect(200);
                403
            }
        };
        second.advance(Duration::from_millis(5_001));
        assert_eq!(status(&router, &key).await, expected, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_reach_the_other_node_sqlite() {
    changes_reach_the_other_node(TestDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_reach_the_other_node_postgres() {
    changes_reach_the_other_node(TestDatabase::postgres().await).await;
}

on_both_databases!(
    quota_keys_and_wrong_ones_are_limited_in_their_rate,
    |builder| builder.manual_clock().config(|config| {
        config.limits.requests_per_minute = 60;
        config.limits.request_burst = 3;
        config.limits.attempts_per_minute = 2;
    }),
    |app| {
        let acme = app.partner("acme").await;
        app.advance(Duration::from_secs(60));
        let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
        let router = whoami(&app);
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(status(&router, &[("x-api-key", &quota.key)]).await);
        }
        for _ in 0..3 {
            statuses.push(status(&router, &[("x-api-key", "wrong")]).await);
        }
        assert_eq!(statuses, [200, 200, 200, 429, 401, 401, 429]);
        app.advance(Duration::from_secs(1));
        assert_eq!(status(&router, &[("x-api-key", &quota.key)]).await, 200);
    }
);

on_both_databases!(a_quota_checks_kind_model_and_character, |app| {
    let (acme, _) = app.acme_and_other().await;
    let character = |text: &str| CharacterInput::parse(&json!(text)).unwrap();
    let inline = CharacterInput::parse(&json!({"personality": "You are Ada."})).unwrap();

    let open = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let open = open.caller(&app.app).await.unwrap();
    open.require_kind(QuotaKind::Text).unwrap();
    let refused = open.require_kind(QuotaKind::Speech).unwrap_err();
    assert_eq!(
        (refused.status.as_u16(), refused.code),
        (403, "quota_kind_not_allowed")
    );
    open.require_model("anything").unwrap();
    open.require_character(&inline).unwrap();
    open.require_character(&character("repo-force:acme/ada"))
        .unwrap();
    let refused = open
        .require_character(&character("repo:other/ada"))
        .unwrap_err();
    assert_eq!(
        (refused.status.as_u16(), refused.code),
        (403, "character_not_allowed")
    );

    let body = json!({"kinds": ["call"], "allowed_models": ["gpt", "small"], "allowed_characters": ["repo:acme/bob"]});
    let narrow = app.quota(&acme, body).await.caller(&app.app).await.unwrap();
    narrow.require_model("small").unwrap();
    let refused = narrow.require_model("smal").unwrap_err();
    assert_eq!(
        (refused.status.as_u16(), refused.code),
        (403, "model_not_allowed")
    );
    narrow
        .require_character(&character("repo:acme/bob"))
        .unwrap();
    narrow
        .require_character(&character("repo:acme/ada"))
        .unwrap_err();
    narrow.require_character(&inline).unwrap_err();

    // Characters are looked up with the reach of the partner, and with no scope for anything else.
    let principal = open.principal();
    assert!(principal.require_admin().is_err());
    assert_eq!(principal.own_tenant().as_ref(), Some(&open.tenant));
    assert_eq!(principal.scopes, Some(Vec::new()));
});

/// Reserves and settles, and waits until it is stored.
async fn use_up(
    app: &TestApp,
    quota: &TestQuota,
    model: &str,
    character: Option<&str>,
    usage: Usage,
) {
    let caller = quota.caller(&app.app).await.unwrap();
    let about = About {
        endpoint: "chat.completions",
        model: model.to_owned(),
        character: character.map(str::to_owned),
        request_id: "request-1".to_owned(),
    };
    let reservation = app.app.ledger.reserve(&caller, usage.amounts(), about);
    reservation
        .await
        .unwrap()
        .settled(usage, Outcome::Completed)
        .await;
}

on_both_databases!(
    usage_is_summed_by_day_model_and_character,
    |builder| builder.manual_clock(),
    |app| {
        let acme = app.partner("acme").await;
        let quota = app.quota(&acme, json!({"kinds": ["text", "speech"]})).await;
        let text = Usage {
            input_tokens: 10,
            cached_tokens: 4,
            output_tokens: 5,
            reasoning_tokens: 2,
            cost: 1_234,
            ..Usage::default()
        };
        let speech = Usage {
            characters: 7,
            seconds: 3,
            cost: 100_000_000,
            ..Usage::default()
        };
        use_up(&app, &quota, "gpt", Some("acme/ada"), text).await;
        use_up(&app, &quota, "gpt", Some("acme/ada"), text).await;
        use_up(&app, &quota, "gpt", None, text).await;
        app.advance(DAY);
        use_up(&app, &quota, "gpt", None, text).await;
        use_up(&app, &quota, "tts", None, speech).await;
        // Another quota's usage is its own.
        let other = app.quota(&acme, json!({"kinds": ["text"]})).await;
        use_up(&app, &other, "gpt", None, text).await;

        let usage = async |query: &str| {
            let path = format!("{}/usage{query}", quota.path);
            app.get(&acme.key, &path).await.expect(200)
        };
        let by_day = usage("").await;
        assert_eq!(by_day["from"], "2025-12-05");
        assert_eq!(by_day["to"], "2026-01-03");
        assert_eq!(
            by_day["rows"],
            json!([
                {
                    "day": "2026-01-02", "requests": 3, "tokens": 45, "input_tokens": 30, "cached_tokens": 12,
                    "output_tokens": 15, "reasoning_tokens": 6, "characters": 0, "seconds": 0, "dollars": "0.00003702",
                },
                {
                    "day": "2026-01-03", "requests": 2, "tokens": 15, "input_tokens": 10, "cached_tokens": 4,
                    "output_tokens": 5, "reasoning_tokens": 2, "characters": 7, "seconds": 3, "dollars": "1.00001234",
                },
            ])
        );
        assert_eq!(by_day["total"]["requests"], 5);
        assert_eq!(by_day["total"]["dollars"], "1.00004936");
        assert_eq!(by_day["total"].get("day"), None);

        let pick = |report: &Value, fields: [&str; 4]| -> Vec<Value> {
            let rows = report["rows"].as_array().unwrap().iter();
            rows.map(|row| json!(fields.map(|field| row.get(field))))
                .collect()
        };
        let groups = ["day", "model", "character", "requests"];
        let one_day = usage("?from=2026-01-02&to=2026-01-02&group_by=character,model").await;
        assert_eq!(
            pick(&one_day, groups),
            [
                json!([null, "gpt", null, 1]),
                json!([null, "gpt", "acme/ada", 2])
            ]
        );
        // Null means that there is no character, not that there is no such column.
        assert_eq!(one_day["rows"][0].get("character"), Some(&Value::Null));
        let all = usage("?group_by=day,model,character").await;
        assert_eq!(
            pick(&all, groups),
            [
                json!(["2026-01-02", "gpt", null, 1]),
                json!(["2026-01-02", "gpt", "acme/ada", 2]),
                json!(["2026-01-03", "gpt", null, 1]),
                json!(["2026-01-03", "tts", null, 1]),
            ]
        );
        let nothing = usage("?from=2026-02-01&to=2026-02-01").await;
        assert_eq!(nothing["rows"], json!([]));
        assert_eq!(nothing["total"]["dollars"], "0");
        usage("?from=2025-01-03&to=2026-01-03").await;
        for (query, field) in [
            ("?from=2026-1-2", "from"),
            ("?to=2026-01-02T00:00:00", "to"),
            ("?to=yesterday", "to"),
            ("?from=2026-01-03&to=2026-01-02", "from"),
            ("?from=2025-01-02&to=2026-01-03", "from"),
            ("?group_by=hour", "group_by"),
            ("?group_by=", "group_by"),
            ("?group=day", "query"),
        ] {
            let path = format!("{}/usage{query}", quota.path);
            let refused = app.get(&acme.key, &path).await.expect(400);
            assert_eq!(refused["field"], field, "{query}");
        }
    }
);

on_both_databases!(
    another_sort_of_period_counts_what_was_used_since_it_began,
    |builder| builder.manual_clock(),
    |app| {
        let acme = app.partner("acme").await;
        let body = json!({"kinds": ["text"], "limits": {"tokens": 100}, "period": "lifetime"});
        let quota = app.quota(&acme, body).await;
        let tokens = |tokens: u64| Usage {
            output_tokens: tokens,
            ..Usage::default()
        };
        // On 2026-01-02, 2026-02-02 and 2026-02-03; the open one is of the last day but one.
        use_up(&app, &quota, "gpt", None, tokens(1)).await;
        app.advance(DAY * 31);
        use_up(&app, &quota, "gpt", None, tokens(10)).await;
        let caller = quota.caller(&app.app).await.unwrap();
        let about = About {
            endpoint: "chat.completions",
            model: "gpt".to_owned(),
            character: None,
            request_id: "request-2".to_owned(),
        };
        let bound = Amounts {
            tokens: 20,
            ..Amounts::default()
        };
        let open = app.app.ledger.reserve(&caller, bound, about).await.unwrap();
        app.advance(DAY);
        use_up(&app, &quota, "gpt", None, tokens(5)).await;

        for (period, used, reserved) in [
            ("lifetime", 16, 20),
            ("month", 15, 20),
            ("day", 5, 0),
            ("month", 15, 20),
            ("lifetime", 16, 20),
            ("day", 5, 0),
            ("month", 15, 20),
        ] {
            let changed = app.put(&acme.key, &quota.path, json!({"period": period}));
            let changed = changed.await.expect(200);
            let counted = (&changed["used"]["tokens"], &changed["reserved"]["tokens"]);
            assert_eq!(counted, (&json!(used), &json!(reserved)), "{period}");
            assert_eq!(changed["remaining"]["tokens"], 100 - used - reserved);
        }
        open.settled(tokens(2), Outcome::Completed).await;
        let read = app.get(&acme.key, &quota.path).await.expect(200);
        assert_eq!(read["used"]["tokens"], 17);
        assert_eq!(read["reserved"]["tokens"], 0);
        app.advance(DAY * 31);
        let read = app.get(&acme.key, &quota.path).await.expect(200);
        assert_eq!(read["used"]["tokens"], 0);
        assert_eq!(read["period_start"], "2026-03-01T00:00:00Z");
    }
);

on_both_databases!(a_deleted_partner_takes_its_quotas_along, |app| {
    let acme = app.partner("acme").await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let usage = Usage {
        output_tokens: 1,
        ..Usage::default()
    };
    use_up(&app, &quota, "gpt", None, usage).await;
    let caller = quota.caller(&app.app).await.unwrap();
    let about = || About {
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
    assert_eq!(refused.status.as_u16(), 401);
    // What still runs is settled into nothing.
    open.settled(usage, Outcome::Completed).await;
    for table in ["quotas", "reservations", "usage_days"] {
        let db = app.app.store.db();
        let sql = format!("SELECT 1 FROM {table}");
        let row = db.query_one_raw(statement(db, &sql, [])).await.unwrap();
        assert!(row.is_none(), "{table}");
    }
});
