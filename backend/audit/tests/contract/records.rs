//! What is recorded, and with which outcome.

use axum::http::Method;
use serde_json::json;
use support::{eventually, on_each_database};
use test_routes::{ADMIN_KEY, send};

use super::*;

on_each_database!(a_change_is_recorded_with_who_what_and_when, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let body = json!({"name": "build"});
    let request = app
        .request(Method::POST, "/api/keys/acme")
        .header("x-request-id", "of-the-test")
        .bearer_auth(&acme.key)
        .json(&body);
    let key = send(request).await.expect(201);
    let id = key["id"].as_str().unwrap();
    let path = format!("/api/audit/acme?subject={id}");
    let made = entries(&app, &acme.key, &path).await;
    let [made] = &made[..] else {
        panic!("{made:?}");
    };
    let own = app.get(&acme.key, "/api/auth/me").await.expect(200);
    let expected = json!({
        "id": made["id"],
        "at": key["created_at"],
        "key_id": own["key_id"],
        "key_name": "first key",
        "credential": "key",
        "is_admin": false,
        "partner": "acme",
        "action": "create_key",
        "method": "POST",
        "path": "/api/keys/{partner}",
        "resource": "key",
        "subject": id,
        "parameters": {},
        "status": 201,
        "request_id": "of-the-test",
    });
    assert_eq!(*made, expected);
    // Neither the key nor anything of the body.
    let secret = key["api_key"].as_str().unwrap();
    assert!(!made.to_string().contains(secret));

    let revoke = format!("/api/keys/acme/{id}");
    app.delete(ADMIN_KEY, &revoke).await.expect(204);
    let path = format!("/api/audit?action=revoke_key&subject={id}");
    let revoked = entries(&app, ADMIN_KEY, &path).await;
    assert_eq!(revoked.len(), 1);
    assert_eq!(revoked[0]["key_id"], "configuration");
    assert_eq!(revoked[0]["key_name"], Value::Null);
    assert_eq!(revoked[0]["is_admin"], true);
    assert_eq!(revoked[0]["parameters"], json!({"key_id": id}));
    assert_eq!(revoked[0]["status"], 204);
});

on_each_database!(what_is_read_or_refused_leaves_nothing, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    app.partner("other").await;
    let scoped = app
        .key("acme", json!({"name": "calls", "scopes": ["calls"]}))
        .await;
    let scoped = scoped["api_key"].as_str().unwrap();
    let before = entries(&app, ADMIN_KEY, "/api/audit").await;
    app.get(&acme.key, "/api/keys/acme").await.expect(200);
    let body = json!({"name": "new"});
    app.post("no key", "/api/keys/acme", body.clone())
        .await
        .expect(401);
    app.post(scoped, "/api/keys/acme", body.clone())
        .await
        .expect(403);
    app.post(&acme.key, "/api/keys/other", body.clone())
        .await
        .expect(403);
    app.post(&acme.key, "/api/keys/acme", json!({"nom": "new"}))
        .await
        .expect(400);
    app.post(ADMIN_KEY, "/api/partners/acme", json!({}))
        .await
        .expect(409);
    app.post(ADMIN_KEY, "/api/keys/nobody", body)
        .await
        .expect(404);
    app.delete(&acme.key, "/api/keys/acme/none")
        .await
        .expect(404);
    assert_eq!(entries(&app, ADMIN_KEY, "/api/audit").await, before);
});

on_each_database!(a_change_that_cannot_be_recorded_is_refused, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    run(&app, "ALTER TABLE audit_entries RENAME TO away").await;
    let refused = app
        .post(&acme.key, "/api/keys/acme", json!({"name": "new"}))
        .await;
    refused.expect(503);
    assert_eq!(refused.header("retry-after"), "10");
    let keys = app.get(&acme.key, "/api/keys/acme").await.expect(200);
    assert_eq!(keys.as_array().unwrap().len(), 1);
    run(&app, "ALTER TABLE away RENAME TO audit_entries").await;
    app.post(&acme.key, "/api/keys/acme", json!({"name": "new"}))
        .await
        .expect(201);
});

on_each_database!(a_change_that_fails_stays_with_its_status, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let path = "/api/folders/acme/docs/a%20folder/sync";
    app.post(&acme.key, path, json!({})).await.expect(500);
    let failed = entries(&app, &acme.key, "/api/audit/acme?action=sync").await;
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["status"], 500);
    assert_eq!(failed[0]["subject"], "a folder");
    let parameters = json!({"kb": "docs", "folder": "a folder"});
    assert_eq!(failed[0]["parameters"], parameters);
});

on_each_database!(a_response_that_streams_completes_the_entry, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let request = app
        .request(Method::POST, "/api/bulk/retry/acme/docs")
        .bearer_auth(&acme.key);
    let response = request.send().await;
    assert_eq!(response.status(), 200);
    let path = "/api/audit/acme?action=retry_documents";
    let streams = entries(&app, &acme.key, path).await;
    assert_eq!(streams.len(), 1);
    assert_eq!(streams[0]["status"], 200);
});

on_each_database!(
    the_outcome_of_a_request_whose_client_goes_away_is_unknown,
    |database| {
        let app = start(&database).await;
        let acme = app.partner("acme").await;
        let path = "/api/audit/acme?action=move_documents";
        let request = app
            .request(Method::POST, "/api/bulk/move/acme/docs")
            .bearer_auth(&acme.key);
        // The entry is there while the request runs.
        tokio::select! {
            response = request.send() => panic!("{}", response.status()),
            () = eventually("an entry", async || {
                !entries(&app, &acme.key, path).await.is_empty()
            }) => {}
        }
        let begun = entries(&app, &acme.key, path).await;
        assert_eq!(begun.len(), 1);
        assert_eq!(begun[0]["status"], Value::Null);
    }
);

on_each_database!(the_key_of_a_quota_is_named, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let body = json!({"name": "kiosk", "kinds": ["call"]});
    let quota = app.quota(&acme, body).await;
    let request = app
        .request(Method::POST, "/v2/calls/of-the-test/end")
        .bearer_auth(&quota.key);
    assert_eq!(request.send().await.status(), 200);
    let path = "/api/audit/acme?action=end_call";
    let ended = entries(&app, &acme.key, path).await;
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["credential"], "quota");
    assert_eq!(ended[0]["key_name"], "kiosk");
    assert_eq!(ended[0]["subject"], "of-the-test");
    assert!(quota.path.ends_with(ended[0]["key_id"].as_str().unwrap()));
});

on_each_database!(an_entry_costs_two_writes, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let mut writes = app.state.1.store.writes();
    // The first request stores when the key was used, which it does not wait for.
    let before = *writes.borrow();
    app.get(&acme.key, "/api/auth/me").await.expect(200);
    writes.wait_for(|count| *count > before).await.unwrap();
    let count = async |method: Method, path: &str, status: u16| {
        let before = *writes.borrow();
        let request = app.request(method, path).bearer_auth(&acme.key);
        assert_eq!(request.send().await.status(), status);
        *writes.borrow() - before
    };
    assert_eq!(count(Method::GET, "/api/keys/acme", 200).await, 0);
    // These change nothing themselves.
    assert_eq!(
        count(Method::POST, "/api/bulk/retry/acme/docs", 200).await,
        2
    );
    assert_eq!(count(Method::DELETE, "/api/keys/acme/none", 404).await, 2);
});
