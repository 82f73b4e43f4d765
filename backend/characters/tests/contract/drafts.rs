//! Drafts that are checked without being saved.

use super::*;

const CHECK: &str = "/api/character_drafts/acme/check";

on_each_database!(a_draft_is_checked_and_filled_in, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let draft = json!({
        "name": "guide",
        "personality": "You are {{ robot_name }}, and it is {{ hour }}.",
        "parameters": {
            "robot_name": "Ada",
            "greetings": ["Hello {{ person_name|default('you') }}"],
            "interruption_message": "Yes?",
        },
        "character_params": {"hour": 9},
    });
    let checked = app.post(&acme.key, CHECK, draft.clone()).await.expect(200);
    assert_eq!(
        checked,
        json!({
            "problems": [],
            "rendered": {
                "personality": "You are Ada, and it is 9.",
                "greetings": ["Hello you"],
                "interruption_message": "Yes?",
                "patience_message": null,
            },
            "unfilled": null,
        })
    );
    assert_eq!(app.post(&acme.key, CHECK, draft).await.expect(200), checked);
    let list = app.get(&acme.key, "/api/characters/acme").await.expect(200);
    assert_eq!(list, json!([]), "nothing is saved");
});

on_each_database!(a_check_refuses_what_saving_refuses, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let long = "x".repeat(4_001);
    for draft in [
        json!({"name": "a b", "personality": "x"}),
        json!({"name": "guide", "personality": "x".repeat(128 * 1024 + 1)}),
        json!({"name": "guide", "personality": "{{ a ~ b }}"}),
        json!({"name": "guide", "personality": "One\nTwo {{ a|uper }}"}),
        json!({"name": "guide", "personality": "One\n{% if a %}"}),
        json!({"name": "guide", "personality": "x", "parameters": []}),
        json!({"name": "guide", "personality": "x", "parameters": {"greetings": [1]}}),
        json!({"name": "guide", "personality": "x", "parameters": {"greetings": [long]}}),
        json!({"name": "guide", "personality": "x", "parameters": {"voice": {"speed": 9}}}),
        json!({"name": "guide", "personality": "x", "parameters": {"language": "Elvish"}}),
        json!({"name": "guide", "personality": "x", "parameters": {"patience_ms": 1}}),
        json!({"name": "guide", "personality": "x", "parameters": {"rag_index_required": "manual"}}),
        json!({"name": "guide", "personality": "x", "parameters": {"rag_enabled": true, "rag_index_required": "acme/none"}}),
        json!({"name": "guide", "personality": "x", "parameters": {"rag_enabled": true, "rag_index_required": "none"}}),
    ] {
        let saved = app.post(&acme.key, "/api/characters/acme", draft.clone());
        let refused = saved.await.expect(400);
        let checked = app.post(&acme.key, CHECK, draft).await.expect(200);
        let problems = checked["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 1, "{checked}");
        assert_eq!(problems[0]["field"], refused["field"], "{checked}");
        let message = problems[0]["message"].as_str().unwrap();
        let told = refused["detail"].as_str().unwrap();
        assert!(told.ends_with(message), "{told}: {message}");
    }
});

on_each_database!(problems_of_templates_have_a_place, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let draft = json!({
        "personality": "One\nzwölf {{ a|uper }}",
        "parameters": {
            "greetings": ["{% if a %}", "Hi", "{% set x = 1 %}"],
            "language": "Elvish",
        },
    });
    let checked = app.post(&acme.key, CHECK, draft).await.expect(200);
    let places = checked["problems"].as_array().unwrap().iter();
    let places = places.map(|it| json!([it["field"], it["line"], it["column"]]));
    assert_eq!(
        places.collect::<Vec<_>>(),
        [
            json!(["parameters.language", null, null]),
            json!(["personality", 2, 7]),
            json!(["parameters.greetings[0]", 1, null]),
            json!(["parameters.greetings[2]", 1, 1]),
        ]
    );
    assert_eq!(checked["rendered"], Value::Null);
    assert_eq!(checked["unfilled"], Value::Null);

    let many = json!({"personality": "x", "parameters": {"greetings": vec!["{{"; 90]}});
    let checked = app.post(&acme.key, CHECK, many).await.expect(200);
    assert_eq!(checked["problems"].as_array().unwrap().len(), 20);
});

on_each_database!(what_cannot_be_filled_in_can_be_saved, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let nested = "{% for a in l %}{% for b in l %}{% for c in l %}{{ c }}{% endfor %}{% endfor %}{% endfor %}";
    let list: Vec<u32> = (0..100).collect();
    let text = "x".repeat(30_000);
    for (draft, field, message) in [
        (
            json!({"personality": "Hello {{ guest }}"}),
            "character_params.guest",
            "for which there is no value",
        ),
        (
            json!({"personality": nested, "parameters": {"l": list}}),
            "personality",
            "takes too long",
        ),
        (
            json!({"personality": "{{ text }}".repeat(20), "parameters": {"text": text}}),
            "personality",
            "too large",
        ),
    ] {
        let checked = app.post(&acme.key, CHECK, draft.clone()).await.expect(200);
        assert_eq!(checked["problems"], json!([]), "{checked}");
        assert_eq!(checked["rendered"], Value::Null);
        assert_eq!(checked["unfilled"]["field"], field, "{checked}");
        let told = checked["unfilled"]["message"].as_str().unwrap();
        assert!(told.contains(message), "{told}");
    }
});

on_each_database!(a_check_is_for_whoever_may_save, |database| {
    let app = start(&database).await;
    let (acme, other) = (app.partner("acme").await, app.partner("other").await);
    let draft = json!({"personality": "x"});
    app.post(ADMIN_KEY, CHECK, draft.clone()).await.expect(200);
    app.post(&other.key, CHECK, draft.clone()).await.expect(403);
    app.post("none", CHECK, draft.clone()).await.expect(401);
    let keys = json!({"scopes": ["calls"]});
    let made = app
        .post(&acme.key, "/api/keys/acme", keys)
        .await
        .expect(201);
    let key = made["api_key"].as_str().unwrap();
    app.post(key, CHECK, draft).await.expect(403);
    for (body, field) in [
        (json!({}), "personality"),
        (json!({"personality": "x", "colour": 1}), "colour"),
        (
            json!({"personality": "x", "character_params": {"context": 1}}),
            "character_params.context",
        ),
    ] {
        let refused = app.post(&acme.key, CHECK, body).await.expect(400);
        assert_eq!(refused["field"], field);
    }
});
