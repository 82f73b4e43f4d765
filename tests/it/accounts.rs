//! Partners and keys: who may do what, and until when.

mod attempts;
mod call_bounds;
mod call_storage;
mod deletion;
mod settings;
mod shares;
mod storage;

use std::time::Duration;

use colloquy::{
    calls::{self, Outcome, TranscriptLine},
    store::{Dialect, Executor as _},
};
use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, send},
    on_both_databases,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

on_both_databases!(a_partner_with_open_calls_stays, |app| {
    let acme = app.partner("acme").await;
    let character = json!({"personality": "You are Ada."});
    let call = json!({"character": character, "call_time_limit_seconds": 60});
    app.post(&acme.key, "/v2/calls", call).await.expect(200);
    let refused = app.delete(ADMIN_KEY, "/api/partners/acme").await;
    assert_eq!(refused.expect(409)["code"], "conflict");
    let db = app.app.store.db();
    let ended = "UPDATE calls SET state = 'completed' WHERE partner = 'acme'";
    db.execute(ended).await.unwrap();
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
});

on_both_databases!(partners_are_made_read_changed_and_deleted, |app| {
    let made = app
        .post(
            ADMIN_KEY,
            "/api/partners/acme",
            json!({"display_name": "Acme", "settings": {"transcription_enabled": true}}),
        )
        .await
        .expect(201);
    assert_eq!(made["id"], "acme");
    assert_eq!(made["display_name"], "Acme");
    let key = made["api_key"].as_str().unwrap();
    assert!(key.starts_with("cqk_"));

    let again = app.post(ADMIN_KEY, "/api/partners/acme", json!({})).await;
    assert_eq!(again.expect(409)["code"], "conflict");

    let read = app.get(ADMIN_KEY, "/api/partners/acme").await.expect(200);
    assert_eq!(read["settings"], json!({"transcription_enabled": true}));
    assert!(read.get("api_key").is_none());

    let changed = app
        .put(
            ADMIN_KEY,
            "/api/partners/acme",
            json!({"display_name": "Acme 2"}),
        )
        .await
        .expect(200);
    assert_eq!(changed["display_name"], "Acme 2");
    assert_eq!(changed["settings"], json!({"transcription_enabled": true}));

    // A terminal would do what they say.
    for (path, field) in [
        ("/api/partners/none", "display_name"),
        ("/api/keys/acme", "name"),
        ("/api/quotas/acme", "name"),
    ] {
        for name in ["a\u{1b}[2J", "a\nb", "a\u{202e}b"] {
            let refused = app.post(ADMIN_KEY, path, json!({field: name})).await;
            assert_eq!(refused.expect(400)["field"], field, "{path}");
        }
    }

    app.partner("beta").await;
    let all = app.get(ADMIN_KEY, "/api/partners").await.expect(200);
    assert_eq!(ids(&all), ["acme", "beta"]);
    let own = app.get(key, "/api/partners").await.expect(200);
    assert_eq!(ids(&own), ["acme"]);

    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    app.get(ADMIN_KEY, "/api/partners/acme").await.expect(404);
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(404);
    app.put(ADMIN_KEY, "/api/partners/acme", json!({}))
        .await
        .expect(404);
    // Its keys went with it, at once.
    app.get(key, "/api/auth/me").await.expect(401);
});

fn ids(list: &Value) -> Vec<&str> {
    let entries = list.as_array().unwrap().iter();
    entries.map(|entry| entry["id"].as_str().unwrap()).collect()
}

on_both_databases!(a_deleted_partner_takes_its_characters_along, |app| {
    let partner = app.partner("acme").await;
    app.character(&partner, "guide", "You are a guide", json!({}))
        .await;
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    app.partner("acme").await;
    let list = app.get(ADMIN_KEY, "/api/characters/acme").await.expect(200);
    assert_eq!(list, json!([]));
    app.get(ADMIN_KEY, "/api/characters/acme/guide")
        .await
        .expect(404);
});

on_both_databases!(a_key_says_whose_it_is, |app| {
    let me = app.get(ADMIN_KEY, "/api/auth/me").await.expect(200);
    assert_eq!(me["isAdmin"], true);
    assert_eq!(me["partner"], Value::Null);

    let partner = app.partner("acme").await;
    let me = app.get(&partner.key, "/api/auth/me").await.expect(200);
    assert_eq!(me["isAdmin"], false);
    assert_eq!(me["partner"], "acme");
    assert_eq!(me["scopes"], Value::Null);

    let bearer = app
        .request(Method::GET, "/api/auth/me")
        .bearer_auth(&partner.key);
    assert_eq!(send(bearer).await.expect(200)["partner"], "acme");
    let query = app.request(
        Method::GET,
        &format!("/api/auth/me?api_key={}", partner.key),
    );
    // Addresses are logged: only the interface whose document has it takes a key there.
    send(query).await.expect(401);
});

