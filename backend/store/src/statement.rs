//! Statements, what runs them, and the rows that they find.

use std::borrow::Cow;

use futures_util::future::BoxFuture;
use sqlx::{Decode, FromRow, Row as _, Type};
use sqlx_postgres::{PgRow, Postgres};
use sqlx_sqlite::{Sqlite, SqliteRow};

use crate::StoreError;

/// A statement in the SQL that both databases know, with what is bound to `$1`, `$2`, .. in order. Its text is prepared once
/// a connection.
#[derive(Debug, Clone)]
pub struct Statement {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) values: Vec<Value>,
}

impl Statement {
    /// Returns true unless it only reads, which begins with `SELECT`.
    pub(crate) fn writes(&self) -> bool {
        let verb = self.sql.trim_start().get(..6);
        !verb.is_some_and(|verb| verb.eq_ignore_ascii_case("select"))
    }
}

/// A statement with values.
pub fn statement(
    sql: impl Into<Cow<'static, str>>,
    values: impl IntoIterator<Item = Value>,
) -> Statement {
    Statement {
        sql: sql.into(),
        values: values.into_iter().collect(),
    }
}

impl From<&'static str> for Statement {
    fn from(sql: &'static str) -> Self {
        statement(sql, [])
    }
}

impl From<String> for Statement {
    fn from(sql: String) -> Self {
        statement(sql, [])
    }
}

/// A value of a statement; `None` is null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `TEXT`.
    Text(Option<String>),
    /// `BIGINT`.
    Integer(Option<i64>),
    /// `BOOLEAN`.
    Boolean(Option<bool>),
}

macro_rules! value_from {
    ($($variant:ident: $kind:ty),+ $(,)?) => {
        $(
            impl From<$kind> for Value {
                fn from(value: $kind) -> Self {
                    Self::$variant(Some(value.into()))
                }
            }

            impl From<Option<$kind>> for Value {
                fn from(value: Option<$kind>) -> Self {
                    Self::$variant(value.map(Into::into))
                }
            }
        )+
    };
}

value_from!(Text: String, Text: &str, Integer: i64, Boolean: bool);

/// Which database it is, for the few statements that are not the same on both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

impl Dialect {
    /// The SQL of the database's own time, in milliseconds since 1970: one clock for all nodes.
    #[must_use]
    pub fn now_ms(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS BIGINT)",
            // Not that of the transaction's beginning.
            Self::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }
}

/// A row of either database.
#[derive(Debug)]
pub enum DbRow {
    /// Of SQLite.
    Sqlite(SqliteRow),
    /// Of PostgreSQL.
    Postgres(PgRow),
}

impl From<SqliteRow> for DbRow {
    fn from(row: SqliteRow) -> Self {
        Self::Sqlite(row)
    }
}

impl From<PgRow> for DbRow {
    fn from(row: PgRow) -> Self {
        Self::Postgres(row)
    }
}

impl DbRow {
    /// Reads the columns by the names of the fields.
    ///
    /// # Errors
    /// When a column is not there or holds something else.
    pub fn read<T: FromDbRow>(&self) -> Result<T, StoreError> {
        let read = match self {
            Self::Sqlite(row) => T::from_row(row),
            Self::Postgres(row) => T::from_row(row),
        };
        Ok(read?)
    }

    /// Reads the one column of a row.
    fn scalar<T: Scalar>(&self) -> Result<T, StoreError> {
        let read = match self {
            Self::Sqlite(row) => row.try_get(0),
            Self::Postgres(row) => row.try_get(0),
        };
        Ok(read?)
    }
}

/// What derives [`sqlx::FromRow`]: a struct whose fields are columns of either database.
pub trait FromDbRow:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl<T> FromDbRow for T where
    T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

/// The value of a column of either database.
pub trait Scalar:
    for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> + Send
{
}

impl<T> Scalar for T where
    T: for<'r> Decode<'r, Sqlite>
        + Type<Sqlite>
        + for<'r> Decode<'r, Postgres>
        + Type<Postgres>
        + Send
{
}

/// What runs statements: the database by itself, or a transaction. Its futures are boxed, so that those of the callers stay
/// small to compile: the driver's are deep.
pub trait Executor: Sync {
    /// Which database it is.
    fn dialect(&self) -> Dialect;

    /// Runs a statement and tells how many rows it changed.
    ///
    /// # Errors
    /// The database's failure.
    fn execute(
        &self,
        statement: impl Into<Statement> + Send,
    ) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// All rows that a statement finds, not read yet.
    ///
    /// # Errors
    /// The database's failure.
    fn fetch_rows(&self, statement: Statement) -> BoxFuture<'_, Result<Vec<DbRow>, StoreError>>;

    /// The first row that a statement finds, not read yet.
    ///
    /// # Errors
    /// The database's failure.
    fn fetch_row(&self, statement: Statement) -> BoxFuture<'_, Result<Option<DbRow>, StoreError>>;

    /// All rows that a statement finds.
    ///
    /// # Errors
    /// The database's failure, or a row that cannot be read.
    fn fetch_all<T: FromDbRow>(
        &self,
        statement: impl Into<Statement> + Send,
    ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send {
        async {
            let rows = self.fetch_rows(statement.into()).await?;
            rows.iter().map(DbRow::read).collect()
        }
    }

    /// The first row that a statement finds. The others are read and left, so it is to find few.
    ///
    /// # Errors
    /// The database's failure, or a row that cannot be read.
    fn fetch_one<T: FromDbRow>(
        &self,
        statement: impl Into<Statement> + Send,
    ) -> impl Future<Output = Result<Option<T>, StoreError>> + Send {
        async {
            let row = self.fetch_row(statement.into()).await?;
            row.as_ref().map(DbRow::read).transpose()
        }
    }

    /// The one column of the first row that a statement finds.
    ///
    /// # Errors
    /// The database's failure, or a value that cannot be read.
    fn fetch_scalar<T: Scalar>(
        &self,
        statement: impl Into<Statement> + Send,
    ) -> impl Future<Output = Result<Option<T>, StoreError>> + Send {
        async {
            let row = self.fetch_row(statement.into()).await?;
            row.as_ref().map(DbRow::scalar).transpose()
        }
    }

    /// How many there are: the whole number that a statement finds.
    ///
    /// # Errors
    /// The database's failure.
    fn fetch_count(
        &self,
        statement: impl Into<Statement> + Send,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send {
        async {
            let count: Option<i64> = self.fetch_scalar(statement).await?;
            Ok(count.unwrap_or_default().unsigned_abs())
        }
    }
}
