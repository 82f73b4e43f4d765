//! Failures name the database and the remedy, from its opening on.

use std::{path::Path, sync::LazyLock};

use sqlx::Connection as _;
use sqlx_sqlite::SqliteConnection;

use super::*;
use crate::{
    Executor as _, Rows, StatementBatch, Store, StoreError, StoreErrorKind, StoreSettings, Writer,
    error::OpenDatabase,
};

fn settings(folder: &Path, max_connections: u32) -> StoreSettings {
    let file = folder.join("colloquy.db");
    StoreSettings {
        url: format!("sqlite://{}", file.display()),
        max_connections,
        folder: folder.to_owned(),
        place: file.display().to_string(),
    }
}

/// An error with all its causes.
fn told(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        told.push_str(": ");
        told.push_str(&cause.to_string());
        next = cause.source();
    }
    told
}

/// What opening and migrating says, with all causes.
async fn said(folder: &Path) -> String {
    match Store::open(&settings(folder, 2)).await {
        Err(error) => told(&error),
        Ok(store) => told(&store.migrate().await.unwrap_err()),
    }
}

#[tokio::test]
async fn errors_name_the_file_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("colloquy.db");
    std::fs::write(
        &file,
        "This is no database, but a text of some length.".repeat(40),
    )
    .unwrap();
    let text = said(folder.path()).await;
    assert!(text.contains(file.to_str().unwrap()), "{text}");
    assert!(text.contains("no SQLite database; move it away"), "{text}");
    assert_eq!(text.matches("(code: ").count(), 1, "{text}");

    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let text = said(folder.path()).await;
    assert!(text.contains(file.to_str().unwrap()), "{text}");
    assert!(text.contains("cannot be opened; see whether"), "{text}");
    assert_eq!(text.matches("(code: ").count(), 1, "{text}");
}

#[tokio::test]
async fn a_database_that_another_process_locks_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1);
    let store = Store::open(&settings).await.unwrap();
    let mut other = SqliteConnection::connect(&settings.url).await.unwrap();
    let lock = sqlx::query("BEGIN IMMEDIATE").execute(&mut other);
    lock.await.unwrap();
    // The one connection does not wait, and the one that follows it after a failure is told so again.
    let at_once = "PRAGMA busy_timeout = 0";
    store.db().execute(at_once.to_owned()).await.unwrap();
    let create = "CREATE TABLE a (id TEXT)".to_owned();
    let alone = store.db().execute(create).await.unwrap_err();
    store.db().execute(at_once.to_owned()).await.unwrap();
    let begun = store.begin().await.unwrap_err();
    for error in [alone, begun] {
        assert!(error.is_unavailable(), "{error}");
        let text = told(&error);
        assert!(text.contains(&settings.place), "{text}");
        assert!(text.contains(LOCKED), "{text}");
        assert_eq!(text.matches("database is locked").count(), 1, "{text}");
    }
    // It waits here, for as long as a transaction waits at most.
    let waited = store.begin().await.unwrap_err().to_string();
    assert!(waited.contains(&settings.place), "{waited}");
    assert!(waited.contains(LOCKED), "{waited}");
}

/// Checks that an error of a database that was opened names it once, with the remedy.
#[track_caller]
fn check(error: &StoreError, settings: &StoreSettings, remedy: &str) {
    let text = told(error);
    let expected = format!("the database {}: {remedy}", settings.place);
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(text.matches("(code: ").count(), 1, "{text}");
}

const CREATE: &str = "CREATE TABLE a (text TEXT)";
const INSERT: &str = "INSERT INTO a VALUES (zeroblob(100000))";

#[tokio::test]
async fn a_disk_that_is_full_while_the_server_runs_is_named_with_the_remedy() {
    const REMEDY: &str = "the disk is full; make room";
    // Stands for the disk.
    const FULL: &str = "PRAGMA max_page_count = 3";
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1);
    let store = Store::open(&settings).await.unwrap();
    store.db().execute(CREATE).await.unwrap();

    let transaction = store.begin().await.unwrap();
    transaction.execute(FULL).await.unwrap();
    let full = transaction.execute(INSERT).await.unwrap_err();
    assert_eq!(full.kind(), StoreErrorKind::Full, "{full}");
    check(&full, &settings, REMEDY);
    let refused = transaction.commit().await.unwrap_err();
    assert!(refused.is_unavailable(), "{refused}");
    let text = told(&refused);
    assert!(text.contains(&settings.place), "{text}");

    // A new connection follows the one that failed.
    store.db().execute(FULL).await.unwrap();
    let full = store.db().execute(INSERT).await.unwrap_err();
    check(&full, &settings, REMEDY);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_while_the_server_runs_is_named_with_the_remedy() {
    const REMEDY: &str = "it cannot be written; give the file";
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path(), 1);
    let store = Store::open(&settings).await.unwrap();
    store.db().execute(CREATE).await.unwrap();
    store.db().close().await;

    settings.url.push_str("?mode=ro");
    let store = Store::open(&settings).await.unwrap();
    let alone = store.db().execute(INSERT).await.unwrap_err();
    check(&alone, &settings, REMEDY);
    assert!(alone.is_unavailable(), "{alone}");
    let transaction = store.begin().await.unwrap();
    let within = transaction.execute(INSERT).await.unwrap_err();
    check(&within, &settings, REMEDY);
}