on_both_databases!(wrong_keys_are_refused, |app| {
    let partner = app.partner("acme").await;
    let mut altered = partner.key.clone();
    altered.pop();
    let other_kind = partner.key.replacen("cqk_", "cqa_", 1);
    let unknown = format!("cqk_{}_{}", "0".repeat(32), "A".repeat(43));
    let last = if partner.key.ends_with('A') { 'B' } else { 'A' };
    let flipped = format!("{altered}{last}");
    for key in [
        "",
        "nonsense",
        "cqk_",
        &altered,
        &flipped,
        &other_kind,
        &unknown,
        "test-admin-kez",
    ] {
        let answer = app.get(key, "/api/auth/me").await;
        let body = answer.expect(401);
        assert_eq!(
            body,
            json!({"detail": "Invalid API key", "code": "invalid_api_key"}),
            "{key}"
        );
    }
    send(app.request(Method::GET, "/api/auth/me"))
        .await
        .expect(401);
    let basic = app
        .request(Method::GET, "/api/auth/me")
        .header("authorization", format!("Basic {}", partner.key));
    send(basic).await.expect(401);
});

on_both_databases!(a_partner_reaches_its_own_data_only, |app| {
    let acme = app.partner("acme").await;
    app.partner("beta").await;
    for (method, path) in [
        (Method::GET, "/api/partners/acme"),
        (Method::PUT, "/api/partners/acme"),
        (Method::POST, "/api/partners/gamma"),
        (Method::DELETE, "/api/partners/acme"),
        (Method::GET, "/api/keys/beta"),
        (Method::POST, "/api/keys/beta"),
        (Method::DELETE, "/api/keys/beta/x"),
        (Method::GET, "/api/characters/beta"),
        (Method::POST, "/api/characters/beta"),
        (Method::GET, "/api/characters/beta/x"),
        (Method::GET, "/api/characters/nobody/x"),
    ] {
        let answer = app.call(&acme.key, method.clone(), path, json!({})).await;
        assert_eq!(
            answer.expect(403)["code"],
            "access_denied",
            "{method} {path}"
        );
    }
    app.get(&acme.key, "/api/keys/acme").await.expect(200);
    app.get(&acme.key, "/api/characters/acme").await.expect(200);
    // Characters and keys of a partner that does not exist.
    app.post(ADMIN_KEY, "/api/keys/nobody", json!({}))
        .await
        .expect(404);
    let body = json!({"name": "x", "personality": "y"});
    app.post(ADMIN_KEY, "/api/characters/nobody", body)
        .await
        .expect(404);
    let bad = app
        .get(ADMIN_KEY, "/api/characters/No%20Body")
        .await
        .expect(400);
    assert_eq!(bad["field"], "partner");
});

on_both_databases!(keys_are_shown_once_and_revoked_at_once, |app| {
    let partner = app.partner("acme").await;
    let made = app
        .key("acme", json!({"name": "server", "scopes": ["characters"]}))
        .await;
    let (id, key) = (
        made["id"].as_str().unwrap(),
        made["api_key"].as_str().unwrap(),
    );
    app.get(key, "/api/characters/acme").await.expect(200);
    let refused = app.get(key, "/api/keys/acme").await.expect(403);
    assert_eq!(refused["code"], "access_denied");

    let list = app.get(&partner.key, "/api/keys/acme").await.expect(200);
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert!(!list.to_string().contains(key), "the list shows a key");
    assert_eq!(list[0]["id"], id);
    assert_eq!(list[0]["scopes"], json!(["characters"]));

    app.delete(&partner.key, &format!("/api/keys/acme/{id}"))
        .await
        .expect(204);
    app.get(key, "/api/characters/acme").await.expect(401);
    app.delete(&partner.key, &format!("/api/keys/acme/{id}"))
        .await
        .expect(204);
    app.delete(&partner.key, "/api/keys/acme/unknown")
        .await
        .expect(404);
    let list = app.get(&partner.key, "/api/keys/acme").await.expect(200);
    assert!(list[0]["revoked_at"].is_string());
});

on_both_databases!(a_key_cannot_make_one_that_may_do_more, |app| {
    app.partner("acme").await;
    let made = app.key("acme", json!({"scopes": ["keys", "calls"]})).await;
    let key = made["api_key"].as_str().unwrap();
    for body in [
        json!({}),
        json!({"scopes": ["characters"]}),
        json!({"scopes": ["calls", "webhooks"]}),
    ] {
        app.post(key, "/api/keys/acme", body).await.expect(403);
    }
    app.post(key, "/api/keys/acme", json!({"scopes": ["calls"]}))
        .await
        .expect(201);
    let page = json!({"kind": "publishable", "allowed_origins": ["https://www.example.com"]});
    app.post(key, "/api/keys/acme", page).await.expect(201);
});

