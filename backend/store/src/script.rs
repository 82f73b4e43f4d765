//! Transactions of two trips to the database: what is read under a lock, then what is written.
//!
//! A statement takes its rows, however many they are, as one JSON array, so its text never changes and stays prepared.
//!
//! SQLite runs each statement on the thread of its connection, and the way there and back takes longer than most
//! statements. So there all statements of a trip go together, over a connection that the [`Writer`] keeps. This leans on
//! SQLx's SQLite driver, which takes several statements as one; PostgreSQL gets them one by one.

use futures_util::TryStreamExt as _;
use serde::Serialize;
use sqlx::{Either, Executor as _};
use sqlx_sqlite::SqliteConnection;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    DbRow, Dialect, Executor, Store, StoreError, Transaction,
    connection::{STATEMENT_LIMIT, Writes, within},
    error::OpenDatabase,
    statement,
};

/// The rows of a statement.
#[derive(Debug, Clone)]
pub struct Rows {
    json: String,
    none: bool,
}

impl Rows {
    /// Rows of so many fields each: tuples or arrays of texts without NUL, whole numbers, nothing, and maps of these, which
    /// are read as the text of their JSON.
    ///
    /// # Errors
    /// When a row is something else.
    pub fn of<T: Serialize>(rows: impl IntoIterator<Item = T>) -> Result<Self, StoreError> {
        let rows: Vec<T> = rows.into_iter().collect();
        let json = serde_json::to_string(&rows).map_err(StoreError::other)?;
        Ok(Self {
            json,
            none: rows.is_empty(),
        })
    }
}

/// What the statements of a trip found.
pub type Found<const N: usize> = [Vec<DbRow>; N];

/// Statements that go to the database together.
///
/// In their text, `{rows}` stands for their rows: something to select from whose `value ->> 0` is the first field, as text
/// unless it is cast. `{lock}` at the end of a `SELECT` locks what it finds.
#[derive(Debug)]
pub struct StatementBatch<const N: usize> {
    sqlite: [String; N],
    postgres: [String; N],
    /// All of them, for SQLite, with the beginning or the end of the transaction.
    together: String,
    /// Statements in it before the first of them.
    before: usize,
}

impl<const N: usize> StatementBatch<N> {
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
        &'static self,
        transaction: &Transaction,
        rows: [Rows; N],
    ) -> Result<Found<N>, StoreError> {
        let texts = match transaction.dialect() {
            Dialect::Postgres => &self.postgres,
            Dialect::Sqlite => &self.sqlite,
        };
        let mut found = [const { Vec::new() }; N];
        for ((text, rows), found) in texts.iter().zip(rows).zip(&mut found) {
            if !rows.none {
                let statement = statement(text.as_str(), [rows.json.into()]);
                *found = transaction.fetch_rows(statement).await?;
            }
        }
        Ok(found)
    }

    /// Runs all of them on SQLite.
    async fn run_together(
        &'static self,
        connection: &mut SqliteConnection,
        rows: [Rows; N],
    ) -> Result<Found<N>, sqlx::Error> {
        let query = sqlx::query(self.together.as_str());
        let query = rows
            .into_iter()
            .fold(query, |query, rows| query.bind(rows.json));
        let work = async {
            let mut found = [const { Vec::new() }; N];
            let mut place = 0;
            let mut steps = connection.fetch_many(query);
            while let Some(step) = steps.try_next().await? {
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
        };
        within(STATEMENT_LIMIT, work).await
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
        trip: &'static StatementBatch<N>,
        rows: [Rows; N],
    ) -> Result<(BatchTransaction<'_>, Found<N>), StoreError> {
        if self.store.db.dialect() != Dialect::Sqlite {
            let transaction = self.store.begin().await?;
            let found = trip.run_in(&transaction, rows).await?;
            return Ok((BatchTransaction(Connection::Pooled(transaction)), found));
        }
        let database = self.store.database();
        let home = &mut self.connection;
        let begin = async {
            let turn = self.store.turn().await?;
            let own = match home.take() {
                Some(connection) => Some(connection),
                None => self.store.db.pool.detached().await?,
            };
            let mut connection =
                own.ok_or_else(|| StoreError::at(database, sqlx::Error::PoolClosed))?;
            let found = trip.run_together(&mut connection, rows).await;
            let found = found.map_err(|error| StoreError::at(database, error))?;
            Ok((turn, connection, found))
        };
        let (turn, connection, found) = self.store.soon(begin).await?;
        let own = Connection::Own {
            connection,
            home,
            database,
            writes: &self.store.db.pool.writes,
            _turn: turn,
        };
        Ok((BatchTransaction(own), found))
    }
}

/// A transaction that has begun. Dropped, it is rolled back.
#[must_use = "dropped, it is rolled back"]
pub struct BatchTransaction<'a>(Connection<'a>);

/// The connection of a transaction.
enum Connection<'a> {
    Own {
        connection: SqliteConnection,
        home: &'a mut Option<SqliteConnection>,
        database: &'a OpenDatabase,
        writes: &'a Writes,
        /// Ends after the transaction.
        _turn: Option<OwnedSemaphorePermit>,
    },
    Pooled(Transaction),
}

impl BatchTransaction<'_> {
    /// Writes and commits.
    ///
    /// # Errors
    /// The database's failure; the transaction may be committed all the same.
    pub async fn commit<const N: usize>(
        self,
        trip: &'static StatementBatch<N>,
        rows: [Rows; N],
    ) -> Result<(), StoreError> {
        match self.0 {
            Connection::Own {
                mut connection,
                home,
                database,
                writes,
                _turn,
            } => {
                let written = trip.run_together(&mut connection, rows).await;
                written.map_err(|error| StoreError::at(database, error))?;
                *home = Some(connection);
                writes.count();
                Ok(())
            }
            Connection::Pooled(transaction) => {
                trip.run_in(&transaction, rows).await?;
                transaction.commit().await
            }
        }
    }
}
