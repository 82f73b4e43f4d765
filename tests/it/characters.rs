//! Saved characters, references, inline characters and templates.

use std::{sync::Arc, time::Duration};

use colloquy::{
    accounts::{DataScope, PartnerId, Principal},
    characters::{Character, CharacterInput, parse_character_params, rendered, resolve},
    http::ApiError,
    store::Executor as _,
};
use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, send},
    on_both_databases,
};
use reqwest::Method;
use serde_json::{Map, Value, json};

fn principal(partner: &str) -> Principal {
    Principal {
        key_id: "test".to_owned(),
        reach: DataScope::Partner(PartnerId::parse(partner).unwrap()),
        scopes: None,
        allowed_origins: None,
        partner_rate: None,
    }
}

async fn resolve_as(
    app: &TestApp,
    partner: &str,
    input: Value,
) -> Result<Arc<Character>, ApiError> {
    let input = CharacterInput::parse(&input)?;
    Ok(resolve(&app.app.characters, &principal(partner), input).await?)
}

on_both_databases!(
    characters_are_made_changed_and_deleted,
    |builder| builder.manual_clock(),
    |app| {
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
    }
);

on_both_databases!(an_update_can_insist_on_the_version_it_follows, |app| {
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

on_both_databases!(updates_at_once_get_a_version_each, |app| {
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

on_both_databases!(malformed_characters_are_refused_with_their_field, |app| {
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
});

on_both_databases!(a_character_of_an_earlier_server_is_read, |app| {
    let acme = app.partner("acme").await;
    app.character(&acme, "guide", "One", json!({})).await;
    // Saved before the name had a meaning.
    let sql = r#"UPDATE character_versions SET parameters = '{"patience_ms": "3000", "rag_enabled": false}'"#;
    app.app.store.db().execute(sql).await.unwrap();
    let path = "/api/characters/acme/guide";
    let read = app.get(&acme.key, path).await.expect(200);
    assert_eq!(read["parameters"], json!({"rag_enabled": false}));
    let character = resolve_as(&app, "acme", json!("repo:acme/guide")).await;
    assert_eq!(character.unwrap().parameters.patience_ms, None);
});

on_both_databases!(a_reference_means_the_newest_version, |app| {
    let acme = app.partner("acme").await;
    app.partner("beta").await;
    app.character(&acme, "guide", "One", json!({"name": "Ada"}))
        .await;
    let character = resolve_as(&app, "acme", json!("repo:acme/guide"))
        .await
        .unwrap();
    assert_eq!(character.personality, "One");
    assert_eq!(character.reference.as_deref(), Some("acme/guide"));
    assert_eq!(character.display_name(), Some("Ada"));
    // An update on this node counts at once.
    app.put(
        &acme.key,
        "/api/characters/acme/guide",
        json!({"personality": "Two"}),
    )
    .await
    .expect(200);
    let character = resolve_as(&app, "acme", json!("repo:acme/guide"))
        .await
        .unwrap();
    assert_eq!(
        (character.personality.as_str(), character.display_name()),
        ("Two", Some("guide"))
    );

    // Another partner's character looks like one that does not exist.
    let foreign = resolve_as(&app, "beta", json!("repo:acme/guide"))
        .await
        .unwrap_err();
    let unknown = resolve_as(&app, "beta", json!("repo:beta/guide"))
        .await
        .unwrap_err();
    assert_eq!(
        (foreign.status.as_u16(), foreign.code),
        (400, "invalid_character")
    );
    assert_eq!(foreign.message, unknown.message);
    assert_eq!(
        (foreign.code, &foreign.field),
        (unknown.code, &unknown.field)
    );
    app.delete(&acme.key, "/api/characters/acme/guide")
        .await
        .expect(204);
    resolve_as(&app, "acme", json!("repo:acme/guide"))
        .await
        .unwrap_err();
});

async fn another_node_sees_an_update(database: TestDatabase) {
    let first = TestApp::builder(&database).start().await;
    let second = TestApp::builder(&database).node("second").manual_clock();
    let second = second.start().await;
    let acme = first.partner("acme").await;
    first.character(&acme, "guide", "One", json!({})).await;
    let read = async |reference: &str| {
        resolve_as(&second, "acme", json!(reference))
            .await
            .unwrap()
            .personality
            .clone()
    };
    assert_eq!(read("repo:acme/guide").await, "One");
    first
        .put(
            &acme.key,
            "/api/characters/acme/guide",
            json!({"personality": "Two"}),
        )
        .await
        .expect(200);
    assert_eq!(read("repo:acme/guide").await, "One");
    second.advance(Duration::from_millis(5_001));
    assert_eq!(read("repo:acme/guide").await, "Two");
    first
        .put(
            &acme.key,
            "/api/characters/acme/guide",
            json!({"personality": "Three"}),
        )
        .await
        .expect(200);
    assert_eq!(read("repo-force:acme/guide").await, "Three");
    // What was forced is what the next one sees.
    assert_eq!(read("repo:acme/guide").await, "Three");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_sees_an_update_sqlite() {
    another_node_sees_an_update(TestDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_sees_an_update_postgres() {
    another_node_sees_an_update(TestDatabase::postgres().await).await;
}

#[tokio::test]
async fn inline_characters_come_in_three_forms() {
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    let object = json!({"personality": "I am {{ robot_name }}", "parameters": {"robot_name": "Ada", "voice": null}});
    let acme = principal("acme").own_tenant().unwrap();
    let custom =
        json!({"personality": "I am {{ robot_name }}", "description": "{\"robot_name\": \"Ada\"}"});
    for input in [
        object.clone(),
        custom.clone(),
        json!(object.to_string()),
        json!(custom.to_string()),
    ] {
        let character = resolve_as(&app, "acme", input.clone()).await.unwrap();
        assert_eq!(character.reference, None);
        assert_eq!(
            rendered(&app.app.characters, &acme, &character, &Map::new())
                .await
                .unwrap()
                .system,
            "I am Ada",
            "{input}"
        );
    }
}

#[test]
fn malformed_inputs_are_invalid_characters() {
    for (input, field) in [
        (json!(7), "character"),
        (json!(null), "character"),
        (json!(""), "character"),
        (json!("guide"), "character"),
        (json!("repo:acme"), "character"),
        (json!("repo:Acme/guide"), "character"),
        (json!("repo:acme/a/b"), "character"),
        (json!("{broken"), "character"),
        (json!({}), "character.personality"),
        (json!({"personality": 1}), "character.personality"),
        (
            json!({"personality": "x", "parameters": {"greetings": [1]}}),
            "character.parameters.greetings[0]",
        ),
        (
            json!({"personality": "x", "description": "{"}),
            "character.description",
        ),
        (
            json!({"personality": "x", "description": "{}", "parameters": {}}),
            "character.description",
        ),
        (json!({"personality": "x", "tools": []}), "character.tools"),
        (json!({"personality": "{{ x"}), "character.personality"),
    ] {
        let error = ApiError::from(CharacterInput::parse(&input).unwrap_err());
        assert_eq!(
            (error.status.as_u16(), error.code),
            (400, "invalid_character"),
            "{input}"
        );
        assert_eq!(error.field.as_deref(), Some(field), "{input}");
    }
}

#[test]
fn template_parameters_are_flat() {
    let parse = |value: Value| parse_character_params(Some(&value));
    let flat = json!({"a": "x", "b": 1.5, "c": true, "d": null});
    assert_eq!(Value::Object(parse(flat.clone()).unwrap()), flat);
    assert_eq!(Value::Object(parse(json!(flat.to_string())).unwrap()), flat);
    assert!(parse_character_params(None).unwrap().is_empty());
    assert!(parse(json!("")).unwrap().is_empty());
    for (value, field) in [
        (json!({"a": [1]}), "character_params.a"),
        (json!({"a": {}}), "character_params.a"),
        (json!({"context": "x"}), "character_params.context"),
        (json!("[1]"), "character_params"),
        (json!([1]), "character_params"),
        (json!({"a": "x".repeat(40_000)}), "character_params.a"),
    ] {
        assert_eq!(parse(value.clone()).unwrap_err().field, field, "{value}");
    }
}

on_both_databases!(admins_reach_the_characters_of_all_partners, |app| {
    app.partner("acme").await;
    let body = json!({"name": "guide", "personality": "x"});
    app.post(ADMIN_KEY, "/api/characters/acme", body)
        .await
        .expect(201);
    app.get(ADMIN_KEY, "/api/characters/acme/guide")
        .await
        .expect(200);
    let admin = Principal {
        reach: DataScope::Admin,
        ..principal("acme")
    };
    let input = CharacterInput::parse(&json!("repo:acme/guide")).unwrap();
    assert_eq!(input.partner().unwrap().as_str(), "acme");
    resolve(&app.app.characters, &admin, input).await.unwrap();
});
