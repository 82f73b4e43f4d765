//! The call resource, through HTTP. What is stored of calls, `backend/calls/tests/contract` says.

mod console;
mod metadata;

use axum::{body::Body, http::Request};
use colloquy::calls::{self, room::CallOrigin};
use harness::{
    TestApp, TestAppBuilder, TestDatabase,
    app::{TestPartner, send},
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
