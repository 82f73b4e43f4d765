//! What an operator can do about a database that cannot be opened or changed.

use sqlx::error::DatabaseError;
use sqlx_postgres::PgDatabaseError;

/// What to do about an SQLite database that is locked while a server runs, whose own transactions lock it, too.
pub(crate) const LOCKED: &str = "if another process holds it, end that one";

/// The remedy as the rest of a message, `": .."`; empty where none is known.
pub(crate) fn advice(error: &sqlx::Error) -> String {
    remedy(error).map_or_else(String::new, |remedy| format!(": {remedy}"))
}

fn remedy(error: &sqlx::Error) -> Option<&'static str> {
    use sqlx::Error as E;
    match error {
        E::Configuration(_) => Some("the URL is malformed"),
        E::Io(_) | E::Tls(_) | E::PoolTimedOut => Some(
            "no server answers there; see whether it runs, and whether host and port are right",
        ),
        E::Database(error) => match error.try_downcast_ref::<PgDatabaseError>() {
            Some(error) => of_postgres(error.code()),
            None => of_sqlite(DatabaseError::code(error.as_ref())?.parse().ok()?),
        },
        _ => None,
    }
}

/// By the SQLSTATE.
fn of_postgres(code: &str) -> Option<&'static str> {
    Some(match code {
        "28P01" | "28000" => "the server refuses the user or the password",
        "3D000" => "there is no such database; create it, for one with `createdb`",
        "42501" => "the user lacks a privilege; make it the owner of the database",
        "53300" => {
            "the server has no connection left; lower store.max_connections or raise its max_connections"
        }
        "25006" => "the server only reads, as a standby does; name the primary",
        _ => return None,
    })
}

/// By the extended result code, whose low byte is the kind.
fn of_sqlite(code: i32) -> Option<&'static str> {
    Some(match code & 0xff {
        5 | 6 => "another process holds it; end that one",
        8 => {
            "it cannot be written; give the file and its folder to the user that the server runs as"
        }
        10 => "reading or writing failed; see whether the disk is well",
        11 => "it is damaged; restore a backup",
        13 => "the disk is full; make room",
        14 => {
            "the file cannot be opened; see whether its folder exists and the server may read and write both"
        }
        26 => "the file is no SQLite database; move it away, or name another in store.database_url",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sqlx::Connection as _;
    use sqlx_sqlite::SqliteConnection;

    use crate::{Executor as _, Store, StoreSettings};

    fn settings(folder: &Path, max_connections: u32) -> StoreSettings {
        let file = folder.join("colloquy.db");
        StoreSettings {
            url: format!("sqlite://{}", file.display()),
            max_connections,
            folder: folder.to_owned(),
            place: file.display().to_string(),
        }
    }

    /// What opening and migrating says, with all causes.
    async fn said(folder: &Path) -> String {
        let settings = settings(folder, 2);
        let all = |error: &dyn std::error::Error| {
            let mut said = error.to_string();
            let mut next = error.source();
            while let Some(cause) = next {
                said.push_str(": ");
                said.push_str(&cause.to_string());
                next = cause.source();
            }
            said
        };
        match Store::open(&settings).await {
            Err(error) => all(&error),
            Ok(store) => all(&store.migrate().await.unwrap_err()),
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
            let mut text = error.to_string();
            if let Some(source) = std::error::Error::source(&error) {
                text = format!("{text}: {source}");
            }
            assert!(text.contains(&settings.place), "{text}");
            assert!(text.contains(super::LOCKED), "{text}");
            assert_eq!(text.matches("database is locked").count(), 1, "{text}");
        }
        // It waits here, for as long as a transaction waits at most.
        let waited = store.begin().await.unwrap_err().to_string();
        assert!(waited.contains(&settings.place), "{waited}");
        assert!(waited.contains(super::LOCKED), "{waited}");
    }
}
