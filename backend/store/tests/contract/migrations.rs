//! Databases of earlier servers, and of other versions.

use colloquy_store::Executor as _;
use support::{
    TestDatabase,
    earlier::{migrate_as_before, migrations, run},
};

use crate::Id;

/// A migration that SQLx has noted.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
struct Noted {
    version: i64,
    success: bool,
}

#[tokio::test]
async fn a_database_of_an_earlier_server_goes_on() {
    let migrations = migrations();
    // As far as the last servers came that did not use SQLx for it, and not so far.
    for count in [0, 3, 15] {
        for database in TestDatabase::both_empty().await {
            let store = database.config().open().await.unwrap();
            migrate_as_before(&store, &migrations[..count]).await;
            if count > 0 {
                let sql = "INSERT INTO partners VALUES ('acme', 'Acme', '{}', 1, 1)";
                run(&store, sql).await;
            }
            // Two servers start at once.
            let other = database.config().open().await.unwrap();
            let (first, second) = tokio::join!(store.migrate(), other.migrate());
            first.unwrap();
            second.unwrap();
            let db = store.db();
            let sql = "SELECT version, success FROM _sqlx_migrations ORDER BY version";
            let noted: Vec<Noted> = db.fetch_all(sql).await.unwrap();
            let all = (1..).map(|version| Noted {
                version,
                success: true,
            });
            let all: Vec<_> = all.take(migrations.len()).collect();
            assert_eq!(noted, all);
            let notes = db.execute("SELECT version FROM seaql_migrations").await;
            notes.unwrap_err();
            let partners = db.fetch_count("SELECT COUNT(*) FROM partners").await;
            assert_eq!(partners.unwrap(), u64::from(count > 0));
        }
    }
}

#[tokio::test]
async fn a_database_of_another_version_is_left_alone() {
    for database in TestDatabase::both_empty().await {
        let store = database.config().open().await.unwrap();
        migrate_as_before(&store, &migrations()[..1]).await;
        run(
            &store,
            "INSERT INTO seaql_migrations VALUES ('0002_other', 1)",
        )
        .await;
        let error = store.migrate().await.unwrap_err();
        assert!(error.to_string().contains("0002_other"), "{error}");
        let db = store.db();
        let notes = db
            .fetch_count("SELECT COUNT(*) FROM seaql_migrations")
            .await;
        assert_eq!(notes.unwrap(), 2);
        db.execute("SELECT version FROM _sqlx_migrations")
            .await
            .unwrap_err();
    }
}

/// A migration that was run is not the one that is there now.
#[tokio::test]
async fn a_changed_migration_is_noticed() {
    for database in TestDatabase::both_empty().await {
        let store = database.config().open().await.unwrap();
        store.migrate().await.unwrap();
        let changed = "UPDATE _sqlx_migrations SET checksum = (SELECT checksum FROM _sqlx_migrations WHERE version = 1) \
                       WHERE version = 2";
        assert_eq!(run(&store, changed).await, 1);
        store.migrate().await.unwrap_err();
    }
}

#[derive(sqlx::FromRow)]
struct KeptCall {
    transcript: String,
    quota: String,
    character_reference: String,
    expires_at: i64,
}

#[tokio::test]
async fn what_earlier_partners_left_behind_goes_and_the_rest_stays() {
    for database in TestDatabase::both_empty().await {
        let store = database.config().open().await.unwrap();
        // Those before the one that makes everything of a partner go with it.
        migrate_as_before(&store, &migrations()[..9]).await;
        let run = async |sql: &str| run(&store, sql.to_owned()).await;
        run("INSERT INTO partners VALUES ('acme', 'Acme', '{}', 1000, 1000)").await;
        for (id, partner, created_at) in [
            ("own", "acme", 1000),
            ("earlier", "acme", 999),
            ("gone", "other", 2000),
        ] {
            run(&format!(
                "INSERT INTO calls (id, partner, state, character_json, character_params, time_limit_seconds, expires_at, \
                 transcript, quota, created_at, updated_at) \
                 VALUES ('{id}', '{partner}', 'completed', '{{\"reference\": \"acme/ada\"}}', 'p', 60, 7, '[1]', 'q', {created_at}, 8)"
            ))
            .await;
            run(&format!(
                "INSERT INTO webhook_deliveries VALUES ('{id}', '{partner}', 'e', 'c', 'u', 'p', 'pending', 1, 1, NULL, {created_at}, 9)"
            ))
            .await;
            run(&format!(
                "INSERT INTO webhook_attempts VALUES ('{id}', 1, 2, 3, 200, NULL)"
            ))
            .await;
        }
        store.migrate().await.unwrap();
        store.migrate().await.unwrap();
        let db = store.db();
        for (table, id) in [
            ("calls", "id"),
            ("webhook_deliveries", "id"),
            ("webhook_attempts", "delivery_id"),
        ] {
            let sql = format!("SELECT {id} AS id FROM {table}");
            let rows: Vec<Id> = db.fetch_all(sql).await.unwrap();
            let ids: Vec<String> = rows.into_iter().map(|row| row.id).collect();
            assert_eq!(ids, ["own"], "{table}");
        }
        let sql = "SELECT transcript, quota, expires_at, character_reference FROM calls";
        let call: KeptCall = db.fetch_one(sql).await.unwrap().unwrap();
        assert_eq!(call.transcript, "[1]");
        assert_eq!(call.quota, "q");
        assert_eq!(call.character_reference, "acme/ada");
        assert_eq!(call.expires_at, 7);
        run("DELETE FROM partners").await;
        for table in ["calls", "webhook_deliveries", "webhook_attempts"] {
            let rows = db.fetch_count(format!("SELECT COUNT(*) FROM {table}"));
            assert_eq!(rows.await.unwrap(), 0, "{table}");
        }
    }
}

