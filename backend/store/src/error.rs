//! What went wrong with the database, by what it means to who asked.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use sqlx::error::DatabaseError;
use sqlx_postgres::PgDatabaseError;
use sqlx_sqlite::SqliteError;

use crate::{Dialect, remedy};

/// A failure of the database, of a statement, or of what is stored.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    cause: Box<dyn Error + Send + Sync>,
}

/// A database that was opened, as errors name it.
#[derive(Debug, Clone)]
pub(crate) struct OpenDatabase {
    /// Where it is, for people.
    pub(crate) place: Arc<str>,
    pub(crate) dialect: Dialect,
}

/// A failure of a database that was opened.
#[derive(Debug, thiserror::Error)]
#[error("the database {place}{advice}: {source}")]
struct DatabaseFailure {
    place: Arc<str>,
    /// What an operator can do about it, `": .."`; empty where that is not known.
    advice: String,
    source: sqlx::Error,
}

/// What a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The database was away, or could not store at the moment: the same may succeed later. Anything else it has refused,
    /// and would refuse again.
    Unavailable,
    /// The disk of the database has no room, so that not even a deletion can be stored: the same may succeed once there is room.
    Full,
    /// A row was refused because what it refers to is not there.
    ForeignKeyMissing,
    /// A row was refused because there is one with the same key.
    UniqueViolated,
    /// A text was refused because it has a character that no text in a database has: PostgreSQL stores no NUL.
    Text,
    /// What was there for a while only is gone: who begins anew may succeed, who tries the same again does not.
    Expired,
    /// What is stored cannot be read as what it should be.
    Malformed,
    /// Anything else: a mistake in a statement, a value that cannot be stored.
    Other,
}

impl StoreError {
    /// What is stored cannot be read as what it should be.
    pub fn malformed(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: StoreErrorKind::Malformed,
            cause: cause.into(),
        }
    }

    /// The database was away.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: StoreErrorKind::Unavailable,
            cause: cause.into(),
        }
    }

    /// What was there for a while only is gone.
    pub fn expired(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: StoreErrorKind::Expired,
            cause: cause.into(),
        }
    }

    /// Anything that is no fault of the database, such as a value that cannot be written as JSON.
    pub fn other(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: StoreErrorKind::Other,
            cause: cause.into(),
        }
    }

    /// Nobody could write to the SQLite database at this place in time.
    pub(crate) fn not_in_time(database: &OpenDatabase, waited: Duration) -> Self {
        Self::unavailable(format!(
            "no turn to write to the database {} within {} s; {}",
            database.place,
            waited.as_secs(),
            remedy::LOCKED
        ))
    }

    /// Names the database that failed, and the remedy where one is known.
    pub(crate) fn at(database: &OpenDatabase, error: sqlx::Error) -> Self {
        Self {
            kind: kind_of(&error),
            cause: Box::new(DatabaseFailure {
                place: Arc::clone(&database.place),
                advice: remedy::advice_while_running(&error, database.dialect),
                source: error,
            }),
        }
    }

    /// What it means.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the same may succeed later.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Unavailable | StoreErrorKind::Full
        )
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl Error for StoreError {
    /// The first cause that the message does not end with: those of sqlx end with their own.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let told = self.cause.to_string();
        let mut source = self.cause.source();
        while let Some(cause) = source
            && told.ends_with(&cause.to_string())
        {
            source = cause.source();
        }
        source
    }
}

/// For errors of no open database: one that cannot be opened, a row that cannot be read.
impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self {
            kind: kind_of(&error),
            cause: error.into(),
        }
    }
}

fn kind_of(error: &sqlx::Error) -> StoreErrorKind {
    use sqlx::Error as E;
    if is_full(error) {
        return StoreErrorKind::Full;
    }
    if is_outage(error) {
        return StoreErrorKind::Unavailable;
    }
    match error {
        E::Database(error) if error.is_foreign_key_violation() => StoreErrorKind::ForeignKeyMissing,
        E::Database(error) if error.is_unique_violation() => StoreErrorKind::UniqueViolated,
        E::Database(error) if error.code().is_some_and(|code| is_unstorable(&code)) => {
            StoreErrorKind::Text
        }
        E::ColumnDecode { .. } | E::Decode(_) | E::ColumnNotFound(_) => StoreErrorKind::Malformed,
        _ => StoreErrorKind::Other,
    }
}

