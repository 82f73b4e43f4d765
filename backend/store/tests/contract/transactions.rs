//! Transactions that fail, are broken off or do not commit.

use std::time::Duration;

use colloquy_store::{Executor as _, StoreErrorKind};
use support::{TestDatabase, on_each_database};

on_each_database!(
    a_transaction_of_which_a_part_failed_is_not_committed,
    |database| {
        let config = database.config();
        let store = config.open().await.unwrap();
        let scratch = "CREATE TABLE scratch (id TEXT PRIMARY KEY)";
        store.db().execute(scratch).await.unwrap();
        // More often than there are connections.
        for _ in 0..10 {
            let transaction = store.begin().await.unwrap();
            let put = |id: &str| format!("INSERT INTO scratch VALUES ('{id}')");
            transaction.execute(put("a")).await.unwrap();
            let twice = transaction.execute(put("a")).await.unwrap_err();
            assert_eq!(twice.kind(), StoreErrorKind::UniqueViolated);
            transaction.commit().await.unwrap_err();
            // Broken off half-way.
            let transaction = store.begin().await.unwrap();
            let sql = put("b");
            let insert = transaction.execute(sql);
            drop(tokio::time::timeout(Duration::ZERO, insert).await);
            drop(transaction);
        }
        for id in 0..20 {
            let transaction = store.begin().await.unwrap();
            let sql = format!("INSERT INTO scratch VALUES ('{id}')");
            transaction.execute(sql).await.unwrap();
            transaction.commit().await.unwrap();
        }
        let other = config.open().await.unwrap();
        let rows = other.db().fetch_count("SELECT COUNT(*) FROM scratch");
        assert_eq!(rows.await.unwrap(), 20);
    }
);

on_each_database!(a_row_of_what_was_not_committed_is_an_error, |database| {
    let store = database.config().open().await.unwrap();
    let db = store.db();
    for table in [
        "CREATE TABLE parents (id TEXT PRIMARY KEY)",
        "CREATE TABLE children (id TEXT PRIMARY KEY, \
             parent TEXT REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)",
    ] {
        db.execute(table).await.unwrap();
    }
    // What a deferred reference misses is found by the commit, after the row is out.
    let orphan = "INSERT INTO children VALUES ('a', 'nobody') RETURNING id";
    let claimed: Result<Option<String>, _> = db.fetch_scalar(orphan).await;
    claimed.unwrap_err();
    let rows = db.fetch_count("SELECT COUNT(*) FROM children").await;
    assert_eq!(rows.unwrap(), 0);
});

/// SQLite rolls a transaction back by itself when there is no room.
#[tokio::test]
async fn a_full_disk_leaves_no_transaction_open() {
    let database = TestDatabase::empty_sqlite();
    let mut config = database.config();
    config.max_connections = 2;
    let store = config.open().await.unwrap();
    let scratch = "CREATE TABLE scratch (id TEXT PRIMARY KEY, text TEXT)";
    store.db().execute(scratch).await.unwrap();
    for round in 0..8 {
        let transaction = store.begin().await.unwrap();
        let full = "PRAGMA max_page_count = 1";
        transaction.execute(full).await.unwrap();
        let sql = "INSERT INTO scratch SELECT hex(randomblob(16)), hex(randomblob(100000))";
        let error = transaction.execute(sql).await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        drop(transaction);
        let sql = format!("INSERT INTO scratch VALUES ('{round}', '')");
        let transaction = store.begin().await.unwrap();
        transaction.execute(sql).await.unwrap();
        transaction.commit().await.unwrap();
    }
    let other = config.open().await.unwrap();
    let rows = other.db().fetch_count("SELECT COUNT(*) FROM scratch");
    assert_eq!(rows.await.unwrap(), 8);
}

on_each_database!(
    what_one_connection_stores_is_there_for_another,
    |database| {
        let store = database.config().open().await.unwrap();
        // The second one finds the row of the first.
        for now in [1, 2] {
            store.check("node", now).await.unwrap();
        }
    }
);
