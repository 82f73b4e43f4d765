//! What is asked for and refused: fields, keys, voices, and the shapes of errors.

use super::*;

#[tokio::test]
async fn all_wrong_fields_are_named_at_once() {
    let (app, partner) = embedded().await;
    let body =
        json!({"model": "tts-1", "input": "x".repeat(2_001), "language": "en-US", "speed": 1.6});
    let answer = app.post(&partner.key, "/v2/audio/speech", body).await;
    let expected = json!({
        "message": "The request is not valid",
        "errors": {
            "model": ["must be colloquy-tts"],
            "voice": ["is required"],
            "input": ["must have 1 to 2000 characters, has 2001"],
            "language": [
                "must be auto or one of en, es, fr, de, it, pt, pl, ru, nl, ar, zh-cn, ja, ko, hi, he"
            ],
            "speed": ["must be 0.5 to 1.5"],
        },
    });
    assert_eq!(answer.expect(400), expected);
    assert!(answer.header("x-svc-tts-request-id").parse::<i64>().is_ok());
}

#[tokio::test]
async fn bodies_that_are_none_are_refused_in_the_same_shape() {
    let (app, partner) = embedded().await;
    let post = |body: &str, kind: &str| {
        app.request(Method::POST, "/v2/audio/speech")
            .bearer_auth(&partner.key)
            .header("content-type", kind)
            .body(body.to_owned())
    };
    for (body, field) in [
        ("", "body"),
        ("[]", "body"),
        ("null", "body"),
        ("{} x", "body"),
        ("{\"model\": ", "body"),
    ] {
        let refused = send(post(body, "application/json")).await.expect(400);
        assert!(refused["errors"][field][0].is_string(), "{body}: {refused}");
    }
    let form = send(post(
        "model=colloquy-tts",
        "application/x-www-form-urlencoded",
    ))
    .await;
    let expected = json!({"error": "Send JSON with Content-Type: application/json"});
    assert_eq!(form.expect(415), expected);
    let large = format!("{{\"input\": \"{}\"}}", "x".repeat(1024 * 1024));
    let large = send(post(&large, "application/json")).await;
    assert!(large.expect(413)["error"].is_string());
    let silent = send(ask(&app, &partner.key, "... 🙂 ...", json!({}))).await;
    let expected = json!({"input": ["has nothing in it that can be spoken"]});
    assert_eq!(silent.expect(400)["errors"], expected);
    for path in ["/v2/audio", "/v2/audio/nothing"] {
        let missing = send(app.request(Method::GET, path)).await;
        assert_eq!(missing.expect(404), json!({"error": "Route not found"}));
    }
}

#[tokio::test]
async fn keys_are_taken_from_either_header() {
    let (app, partner) = embedded().await;
    let body = json!({"model": "colloquy-tts", "voice": "en", "input": "Hi"});
    let request = || app.request(Method::POST, "/v2/audio/speech").json(&body);
    sound(request().bearer_auth(&partner.key)).await;
    sound(request().header("x-api-key", &partner.key)).await;
    // The preferred one counts where both are there.
    let both = request().bearer_auth(&partner.key);
    sound(both.header("x-api-key", "cqk_nothing")).await;
    let both = request().bearer_auth("cqk_nothing");
    let both = send(both.header("x-api-key", &partner.key)).await;
    for answer in [send(request()).await, both] {
        assert_eq!(answer.expect(401), json!({"error": "Invalid API key"}));
        assert!(answer.header("x-svc-tts-request-id").parse::<i64>().is_ok());
    }
    assert_eq!(
        send(app.request(Method::GET, "/v2/audio/voices"))
            .await
            .status,
        401
    );
}

#[tokio::test]
async fn api_keys_need_the_scope() {
    let (app, partner) = embedded().await;
    let with = app.key(&partner.id, json!({"scopes": ["speech"]})).await;
    let without = app.key(&partner.id, json!({"scopes": ["calls"]})).await;
    sound(ask(
        &app,
        with["api_key"].as_str().unwrap(),
        "Hi",
        json!({}),
    ))
    .await;
    let without = without["api_key"].as_str().unwrap();
    let refused = send(ask(&app, without, "Hi", json!({}))).await;
    assert!(refused.expect(403)["error"].is_string());
    let refused = app.get(without, "/v2/audio/voices").await;
    assert!(refused.expect(403)["error"].is_string());
    let with = with["api_key"].as_str().unwrap();
    assert_eq!(app.get(with, "/api/characters/acme").await.status, 403);
}

#[tokio::test]
async fn request_ids_are_numbers_that_grow() {
    let (app, partner) = embedded().await;
    let mut last = 0;
    for _ in 0..3 {
        let answer = sound(ask(
            &app,
            &partner.key,
            "Hi",
            json!({"response_format": "pcm"}),
        ))
        .await;
        let id: i64 = answer.header("x-svc-tts-request-id").parse().unwrap();
        assert!(id > last, "{id} after {last}");
        last = id;
        app.advance(Duration::from_millis(1));
    }
}

#[tokio::test]
async fn a_voice_that_is_not_there_is_refused() {
    let (app, partner) = embedded().await;
    let refused = send(ask(&app, &partner.key, "Hi", json!({"voice": "alloy"}))).await;
    let expected =
        json!({"error": "There is no such voice; GET /v2/audio/voices lists those there are"});
    assert_eq!(refused.expect(400), expected);
}
