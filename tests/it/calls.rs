//! The call resource, through HTTP. What is stored of calls, `backend/calls/tests/contract` says.

mod console;
mod metadata;

use std::time::Duration;

use axum::{body::Body, http::Request};
use colloquy::calls::{self, room::CallOrigin};
use harness::{
    TestApp, TestAppBuilder, TestDatabase,
    app::{ADMIN_KEY, TestPartner, send},
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use url::Url;

fn call() -> Value {
    json!({"character": "repo:acme/ada", "call_time_limit_seconds": "600"})
}

fn builder(database: &TestDatabase) -> TestAppBuilder {
    TestApp::builder(database).without_worker()
}

/// A call that was created, as the answer shows it.
async fn post_call(server: &TestApp, partner: &TestPartner, body: Value) -> Value {
    let answer = server.post(&partner.key, "/v2/calls", body).await;
    answer.expect(200)
}

/// The bare id of a call that was created.
async fn create(server: &TestApp, partner: &TestPartner, body: Value) -> String {
    bare_id(&post_call(server, partner, body).await)
}

/// The transcript of the call at this path.
async fn transcript(server: &TestApp, partner: &TestPartner, path: &str) -> Value {
    let path = format!("{path}/transcript");
    server.get(&partner.key, &path).await.expect(200)
}

/// A request for a call with a body yet to come.
fn call_request(server: &TestApp, partner: &TestPartner) -> RequestBuilder {
    server
        .request(Method::POST, "/v2/calls")
        .header("x-api-key", &partner.key)
}

fn bare_id(body: &Value) -> String {
    let id = body["data"]["id"].as_str().unwrap();
    id.strip_prefix("/v2/calls/").unwrap().to_owned()
}

#[tokio::test]
async fn all_three_encodings_create_the_same_call() {
    let database = TestDatabase::sqlite();
    let server = builder(&database).start().await;
    let (acme, _) = server.acme_and_other().await;
    let custom = json!({"personality": "You are {{ who }}."}).to_string();
    let object = json!({
        "character": {"personality": "You are {{ who }}."},
        "call_time_limit_seconds": 600,
        "character_params": {"who": "Ada"},
        "something_new": [1],
    });
    let urlencoded = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("character", &custom)
        .append_pair("call_time_limit_seconds", "600")
        .append_pair("character_params", r#"{"who": "Ada"}"#)
        .append_pair("on_completion_webhook", "")
        .append_pair("something_new", "1")
        .finish();
    let kind = "application/x-www-form-urlencoded; charset=UTF-8";
    let multipart = reqwest::multipart::Form::new()
        .text("character", custom)
        .text("call_time_limit_seconds", "600")
        .text("character_params", r#"{"who": "Ada"}"#);
    let request = || call_request(&server, &acme);
    for encoded in [
        request().json(&object),
        request().header("content-type", kind).body(urlencoded),
        request().multipart(multipart),
    ] {
        let made = send(encoded).await.expect(200);
        let data = &made["data"];
        assert_eq!(data["character"], Value::Null);
        assert_eq!(data["state"], "starting");
        assert_eq!(data["available_endpoints"], json!([]));
        assert_eq!(
            data["duration"],
            json!({"call_seconds": null, "server_runtime_seconds": null})
        );
        assert_eq!(data["created_at"], data["updated_at"]);
        assert!(data["created_at"].as_str().unwrap().ends_with('Z'));
        assert_eq!(data.as_object().unwrap().len(), 11);

        let path = format!("/v2/calls/{}", bare_id(&made));
        let session = server
            .url(&format!("{path}/session?"))
            .replace("http:", "ws:");
        assert!(data["signedUrl"].as_str().unwrap().starts_with(&session));
        assert_eq!(server.get(&acme.key, &path).await.expect(200), made);
        assert_eq!(
            transcript(&server, &acme, &path).await,
            json!({"data": {"available": false}})
        );
    }
}

#[tokio::test]
async fn a_saved_character_is_named_and_the_public_url_is_used() {
    let database = TestDatabase::sqlite();
    let server = builder(&database)
        .config(|config| {
            config.http.public_url = Some(Url::parse("https://voice.example/").unwrap());
        })
        .start()
        .await;
    let (acme, _) = server.acme_and_other().await;
    let made = post_call(&server, &acme, call()).await;
    let data = &made["data"];
    assert_eq!(data["character"], "repo:acme/ada");
    let id = bare_id(&made);
    let start = format!("wss://voice.example/v2/calls/{id}/session?exp=");
    assert!(data["signedUrl"].as_str().unwrap().starts_with(&start));
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let database = TestDatabase::sqlite();
    let server = builder(&database).start().await;
    let (acme, _) = server.acme_and_other().await;
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
        let answer = server.post(&acme.key, "/v2/calls", body.clone()).await;
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
        let request = call_request(&server, &acme).header("content-type", kind);
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
    let answer = server.post(&acme.key, "/v2/calls", large).await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn the_limits_of_the_time_limit_are_accepted() {
    let database = TestDatabase::sqlite();
    let server = builder(&database).start().await;
    let (acme, _) = server.acme_and_other().await;
    for (limit, seconds) in [
        (json!(1), 1),
        (json!("14400"), 14_400),
        (json!(14_400), 14_400),
        (json!(" 60 "), 60),
    ] {
        let mut body = call();
        body["call_time_limit_seconds"] = limit;
        let id = create(&server, &acme, body).await;
        let setup = calls::take(&server.app.calls, &id, None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(setup.time_limit, Duration::from_secs(seconds));
    }
}

#[tokio::test]
async fn an_admin_key_says_whose_call_it_is() {
    let database = TestDatabase::sqlite();
    let server = builder(&database).start().await;
    let (acme, other) = server.acme_and_other().await;
    let custom = |partner: Value| json!({"character": {"personality": "Hi"}, "call_time_limit_seconds": 60, "partner": partner});
    let refused = server
        .post(ADMIN_KEY, "/v2/calls", custom(Value::Null))
        .await
        .expect(400);
    assert_eq!(refused["error"]["field"], "partner");
    for body in [custom(json!("acme")), custom(json!("repo:acme")), call()] {
        let made = server.post(ADMIN_KEY, "/v2/calls", body).await.expect(200);
        let path = format!("/v2/calls/{}", bare_id(&made));
        server.get(&acme.key, &path).await.expect(200);
        server.get(&other.key, &path).await.expect(404);
    }
    // A partner's key cannot act for another partner.
    let id = create(&server, &other, custom(json!("acme"))).await;
    let path = format!("/v2/calls/{id}");
    server.get(&acme.key, &path).await.expect(404);
}

#[tokio::test]
async fn a_full_or_stopping_server_says_when_to_come_back() {
    let database = TestDatabase::sqlite();
    let server = builder(&database)
        .config(|config| config.media.max_calls = 1)
        .start()
        .await;
    let (acme, _) = server.acme_and_other().await;
    create(&server, &acme, call()).await;
    let guest = CallOrigin {
        partner: "other".to_owned(),
        page: None,
    };
    let seat = server.app.calls.room.take(guest).unwrap();
    let answer = server.post(&acme.key, "/v2/calls", call()).await;
    assert_eq!(answer.expect(503)["error"]["code"], "UNAVAILABLE");
    assert!(answer.header("retry-after").parse::<u32>().unwrap() >= 1);
    drop(seat);
    create(&server, &acme, call()).await;

    // A stopping server answers, so that calls can come back, and takes no new ones.
    server.app.kernel.shutdown.cancel();
    let request = Request::post("/v2/calls")
        .header("x-api-key", &acme.key)
        .header("content-type", "application/json")
        .body(Body::from(call().to_string()))
        .unwrap();
    let router = colloquy::server::router(server.app.clone());
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn a_knowledge_base_that_is_not_there_is_told_when_a_call_is_created() {
    let database = TestDatabase::sqlite();
    let app = builder(&database).start().await;
    let acme = app.partner("acme").await;
    let call = |parameters: Value| json!({"character": {"personality": "P", "parameters": parameters}, "call_time_limit_seconds": "600"});
    for base in ["acme/none", "other/none"] {
        let named = call(json!({"rag_enabled": true, "rag_index_required": base}));
        let request = call_request(&app, &acme).header("origin", "https://page.example");
        let answer = send(request.json(&named)).await;
        answer.expect(200);
        let expected = format!("the knowledge base {base} of rag_index_required is not found");
        assert_eq!(answer.header("x-colloquy-warning"), expected);
        let exposed = answer.header("access-control-expose-headers");
        assert!(exposed.contains("x-colloquy-warning"), "{exposed}");
    }
    let unused = call(json!({"rag_index_required": "acme/none"}));
    let answer = app.post(&acme.key, "/v2/calls", unused).await;
    answer.expect(200);
    assert_eq!(answer.header("x-colloquy-warning"), "");
}
