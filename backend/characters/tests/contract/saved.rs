//! Saved characters and their versions.

use colloquy_store::Executor as _;

use super::*;

on_each_database!(characters_are_made_changed_and_deleted, |database| {
    let app = start_by(builder(&database)).await;
    let acme = app.partner("acme").await;
    let made = app
        .character(
            &acme,
            "Guide.1",
            "You are {{ robot_name }}",
            json!({"robot_name": "Ada", "extra": {"x": [1]}}),
        )
        .await;
    assert_eq!(made["reference"], "repo:acme/Guide.1");
    assert_eq!(made["version"], 1);
    assert_eq!(
        made["parameters"],
        json!({"robot_name": "Ada", "rag_enabled": false, "extra": {"x": [1]}})
    );

    let again = json!({"name": "Guide.1", "personality": "x"});
    app.post(&acme.key, "/api/characters/acme", again)
        .await
        .expect(409);

    app.advance(Duration::from_secs(60));
    let path = "/api/characters/acme/Guide.1";
    let changed = app
        .put(&acme.key, path, json!({"personality": "Two"}))
        .await;
    assert_eq!(changed.header("etag"), "\"2\"");
    let changed = changed.expect(200);
    assert_eq!(changed["version"], 2);
    assert_eq!(changed["created_at"], "2026-01-02T03:04:05Z");
    assert_eq!(changed["updated_at"], "2026-01-02T03:05:05Z");
    assert_eq!(changed["parameters"], json!({"rag_enabled": false}));

    let newest = app.get(&acme.key, path).await.expect(200);
    assert_eq!(newest, changed);
    let list = app.get(&acme.key, "/api/characters/acme").await.expect(200);
    assert_eq!(list[0]["version"], 2);
    let versions = app
        .get(&acme.key, &format!("{path}/versions"))
        .await
        .expect(200);
    assert_eq!(versions.as_array().unwrap().len(), 2);
    assert_eq!(
        (&versions[0]["version"], &versions[1]["version"]),
        (&json!(2), &json!(1))
    );
    let first = app
        .get(&acme.key, &format!("{path}/versions/1"))
        .await
        .expect(200);
    assert_eq!(first["personality"], "You are {{ robot_name }}");
    app.get(&acme.key, &format!("{path}/versions/3"))
        .await
        .expect(404);

    app.delete(&acme.key, path).await.expect(204);
    app.delete(&acme.key, path).await.expect(404);
    app.get(&acme.key, path).await.expect(404);
    app.get(&acme.key, &format!("{path}/versions"))
        .await
        .expect(404);
    app.put(&acme.key, path, json!({"personality": "x"}))
        .await
        .expect(404);
});

on_each_database!(an_update_can_insist_on_the_version_it_follows, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    app.character(&acme, "guide", "One", json!({})).await;
    let path = "/api/characters/acme/guide";
    app.put(&acme.key, path, json!({"personality": "Two", "version": 1}))
        .await
        .expect(200);
    let late = app
        .put(
            &acme.key,
            path,
            json!({"personality": "Three", "version": 1}),
        )
        .await
        .expect(409);
    assert_eq!(late["detail"], "The newest version is 2");
    let if_match = |value: &str| {
        app.request(Method::PUT, path)
            .header("x-api-key", &acme.key)
            .header("if-match", value)
            .json(&json!({"personality": "Three"}))
    };
    send(if_match("\"1\"")).await.expect(409);
    send(if_match("soon")).await.expect(400);
    assert_eq!(send(if_match("\"2\"")).await.expect(200)["version"], 3);
    assert_eq!(send(if_match("*")).await.expect(200)["version"], 4);
});

on_each_database!(updates_at_once_get_a_version_each, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    app.character(&acme, "guide", "One", json!({})).await;
    let updates = (0..10).map(|number| {
        let body = json!({"personality": format!("p{number}")});
        app.put(&acme.key, "/api/characters/acme/guide", body)
    });
    let answers = futures_util::future::join_all(updates).await;
    let mut versions: Vec<i64> = answers
        .iter()
        .map(|answer| answer.expect(200)["version"].as_i64().unwrap())
        .collect();
    versions.sort_unstable();
    assert_eq!(versions, (2..=11).collect::<Vec<_>>());
});

