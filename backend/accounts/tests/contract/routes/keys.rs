//! Keys: who may do what, and until when.

use colloquy_config::Secret;

use super::*;

on_each_database!(a_key_says_whose_it_is, |database| {
    let app = start(&database).await;
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

on_each_database!(wrong_keys_are_refused, |database| {
    let app = start(&database).await;
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

on_each_database!(a_key_cannot_make_one_that_may_do_more, |database| {
    let app = start(&database).await;
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

on_each_database!(malformed_keys_are_refused_with_their_field, |database| {
    let app = start(&database).await;
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

on_each_database!(keys_expire, |database| {
    let app = start_by(builder(&database)).await;
    app.partner("acme").await;
    let made = app.key("acme", json!({"expires_in_days": 2})).await;
    let key = made["api_key"].as_str().unwrap();
    assert_eq!(made["expires_at"], "2026-01-04T03:04:05Z");
    app.advance(DAY * 2 - Duration::from_secs(1));
    app.get(key, "/api/auth/me").await.expect(200);
    app.advance(Duration::from_secs(1));
    app.get(key, "/api/auth/me").await.expect(401);
});

on_each_database!(the_last_use_is_noted, |database| {
    let app = start_by(builder(&database)).await;
    let partner = app.partner("acme").await;
    let list = app.get(ADMIN_KEY, "/api/keys/acme").await.expect(200);
    assert_eq!(list[0]["last_used_at"], Value::Null);
    app.get(&partner.key, "/api/auth/me").await.expect(200);
    // The note is written beside the request.
    eventually("the use is noted", async || {
        app.advance(Duration::from_millis(1));
        let list = app.get(ADMIN_KEY, "/api/keys/acme").await.expect(200);
        list[0]["last_used_at"] == "2026-01-02T03:04:05Z"
    })
    .await;
});

// Two nodes on one database: what one revokes, the other refuses within five seconds.
on_each_database!(revocation_reaches_the_other_node, |database| {
    let first = start(&database).await;
    let second = builder(&database).node("second");
    let second = start_by(second).await;
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
});

on_each_database!(a_key_is_limited_in_its_rate, |database| {
    let builder = builder(&database).config(|config| {
        config.limits.requests_per_minute = 60;
        config.limits.request_burst = 3;
    });
    let app = start_by(builder).await;
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
});

on_each_database!(failed_sign_ins_are_limited_by_address, |database| {
    let builder = builder(&database).config(|config| {
        config.limits.attempts_per_minute = 2;
        config.http.trusted_proxies = 1;
    });
    let app = start_by(builder).await;
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
});

/// An empty key is none, wherever it stands.
#[tokio::test]
async fn an_empty_key_is_no_key() {
    let database = TestDatabase::sqlite();
    let builder = builder(&database).config(|config| config.admin_key = Some(Secret::new("")));
    let app = start_by(builder).await;
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
    let database = TestDatabase::sqlite();
    let app = start(&database).await;
    let beside = app
        .request(Method::GET, me)
        .header("x-api-key", " ")
        .bearer_auth(ADMIN_KEY);
    assert_eq!(send(beside).await.expect(200)["isAdmin"], true);
}