on_both_databases!(malformed_keys_are_refused_with_their_field, |app| {
    app.partner("acme").await;
    for (body, field) in [
        (json!({"kind": "admin"}), "kind"),
        (json!({"scopes": []}), "scopes"),
        (json!({"scopes": ["calls", "everything"]}), "scopes[1]"),
        (json!({"kind": "publishable"}), "allowed_origins"),
        (
            json!({"kind": "publishable", "allowed_origins": ["https://a.example", "a.example/x"]}),
            "allowed_origins[1]",
        ),
        (
            json!({"kind": "publishable", "allowed_origins": ["https://a.example"], "scopes": ["keys"]}),
            "scopes",
        ),
        (
            json!({"allowed_origins": ["https://a.example"]}),
            "allowed_origins",
        ),
        (json!({"expires_in_days": 0}), "expires_in_days"),
        (json!({"expires_in_days": "soon"}), "expires_in_days"),
        (json!({"unknown": 1}), "unknown"),
    ] {
        let answer = app.post(ADMIN_KEY, "/api/keys/acme", body.clone()).await;
        assert_eq!(answer.expect(400)["field"], field, "{body}");
    }
});

on_both_databases!(keys_expire, |builder| builder.manual_clock(), |app| {
    app.partner("acme").await;
    let made = app.key("acme", json!({"expires_in_days": 2})).await;
    let key = made["api_key"].as_str().unwrap();
    assert_eq!(made["expires_at"], "2026-01-04T03:04:05Z");
    app.advance(DAY * 2 - Duration::from_secs(1));
    app.get(key, "/api/auth/me").await.expect(200);
    app.advance(Duration::from_secs(1));
    app.get(key, "/api/auth/me").await.expect(401);
});