/// Whether the database was away, or could not store at the moment.
pub(crate) fn is_outage(error: &sqlx::Error) -> bool {
    use sqlx::Error as E;
    match error {
        E::Io(_)
        | E::Tls(_)
        | E::Protocol(_)
        | E::PoolTimedOut
        | E::PoolClosed
        | E::WorkerCrashed
        | E::BeginFailed
        | E::InvalidSavePointStatement => true,
        E::Database(error) => match error.try_downcast_ref::<PgDatabaseError>() {
            Some(error) => is_postgres_outage(error.code()),
            None => sqlite_code(&**error).is_some_and(is_sqlite_outage),
        },
        _ => false,
    }
}

/// Whether the disk of the database has no room. This is an outage, too.
fn is_full(error: &sqlx::Error) -> bool {
    /// `disk_full`.
    const POSTGRES: &str = "53100";
    /// `SQLITE_FULL`.
    const SQLITE: i32 = 13;
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    match error.try_downcast_ref::<PgDatabaseError>() {
        Some(error) => error.code() == POSTGRES,
        None => sqlite_code(&**error).is_some_and(|code| code & 0xff == SQLITE),
    }
}

/// The extended result code of SQLite.
pub(crate) fn sqlite_code(error: &(dyn DatabaseError + 'static)) -> Option<i32> {
    let error = error.try_downcast_ref::<SqliteError>()?;
    DatabaseError::code(error)?.parse().ok()
}

/// By the SQLSTATE: no connection, transaction rolled back by the server, no resources, lock not available, server
/// stopping, error of its system, and a server that only reads.
fn is_postgres_outage(code: &str) -> bool {
    ["08", "40", "53", "57", "58"].contains(&code.get(..2).unwrap_or_default())
        || ["55P03", "25006"].contains(&code)
}

/// By the SQLSTATE: a character that is not of the encoding, or that JSON cannot give.
fn is_unstorable(code: &str) -> bool {
    ["22021", "22P05"].contains(&code)
}

/// By the result code, whose low byte is the kind: busy, locked, no memory, read-only, input or output, damaged, full,
/// cannot open, locking protocol, no database.
fn is_sqlite_outage(code: i32) -> bool {
    [5, 6, 7, 8, 10, 11, 13, 14, 15, 26].contains(&(code & 0xff))
}

#[cfg(test)]
mod tests {
    use sqlx::Connection as _;
    use sqlx_sqlite::SqliteConnection;

    use super::*;

    #[tokio::test]
    async fn a_database_without_room_is_told_from_one_that_is_away() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        // A database of three pages stands for a disk that is full.
        for sql in ["CREATE TABLE a (text TEXT)", "PRAGMA max_page_count = 3"] {
            sqlx::query(sql).execute(&mut connection).await.unwrap();
        }
        let insert = "INSERT INTO a VALUES (zeroblob(100000))";
        let full = sqlx::query(insert).execute(&mut connection).await;
        let full = StoreError::from(full.unwrap_err());
        assert_eq!(full.kind(), StoreErrorKind::Full, "{full}");
        assert!(full.is_unavailable());
        let away = StoreError::from(sqlx::Error::PoolTimedOut);
        assert_eq!(away.kind(), StoreErrorKind::Unavailable);
    }

    #[test]
    fn failures_of_the_database_are_told_from_refusals() {
        for code in [
            "08006", "40P01", "53300", "57P01", "57P03", "25006", "55P03",
        ] {
            assert!(is_postgres_outage(code), "{code}");
        }
        for code in ["23505", "23503", "42P01", "22P02"] {
            assert!(!is_postgres_outage(code), "{code}");
        }
        // SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_BUSY_SNAPSHOT, SQLITE_READONLY_DBMOVED
        for code in [13, 778, 517, 1032] {
            assert!(is_sqlite_outage(code), "{code}");
        }
        // SQLITE_ERROR, SQLITE_CONSTRAINT_UNIQUE
        for code in [1, 2067] {
            assert!(!is_sqlite_outage(code), "{code}");
        }
    }
}
