//! Databases from before the calls that ended counted in the storage of their partners.

use support::earlier::{migrate_as_before, migrations, run};

use super::*;

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
        assert_eq!(recount(&store).await.unwrap(), 0);
    }
}
