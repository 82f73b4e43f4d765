//! Transactions of two trips.

use std::{sync::LazyLock, time::Duration};

use colloquy_store::{BatchTransaction, Executor as _, Rows, StatementBatch, Store, Writer};
use support::on_each_database;

use crate::Id;

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
struct Row {
    id: String,
    name: Option<String>,
    amount: Option<i64>,
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

on_each_database!(rows_come_back_as_they_went, |database| {
    let store = database.config().open().await.unwrap();
    let mut writer = writer(&store).await;
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

on_each_database!(
    what_does_not_end_is_rolled_back_and_holds_nobody_up,
    |database| {
        let store = database.config().open().await.unwrap();
        let mut writer = writer(&store).await;
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
            let other = store.begin().await.unwrap();
            let sql = "UPDATE scratch SET name = 'other' WHERE id = 'a'";
            other.execute(sql).await.unwrap();
            other.commit().await.unwrap();
        };
        tokio::time::timeout(support::patience(Duration::from_secs(10)), others)
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

on_each_database!(a_transaction_waits_for_the_one_before_it, |database| {
    let store = database.config().open().await.unwrap();
    let mut writer = writer(&store).await;
    let (transaction, ..) = take(&mut writer, &[], &[]).await;
    assert!(put(transaction, &[row("a", None, Some(0))], &[]).await);
    let adding = (0..8).map(|_| async {
        let mut writer = Writer::new(&store);
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

on_each_database!(what_is_written_is_told, |database| {
    let store = database.config().open().await.unwrap();
    let mut writer = writer(&store).await;
    let mut writes = store.writes();
    let mut is_told = || {
        let changed = writes.has_changed().unwrap();
        writes.mark_unchanged();
        changed
    };
    is_told();
    let db = store.db();
    for (sql, expected) in [
        ("INSERT INTO scratch VALUES ('a', NULL, 1)", true),
        ("UPDATE scratch SET amount = 2 WHERE id = 'none'", false),
        ("DELETE FROM scratch WHERE id = 'none'", false),
    ] {
        db.execute(sql).await.unwrap();
        assert_eq!(is_told(), expected, "{sql}");
    }
    for (sql, expected) in [
        (" select id FROM scratch", false),
        ("SELECT id FROM scratch WHERE id = 'none'", false),
        (
            "UPDATE scratch SET amount = 2 WHERE id = 'none' RETURNING id",
            false,
        ),
        ("UPDATE scratch SET amount = 2 RETURNING id", true),
    ] {
        let _: Vec<Id> = db.fetch_all(sql).await.unwrap();
        assert_eq!(is_told(), expected, "{sql}");
        let _: Option<Id> = db.fetch_one(sql).await.unwrap();
        assert_eq!(is_told(), expected, "{sql}");
    }

    const CHANGE: &str = "UPDATE scratch SET amount = 3";
    let transaction = store.begin().await.unwrap();
    transaction.execute(CHANGE).await.unwrap();
    assert!(!is_told(), "it is not committed");
    drop(transaction);
    let transaction = store.begin().await.unwrap();
    transaction.execute(CHANGE).await.unwrap();
    assert!(!is_told(), "the one before was rolled back");
    transaction.commit().await.unwrap();
    assert!(is_told());

    let (transaction, _, removed) = take(&mut writer, &[], &["a"]).await;
    assert_eq!(removed, ["a"]);
    assert!(!is_told(), "it is not committed");
    drop(transaction);
    let (transaction, _, _) = take(&mut writer, &[], &[]).await;
    assert!(put(transaction, &[row("b", None, None)], &[]).await);
    assert!(is_told());
});
