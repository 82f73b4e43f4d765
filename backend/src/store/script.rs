//! Transactions of two trips to the database: what is read under a lock, then what is written.
//!
//! A statement takes its rows, however many they are, as one JSON array, so its text never changes and stays prepared.
//!
//! SQLite runs each statement on the thread of its connection, and the way there and back takes longer than most
//! statements. So there all statements of a trip go together, over a connection that the [`Writer`] keeps. This leans on
//! SQLx's SQLite driver, which takes several statements as one; PostgreSQL gets them one by one.

use futures_util::TryStreamExt as _;
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, QueryResult, RuntimeErr,
    sqlx::{self, Either, Executor as _, sqlite::SqliteConnection},
};
use serde::Serialize;

use super::{Store, statement};

/// The rows of a statement.
#[derive(Debug)]
pub struct Rows {
    json: String,
    none: bool,
}

impl Rows {
    /// Rows of so many fields each: tuples or arrays of texts without NUL, whole numbers, and nothing.
    ///
    /// # Errors
    /// When a row is something else.
    pub fn of<T: Serialize>(rows: impl IntoIterator<Item = T>) -> Result<Self, DbErr> {
        let rows: Vec<T> = rows.into_iter().collect();
        let json = serde_json::to_string(&rows).map_err(|error| DbErr::Json(error.to_string()))?;
        Ok(Self {
            json,
            none: rows.is_empty(),
        })
    }
}

/// What the statements of a trip found.
pub type Found<const N: usize> = [Vec<QueryResult>; N];

/// Statements that go to the database together.
///
/// In their text, `{rows}` stands for their rows: something to select from whose `value ->> 0` is the first field, as text
/// unless it is cast. `{lock}` at the end of a `SELECT` locks what it finds.
#[derive(Debug)]
pub struct Trip<const N: usize> {
    sqlite: [String; N],
    postgres: [String; N],
    /// All of them, for SQLite, with the beginning or the end of the transaction.
    together: String,
    /// Statements in it before the first of them.
    before: usize,
}

impl<const N: usize> Trip<N> {
    /// A trip that begins a transaction.
    pub fn beginning(statements: [String; N]) -> Self {
        Self::new(statements, &["BEGIN IMMEDIATE"], &[])
    }

    /// A trip that commits it.
    pub fn committing(statements: [String; N]) -> Self {
        Self::new(statements, &[], &["COMMIT"])
    }

    fn new(statements: [String; N], before: &[&str], after: &[&str]) -> Self {
        let sqlite = |text: &str, place: usize| {
            text.replace("{rows}", &format!("jsonb_each(${place})"))
                .replace("{lock}", "")
        };
        let postgres = |text: &str| {
            text.replace(
                "{rows}",
                "jsonb_array_elements(CAST($1 AS JSONB)) AS each (value)",
            )
            .replace("{lock}", " FOR UPDATE")
        };
        let numbered = statements.iter().zip(1..);
        let together: Vec<String> = before
            .iter()
            .map(|text| (*text).to_owned())
            .chain(numbered.map(|(text, place)| sqlite(text, place)))
            .chain(after.iter().map(|text| (*text).to_owned()))
            .collect();
        Self {
            postgres: statements.each_ref().map(|text| postgres(text)),
            sqlite: statements.map(|text| sqlite(&text, 1)),
            together: together.join(";\n"),
            before: before.len(),
        }
    }

    /// Runs the statements that have rows within a transaction of somebody else, which neither begins nor ends by it.
    ///
    /// # Errors
    /// The database's failure.
    pub async fn run_in(
        &self,
        transaction: &DatabaseTransaction,
        rows: [Rows; N],
    ) -> Result<Found<N>, DbErr> {
        let texts = match transaction.get_database_backend() {
            DbBackend::Postgres => &self.postgres,
            _ => &self.sqlite,
        };
        let mut found = [const { Vec::new() }; N];
        for ((text, rows), found) in texts.iter().zip(rows).zip(&mut found) {
            if !rows.none {
                let statement = statement(transaction, text, [rows.json.into()]);
                *found = transaction.query_all_raw(statement).await?;
            }
        }
        Ok(found)
    }

    /// Runs all of them on SQLite.
    async fn run_together(
        &'static self,
        connection: &mut SqliteConnection,
        rows: [Rows; N],
    ) -> Result<Found<N>, DbErr> {
        let query = sqlx::query(self.together.as_str());
        let query = rows
            .into_iter()
            .fold(query, |query, rows| query.bind(rows.json));
        let mut found = [const { Vec::new() }; N];
        let mut place = 0;
        let mut steps = connection.fetch_many(query);
        while let Some(step) = steps.try_next().await.map_err(failed)? {
            match step {
                Either::Left(_) => place += 1,
                Either::Right(row) => {
                    let of = usize::checked_sub(place, self.before);
                    if let Some(found) = of.and_then(|of| found.get_mut(of)) {
                        found.push(row.into());
                    }
                }
            }
        }
        Ok(found)
    }
}

/// Who writes one transaction after the other.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    /// Its own, on SQLite. It is away during a transaction, so that one that does not end is rolled back with it.
    connection: Option<SqliteConnection>,
}

impl Writer {
    /// A writer that takes its connection when it first needs it.
    #[must_use]
    pub fn new(store: &Store) -> Self {
        Self {
            store: store.clone(),
            connection: None,
        }
    }

    /// Begins a transaction and tells what it found.
    ///
    /// # Errors
    /// The database's failure.
    pub async fn begin<const N: usize>(
        &mut self,
        trip: &'static Trip<N>,
        rows: [Rows; N],
    ) -> Result<(Begun<'_>, Found<N>), DbErr> {
        if self.store.connection.get_database_backend() != DbBackend::Sqlite {
            let transaction = self.store.begin().await?;
            let found = trip.run_in(&transaction, rows).await?;
            return Ok((Begun(On::Pooled(transaction)), found));
        }
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let pool = self.store.connection.get_sqlite_connection_pool();
                pool.acquire().await.map_err(failed)?.detach()
            }
        };
        let found = trip.run_together(&mut connection, rows).await?;
        let home = &mut self.connection;
        Ok((Begun(On::Own { connection, home }), found))
    }
}

/// A transaction that has begun. Dropped, it is rolled back.
#[must_use = "dropped, it is rolled back"]
pub struct Begun<'a>(On<'a>);

/// The connection of a transaction.
enum On<'a> {
    Own {
        connection: SqliteConnection,
        home: &'a mut Option<SqliteConnection>,
    },
    Pooled(DatabaseTransaction),
}

impl Begun<'_> {
    /// Writes and commits.
    ///
    /// # Errors
    /// The database's failure; the transaction may be committed all the same.
    pub async fn commit<const N: usize>(
        self,
        trip: &'static Trip<N>,
        rows: [Rows; N],
    ) -> Result<(), DbErr> {
        match self.0 {
            On::Own {
                mut connection,
                home,
            } => {
                trip.run_together(&mut connection, rows).await?;
                *home = Some(connection);
                Ok(())
            }
            On::Pooled(transaction) => {
                trip.run_in(&transaction, rows).await?;
                transaction.commit().await
            }
        }
    }
}

fn failed(error: sqlx::Error) -> DbErr {
    DbErr::Exec(RuntimeErr::SqlxError(error.into()))
}
