//! Calls that the console creates, with the cookie of a session.

use super::*;

const CONSOLE: (&str, &str) = ("x-colloquy-console", "http");

/// Signs in at the console of a server, and returns the cookie.
async fn sign_in(server: &TestApp, key: &str) -> String {
    let request = server.request(Method::POST, "/api/console/session");
    let request = request
        .header(CONSOLE.0, CONSOLE.1)
        .header("origin", server.url(""));
    let answer = send(request.json(&json!({"api_key": key}))).await;
    let cookie = answer.header("set-cookie").split(';').next().unwrap();
    let cookie = cookie.to_owned();
    answer.expect(200);
    cookie
}

#[tokio::test]
async fn the_console_calls_a_draft_and_no_other_page_can_with_its_cookie() {
    let database = TestDatabase::sqlite();
    let server = builder(&database).start().await;
    let (acme, other) = server.acme_and_other().await;
    let cookie = sign_in(&server, &acme.key).await;
    let own = server.url("");
    let ask = |origin: &str| {
        server
            .request(Method::POST, "/v2/calls")
            .header("cookie", &cookie)
            .header("origin", origin)
    };

    let draft =
        json!({"personality": "You are {{ who }}.", "parameters": {"greetings": ["Hello."]}});
    let body = json!({
        "character": draft,
        "character_params": {"who": "Ada"},
        "call_time_limit_seconds": "60",
    });
    let made = ask(&own).header(CONSOLE.0, CONSOLE.1).json(&body);
    let made = send(made).await.expect(200);
    assert_eq!(made["data"]["character"], Value::Null);
    assert!(made["data"]["signedUrl"].as_str().is_some());
    let path = made["data"]["id"].as_str().unwrap();
    server.get(&acme.key, path).await.expect(200);
    server.get(&other.key, path).await.expect(404);

    // A page of another origin sends the cookie only where the browser lets it, and the header never.
    let foreign = "https://evil.example";
    let form = "character=repo:acme/ada&call_time_limit_seconds=60";
    for origin in [foreign, "null", own.as_str()] {
        let sent = ask(origin).header("content-type", "application/x-www-form-urlencoded");
        send(sent.body(form)).await.expect(403);
        send(ask(origin).json(&body)).await.expect(403);
    }
    let with_header = ask(foreign).header(CONSOLE.0, CONSOLE.1).json(&body);
    send(with_header).await.expect(403);
    let cross = ask(&own)
        .header(CONSOLE.0, CONSOLE.1)
        .header("sec-fetch-site", "same-site");
    send(cross.json(&body)).await.expect(403);

    let preflight = server
        .request(Method::OPTIONS, "/v2/calls")
        .header("origin", foreign)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "content-type,x-colloquy-console",
        );
    let preflight = send(preflight).await;
    assert_eq!(preflight.header("access-control-allow-credentials"), "");
    let allowed = preflight.header("access-control-allow-headers");
    assert!(allowed.contains("x-api-key"), "{allowed}");
    assert!(!allowed.contains("x-colloquy-console"), "{allowed}");

    let calls = server.get(&acme.key, "/v2/calls").await.expect(200);
    assert_eq!(calls["data"].as_array().map(Vec::len), Some(1));
}
