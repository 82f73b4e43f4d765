//! Sessions of the console.

use axum::http::Method;
use serde_json::json;
use support::on_each_database;
use test_routes::{ADMIN_KEY, TestRequest, send};

use super::*;

/// A request as a page of the console sends it.
fn console(app: &App, method: Method, path: &str) -> TestRequest {
    app.request(method, path)
        .header("host", "localhost:8080")
        .header("origin", "http://localhost:8080")
        .header("sec-fetch-site", "same-origin")
        .header("x-colloquy-console", "1")
}

/// Signs in, and returns the cookie.
async fn sign_in(app: &App, body: &Value) -> String {
    let answer = send(console(app, Method::POST, "/api/console/session").json(body)).await;
    answer.expect(200);
    let cookie = answer.header("set-cookie").split(';').next().unwrap();
    cookie.to_owned()
}

on_each_database!(sessions_are_recorded_with_the_key_behind_them, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let own = app.get(&acme.key, "/api/auth/me").await.expect(200);
    let ask = async |method: Method, path: &str, cookie: &str| {
        let request = console(&app, method, path).header("cookie", cookie);
        send(request).await
    };
    let last = async || {
        let path = "/api/audit?limit=1";
        let entries = entries(&app, ADMIN_KEY, path).await;
        app.advance(std::time::Duration::from_secs(1));
        let entry = &entries[0];
        let fields = ["action", "credential", "partner", "key_id"];
        assert_eq!(entry["resource"], "session");
        fields.map(|field| entry[field].as_str().unwrap_or("-").to_owned())
    };
    let by = |action: &str, credential: &str| {
        let id = own["key_id"].as_str().unwrap();
        [action, credential, "acme", id].map(str::to_owned)
    };
    app.advance(std::time::Duration::from_secs(1));

    let cookie = sign_in(&app, &json!({"api_key": acme.key})).await;
    assert_eq!(last().await, by("sign_in", "key"));
    ask(Method::DELETE, "/api/console/session", &cookie)
        .await
        .expect(204);
    assert_eq!(last().await, by("sign_out", "session"));
    // The session has ended, so nobody signs out.
    ask(Method::DELETE, "/api/console/session", &cookie)
        .await
        .expect(204);
    let link = app
        .post(&acme.key, "/api/console/links", json!({}))
        .await
        .expect(201);
    assert_eq!(last().await, by("make_link", "key"));
    let (_, token) = link["url"]
        .as_str()
        .unwrap()
        .split_once("#sign-in=")
        .unwrap();
    let cookie = sign_in(&app, &json!({"link": token})).await;
    assert_eq!(last().await, by("sign_in", "key"));
    // Used up.
    let again = console(&app, Method::POST, "/api/console/session").json(&json!({"link": token}));
    send(again).await.expect(401);
    ask(Method::DELETE, "/api/console/sessions", &cookie)
        .await
        .expect(204);
    assert_eq!(last().await, by("sign_out_everywhere", "session"));

    let cookie = sign_in(&app, &json!({"api_key": acme.key})).await;
    app.advance(std::time::Duration::from_secs(1));
    let body = json!({"name": "by hand"});
    let request = console(&app, Method::POST, "/api/keys/acme").header("cookie", &cookie);
    send(request.json(&body)).await.expect(201);
    let made = entries(&app, ADMIN_KEY, "/api/audit?limit=1").await;
    assert_eq!(made[0]["credential"], "session");
    assert_eq!(made[0]["key_id"], own["key_id"]);
});
