//! Voices, their names, and the bounds of a library.

use axum::http::Method;
use serde_json::{Value, json};
use support::on_each_database;
use test_routes::{
    ADMIN_KEY, Answer, Form, Part,
    sounds::{go_forward, wav},
    voices::{create, file, make_empty, path, post, post_form, put},
};

use crate::{builder, start, start_without_worker, tidy};

on_each_database!(voices_are_named_and_refused_by_their_fields, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let empty = "/api/voices/acme/empty";
    let refused = |answer: Answer, field: &str| {
        let body = answer.expect(400);
        assert_eq!(body["field"], field, "{body}");
    };
    for name in ["", " ", "a/b", "..", "empty", &"x".repeat(256)] {
        refused(
            post(&app, &acme.key, empty, &[("name", name)]).await,
            "name",
        );
    }
    refused(
        post(&app, &acme.key, empty, &[("name", "a"), ("other", "b")]).await,
        "other",
    );
    let bad_email = [("name", "a"), ("creator_email", "nobody")];
    refused(
        post(&app, &acme.key, empty, &bad_email).await,
        "creator_email",
    );
    let long = "é".repeat(255);
    for name in ["a voice & more", "声", &long] {
        let made = post(&app, &acme.key, empty, &[("name", name)])
            .await
            .expect(201);
        assert_eq!(made["name"], name);
        assert_eq!(
            made["status"],
            json!({"splitting": "idle", "embedding": "idle"})
        );
        assert_eq!(made["samples"], json!([]));
        for field in [
            "original_filename",
            "embedding_info",
            "embedding_zip_url",
            "preferred_sample_index",
        ] {
            assert_eq!(made[field], Value::Null, "{field}");
        }
        let encoded: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
        let encoded = encoded.replace('+', "%20");
        app.get(&acme.key, &path(&encoded)).await.expect(200);
    }
    let twice = post(&app, &acme.key, empty, &[("name", "声")])
        .await
        .expect(409);
    assert!(
        twice["detail"].as_str().unwrap().contains("name"),
        "{twice}"
    );
    let renamed = put(
        &app,
        &acme.key,
        &format!("{}/name", path("声")),
        &[("name", "音")],
    )
    .await;
    assert_eq!(renamed.expect(200)["name"], "音");
    app.get(&acme.key, &path("声")).await.expect(404);
    let taken = [("name", "a voice & more")];
    put(&app, &acme.key, &format!("{}/name", path("音")), &taken)
        .await
        .expect(409);
    put(
        &app,
        &acme.key,
        &format!("{}/name", path("音")),
        &[("name", "音")],
    )
    .await
    .expect(200);

    for (field, value) in [
        ("max_samples", "0"),
        ("max_samples", "101"),
        ("max_samples", "x"),
        ("sample_duration", "4"),
        ("sample_duration", "61"),
        ("sample_duration", "5.5"),
    ] {
        let split = format!("{}/split", path("音"));
        refused(
            post(&app, &acme.key, &split, &[(field, value)]).await,
            field,
        );
    }
    let split = post(&app, &acme.key, &format!("{}/split", path("音")), &[]).await;
    refused(split, "voice");
    let embed = post(&app, &acme.key, &format!("{}/embed", path("音")), &[]).await;
    let embed = embed.expect(503);
    assert!(
        embed["detail"].as_str().unwrap().contains("ge2e"),
        "{embed}"
    );
    for (what, status) in [
        ("samples/0", 404),
        ("samples/x", 404),
        ("test-samples/test_0_0.opus", 404),
        ("test-samples", 200),
        ("test-samples?tts_type=a%2Fb", 400),
        ("embedding.zip", 404),
        ("samples-bundle", 200),
    ] {
        let request = app.request(Method::GET, &format!("{}/{what}", path("音")));
        let response = request.header("x-api-key", &acme.key).send().await;
        assert_eq!(response.status(), status, "{what}");
    }
    let limited = app.key("acme", json!({"scopes": ["speech"]})).await;
    let denied = app
        .get(limited["api_key"].as_str().unwrap(), "/api/voices/acme")
        .await;
    denied.expect(403);
});

on_each_database!(a_library_has_bounds, |database| {
    let app = builder(&database).config(|config| {
        config.voices.max_voices = 3;
        config.voices.in_progress = 1;
        config.voices.max_file_bytes = 1_000_000;
    });
    let app = start_without_worker(app).await;
    let acme = app.partner("acme").await;
    let sound = wav(&go_forward());
    let large = Form::new().text("name", "large").part(
        "file",
        Part::bytes(wav(&vec![0; 1_000_000])).file_name("a.wav"),
    );
    let large = post_form(&app, &acme.key, "/api/voices/acme", large).await;
    large.expect(413);
    create(&app, &acme, "one", sound.clone()).await;
    let busy = file("a.wav", sound).text("name", "two");
    let busy = post_form(&app, &acme.key, "/api/voices/acme", busy).await;
    assert_eq!(busy.header("retry-after"), "10");
    busy.expect(429);
    for name in ["two", "three"] {
        make_empty(&app, &acme.key, name).await;
    }
    let full = post(
        &app,
        &acme.key,
        "/api/voices/acme/empty",
        &[("name", "four")],
    )
    .await;
    assert!(
        full.expect(409)["detail"]
            .as_str()
            .unwrap()
            .contains("3 voices")
    );
    // What is processed is locked.
    let locked = "Voice is currently being processed";
    for answer in [
        app.delete(&acme.key, &path("one")).await,
        put(
            &app,
            &acme.key,
            &format!("{}/name", path("one")),
            &[("name", "x")],
        )
        .await,
        post(&app, &acme.key, &format!("{}/split", path("one")), &[]).await,
        put(
            &app,
            &acme.key,
            &format!("{}/preferred-sample", path("one")),
            &[],
        )
        .await,
        app.delete(&acme.key, &format!("{}/samples/0", path("one")))
            .await,
        app.delete(&acme.key, &format!("{}/test-files/builtin", path("one")))
            .await,
    ] {
        assert_eq!(answer.expect(409)["detail"], locked);
    }
    tidy(&app).await;
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    app.state.blobs.sweep().await.unwrap();
    tidy(&app).await;
});