#[tokio::test]
async fn a_file_that_is_damaged_is_named_with_the_remedy() {
    const PAGE_BYTES: usize = 4096;
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1);
    let store = Store::open(&settings).await.unwrap();
    store.db().execute(CREATE).await.unwrap();
    store.db().execute(INSERT).await.unwrap();
    store.db().close().await;

    // The first page has the schema, so the database can be opened.
    let mut bytes = std::fs::read(&settings.place).unwrap();
    assert!(bytes.len() > 100_000);
    bytes[PAGE_BYTES..].fill(0xff);
    std::fs::write(&settings.place, bytes).unwrap();
    let store = Store::open(&settings).await.unwrap();
    let count = store.db().fetch_count("SELECT COUNT(*) FROM a");
    let count = count.await.unwrap_err();
    check(&count, &settings, "it is damaged; restore a backup");
    let rows = store.db().fetch_rows("SELECT text FROM a".into());
    let rows = rows.await.unwrap_err();
    check(&rows, &settings, "it is damaged; restore a backup");
}

#[tokio::test]
async fn what_a_writer_meets_names_the_database() {
    static READ: LazyLock<StatementBatch<1>> =
        LazyLock::new(|| StatementBatch::beginning(["SELECT value ->> 0 FROM {rows}".to_owned()]));
    static WRITE: LazyLock<StatementBatch<1>> = LazyLock::new(|| {
        let sql = "INSERT INTO missing SELECT value ->> 0 FROM {rows}";
        StatementBatch::committing([sql.to_owned()])
    });
    let rows = || [Rows::of([["a"]]).unwrap()];
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1);
    let store = Store::open(&settings).await.unwrap();
    let mut writer = Writer::new(&store);
    let (transaction, found) = writer.begin(&READ, rows()).await.unwrap();
    assert_eq!(found[0].len(), 1);
    let written = transaction.commit(&WRITE, rows()).await.unwrap_err();
    let text = told(&written);
    assert!(text.contains(&settings.place), "{text}");
    assert!(text.contains("no such table"), "{text}");
}

#[test]
fn failures_while_the_server_runs_have_remedies_of_their_own() {
    let database = |dialect| OpenDatabase {
        place: "HERE".into(),
        dialect,
    };
    let sqlite = StoreError::at(&database(Dialect::Sqlite), sqlx::Error::PoolTimedOut);
    let text = told(&sqlite);
    assert!(
        text.starts_with("the database HERE: all connections"),
        "{text}"
    );
    let postgres = StoreError::at(&database(Dialect::Postgres), sqlx::Error::PoolTimedOut);
    let text = told(&postgres);
    assert!(text.contains("whether the server runs"), "{text}");
    assert!(postgres.is_unavailable());
    // One without a remedy.
    let closed = StoreError::at(&database(Dialect::Postgres), sqlx::Error::PoolClosed);
    let expected = format!("the database HERE: {}", sqlx::Error::PoolClosed);
    assert_eq!(told(&closed), expected);
}

#[test]
fn codes_have_remedies() {
    for (code, remedy) in [
        ("53100", "make room"),
        ("53300", "max_connections"),
        ("25006", "name the primary"),
        ("42P01", "a table is missing"),
        ("57P01", "see whether it runs again"),
        ("58030", "disk"),
    ] {
        let told = of_postgres(code).unwrap();
        assert!(told.contains(remedy), "{code}: {told}");
    }
    assert_eq!(of_postgres("23505"), None);
    // SQLITE_IOERR_WRITE, SQLITE_CORRUPT_INDEX, SQLITE_NOTADB, SQLITE_READONLY_DBMOVED
    for (code, remedy) in [
        (778, "whether the disk is well"),
        (779, "restore a backup"),
        (26, "no SQLite database"),
        (1032, "moved or removed"),
    ] {
        let told = of_sqlite(code).unwrap();
        assert!(told.contains(remedy), "{code}: {told}");
    }
    // SQLITE_CONSTRAINT_UNIQUE
    assert_eq!(of_sqlite(2067), None);
}
