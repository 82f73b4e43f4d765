//! The fields of a call that is asked for: what is refused and named, what is taken, and who may say whose call it is.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn wrong_fields_are_named() {
    let app = start(&TestDatabase::sqlite()).await;
    let (acme, _) = app.acme_and_other().await;
    let with = |name: &str, value: Value| {
        let mut body = call();
        body[name] = value;
        body
    };
    let without = |name: &str| {
        let mut body = call();
        body.as_object_mut().unwrap().remove(name);
        body
    };
    let limit = "call_time_limit_seconds";
    let hook = "on_completion_webhook";
    let cases = [
        (without("character"), "INVALID_PARAMETERS", "character"),
        (
            with("character", json!(7)),
            "INVALID_CHARACTER",
            "character",
        ),
        (
            with("character", json!("ada")),
            "INVALID_CHARACTER",
            "character",
        ),
        (
            with("character", json!("repo:acme/nobody")),
            "INVALID_CHARACTER",
            "character",
        ),
        (
            with("character", json!("repo:other/ada")),
            "INVALID_CHARACTER",
            "character",
        ),
        (
            with("character", json!({"personality": "{{ who }}"})),
            "INVALID_PARAMETERS",
            "character_params.who",
        ),
        (without(limit), "INVALID_PARAMETERS", limit),
        (with(limit, json!("")), "INVALID_PARAMETERS", limit),
        (with(limit, json!("ten")), "INVALID_PARAMETERS", limit),
        (with(limit, json!("0")), "INVALID_PARAMETERS", limit),
        (with(limit, json!(-5)), "INVALID_PARAMETERS", limit),
        (with(limit, json!(1.5)), "INVALID_PARAMETERS", limit),
        (with(limit, json!(14_401)), "INVALID_PARAMETERS", limit),
        (with(limit, json!([600])), "INVALID_PARAMETERS", limit),
        (
            with(hook, json!("http://example.com/h")),
            "INVALID_PARAMETERS",
            hook,
        ),
        (with(hook, json!("example.com")), "INVALID_PARAMETERS", hook),
        (
            with(hook, json!("https://127.0.0.1/h")),
            "INVALID_PARAMETERS",
            hook,
        ),
        (
            with(hook, json!("https://[::ffff:10.0.0.1]/h")),
            "INVALID_PARAMETERS",
            hook,
        ),
        (
            with(hook, json!("https://169.254.169.254/latest")),
            "INVALID_PARAMETERS",
            hook,
        ),
        (with(hook, json!(true)), "INVALID_PARAMETERS", hook),
        (
            with("character_params", json!("{")),
            "INVALID_PARAMETERS",
            "character_params",
        ),
        (
            with("character_params", json!([1])),
            "INVALID_PARAMETERS",
            "character_params",
        ),
        (
            with("character_params", json!({"a": {"b": 1}})),
            "INVALID_PARAMETERS",
            "character_params.a",
        ),
    ];
    for (body, code, field) in cases {
        let answer = app.post(&acme.key, CALLS, body.clone()).await;
        assert_eq!(answer.status, 400, "{body}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], code, "{body}");
        assert_eq!(error["field"], field, "{body}");
        let message = error["message"].as_str().unwrap();
        let is_sentence = message.starts_with(char::is_uppercase);
        assert!(is_sentence || message.contains(field), "{body}: {message}");
        let rest = message.strip_prefix(&format!("{field}: "));
        let is_named_twice = rest.is_some_and(|rest| rest.contains(field));
        assert!(!is_named_twice, "{body}: {message}");
    }
    for (kind, body) in [
        ("application/json", "{"),
        ("application/json", "[]"),
        ("text/plain", "character=repo:acme/ada"),
        ("multipart/form-data", "no boundary"),
        (
            "application/x-www-form-urlencoded",
            "character=a&character=b&call_time_limit_seconds=6",
        ),
    ] {
        let request = app
            .request(Method::POST, CALLS)
            .header("x-api-key", &acme.key)
            .header("content-type", kind);
        let answer = send(request.body(body)).await;
        assert_eq!(answer.status, 400, "{kind} {body}");
        assert_eq!(
            answer.json()["error"]["code"],
            "INVALID_PARAMETERS",
            "{kind} {body}"
        );
        if body == "[]" {
            let told = json!({
                "code": "INVALID_PARAMETERS", "message": "The body must be a JSON object", "field": "body",
            });
            assert_eq!(answer.json()["error"], told);
        }
    }
    let large = with("character", json!("x".repeat(1024 * 1024)));
    let answer = app.post(&acme.key, CALLS, large).await;
    assert_eq!(answer.status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_the_time_limit_are_accepted() {
    let app = start(&TestDatabase::sqlite()).await;
    let (acme, _) = app.acme_and_other().await;
    for (limit, seconds) in [
        (json!(1), 1),
        (json!("14400"), 14_400),
        (json!(14_400), 14_400),
        (json!(" 60 "), 60),
    ] {
        let mut body = call();
        body["call_time_limit_seconds"] = limit;
        let id = create(&app, &acme, body).await;
        let setup = calls::take(&app.state, &id, None).await.unwrap().unwrap();
        assert_eq!(setup.time_limit, Duration::from_secs(seconds));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_key_says_whose_call_it_is() {
    let app = start(&TestDatabase::sqlite()).await;
    let (acme, other) = app.acme_and_other().await;
    let custom = |partner: Value| json!({"character": {"personality": "Hi"}, "call_time_limit_seconds": 60, "partner": partner});
    let refused = app
        .post(ADMIN_KEY, CALLS, custom(Value::Null))
        .await
        .expect(400);
    assert_eq!(refused["error"]["field"], "partner");
    for body in [custom(json!("acme")), custom(json!("repo:acme")), call()] {
        let made = app.post(ADMIN_KEY, CALLS, body).await.expect(200);
        let path = format!("/v2/calls/{}", bare_id(&made));
        app.get(&acme.key, &path).await.expect(200);
        app.get(&other.key, &path).await.expect(404);
    }
    // A partner's key cannot act for another partner.
    let id = create(&app, &other, custom(json!("acme"))).await;
    let path = format!("/v2/calls/{id}");
    app.get(&acme.key, &path).await.expect(404);
}
