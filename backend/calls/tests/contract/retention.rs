//! Calls that are over: how long they are kept, and what they count meanwhile.

use colloquy_base::clock::SystemClock;
use colloquy_config::Config;
use colloquy_kernel::Base;
use colloquy_store::statement;
use support::earlier::run;

use super::*;

/// The partners `acme` and `other`.
async fn place(database: &TestDatabase) -> Base {
    let config = Config {
        store: database.config(),
        ..Config::default()
    };
    let store = config.store.open().await.unwrap();
    let partners = "INSERT INTO partners (id, display_name, settings, created_at, updated_at) \
                    VALUES ('acme', 'Acme', '{}', 1, 1), ('other', 'Other', '{}', 1, 1)";
    run(&store, partners).await;
    Base::new(config, store, Arc::new(SystemClock))
}

/// The sum of a partner, if there is one.
async fn counted(base: &Base, partner: &str) -> Option<i64> {
    let sql = "SELECT texts FROM partner_storage WHERE partner = $1";
    let found = base
        .store
        .db()
        .fetch_scalar(statement(sql, [partner.into()]));
    found.await.unwrap()
}

on_each_database!(
    calls_that_ended_are_cleared_and_go_with_their_age,
    |database| {
        const KEPT: i64 = 9_000_000_000_000;
        let numbers =
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 701)";
        let base = place(&database).await;
        let days_ago = |days: i64| base.clock.now_ms() - days * 24 * 3_600_000;
        let insert = async |rows: &str, id: &str, end: &str, heard: &str| {
            let sql = format!(
                "INSERT INTO calls (id, partner, state, character_json, character_params, metadata, time_limit_seconds, expires_at, \
                 created_at, updated_at, ended_at, {heard}) {rows} SELECT '{id}' || i, CASE WHEN i % 3 = 0 THEN 'other' ELSE 'acme' END, \
                 'error', 'Zoë', '{{}}', 'ü', 60, 1, 1, 1, {end}, 1 FROM n"
            );
            run(&base.store, sql).await;
        };
        insert(numbers, "kept", &format!("{KEPT} + i"), "ongoing_at").await;
        insert(numbers, "old", "i", "ongoing_at").await;
        let one = "WITH n (i) AS (SELECT 1)";
        let (long_ago, lately) = (days_ago(8).to_string(), days_ago(6).to_string());
        insert(one, "joined", &long_ago, "taken_at").await;
        insert(one, "joined lately", &lately, "taken_at").await;
        for heard in ["ongoing_at", "call_seconds", "transcript"] {
            insert(one, heard, &long_ago, heard).await;
        }
        let open = "INSERT INTO calls (id, partner, state, character_json, character_params, time_limit_seconds, expires_at, created_at, \
                    updated_at) VALUES ('open', 'acme', 'starting', 'Zoë', '{}', 60, 1, 1, 1)";
        run(&base.store, open).await;
        assert_eq!(recount(&base.store).await.unwrap(), 1);
        assert_eq!(counted(&base, "acme").await, Some(6), "the open one's");
        assert_eq!(counted(&base, "other").await, None);

        assert_eq!(calls::purge(&base).await.unwrap(), 701 + 1);
        assert_eq!(counted(&base, "acme").await, Some(6));
        assert_eq!(recount(&base.store).await.unwrap(), 0);
        for (condition, expected) in [
            ("character_json = '' AND character_params = ''", 701 + 4),
            ("character_json <> ''", 1),
        ] {
            let sql = format!("SELECT COUNT(*) FROM calls WHERE {condition}");
            let rows = base.store.db().fetch_count(sql).await.unwrap();
            assert_eq!(rows, expected, "{condition}");
        }
    }
);

on_each_database!(retention_of_calls_releases_what_they_left, |database| {
    let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 701)";
    let base = place(&database).await;
    let long_ago = (base.clock.now_ms() - 8 * 24 * 3_600_000).to_string();
    // Old ones, and silent ones of a week ago; the last two stay.
    for (id, rows, ended_at, heard) in [
        ("old", numbers, "i", "1"),
        ("silent", numbers, long_ago.as_str(), "NULL"),
        ("heard", "WITH n (i) AS (SELECT 2)", long_ago.as_str(), "1"),
        (
            "heard too",
            "WITH n (i) AS (SELECT 3)",
            long_ago.as_str(),
            "1",
        ),
    ] {
        let sql = format!(
            "INSERT INTO calls (id, partner, state, character_json, character_params, metadata, ended_bytes, time_limit_seconds, \
             expires_at, created_at, updated_at, ended_at, ongoing_at) {rows} \
             SELECT '{id}' || i, CASE WHEN i % 3 = 0 THEN 'other' ELSE 'acme' END, 'error', '', '', 'ü' || i, \
             octet_length('ü' || i), 60, 1, 1, 1, {ended_at}, CAST({heard} AS BIGINT) FROM n"
        );
        run(&base.store, sql).await;
    }
    assert_eq!(recount(&base.store).await.unwrap(), 2);
    // Too much in the sums would show, too.
    run(&base.store, "UPDATE partner_storage SET texts = texts + 7").await;
    assert_eq!(calls::purge(&base).await.unwrap(), 2 * 701);
    for partner in ["acme", "other"] {
        assert_eq!(counted(&base, partner).await, Some(3 + 7), "{partner}");
    }
});