on_both_databases!(
    the_last_use_is_noted,
    |builder| builder.manual_clock(),
    |app| {
        let partner = app.partner("acme").await;
        let list = app.get(ADMIN_KEY, "/api/keys/acme").await.expect(200);
        assert_eq!(list[0]["last_used_at"], Value::Null);
        app.get(&partner.key, "/api/auth/me").await.expect(200);
        // The note is written beside the request.
        for _ in 0..100 {
            let list = app.get(ADMIN_KEY, "/api/keys/acme").await.expect(200);
            if list[0]["last_used_at"] == "2026-01-02T03:04:05Z" {
                return;
            }
            app.advance(Duration::from_millis(1));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the use was not noted");
    }
);

/// Two servers on one database: what one revokes, the other refuses within five seconds.
async fn revocation_reaches_the_other_node(database: TestDatabase) {
    let first = TestApp::builder(&database).start().await;
    let second = TestApp::builder(&database).node("second").manual_clock();
    let second = second.start().await;
    first.partner("acme").await;
    let made = first.key("acme", json!({})).await;
    let (id, key) = (
        made["id"].as_str().unwrap(),
        made["api_key"].as_str().unwrap(),
    );
    second.get(key, "/api/auth/me").await.expect(200);
    first
        .delete(ADMIN_KEY, &format!("/api/keys/acme/{id}"))
        .await
        .expect(204);
    second.get(key, "/api/auth/me").await.expect(200);
    second.advance(Duration::from_millis(5_001));
    second.get(key, "/api/auth/me").await.expect(401);
    first.get(key, "/api/auth/me").await.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn revocation_reaches_the_other_node_sqlite() {
    revocation_reaches_the_other_node(TestDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revocation_reaches_the_other_node_postgres() {
    revocation_reaches_the_other_node(TestDatabase::postgres().await).await;
}

on_both_databases!(publishable_keys_are_for_calls_from_their_pages, |app| {
    app.partner("acme").await;
    let body = json!({"kind": "publishable", "allowed_origins": ["https://www.example.com/", "http://localhost:3000"]});
    let made = app.key("acme", body).await;
    let key = made["api_key"].as_str().unwrap();
    assert!(key.starts_with("cqp_"));
    assert_eq!(
        made["allowed_origins"],
        json!(["https://www.example.com", "http://localhost:3000"])
    );
    assert_eq!(made["scopes"], json!(["calls"]));
    // Never below /api, wherever the page is.
    for path in [
        "/api/auth/me",
        "/api/characters/acme",
        "/api/partners",
        "/api/keys/acme",
    ] {
        let request = app
            .request(Method::GET, path)
            .header("x-api-key", key)
            .header("origin", "http://localhost:3000");
        assert_eq!(
            send(request).await.expect(403)["code"],
            "access_denied",
            "{path}"
        );
    }
});

on_both_databases!(
    a_key_is_limited_in_its_rate,
    |builder| builder.manual_clock().config(|config| {
        config.limits.requests_per_minute = 60;
        config.limits.request_burst = 3;
    }),
    |app| {
        let acme = app.partner("acme").await;
        let beta = app.partner("beta").await;
        for _ in 0..3 {
            app.get(&acme.key, "/api/auth/me").await.expect(200);
        }
        let refused = app.get(&acme.key, "/api/auth/me").await;
        assert_eq!(refused.expect(429)["code"], "rate_limited");
        assert_eq!(refused.header("retry-after"), "1");
        app.get(&beta.key, "/api/auth/me").await.expect(200);
        app.advance(Duration::from_secs(1));
        app.get(&acme.key, "/api/auth/me").await.expect(200);
        app.get(&acme.key, "/api/auth/me").await.expect(429);
    }
);

on_both_databases!(
    failed_sign_ins_are_limited_by_address,
    |builder| builder.manual_clock().config(|config| {
        config.limits.attempts_per_minute = 2;
        config.http.trusted_proxies = 1;
    }),
    |app| {
        let attempt = |address: &str| {
            app.request(Method::GET, "/api/auth/me")
                .header("x-api-key", "wrong")
                .header("x-forwarded-for", format!("1.1.1.1, {address}"))
        };
        send(attempt("9.9.9.9")).await.expect(401);
        send(attempt("9.9.9.9")).await.expect(401);
        let refused = send(attempt("9.9.9.9")).await;
        refused.expect(429);
        assert_eq!(refused.header("retry-after"), "30");
        send(attempt("8.8.8.8")).await.expect(401);
    }
);

/// Every list has pages, with the same parameters and the same header.
#[tokio::test]
async fn every_list_has_pages() {
    for database in TestDatabase::both().await {
        let app = TestApp::builder(&database).start().await;
        let (acme, _) = app.acme_and_other().await;
        for _ in 0..2 {
            app.key("acme", json!({})).await;
        }
        for _ in 0..3 {
            app.quota(&acme, json!({"kinds": ["text"]})).await;
        }
        let path = "/api/characters/acme";
        for name in ["a", "b", "c"] {
            let body = json!({"name": name, "personality": "Be kind."});
            app.post(&acme.key, path, body).await.expect(201);
        }
        for _ in 0..2 {
            let body = json!({"personality": "Be kinder."});
            let path = "/api/characters/acme/a";
            app.put(&acme.key, path, body).await.expect(200);
        }
        for (path, key, field) in [
            ("/api/partners", ADMIN_KEY, "id"),
            ("/api/keys/acme", &acme.key, "id"),
            ("/api/quotas/acme", &acme.key, "id"),
            ("/api/characters/acme", &acme.key, "name"),
            ("/api/characters/acme/a/versions", &acme.key, "version"),
        ] {
            let whole = app.get(key, path).await;
            assert_eq!(whole.headers.get("link"), None, "{path}");
            let whole = whole.expect(200);
            let mut seen = Vec::new();
            let mut next = Some(format!("{path}?limit=1"));
            while let Some(path) = next {
                let page = app.get(key, &path).await;
                let link = page.headers.get("link").map(|link| link.to_str().unwrap());
                next = link.map(|link| {
                    let target = link.strip_prefix('<').unwrap();
                    target.strip_suffix(">; rel=\"next\"").unwrap().to_owned()
                });
                let page = page.expect(200);
                assert_eq!(page.as_array().unwrap().len(), 1, "{path}");
                seen.push(page[0][field].clone());
            }
            let all = whole.as_array().unwrap().iter();
            let all: Vec<_> = all.map(|entry| entry[field].clone()).collect();
            assert!(seen.len() >= 2 && seen == all, "{path}: {seen:?} {all:?}");
            let refused = app.get(key, &format!("{path}?limit=1000")).await;
            refused.expect(400);
        }
    }
}

/// An empty key is none, wherever it stands.
#[tokio::test]
async fn an_empty_key_is_no_key() {
    let app = TestApp::builder(&TestDatabase::sqlite())
        .config(|config| config.admin_key = Some(colloquy::config::Secret::new("")))
        .start()
        .await;
    let ask = |path: &str| app.request(Method::GET, path);
    let me = "/api/auth/me";
    for request in [
        ask(me).header("x-api-key", ""),
        ask(me).header("x-api-key", "  "),
        ask(me).header("authorization", "Bearer "),
        ask(me).header("authorization", "Bearer"),
        ask("/api/auth/me?api_key="),
        ask("/api/auth/me?api_key=%20"),
        ask(me),
    ] {
        send(request).await.expect(401);
    }
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    let beside = app
        .request(Method::GET, me)
        .header("x-api-key", " ")
        .bearer_auth(ADMIN_KEY);
    assert_eq!(send(beside).await.expect(200)["isAdmin"], true);
}

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
