//! What a request names, and the character that it means.

use colloquy_characters::rendered;
use serde_json::Map;

use super::*;

on_each_database!(a_reference_means_the_newest_version, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    app.partner("beta").await;
    app.character(&acme, "guide", "One", json!({"name": "Ada"}))
        .await;
    let character = resolve_as(&app.state, "acme", json!("repo:acme/guide"))
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
    let character = resolve_as(&app.state, "acme", json!("repo:acme/guide"))
        .await
        .unwrap();
    assert_eq!(
        (character.personality.as_str(), character.display_name()),
        ("Two", Some("guide"))
    );

    // Another partner's character looks like one that does not exist.
    let foreign = resolve_as(&app.state, "beta", json!("repo:acme/guide"))
        .await
        .unwrap_err();
    let unknown = resolve_as(&app.state, "beta", json!("repo:beta/guide"))
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
    resolve_as(&app.state, "acme", json!("repo:acme/guide"))
        .await
        .unwrap_err();
});

on_each_database!(another_node_sees_an_update, |database| {
    let first = start(&database).await;
    let second = builder(&database).node("second");
    let second = start_by(second).await;
    let acme = first.partner("acme").await;
    first.character(&acme, "guide", "One", json!({})).await;
    let read = async |reference: &str| {
        resolve_as(&second.state, "acme", json!(reference))
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
});

#[tokio::test]
async fn inline_characters_come_in_three_forms() {
    let database = TestDatabase::sqlite();
    let app = start(&database).await;
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
        let character = resolve_as(&app.state, "acme", input.clone()).await.unwrap();
        assert_eq!(character.reference, None);
        assert_eq!(
            rendered(&app.state, &acme, &character, &Map::new())
                .await
                .unwrap()
                .system,
            "I am Ada",
            "{input}"
        );
    }
}

on_each_database!(admins_reach_the_characters_of_all_partners, |database| {
    let app = start(&database).await;
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
    resolve(&app.state, &admin, input).await.unwrap();
});
