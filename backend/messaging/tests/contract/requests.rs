//! Who may ask, for what, and how often at a time.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use test_routes::send;

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

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_field_is_named() {
    let app = start(&TestDatabase::sqlite()).await;
    let (acme, _) = app.acme_and_other().await;
    let ogg = STANDARD.encode(b"OggS and more");
    let past = |more: Value| {
        let mut message =
            json!({"id": "p1", "originator": "bot", "text": "Hi.", "is_processed": true});
        for (field, value) in more.as_object().unwrap() {
            message[field] = value.clone();
        }
        json!([message, written("m1", "Hello")])
    };
    let new = |more: Value| {
        let mut message = written("m1", "Hello");
        for (field, value) in more.as_object().unwrap() {
            message[field] = value.clone();
        }
        json!([written("m0", "Well"), message])
    };
    let long = "x".repeat(20_001);
    let messages = [
        (json!(null), "input.messages"),
        (json!([]), "input.messages"),
        (json!([past(json!({}))[0]]), "input.messages"),
        (
            past(json!({"originator": null})),
            "input.messages[0].originator",
        ),
        (
            past(json!({"originator": "robot"})),
            "input.messages[0].originator",
        ),
        (past(json!({"text": null})), "input.messages[0].text"),
        (past(json!({"text": " "})), "input.messages[0].text"),
        (past(json!({"text": long})), "input.messages[0].text"),
        (past(json!({"text": 5})), "input.messages[0].text"),
        (
            past(json!({"audio_file_id": "a"})),
            "input.messages[0].audio_file_id",
        ),
        (past(json!({"id": ""})), "input.messages[0].id"),
        (past(json!({"id": "m1"})), "input.messages[1].id"),
        (
            past(json!({"is_processed": null})),
            "input.messages[0].is_processed",
        ),
        (
            new(json!({"is_processed": "no"})),
            "input.messages[1].is_processed",
        ),
        (
            new(json!({"is_processed": true})),
            "input.messages[1].is_processed",
        ),
        (
            new(json!({"originator": "bot"})),
            "input.messages[1].originator",
        ),
        (new(json!({"type": null})), "input.messages[1].type"),
        (new(json!({"type": "video"})), "input.messages[1].type"),
        (new(json!({"text": ""})), "input.messages[1].text"),
        (new(json!({"text": long})), "input.messages[1].text"),
        (new(json!({"id": "m0"})), "input.messages[1].id"),
        (new(json!({"id": 7})), "input.messages[1].id"),
        (
            new(json!({"audio_file_id": "a"})),
            "input.messages[1].audio_file_id",
        ),
        (
            new(json!({"type": "audio", "audio_file_id": "a"})),
            "input.messages[1].text",
        ),
        (
            new(json!({"type": "audio", "text": null})),
            "input.messages[1].audio_file_id",
        ),
        (
            new(json!({"type": "audio", "text": null, "audio_file_id": "b"})),
            "input.messages[1].audio_file_id",
        ),
    ];
    let mut wrong = messages
        .into_iter()
        .map(|(messages, field)| {
            let more = json!({"audio_files": {"a": ogg}});
            (question(messages, more), field.to_owned())
        })
        .collect::<Vec<_>>();
    let inputs = [
        (
            json!({"audio_files": {"a": "T2dn!"}}),
            "input.audio_files.a",
        ),
        (
            json!({"audio_files": {"a": "T2dnU"}}),
            "input.audio_files.a",
        ),
        (
            json!({"audio_files": {"a": STANDARD.encode("RIFF")}}),
            "input.audio_files.a",
        ),
        (json!({"audio_files": {"a": 5}}), "input.audio_files.a"),
        (json!({"audio_files": [ogg]}), "input.audio_files"),
        (json!({"num_options": 0}), "input.num_options"),
        (json!({"num_options": 13}), "input.num_options"),
        (json!({"num_options": 1.5}), "input.num_options"),
        (
            json!({"num_options": 2, "generate_audio": true}),
            "input.generate_audio",
        ),
        (
            json!({"num_options": 2, "generate_audio": null}),
            "input.generate_audio",
        ),
        (json!({"generate_audio": "yes"}), "input.generate_audio"),
        (json!({"character": null}), "input.character"),
        (json!({"character": 5}), "input.character"),
        (json!({"character": "ada"}), "input.character"),
        (json!({"character": "repo:acme/nobody"}), "input.character"),
        (
            json!({"character": {"description": "{}"}}),
            "input.character.personality",
        ),
        (
            json!({"character": {"description": "{", "personality": "You are Ada."}}),
            "input.character.description",
        ),
        (
            json!({"character": {"description": "{}", "personality": "You are {{ name_of_hers }}."}}),
            "input.character_params.name_of_hers",
        ),
        (
            json!({"character_params": {"context": "x"}}),
            "input.character_params.context",
        ),
        (
            json!({"character_params": {"a": []}}),
            "input.character_params.a",
        ),
        (json!({"character_params": 5}), "input.character_params"),
        (json!({"character_name": "ada"}), "input.character_name"),
        (
            json!({"character": null, "character_name": "a b"}),
            "input.character_name",
        ),
        (
            json!({"character": null, "character_name": "nobody"}),
            "input.character_name",
        ),
        (
            json!({"character": null, "character_name": "{\"personality\": \"You are Ada.\"}"}),
            "input.character_name",
        ),
        (
            json!({"character": null, "character_name": "repo:acme"}),
            "input.character_name",
        ),
    ];
    for (more, field) in inputs {
        wrong.push((question(hello(), more), field.to_owned()));
    }
    wrong.push((json!({}), "input".to_owned()));
    for (body, field) in wrong {
        let shown = body.to_string();
        let answer = app.post(&acme.key, PATH, body).await;
        let error = answer.expect(400);
        assert_eq!(error["field"], field, "{:.300}: {error}", shown);
        assert!(!error["detail"].as_str().unwrap().is_empty());
        assert!(error["code"].is_string());
    }
    let plain = app
        .request(Method::POST, PATH)
        .header("x-api-key", &acme.key)
        .body(question(hello(), json!({})).to_string());
    assert_eq!(
        send(plain).await.expect(415)["code"],
        "unsupported_media_type"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_may_have_five_megabytes() {
    let app = start(&TestDatabase::sqlite()).await;
    let (acme, _) = app.acme_and_other().await;
    let body = question(hello(), json!({})).to_string();
    for (bytes, status) in [(5 * 1024 * 1024, 200), (5 * 1024 * 1024 + 1, 413)] {
        let padding = " ".repeat(bytes - body.len());
        let request = app
            .request(Method::POST, PATH)
            .header("x-api-key", &acme.key)
            .header("content-type", "application/json")
            .body(format!("{body}{padding}"));
        let answer = send(request).await;
        let json = answer.expect(status);
        assert!(answer.header("deprecation").starts_with('@'));
        assert_eq!(json["code"] == "body_too_large", status == 413);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn few_are_in_progress_at_a_time() {
    let builder = builder(&TestDatabase::sqlite());
    let app = start_by(builder.config(|config| config.limits.completions_in_progress = 2)).await;
    let (acme, other) = app.acme_and_other().await;
    for _ in 0..2 {
        asked(&app, &acme.key, question(hello(), json!({}))).await;
    }
    let more = app
        .post(&acme.key, PATH, question(hello(), json!({})))
        .await;
    assert_eq!(more.expect(429)["code"], "rate_limited");
    assert_eq!(more.header("retry-after"), "5");
    let own = json!({"character": {"personality": "You are Ada."}});
    asked(&app, &other.key, question(hello(), own)).await;
}
