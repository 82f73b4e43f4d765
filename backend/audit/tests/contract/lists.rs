//! Who reads which entries, filters, pages, and how long entries are kept.

use std::time::Duration;

use serde_json::json;
use support::{eventually, on_each_database};
use test_routes::ADMIN_KEY;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

on_each_database!(a_partner_reads_the_changes_of_its_data_alone, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let other = app.partner("other").await;
    let scoped = app
        .key("acme", json!({"name": "calls", "scopes": ["calls"]}))
        .await;
    let scoped = scoped["api_key"].as_str().unwrap();
    app.key("other", json!({"name": "of other"})).await;
    for path in ["/api/audit", "/api/audit/other"] {
        app.get(&acme.key, path).await.expect(403);
    }
    app.get(scoped, "/api/audit/acme").await.expect(403);
    let partners = listed(&app, &acme.key, "/api/audit/acme", "partner").await;
    assert_eq!(partners, ["acme", "acme"]);

    // Administrators change the data of partners, who are not told with which key.
    let own = entries(&app, &other.key, "/api/audit/other").await;
    assert_eq!(own.len(), 2);
    for entry in &own {
        assert_eq!(entry["is_admin"], true);
        assert_eq!(
            (&entry["key_id"], &entry["key_name"]),
            (&Value::Null, &Value::Null)
        );
    }
    let path = "/api/audit/other?key=configuration";
    assert_eq!(entries(&app, &other.key, path).await.len(), 0);
    assert_eq!(entries(&app, ADMIN_KEY, path).await.len(), 2);
    assert_eq!(entries(&app, ADMIN_KEY, "/api/audit").await.len(), 4);
    app.get(ADMIN_KEY, "/api/audit/nobody").await.expect(404);
});

on_each_database!(
    a_partner_does_not_read_the_changes_of_one_that_had_its_name,
    |database| {
        let app = start(&database).await;
        app.partner("acme").await;
        app.advance(SECOND);
        app.key("acme", json!({"name": "old"})).await;
        app.advance(SECOND);
        app.delete(ADMIN_KEY, "/api/partners/acme")
            .await
            .expect(204);
        let deleted = ["delete_partner", "create_key", "create_partner"];
        let path = "/api/audit/acme";
        assert_eq!(listed(&app, ADMIN_KEY, path, "action").await, deleted);
        app.advance(SECOND);
        let acme = app.partner("acme").await;
        assert_eq!(
            listed(&app, &acme.key, path, "action").await,
            ["create_partner"]
        );
        assert_eq!(entries(&app, ADMIN_KEY, path).await.len(), 4);
    }
);

on_each_database!(entries_are_filtered_and_paged, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let mut keys = Vec::new();
    for name in ["one", "two", "three"] {
        app.advance(SECOND);
        keys.push(app.key("acme", json!({"name": name})).await);
    }
    app.advance(SECOND);
    let with = keys[0]["api_key"].as_str().unwrap();
    let id = keys[2]["id"].as_str().unwrap();
    app.delete(with, &format!("/api/keys/acme/{id}"))
        .await
        .expect(204);

    let all = [
        "revoke_key",
        "create_key",
        "create_key",
        "create_key",
        "create_partner",
    ];
    for path in ["/api/audit", "/api/audit/acme"] {
        assert_eq!(listed(&app, ADMIN_KEY, path, "action").await, all);
        let filtered = async |query: &str| {
            let path = format!("{path}?{query}");
            listed(&app, ADMIN_KEY, &path, "action").await
        };
        assert_eq!(filtered("action=create_partner").await, all[4..]);
        assert_eq!(filtered(&format!("subject={id}")).await, all[..2]);
        let key = keys[0]["id"].as_str().unwrap();
        assert_eq!(filtered(&format!("key={key}")).await, all[..1]);
        let at = keys[2]["created_at"].as_str().unwrap();
        assert_eq!(filtered(&format!("from={at}")).await, all[..2]);
        assert_eq!(filtered(&format!("until={at}")).await, all[2..]);
        assert_eq!(
            filtered(&format!("until={at}&action=create_key"))
                .await
                .len(),
            2
        );

        let mut paged = Vec::new();
        let mut next = format!("{path}?limit=2");
        loop {
            let answer = app.get(ADMIN_KEY, &next).await;
            let page = answer.expect(200);
            paged.extend(page.as_array().unwrap().clone());
            let Some(link) = answer.headers.get("link") else {
                break;
            };
            let link = link.to_str().unwrap();
            next = link[1..].split('>').next().unwrap().to_owned();
        }
        assert_eq!(paged, entries(&app, ADMIN_KEY, path).await);
    }
    for (query, field) in [
        ("action=none", "action"),
        ("from=today", "from"),
        ("cursor=none", "cursor"),
        ("who=me", "who"),
    ] {
        let path = format!("/api/audit/acme?{query}");
        let refused = app.get(&acme.key, &path).await.expect(400);
        assert_eq!(refused["field"], field);
    }
});

on_each_database!(old_entries_are_purged, |database| {
    let builder = TestRoutesBuilder::new(&database);
    let builder = builder.config(|config| config.limits.audit_days = 2);
    let app = start_with(builder).await;
    app.partner("acme").await;
    app.advance(Duration::from_secs(24 * 3_600));
    app.key("acme", json!({"name": "new"})).await;
    app.advance(Duration::from_secs(24 * 3_600 + 1));
    app.start_background(&CAPABILITIES).await;
    eventually("old entries are purged", async || {
        listed(&app, ADMIN_KEY, "/api/audit", "action").await == ["create_key"]
    })
    .await;
});
