//! Databases from before texts, and those of calls, counted in the storage of their partners.

use colloquy::server;

use super::*;

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

#[tokio::test]
async fn calls_that_ended_under_an_earlier_server_count_nothing() {
    for database in TestDatabase::both_empty().await {
        let store = database.config().open().await.unwrap();
        migrate_as_before(&store, &migrations()[..39]).await;
        for sql in [
            "INSERT INTO partners VALUES ('acme', 'Acme', '{}', 1, 1)",
            "INSERT INTO partner_storage (partner, bytes, texts) VALUES ('acme', 7, 6)",
            "INSERT INTO calls (id, partner, state, character_json, character_params, character_bytes, metadata, transcript, \
             time_limit_seconds, expires_at, created_at, updated_at, ended_at, page_key) VALUES \
             ('a', 'acme', 'starting', 'Zoë', '{}', 6, '{}', NULL, 60, 1, 1, 1, NULL, 'k'), \
             ('b', 'acme', 'completed', '', '', 6, '{}', '[]', 60, 1, 1, 1, 1, 'k')",
        ] {
            run(&store, sql).await;
        }
        store.migrate().await.unwrap();
        let db = store.db();
        for (sql, expected) in [
            ("SELECT texts FROM partner_storage", 6),
            (
                "SELECT COUNT(*) FROM calls WHERE ended_bytes = 0 AND silent_bytes = 0 AND page_network IS NULL",
                2,
            ),
        ] {
            assert_eq!(db.fetch_count(sql).await.unwrap(), expected, "{sql}");
        }
        assert_eq!(server::recount_texts(&store).await.unwrap(), 0);
    }
}
