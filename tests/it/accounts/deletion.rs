//! What a partner leaves behind.

use std::time::Duration;

use colloquy::{
    calls::{self, Outcome, TranscriptLine},
    store::{Dialect, Executor as _},
};
use harness::{on_both_databases, patience, sounds};

use super::*;

#[derive(sqlx::FromRow)]
struct Table {
    name: String,
}

/// The tables that name a partner.
async fn tables_with_partners(app: &TestApp) -> Vec<String> {
    let db = app.app.store.db();
    let sql = match db.dialect() {
        Dialect::Sqlite => {
            "SELECT m.name AS name FROM sqlite_master m JOIN pragma_table_info(m.name) p \
             WHERE m.type = 'table' AND p.name = 'partner' ORDER BY m.name"
        }
        Dialect::Postgres => {
            "SELECT CAST(table_name AS TEXT) AS name FROM information_schema.columns \
             WHERE column_name = 'partner' AND table_schema = 'public' ORDER BY 1"
        }
    };
    let rows: Vec<Table> = db.fetch_all(sql).await.unwrap();
    rows.into_iter().map(|row| row.name).collect()
}

async fn rows_of(app: &TestApp, condition: &str) -> u64 {
    let db = app.app.store.db();
    let sql = format!("SELECT COUNT(*) FROM {condition}");
    db.fetch_count(sql).await.unwrap()
}

/// Gives a partner something of everything; the paths at which its owner reads it.
async fn furnish(app: &TestApp) -> (Vec<String>, String) {
    let acme = app.partner("acme").await;
    app.character(&acme, "ada", "You are Ada.", json!({})).await;
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    let quota_id = quota.path.rsplit('/').next().unwrap();
    let call = json!({
        "character": "repo:acme/ada", "call_time_limit_seconds": 60,
        "on_completion_webhook": "https://receiver.invalid/hook",
    });
    let made = app.post(&acme.key, "/v2/calls", call).await.expect(200);
    let call = made["data"]["id"].as_str().unwrap().to_owned();
    let outcome = Outcome {
        error: None,
        call_time: Duration::from_secs(5),
        server_time: Duration::from_secs(6),
        visitor: serde_json::Map::new(),
        transcript: vec![TranscriptLine {
            text: "a secret".to_owned(),
            originator: colloquy_protocol::Originator::User,
            at_ms: 1,
            interrupted: false,
            reply: None,
        }],
    };
    let id = call.trim_start_matches("/v2/calls/");
    calls::finish(&app.app.calls, id, outcome).await.unwrap();
    let message = json!({"id": "m", "type": "text", "text": "Hi", "is_processed": false});
    let base = reqwest::multipart::Form::new().text("name", "manual");
    let made = app.request(Method::POST, "/api/knowledgebases/acme");
    let made = made.bearer_auth(&acme.key).multipart(base);
    send(made).await.expect(201);
    let input =
        json!({"messages": [message], "character": "repo:acme/ada", "generate_audio": false});
    let asked = app.post(&acme.key, "/v2/completions", json!({"input": input}));
    let completion = asked.await.expect(200)["id"].as_str().unwrap().to_owned();
    let recording = reqwest::multipart::Part::bytes(sounds::wav(&[0; 160])).file_name("a.wav");
    let made = app.request(Method::POST, "/v2/transcript");
    let made = made.header("x-api-key", &acme.key);
    let made = made.multipart(reqwest::multipart::Form::new().part("audio", recording));
    let made = send(made).await.expect(200);
    let transcript = made["id"].as_str().unwrap().to_owned();
    let input = json!({
        "messages": [{"text": "a secret", "originator": "user"}], "language": "English",
        "current_profile": {}, "profile_schema": {}, "feedback_schema": {},
    });
    let asked = app.post(&acme.key, "/v2/dialog_analyses", json!({"input": input}));
    let analysis = asked.await.expect(200)["id"].as_str().unwrap().to_owned();
    let made = app.request(Method::POST, "/api/voices/acme/empty");
    let voice = reqwest::multipart::Form::new().text("name", "anna");
    send(made.bearer_auth(&acme.key).multipart(voice))
        .await
        .expect(201);
    let list = "/api/webhooks/acme/deliveries";
    let deliveries = app.get(&acme.key, list).await.expect(200);
    let delivery = deliveries["deliveries"][0]["id"].as_str().unwrap();
    let db = app.app.store.db();
    for sql in [
        format!(
            "INSERT INTO responses (id, quota, input, response, created_at, expires_at) \
             VALUES ('resp_1', '{quota_id}', '[]', '{{}}', 1, 9000000000000)"
        ),
        format!(
            "INSERT INTO webhook_attempts (delivery_id, number, started_at, duration_ms) VALUES ('{delivery}', 99, 1, 1)"
        ),
    ] {
        db.execute(sql).await.unwrap();
    }
    let paths = vec![
        format!("{call}/transcript"),
        call,
        completion,
        transcript,
        analysis,
        format!("{list}/{delivery}"),
        "/api/characters/acme/ada".to_owned(),
        "/api/kb-stats/acme/manual".to_owned(),
        "/api/voices/acme/anna".to_owned(),
        quota.path,
    ];
    (paths, acme.key)
}

