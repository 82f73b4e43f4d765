//! The call resource, through HTTP.

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
        assert!(error["message"].is_string(), "{body}");
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
async fn of_many_clients_one_gets_the_call() {
    for database in TestDatabase::both().await {
        let server = builder(&database).start().await;
        let (acme, _) = server.acme_and_other().await;
        let id = create(&server, &acme, call()).await;
        let takers = (0..16).map(|_| calls::take(&server.app.calls, &id, None));
        let results = futures_util::future::join_all(takers).await;
        let (won, lost): (Vec<_>, Vec<_>) = results
            .into_iter()
            .map(Result::unwrap)
            .partition(Result::is_ok);
        assert_eq!(won.len(), 1, "{}", database.kind());
        assert!(
            lost.iter()
                .all(|result| matches!(result, Err(CloseCode::CallInUse)))
        );
    }
}

#[tokio::test]
async fn a_changed_or_expired_url_is_refused() {
    let database = TestDatabase::sqlite();
    let server = builder(&database).manual_clock().start().await;
    let (acme, _) = server.acme_and_other().await;
    let made = post_call(&server, &acme, call()).await;
    let id = bare_id(&made);
    let good = signed_query(made["data"]["signedUrl"].as_str().unwrap());
    let check =
        |id: &str, query: &SignedQuery| calls::check_session_url(&server.app.calls, id, query);
    assert_eq!(check(&id, &good), Ok(()));
    let other = create(&server, &acme, call()).await;
    assert_eq!(check(&other, &good), Err(CloseCode::InvalidSignature));
    let later = SignedQuery {
        exp: good.exp + 60,
        ..good.clone()
    };
    assert_eq!(check(&id, &later), Err(CloseCode::InvalidSignature));
    let other_key = SignedQuery {
        kid: "k2".to_owned(),
        ..good.clone()
    };
    assert_eq!(check(&id, &other_key), Err(CloseCode::InvalidSignature));
    let upper = SignedQuery {
        sig: good.sig.to_uppercase(),
        ..good.clone()
    };
    assert_eq!(check(&id, &upper), Err(CloseCode::InvalidSignature));

    server.advance(Duration::from_secs(299));
    assert_eq!(check(&id, &good), Ok(()));
    server.advance(Duration::from_secs(1));
    assert_eq!(check(&id, &good), Err(CloseCode::UrlExpired));
    let path = format!("/v2/calls/{id}");
    let read = server.get(&acme.key, &path).await.expect(200);
    assert_eq!(read["data"]["signedUrl"], Value::Null);
}

