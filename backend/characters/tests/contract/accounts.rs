//! What keys, quotas and partners mean for characters.

use colloquy_accounts::quotas::QuotaKind;

use super::*;

on_each_database!(a_deleted_partner_takes_its_characters_along, |database| {
    let app = start(&database).await;
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

on_each_database!(a_partner_reaches_its_own_data_only, |database| {
    let app = start(&database).await;
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

on_each_database!(keys_are_shown_once_and_revoked_at_once, |database| {
    let app = start(&database).await;
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

on_each_database!(
    publishable_keys_are_for_calls_from_their_pages,
    |database| {
        let app = start(&database).await;
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
    }
);

// Every list has pages, with the same parameters and the same header.
on_each_database!(every_list_has_pages, |database| {
    let app = start(&database).await;
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
});

on_each_database!(a_quota_checks_kind_model_and_character, |database| {
    let app = start(&database).await;
    let (acme, _) = app.acme_and_other().await;
    let character = |text: &str| CharacterInput::parse(&json!(text)).unwrap();
    let inline = CharacterInput::parse(&json!({"personality": "You are Ada."})).unwrap();

    let open = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let open = open.caller(&app.state).await.unwrap();
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
    let narrow = app.quota(&acme, body).await;
    let narrow = narrow.caller(&app.state).await.unwrap();
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