on_each_database!(
    malformed_characters_are_refused_with_their_field,
    |database| {
        let app = start(&database).await;
        let acme = app.partner("acme").await;
        for (parameters, field) in [
            (json!({"greetings": ["ok", 7]}), "parameters.greetings[1]"),
            (json!({"greetings": "hello"}), "parameters.greetings"),
            (json!({"robot_name": {}}), "parameters.robot_name"),
            (json!({"rag_enabled": "yes"}), "parameters.rag_enabled"),
            (
                json!({"rag_index_required": "no-slash"}),
                "parameters.rag_index_required",
            ),
            (json!({"voice": 3}), "parameters.voice"),
            (json!({"voice": {"speed": 9}}), "parameters.voice.speed"),
            (
                json!({"documents": [{"title": "t"}]}),
                "parameters.documents[0].text",
            ),
            (json!({"context": "x"}), "parameters.context"),
            (json!({"profile_schema": []}), "parameters.profile_schema"),
            (
                json!({"profile_schema": {"pet": {"type": "number"}}}),
                "parameters.profile_schema.pet.type",
            ),
            (
                json!({"profile_schema": {"p".repeat(101): {"type": "string"}}}),
                "parameters.profile_schema",
            ),
            (
                json!({"profile_schema": {"pet": {"type": "string", "description": "d".repeat(4_001)}}}),
                "parameters.profile_schema.pet.description",
            ),
            (
                json!({"profile_schema": (0..51).map(|it| (format!("f{it}"), json!({"type": "string"})))
                    .collect::<serde_json::Map<_, _>>()}),
                "parameters.profile_schema",
            ),
            (json!({"language": "x".repeat(300)}), "parameters.language"),
            (json!({"language": "Elvish"}), "parameters.language"),
            (json!({"patience_ms": 499}), "parameters.patience_ms"),
            (json!({"patience_ms": 60_001}), "parameters.patience_ms"),
            (json!({"patience_ms": "3 s"}), "parameters.patience_ms"),
            (json!({"greetings": ["{{ open"]}), "parameters.greetings[0]"),
            (json!([]), "parameters"),
        ] {
            let body = json!({"name": "guide", "personality": "x", "parameters": parameters});
            let answer = app.post(&acme.key, "/api/characters/acme", body).await;
            assert_eq!(answer.expect(400)["field"], field, "{parameters}");
        }
        for (body, field) in [
            (json!({"name": "a b", "personality": "x"}), "name"),
            (json!({"name": "../x", "personality": "x"}), "name"),
            (json!({"name": "guide"}), "personality"),
            (
                json!({"name": "guide", "personality": "{% set x = 1 %}"}),
                "personality",
            ),
            (
                json!({"name": "guide", "personality": "{{ a ~ b }}"}),
                "personality",
            ),
            (
                json!({"name": "guide", "personality": "{{ }}"}),
                "personality",
            ),
            (
                json!({"name": "guide", "personality": "x", "colour": 1}),
                "colour",
            ),
        ] {
            let answer = app
                .post(&acme.key, "/api/characters/acme", body.clone())
                .await;
            assert_eq!(answer.expect(400)["field"], field, "{body}");
        }
        let list = app.get(&acme.key, "/api/characters/acme").await.expect(200);
        assert_eq!(list, json!([]));
    }
);

on_each_database!(a_character_of_an_earlier_server_is_read, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    app.character(&acme, "guide", "One", json!({})).await;
    // Saved before the name had a meaning.
    let sql = r#"UPDATE character_versions SET parameters = '{"patience_ms": "3000", "rag_enabled": false}'"#;
    app.state.store.db().execute(sql).await.unwrap();
    let path = "/api/characters/acme/guide";
    let read = app.get(&acme.key, path).await.expect(200);
    assert_eq!(read["parameters"], json!({"rag_enabled": false}));
    let character = resolve_as(&app.state, "acme", json!("repo:acme/guide")).await;
    assert_eq!(character.unwrap().parameters.patience_ms, None);
});
