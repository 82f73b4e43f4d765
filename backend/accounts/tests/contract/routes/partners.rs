//! Partners: made, read, changed and deleted by administrators.

use super::*;

on_each_database!(partners_are_made_read_changed_and_deleted, |database| {
    let app = start(&database).await;
    let made = app
        .post(
            ADMIN_KEY,
            "/api/partners/acme",
            json!({"display_name": "Acme", "settings": {"transcription_enabled": true}}),
        )
        .await
        .expect(201);
    assert_eq!(made["id"], "acme");
    assert_eq!(made["display_name"], "Acme");
    let key = made["api_key"].as_str().unwrap();
    assert!(key.starts_with("cqk_"));

    let again = app.post(ADMIN_KEY, "/api/partners/acme", json!({})).await;
    assert_eq!(again.expect(409)["code"], "conflict");

    let read = app.get(ADMIN_KEY, "/api/partners/acme").await.expect(200);
    assert_eq!(read["settings"], json!({"transcription_enabled": true}));
    assert!(read.get("api_key").is_none());

    let changed = app
        .put(
            ADMIN_KEY,
            "/api/partners/acme",
            json!({"display_name": "Acme 2"}),
        )
        .await
        .expect(200);
    assert_eq!(changed["display_name"], "Acme 2");
    assert_eq!(changed["settings"], json!({"transcription_enabled": true}));

    // A terminal would do what they say.
    for (path, field) in [
        ("/api/partners/none", "display_name"),
        ("/api/keys/acme", "name"),
        ("/api/quotas/acme", "name"),
    ] {
        for name in ["a\u{1b}[2J", "a\nb", "a\u{202e}b"] {
            let refused = app.post(ADMIN_KEY, path, json!({field: name})).await;
            assert_eq!(refused.expect(400)["field"], field, "{path}");
        }
    }

    app.partner("beta").await;
    let all = app.get(ADMIN_KEY, "/api/partners").await.expect(200);
    assert_eq!(ids(&all), ["acme", "beta"]);
    let own = app.get(key, "/api/partners").await.expect(200);
    assert_eq!(ids(&own), ["acme"]);

    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    app.get(ADMIN_KEY, "/api/partners/acme").await.expect(404);
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(404);
    app.put(ADMIN_KEY, "/api/partners/acme", json!({}))
        .await
        .expect(404);
    // Its keys went with it, at once.
    app.get(key, "/api/auth/me").await.expect(401);
});

fn ids(list: &Value) -> Vec<&str> {
    let entries = list.as_array().unwrap().iter();
    entries.map(|entry| entry["id"].as_str().unwrap()).collect()
}
