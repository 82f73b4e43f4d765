//! Who may ask, and how often at a time.

use super::*;

fn hello() -> Value {
    json!([written("m1", "Hello")])
}

on_each_database!(no_more_are_in_progress_when_they_come_at_once, |database| {
    let builder = builder(&database).config(|config| config.limits.completions_in_progress = 5);
    let app = start_by(builder).await;
    let (acme, _) = app.acme_and_other().await;
    let all = (0..24).map(|_| app.post(&acme.key, PATH, question(hello(), json!({}))));
    let answers = futures_util::future::join_all(all).await;
    let taken = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers.iter().filter(|answer| answer.status == 429).count();
    assert_eq!((taken, refused), (5, 19));
});

on_each_database!(completions_are_their_partners_own, |database| {
    let app = start(&database).await;
    let (acme, other) = app.acme_and_other().await;
    let path = asked(&app, &acme.key, question(hello(), json!({}))).await;
    let id = path.strip_prefix("/v2/completions/").unwrap();
    let encoded = format!("{PATH}/{}", path.replace('/', "%2F"));
    for path in [
        path.clone(),
        encoded,
        format!("{PATH}/{}", id.to_uppercase()),
    ] {
        let read = app.get(&acme.key, &path).await.expect(200);
        assert_eq!(read["id"], format!("{PATH}/{id}"));
    }
    // The interface is deprecated whatever it answers, and it alone.
    let answers = [
        (app.get(&acme.key, &path).await, 200),
        (app.get(ADMIN_KEY, &path).await, 200),
        (app.get(&other.key, &path).await, 404),
        (app.get("cqk_nobody", &path).await, 401),
        (app.get(&acme.key, &format!("{PATH}/%00")).await, 400),
        (
            app.get(&acme.key, &format!("{PATH}/{}", app.state.clock.new_id()))
                .await,
            404,
        ),
        (app.post(&acme.key, PATH, json!({"input": {}})).await, 400),
        (app.delete(&acme.key, &path).await, 405),
    ];
    for (answer, status) in answers {
        answer.expect(status);
        assert_eq!(answer.header("deprecation"), "@1767225600", "{status}");
        assert_eq!(
            answer.header("link"),
            "</v3/responses>; rel=\"successor-version\""
        );
    }
    assert_eq!(
        app.get(&acme.key, "/api/auth/me")
            .await
            .header("deprecation"),
        ""
    );

    let foreign = json!({"character": "repo:other/ada"});
    let refused = app.post(&acme.key, PATH, question(hello(), foreign)).await;
    assert_eq!(refused.expect(400)["field"], "input.character");

    // An admin key asks for the partner whose saved character it is.
    let path = asked(&app, ADMIN_KEY, question(hello(), json!({}))).await;
    app.get(&acme.key, &path).await.expect(200);
    app.get(&other.key, &path).await.expect(404);
    for (more, field) in [
        (
            json!({"character": {"personality": "You are Ada."}}),
            "input.character",
        ),
        (
            json!({"character": null, "character_name": "ada"}),
            "input.character_name",
        ),
    ] {
        let refused = app.post(ADMIN_KEY, PATH, question(hello(), more)).await;
        assert_eq!(refused.expect(400)["field"], field);
    }

    for (scopes, status) in [
        (json!(["calls", "speech"]), 403),
        (json!(["messaging"]), 200),
    ] {
        let made = app
            .key("acme", json!({"name": "scoped", "scopes": scopes}))
            .await;
        let key = made["api_key"].as_str().unwrap();
        app.post(key, PATH, question(hello(), json!({})))
            .await
            .expect(status);
        app.get(key, &path).await.expect(status);
    }
    let page =
        json!({"name": "page", "kind": "publishable", "allowed_origins": ["https://a.example"]});
    let made = app.key("acme", page).await;
    let page = made["api_key"].as_str().unwrap();
    app.post(page, PATH, question(hello(), json!({})))
        .await
        .expect(403);

    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    app.get(ADMIN_KEY, &path).await.expect(404);
});