#[tokio::test]
async fn nodes_share_a_ring_and_a_rotated_ring_knows_old_urls() {
    for database in TestDatabase::both().await {
        let node = |name: &str| builder(&database).node(name);
        let ring = |text: &str| -> SigningKeys { serde_json::from_value(json!(text)).unwrap() };
        let url_of = |call: &Value| signed_query(call["data"]["signedUrl"].as_str().unwrap());
        let check = |server: &TestApp, call: &Value| {
            calls::check_session_url(&server.app.calls, &bare_id(call), &url_of(call))
        };

        // Without configuration every node has the same generated ring.
        let (a, b) = (node("a").start().await, node("b").start().await);
        let (acme, _) = a.acme_and_other().await;
        let of_a = post_call(&a, &acme, call()).await;
        assert_eq!(check(&b, &of_a), Ok(()));

        let only_old = ring("k1:0123456789abcdef");
        let old = node("c").config(|config| config.signing_keys = Some(only_old));
        let old = old.start().await;
        let both = ring("k2:fedcba9876543210,k1:0123456789abcdef");
        let new = node("d").config(|config| config.signing_keys = Some(both));
        let new = new.start().await;
        let of_old = post_call(&old, &acme, call()).await;
        assert_eq!(url_of(&of_old).kid, "k1");
        assert_eq!(check(&new, &of_old), Ok(()));
        let invalid = Err(CloseCode::InvalidSignature);
        assert_eq!(check(&a, &of_old), invalid);
        let of_new = post_call(&new, &acme, call()).await;
        assert_eq!(url_of(&of_new).kid, "k2");
        assert_eq!(check(&old, &of_new), invalid);
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

/// The ids of the calls that a list shows, and the path of its next page.
async fn listed(server: &TestApp, key: &str, path: &str) -> (Vec<String>, Option<String>) {
    let answer = server.get(key, path).await;
    let body = answer.expect(200);
    let calls = body["data"].as_array().unwrap();
    let ids = calls.iter().map(|call| bare_id(&json!({"data": call})));
    let next = body["next_cursor"].as_str().map(|cursor| {
        let link = answer.header("link");
        let target = link.strip_prefix('<').unwrap();
        let target = target.strip_suffix(">; rel=\"next\"").unwrap();
        assert!(target.ends_with(&format!("cursor={cursor}")), "{target}");
        target.to_owned()
    });
    (ids.collect(), next)
}

#[tokio::test]
async fn calls_are_listed_newest_first_page_by_page() {
    for database in TestDatabase::both().await {
        let server = builder(&database).start().await;
        let (acme, other) = server.acme_and_other().await;
        let mut ids = Vec::new();
        for _ in 0..5 {
            ids.insert(0, create(&server, &acme, call()).await);
        }
        let custom =
            json!({"character": {"personality": "Be kind."}, "call_time_limit_seconds": 60});
        let inline = create(&server, &acme, custom.clone()).await;
        let foreign = create(&server, &other, custom).await;
        calls::finish(&server.app.calls, &ids[1], outcome())
            .await
            .unwrap();

        let mut seen = Vec::new();
        let mut path = Some("/v2/calls?limit=2&character=repo:acme/ada".to_owned());
        while let Some(next) = path {
            let (page, following) = listed(&server, &acme.key, &next).await;
            assert!((1..=2).contains(&page.len()));
            seen.extend(page);
            path = following;
        }
        assert_eq!(seen, ids);
        let all = listed(&server, &acme.key, "/v2/calls").await;
        assert_eq!(all.0, [[inline].as_slice(), &ids].concat());
        let ended = listed(&server, &acme.key, "/v2/calls?state=completed").await;
        assert_eq!(ended, (vec![ids[1].clone()], None));
        let none = listed(
            &server,
            &acme.key,
            "/v2/calls?created_before=2020-01-01T00:00:00Z",
        )
        .await;
        assert_eq!(none, (vec![], None));
        assert_eq!(listed(&server, &other.key, "/v2/calls").await.0, [foreign]);
        let admin = "/v2/calls?partner=acme&created_from=2020-01-01T00:00:00Z";
        assert_eq!(listed(&server, ADMIN_KEY, admin).await.0, all.0);
        assert_eq!(listed(&server, ADMIN_KEY, "/v2/calls").await.0.len(), 7);

        for (query, status, field) in [
            ("limit=0", 400, "limit"),
            ("limit=x", 400, "limit"),
            ("state=sleeping", 400, "query"),
            ("created_from=yesterday", 400, "query"),
        ] {
            let path = format!("/v2/calls?{query}");
            let refused = server.get(&acme.key, &path).await.expect(status);
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains(field), "{query}: {refused}");
        }
        let foreign = "/v2/calls?partner=acme";
        server.get(&other.key, foreign).await.expect(403);
    }
}

/// The list of a quota's key is what the quota paid for; a page's key has none.
#[tokio::test]
async fn a_quota_lists_its_own_calls_and_a_page_none() {
    let database = TestDatabase::sqlite();
    let server = builder(&database).start().await;
    let acme = server.partner("acme").await;
    let quota = server.quota(&acme, json!({"kinds": ["call"]})).await;
    let custom = json!({"character": {"personality": "Be kind."}, "call_time_limit_seconds": 60});
    create(&server, &acme, custom.clone()).await;
    let own = server
        .post(&quota.key, "/v2/calls", custom)
        .await
        .expect(200);
    let (ids, _) = listed(&server, &quota.key, "/v2/calls").await;
    assert_eq!(ids, [bare_id(&own)]);
    let origin = "https://shop.example";
    let page = json!({"kind": "publishable", "allowed_origins": [origin]});
    let page = server.key("acme", page).await;
    let request = server.request(Method::GET, "/v2/calls");
    let request = request.header("x-api-key", page["api_key"].as_str().unwrap());
    send(request.header("origin", origin)).await.expect(403);
}
