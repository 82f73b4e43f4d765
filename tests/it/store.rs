//! Transactions of two trips, on both databases.

mod measures;
mod text_sums;
mod texts;

use std::{sync::LazyLock, time::Duration};

use colloquy::store::{
    BatchTransaction, Executor as _, Rows, Statement, StatementBatch, Store, StoreErrorKind, Writer,
};
use harness::{TestDatabase, on_both_databases};

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
struct Row {
    id: String,
    name: Option<String>,
    amount: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct Id {
    id: String,
}

static READ: LazyLock<StatementBatch<2>> = LazyLock::new(|| {
    StatementBatch::beginning([
        "SELECT id, name, amount FROM scratch WHERE id IN (SELECT value ->> 0 FROM {rows}) ORDER BY id{lock}".to_owned(),
        "DELETE FROM scratch WHERE id IN (SELECT value ->> 0 FROM {rows}) RETURNING id".to_owned(),
    ])
});

static WRITE: LazyLock<StatementBatch<2>> = LazyLock::new(|| {
    StatementBatch::committing([
        "INSERT INTO scratch (id, name, amount) SELECT value ->> 0, value ->> 1, CAST(value ->> 2 AS BIGINT) FROM {rows}"
            .to_owned(),
        "UPDATE scratch SET amount = new.amount \
         FROM (SELECT value ->> 0 AS id, CAST(value ->> 1 AS BIGINT) AS amount FROM {rows}) AS new \
         WHERE scratch.id = new.id"
            .to_owned(),
    ])
});

fn ids<'a>(ids: &'a [&'a str]) -> Rows {
    Rows::of(ids.iter().map(|id| [*id])).unwrap()
}

fn row(id: &str, name: Option<&str>, amount: Option<i64>) -> Row {
    Row {
        id: id.to_owned(),
        name: name.map(str::to_owned),
        amount,
    }
}

async fn writer(store: &Store) -> Writer {
    let sql = "CREATE TABLE scratch (id TEXT PRIMARY KEY, name TEXT, amount BIGINT CHECK (amount <> -13))";
    store.db().execute(sql).await.unwrap();
    Writer::new(store)
}

/// Reads rows and removes others; gives what was read and the ids of what was removed.
async fn take<'a>(
    writer: &'a mut Writer,
    read: &[&str],
    remove: &[&str],
) -> (BatchTransaction<'a>, Vec<Row>, Vec<String>) {
    let (transaction, [read, removed]) =
        writer.begin(&READ, [ids(read), ids(remove)]).await.unwrap();
    let read = read.iter().map(|row| row.read().unwrap()).collect();
    let removed = removed.iter().map(|row| row.read::<Id>().unwrap().id);
    (transaction, read, removed.collect())
}

async fn put(transaction: BatchTransaction<'_>, new: &[Row], amounts: &[(&str, i64)]) -> bool {
    let new = new.iter().map(|row| (&row.id, &row.name, row.amount));
    let rows = [Rows::of(new).unwrap(), Rows::of(amounts).unwrap()];
    transaction.commit(&WRITE, rows).await.is_ok()
}

on_both_databases!(rows_come_back_as_they_went, |app| {
    let mut writer = writer(&app.app.store).await;
    let rows = [
        row(
            "a",
            Some("it's \"quoted\" \\ $1 {rows}; --"),
            Some(i64::MAX),
        ),
        row(
            "b",
            Some("two\nlines\tand \u{1} and 🦀 and é"),
            Some(i64::MIN),
        ),
        row("c", Some(""), Some(0)),
        row("d", None, None),
        row("e", Some("17"), Some(-1)),
    ];
    let (transaction, read, removed) = take(&mut writer, &["a"], &["b"]).await;
    assert_eq!((read.len(), removed.len()), (0, 0));
    assert!(put(transaction, &rows, &[]).await);

    let all = ["e", "d", "c", "b", "a"];
    let (transaction, read, _) = take(&mut writer, &all, &[]).await;
    assert_eq!(read, rows);
    assert!(put(transaction, &[], &[("d", 4), ("a", 1), ("none", 2)]).await);

    let (transaction, read, removed) =
        take(&mut writer, &["d", "a", "c"], &["c", "e", "none"]).await;
    let amounts: Vec<_> = read
        .iter()
        .map(|row| (row.id.as_str(), row.amount))
        .collect();
    assert_eq!(amounts, [("a", Some(1)), ("c", Some(0)), ("d", Some(4))]);
    assert_eq!(removed, ["c", "e"]);
    // More rows than a statement may have parameters.
    let many: Vec<Row> = (0..70_000)
        .map(|id| row(&format!("m{id}"), None, Some(id)))
        .collect();
    assert!(put(transaction, &many, &[]).await);
    let (_transaction, read, _) = take(&mut writer, &["a", "c", "e", "m0", "m69999"], &[]).await;
    let found: Vec<_> = read.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(found, ["a", "m0", "m69999"]);
});

