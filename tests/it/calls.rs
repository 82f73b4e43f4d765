//! The call resource, through HTTP.

mod deletion;
mod lists;
mod memory;
mod metadata;
mod urls;

use std::time::Duration;

use axum::{body::Body, http::Request};
use colloquy::{
    calls::{self, Outcome, SignedQuery, TranscriptLine, room::CallOrigin},
    config::SigningKeys,
};
use colloquy_protocol::{CloseCode, Originator};
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

fn signed_query(url: &str) -> SignedQuery {
    let url = Url::parse(url).unwrap();
    let value = |name: &str| {
        let pair = url.query_pairs().find(|(key, _)| key == name);
        pair.unwrap().1.into_owned()
    };
    SignedQuery {
        exp: value("exp").parse().unwrap(),
        kid: value("kid"),
        sig: value("sig"),
    }
}

fn outcome() -> Outcome {
    let line = |originator, text: &str, at_ms| TranscriptLine {
        text: text.to_owned(),
        originator,
        at_ms,
    };
    Outcome {
        error: None,
        call_time: Duration::from_millis(61_400),
        server_time: Duration::from_millis(63_600),
        transcript: vec![
            line(Originator::Bot, "Welcome aboard.", 200),
            line(Originator::User, "Where \"do\" we go?", 2_000),
        ],
    }
}

#[tokio::test]
async fn all_three_encodings_create_the_same_call() {
    for database in TestDatabase::both().await {
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
            assert_eq!(data.as_object().unwrap().len(), 8);

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
async fn calls_of_others_are_unknown_and_the_path_style_id_is_understood() {
    for database in TestDatabase::both().await {
        let server = builder(&database).start().await;
        let (acme, other) = server.acme_and_other().await;
        let id = create(&server, &acme, call()).await;
        for (partner, id) in [
            (&other, id.as_str()),
            (&acme, "0190d3f4-0000-7000-8000-000000000000"),
            (&acme, "x"),
        ] {
            for rest in ["", "/transcript"] {
                let path = format!("/v2/calls/{id}{rest}");
                let unknown = server.get(&partner.key, &path).await.expect(404);
                assert_eq!(unknown["error"]["code"], "CALL_NOT_FOUND");
            }
        }
        for path in [
            format!("/v2/calls/{id}"),
            format!("/v2/calls/%2Fv2%2Fcalls%2F{id}"),
        ] {
            for key in [acme.key.as_str(), ADMIN_KEY] {
                assert_eq!(bare_id(&server.get(key, &path).await.expect(200)), id);
            }
        }
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
async fn a_call_lives_from_starting_to_completed() {
    for database in TestDatabase::both().await {
        let server = builder(&database).start().await;
        let (acme, _) = server.acme_and_other().await;
        let app = &server.app;
        let mut body = call();
        body["character_params"] = json!({"ship": "Nautilus"});
        let id = create(&server, &acme, body).await;
        let path = format!("/v2/calls/{id}");

        let setup = calls::take(&app.calls, &id, None).await.unwrap().unwrap();
        assert_eq!(setup.id, id);
        assert_eq!(setup.tenant.partner().as_str(), "acme");
        assert_eq!(setup.character.reference.as_deref(), Some("acme/ada"));
        assert_eq!(setup.character.parameters.other["ship"], "a boat");
        assert_eq!(setup.character_params["ship"], "Nautilus");
        let again = calls::take(&app.calls, &id, None).await.unwrap();
        assert_eq!(again.unwrap_err(), CloseCode::CallInUse);
        let taken = server.get(&acme.key, &path).await.expect(200);
        assert_eq!(taken["data"]["state"], "starting");
        assert_eq!(taken["data"]["signedUrl"], Value::Null);

        calls::mark_ongoing(&app.calls, &id).await.unwrap();
        let ongoing = server.get(&acme.key, &path).await.expect(200);
        assert_eq!(ongoing["data"]["state"], "ongoing");
        let url = server
            .url(&format!("{path}/session"))
            .replace("http:", "ws:");
        assert_eq!(
            ongoing["data"]["available_endpoints"],
            json!([{"type": "websocket", "url": url}])
        );
        assert_eq!(
            calls::take(&app.calls, &id, None)
                .await
                .unwrap()
                .unwrap_err(),
            CloseCode::CallInUse
        );
        assert_eq!(
            transcript(&server, &acme, &path).await,
            json!({"data": {"available": false}})
        );

        calls::finish(&app.calls, &id, outcome()).await.unwrap();
        let completed = server.get(&acme.key, &path).await.expect(200);
        assert_eq!(completed["data"]["state"], "completed");
        assert_eq!(completed["data"]["available_endpoints"], json!([]));
        assert_eq!(
            completed["data"]["duration"],
            json!({"call_seconds": 61, "server_runtime_seconds": 64})
        );
        assert_eq!(
            transcript(&server, &acme, &path).await,
            json!({"data": {"available": true, "transcript": [
                {"text": "Welcome aboard.", "originator": "bot"},
                {"text": "Where \"do\" we go?", "originator": "user"},
            ]}})
        );

        // The first end counts, and what is over cannot be taken or go on.
        let failed = Outcome {
            error: Some("LATE".into()),
            ..outcome()
        };
        calls::finish(&app.calls, &id, failed).await.unwrap();
        calls::mark_ongoing(&app.calls, &id).await.unwrap();
        assert_eq!(server.get(&acme.key, &path).await.expect(200), completed);
        assert_eq!(
            calls::take(&app.calls, &id, None)
                .await
                .unwrap()
                .unwrap_err(),
            CloseCode::CallNotFound
        );
        assert_eq!(
            calls::take(&app.calls, "x", None)
                .await
                .unwrap()
                .unwrap_err(),
            CloseCode::CallNotFound
        );
    }
}

#[tokio::test]
async fn a_failed_call_and_a_silent_call_have_no_transcript() {
    for database in TestDatabase::both().await {
        let server = builder(&database).start().await;
        let (acme, _) = server.acme_and_other().await;
        for (error, lines, state) in [
            (Some("MEDIA_FAILED"), outcome().transcript, "error"),
            (None, Vec::new(), "completed"),
        ] {
            let id = create(&server, &acme, call()).await;
            calls::take(&server.app.calls, &id, None)
                .await
                .unwrap()
                .unwrap();
            let ended = Outcome {
                error: error.map(Into::into),
                transcript: lines,
                ..outcome()
            };
            calls::finish(&server.app.calls, &id, ended).await.unwrap();
            let path = format!("/v2/calls/{id}");
            let read = server.get(&acme.key, &path).await.expect(200);
            assert_eq!(read["data"]["state"], state);
            assert_eq!(
                read["data"]["duration"]["call_seconds"].is_null(),
                error.is_some()
            );
            assert_eq!(
                transcript(&server, &acme, &path).await,
                json!({"data": {"available": false}})
            );
        }
    }
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
async fn open_calls_are_counted_by_partner() {
    for database in TestDatabase::both().await {
        let server = builder(&database).start().await;
        let (acme, _) = server.acme_and_other().await;
        let id = create(&server, &acme, call()).await;
        create(&server, &acme, call()).await;
        let setup = calls::take(&server.app.calls, &id, None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            calls::count_open(server.app.store.db(), &setup.tenant)
                .await
                .unwrap(),
            2
        );
        calls::finish(&server.app.calls, &id, outcome())
            .await
            .unwrap();
        assert_eq!(
            calls::count_open(server.app.store.db(), &setup.tenant)
                .await
                .unwrap(),
            1
        );
    }
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