on_both_databases!(
    a_partner_under_the_name_of_another_one_sees_nothing_of_it,
    |builder| builder.without_worker(),
    |app| {
        let (paths, key) = furnish(&app).await;
        for path in &paths {
            app.get(&key, path).await.expect(200);
        }
        let tables = tables_with_partners(&app).await;
        assert!(tables.len() >= 7, "{tables:?}");
        for table in &tables {
            let rows = rows_of(&app, &format!("{table} WHERE partner = 'acme'")).await;
            assert!(
                rows > 0,
                "this test puts nothing into the new table {table}"
            );
        }
        app.delete(ADMIN_KEY, "/api/partners/acme")
            .await
            .expect(204);
        let of_others = ["character_versions", "responses", "webhook_attempts"];
        for table in tables.iter().map(String::as_str).chain(of_others) {
            // The audit log tells administrators who deleted the partner.
            if table == "audit_entries" {
                continue;
            }
            assert_eq!(rows_of(&app, table).await, 0, "{table}");
        }
        // The name rests until no node remembers the old one.
        let early = tokio::time::timeout(patience(Duration::from_millis(500)), app.partner("acme"));
        assert!(early.await.is_err());
        app.advance(Duration::from_secs(6));
        let heir = app.partner("acme").await;
        for path in &paths {
            app.get(&heir.key, path).await.expect(404);
        }
        app.get(&key, "/api/characters/acme").await.expect(401);
        let empty = app.get(&heir.key, "/api/webhooks/acme/deliveries").await;
        assert_eq!(empty.expect(200)["deliveries"], json!([]));
        for path in ["/api/characters/acme", "/api/quotas/acme"] {
            assert_eq!(
                app.get(&heir.key, path).await.expect(200),
                json!([]),
                "{path}"
            );
        }
        let keys = app.get(&heir.key, "/api/keys/acme").await.expect(200);
        assert_eq!(keys.as_array().unwrap().len(), 1);
        let changes = app.get(&heir.key, "/api/audit/acme").await.expect(200);
        assert_eq!(changes.as_array().unwrap().len(), 1);
        assert_eq!(changes[0]["action"], "create_partner");
    }
);

/// Whoever names a partner goes with it: a table whose column does not say so would keep its rows for the next one.
#[tokio::test]
async fn every_table_that_names_a_partner_goes_with_it() {
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    let db = app.app.store.db();
    for table in tables_with_partners(&app).await {
        // A trigger deletes these behind all cascades, which record changes (`a_partner_that_is_deleted_leaves_no_changes`).
        // The entries of the audit log stay, and a new partner of the name does not read them.
        if ["changes", "audit_entries"].contains(&table.as_str()) {
            continue;
        }
        let sql = format!(
            "SELECT COUNT(*) FROM pragma_foreign_key_list('{table}') \
             WHERE \"from\" = 'partner' AND \"table\" IN ('partners', 'characters') AND on_delete = 'CASCADE'"
        );
        let rows = db.fetch_count(sql).await.unwrap();
        assert!(
            rows > 0,
            "{table}.partner does not refer to partners with ON DELETE CASCADE"
        );
    }
}