on_both_databases!(
    what_does_not_end_is_rolled_back_and_holds_nobody_up,
    |app| {
        let mut writer = writer(&app.app.store).await;
        let (transaction, ..) = take(&mut writer, &[], &[]).await;
        assert!(
            put(
                transaction,
                &[row("a", None, Some(1)), row("b", None, Some(2))],
                &[]
            )
            .await
        );

        let (transaction, _, removed) = take(&mut writer, &["a"], &["b"]).await;
        assert_eq!(removed, ["b"]);
        drop(transaction);
        let others = async {
            let other = app.app.store.begin().await.unwrap();
            let sql = "UPDATE scratch SET name = 'other' WHERE id = 'a'";
            other.execute(sql).await.unwrap();
            other.commit().await.unwrap();
        };
        tokio::time::timeout(Duration::from_secs(5), others)
            .await
            .unwrap();

        // The first statement could be stored, the second cannot.
        let (transaction, ..) = take(&mut writer, &["a"], &["b"]).await;
        assert!(!put(transaction, &[row("c", None, None)], &[("a", -13)]).await);
        let (transaction, read, _) = take(&mut writer, &["a", "b", "c"], &[]).await;
        let expected = [row("a", Some("other"), Some(1)), row("b", None, Some(2))];
        assert_eq!(read, expected);
        assert!(put(transaction, &[], &[]).await);

        // One that cannot begin leaves the next one alone.
        static BAD: LazyLock<StatementBatch<1>> =
            LazyLock::new(|| StatementBatch::beginning(["SELECT nothing FROM {rows}".to_owned()]));
        assert!(writer.begin(&BAD, [ids(&["a"])]).await.is_err());
        let (transaction, read, _) = take(&mut writer, &["a"], &[]).await;
        assert_eq!(read.len(), 1);
        assert!(put(transaction, &[], &[("a", 5)]).await);
    }
);

on_both_databases!(a_transaction_waits_for_the_one_before_it, |app| {
    let mut writer = writer(&app.app.store).await;
    let (transaction, ..) = take(&mut writer, &[], &[]).await;
    assert!(put(transaction, &[row("a", None, Some(0))], &[]).await);
    let adding = (0..8).map(|_| async {
        let mut writer = Writer::new(&app.app.store);
        for _ in 0..25 {
            let (transaction, read, _) = take(&mut writer, &["a"], &[]).await;
            let amount = read[0].amount.unwrap();
            assert!(put(transaction, &[], &[("a", amount + 1)]).await);
        }
    });
    futures_util::future::join_all(adding).await;
    let (_transaction, read, _) = take(&mut writer, &["a"], &[]).await;
    assert_eq!(read[0].amount, Some(200));
});

/// The migrations, by their names, in order.
fn migrations() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../backend/store/migrations");
    let files = std::fs::read_dir(folder).unwrap();
    let mut migrations: Vec<_> = files
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    migrations.sort();
    migrations
}

async fn run(store: &Store, sql: impl Into<Statement> + Send) -> u64 {
    store.db().execute(sql).await.unwrap()
}

/// Runs migrations as servers did that noted them in SeaORM's table.
async fn migrate_as_before(store: &Store, migrations: &[(String, String)]) {
    run(store, "CREATE TABLE seaql_migrations (version VARCHAR NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)").await;
    for (name, sql) in migrations {
        let transaction = store.begin().await.unwrap();
        for statement in sql.split(";\n").filter(|text| !text.trim().is_empty()) {
            transaction.execute(statement.to_owned()).await.unwrap();
        }
        let note = format!("INSERT INTO seaql_migrations VALUES ('{name}', 1)");
        transaction.execute(note).await.unwrap();
        transaction.commit().await.unwrap();
    }
}

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

on_both_databases!(
    a_transaction_of_which_a_part_failed_is_not_committed,
    |app| {
        let store = &app.app.store;
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
        let other = app.app.config.store.open().await.unwrap();
        let rows = other.db().fetch_count("SELECT COUNT(*) FROM scratch");
        assert_eq!(rows.await.unwrap(), 20);
    }
);

on_both_databases!(
    a_row_of_what_was_not_committed_is_an_error,
    |builder| builder.without_worker(),
    |app| {
        let db = app.app.store.db();
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
    }
);

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