#[tokio::test]
async fn texts_of_an_earlier_server_count() {
    for database in TestDatabase::both_empty().await {
        let store = database.config().open().await.unwrap();
        migrate_as_before(&store, &migrations()[..37]).await;
        for sql in [
            "INSERT INTO partners VALUES ('acme', 'Acme', '{}', 1, 1), ('other', 'Other', '{}', 1, 1), ('none', 'None', '{}', 1, 1)",
            "INSERT INTO partner_storage VALUES ('acme', 7)",
            "INSERT INTO quotas (id, partner, name, mac, kinds, disabled, period, period_start, created_at, updated_at) \
             VALUES ('q', 'acme', '', '', '[]', FALSE, 'lifetime', 0, 1, 1)",
            "INSERT INTO responses (id, quota, input, response, created_at, expires_at) VALUES ('r', 'q', '[\"ü\"]', '{}', 1, 2)",
            "INSERT INTO characters VALUES ('other', 'zoe', 2, 1, 1)",
            "INSERT INTO character_versions VALUES ('other', 'zoe', 1, 'Zoë', '{}', 1), ('other', 'zoe', 2, 'x', '{}', 1)",
            "INSERT INTO dialog_analyses (id, partner, state, input, asked, created_at) VALUES ('a', 'acme', 'in-progress', '12345', 0, 1)",
            "INSERT INTO completions (id, partner, state, output, created_at, ended_at) VALUES ('c', 'acme', 'completed', '1234', 1, 2)",
        ] {
            run(&store, sql).await;
        }
        store.migrate().await.unwrap();
        let db = store.db();
        for (partner, files, texts) in [("acme", 7, 8 + 5 + 4), ("other", 0, 6 + 3)] {
            for (column, expected) in [("bytes", files), ("texts", texts)] {
                let sql =
                    format!("SELECT {column} FROM partner_storage WHERE partner = '{partner}'");
                let counted = db.fetch_count(sql).await.unwrap();
                assert_eq!(counted, expected, "{partner}: {column}");
            }
        }
        let rows = db.fetch_count("SELECT COUNT(*) FROM partner_storage").await;
        assert_eq!(rows.unwrap(), 2);
    }
}

#[tokio::test]
async fn open_calls_of_an_earlier_server_count() {
    for database in TestDatabase::both_empty().await {
        let store = database.config().open().await.unwrap();
        migrate_as_before(&store, &migrations()[..38]).await;
        for sql in [
            "INSERT INTO partners VALUES ('acme', 'Acme', '{}', 1, 1), ('other', 'Other', '{}', 1, 1), ('none', 'None', '{}', 1, 1)",
            "INSERT INTO partner_storage (partner, bytes, texts) VALUES ('acme', 7, 10)",
            "INSERT INTO calls (id, partner, state, character_json, character_params, metadata, time_limit_seconds, expires_at, created_at, \
             updated_at, ended_at) VALUES ('a', 'acme', 'starting', 'Zoë', '{}', NULL, 60, 1, 1, 1, NULL), \
             ('b', 'acme', 'completed', 'Zoë', '{}', '123', 60, 1, 1, 1, 1), \
             ('c', 'other', 'ongoing', 'Zoë', '{}', '12', 60, 1, 1, 1, NULL), \
             ('d', 'none', 'error', 'Zoë', '{}', NULL, 60, 1, 1, 1, 1)",
        ] {
            run(&store, sql).await;
        }
        store.migrate().await.unwrap();
        let db = store.db();
        for (partner, texts) in [("acme", 10 + 6), ("other", 6)] {
            let sql = format!("SELECT texts FROM partner_storage WHERE partner = '{partner}'");
            assert_eq!(db.fetch_count(sql).await.unwrap(), texts, "{partner}");
        }
        let rows = db.fetch_count("SELECT COUNT(*) FROM partner_storage").await;
        assert_eq!(rows.unwrap(), 2);
        let released = db.fetch_count("SELECT CAST(SUM(character_bytes) AS BIGINT) FROM calls");
        assert_eq!(released.await.unwrap(), 6 + 6);
    }
}
