//! What an operator can do about a database that cannot be opened or changed, or that fails later.

use sqlx_postgres::PgDatabaseError;

use crate::{Dialect, error::sqlite_code};

/// What to do about an SQLite database that is locked while a server runs, whose own transactions lock it, too.
pub(crate) const LOCKED: &str = "if another process holds it, end that one";

/// The remedy for an error of opening or migrating as the rest of a message, `": .."`; empty where none is known.
pub(crate) fn advice(error: &sqlx::Error) -> String {
    as_rest(remedy(error))
}

/// The remedy for an error of a database that was opened as the rest of a message, `": .."`; empty where none is known.
pub(crate) fn advice_while_running(error: &sqlx::Error, dialect: Dialect) -> String {
    as_rest(remedy_while_running(error, dialect))
}

fn as_rest(remedy: Option<&str>) -> String {
    remedy.map_or_else(String::new, |remedy| format!(": {remedy}"))
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
            None => of_sqlite(sqlite_code(&**error)?),
        },
        _ => None,
    }
}

/// The settings are right, since the database was opened with them, and the server itself may use all connections and lock
/// the file.
fn remedy_while_running(error: &sqlx::Error, dialect: Dialect) -> Option<&'static str> {
    use sqlx::Error as E;
    match (error, dialect) {
        (E::PoolTimedOut, Dialect::Sqlite) => {
            Some("all connections are in use; if that lasts, raise store.max_connections")
        }
        // A server that has no connection left is tried again until the time is over.
        (E::PoolTimedOut, Dialect::Postgres) => Some(
            "no connection came free; see whether the server runs, and whether store.max_connections and its max_connections suffice",
        ),
        (E::Io(_), Dialect::Sqlite) => Some("see whether the disk is slow"),
        (E::Io(_) | E::Tls(_), Dialect::Postgres) => {
            Some("see whether the server runs, can be reached and is not overloaded")
        }
        (E::Database(database), Dialect::Sqlite) => match sqlite_code(&**database)? & 0xff {
            5 | 6 => Some(LOCKED),
            _ => remedy(error),
        },
        (E::Database(_), Dialect::Postgres) => remedy(error),
        _ => None,
    }
}

/// By the SQLSTATE.
fn of_postgres(code: &str) -> Option<&'static str> {
    Some(match code {
        "28P01" | "28000" => "the server refuses the user or the password",
        "3D000" => "there is no such database; create it, for one with `createdb`",
        "42501" => "the user lacks a privilege; make it the owner of the database",
        "42P01" => {
            "a table is missing, or not in the search_path of the user; if it was removed, restore a backup"
        }
        "53100" => "the disk of the server is full; make room",
        "53300" => {
            "the server has no connection left; lower store.max_connections or raise its max_connections"
        }
        "57P01" | "57P02" | "57P03" => "the server stops or starts; see whether it runs again",
        "58030" => "the server cannot read or write its files; see whether its disk is well",
        "25006" => "the server only reads, as a standby does; name the primary",
        "XX001" | "XX002" => "it is damaged; restore a backup",
        _ => return None,
    })
}

/// By the extended result code, whose low byte is the kind.
fn of_sqlite(code: i32) -> Option<&'static str> {
    /// `SQLITE_READONLY_DBMOVED`.
    const MOVED: i32 = 1032;
    Some(match code & 0xff {
        5 | 6 => "another process holds it; end that one",
        8 if code == MOVED => {
            "the file was moved or removed while it was open; put it back, and restart the server"
        }
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
#[path = "remedy_tests.rs"]
mod tests;
