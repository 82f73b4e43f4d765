//! The pool, and the trust in its connections.
//!
//! A connection goes back to the pool only when the last thing that was asked of it came to its end and the database
//! itself was well. After anything else it is closed: nobody knows what a connection holds whose statement was broken off,
//! or whose transaction could neither be committed nor rolled back. (SQLite ends a transaction by itself when the disk is
//! full; the driver does not notice, and would take the next transactions for parts of one that nobody commits.)
//!
//! The futures that make connections and run single statements are boxed, by functions that are not generic, and what is dropped with a driver in
//! it stands behind a pointer. A future is compiled by each crate
//! that polls it, with all that it waits for: otherwise every capability has both drivers and their TLS again.

use std::{fmt, io, sync::Arc, time::Duration};

use colloquy_base::clock::runtime_now;
use futures_util::{FutureExt as _, TryStreamExt as _, future::BoxFuture};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Database, SqlSafeStr as _,
    pool::{PoolConnection, PoolOptions},
};
use sqlx_core::transaction::TransactionManager;
use sqlx_postgres::{PgConnectOptions, PgConnection, PgPool, Postgres};
use sqlx_sqlite::{
    Sqlite, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool,
    SqliteSynchronous,
};
use tokio::{sync::watch, time::timeout};

use crate::{
    DbRow, Dialect, Executor, Statement, StoreError, Value,
    error::{self, OpenDatabase},
};

/// How long a request waits for a connection, and for its turn to write. Both are short: who waits holds others up.
pub(super) const WAIT: Duration = Duration::from_secs(5);
/// How long a statement may take.
pub(super) const STATEMENT_LIMIT: Duration = Duration::from_secs(10);
/// How long a server that starts waits for its database.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long a database may take to say why it refuses a connection.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// How long SQLite's write-ahead log grows before it is written into the database, which holds a request up: 32 MB.
const WAL_PAGES: &str = "8192";

/// The connections of a process. Like [`Connection`], it keeps the driver behind a pointer.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    driver: Arc<dyn Pooled>,
    pub(super) database: OpenDatabase,
    pub(super) writes: Writes,
}

/// Counts what this process has written.
#[derive(Debug, Clone, Default)]
pub(super) struct Writes(watch::Sender<u64>);

impl Writes {
    pub(super) fn count(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

trait Pooled: fmt::Debug + Send + Sync {
    fn driver(&self) -> &Driver;
}

impl Pooled for Driver {
    fn driver(&self) -> &Driver {
        self
    }
}

/// The pool of either database.
#[derive(Debug)]
pub(super) enum Driver {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl Pool {
    pub(super) fn driver(&self) -> &Driver {
        self.driver.driver()
    }

    /// Opens the database at this place.
    pub(super) fn open(
        url: &str,
        most: u32,
        place: Arc<str>,
    ) -> BoxFuture<'_, Result<Self, sqlx::Error>> {
        Self::open_now(url, most, place).boxed()
    }

    async fn open_now(url: &str, most: u32, place: Arc<str>) -> Result<Self, sqlx::Error> {
        let pool = Self::lazy(url, most, place, WAIT)?;
        pool.first(START_LIMIT).await?;
        Ok(pool)
    }

    /// A pool that connects when it is asked, and waits for so long for a connection.
    fn lazy(url: &str, most: u32, place: Arc<str>, wait: Duration) -> Result<Self, sqlx::Error> {
        let (driver, dialect) = if url.starts_with("sqlite:") {
            let mut options: SqliteConnectOptions = url.parse()?;
            if !url.contains('?') {
                options = options.create_if_missing(true);
            }
            let options = options
                .foreign_keys(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Normal)
                .pragma("wal_autocheckpoint", WAL_PAGES)
                .busy_timeout(WAIT)
                .disable_statement_logging();
            // There is no network that could have cut an idle connection.
            let pool = pool_options(most, wait).test_before_acquire(false);
            let driver = Driver::Sqlite(pool.connect_lazy_with(options));
            (driver, Dialect::Sqlite)
        } else {
            let options: PgConnectOptions = url.parse()?;
            let options = options.disable_statement_logging();
            let driver = Driver::Postgres(pool_options(most, wait).connect_lazy_with(options));
            (driver, Dialect::Postgres)
        };
        Ok(Self {
            driver: Arc::new(driver),
            database: OpenDatabase { place, dialect },
            writes: Writes::default(),
        })
    }

    /// Waits until there is a connection, for about `limit`. The error is the last reason why there was none.
    async fn first(&self, limit: Duration) -> Result<(), sqlx::Error> {
        let begun = runtime_now();
        loop {
            let reason = match self.take().await {
                Ok(_) => return Ok(()),
                Err(error @ sqlx::Error::PoolTimedOut) => self.refusal().await.unwrap_or(error),
                Err(error) => return Err(error),
            };
            if begun.elapsed() >= limit {
                return Err(reason);
            }
            tracing::info!(%reason, "waiting for the database");
        }
    }

    /// Returns why no connection can be made, which the pool keeps to itself while it tries again; `None` if one can, or on SQLite.
    async fn refusal(&self) -> Option<sqlx::Error> {
        let Driver::Postgres(pool) = self.driver() else {
            return None;
        };
        let options = pool.connect_options();
        match timeout(ANSWER_LIMIT, options.connect()).await {
            Ok(connected) => connected.err(),
            Err(_) => {
                let silence = io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
                Some(sqlx::Error::Io(silence))
            }
        }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.database.dialect
    }

    /// A connection, which goes back by itself.
    pub(super) async fn acquire(&self) -> Result<Connection, StoreError> {
        let taken = self.take().await;
        taken.map_err(|error| StoreError::at(&self.database, error))
    }

    fn take(&self) -> BoxFuture<'_, Result<Connection, sqlx::Error>> {
        async move {
            let held = match self.driver() {
                Driver::Sqlite(pool) => CheckedOut::Sqlite(pool.acquire().await?),
                Driver::Postgres(pool) => CheckedOut::Postgres(pool.acquire().await?),
            };
            Ok(Connection {
                held: Box::new(held),
                database: self.database.clone(),
                writes: self.writes.clone(),
                trusted: true,
            })
        }
        .boxed()
    }

    /// A SQLite connection that belongs to the pool no more; `None` on PostgreSQL.
    pub(super) fn detached(&self) -> BoxFuture<'_, Result<Option<SqliteConnection>, StoreError>> {
        async move {
            match self.driver() {
                Driver::Sqlite(pool) => match pool.acquire().await {
                    Ok(connection) => Ok(Some(connection.detach())),
                    Err(error) => Err(StoreError::at(&self.database, error)),
                },
                Driver::Postgres(_) => Ok(None),
            }
        }
        .boxed()
    }
}

fn pool_options<DB: Database>(most: u32, wait: Duration) -> PoolOptions<DB> {
    PoolOptions::new()
        .max_connections(most)
        .acquire_timeout(wait)
        .after_release(|connection, _| {
            Box::pin(async move {
                if DB::TransactionManager::get_transaction_depth(connection) > 0 {
                    // A rollback may be under way.
                    connection.ping().await?;
                }
                Ok(DB::TransactionManager::get_transaction_depth(connection) == 0)
            })
        })
}

/// A connection of the pool. Dropped, it goes back, or is closed when it cannot be trusted.
#[derive(Debug)]
pub(super) struct Connection {
    held: Box<dyn Held>,
    database: OpenDatabase,
    writes: Writes,
    /// Whether everything that was asked of it came to an end.
    pub(super) trusted: bool,
}

/// A connection that is checked out of its pool. It stands behind a pointer since whoever drops one compiles its driver, and every capability drops
/// transactions.
trait Held: fmt::Debug + Send {
    fn checked_out(&mut self) -> &mut CheckedOut;
}

impl Held for CheckedOut {
    fn checked_out(&mut self) -> &mut CheckedOut {
        self
    }
}

#[derive(Debug)]
enum CheckedOut {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
}

/// The same on the connection of either database.
macro_rules! on {
    ($held:expr, $connection:ident: $database:ident => $run:expr) => {
        match $held {
            CheckedOut::Sqlite(connection) => {
                type $database = Sqlite;
                let $connection: &mut SqliteConnection = &mut *connection;
                $run
            }
            CheckedOut::Postgres(connection) => {
                type $database = Postgres;
                let $connection: &mut PgConnection = &mut *connection;
                $run
            }
        }
    };
}

/// A query with its values.
macro_rules! query {
    ($database:ident, $statement:expr) => {{
        let query = sqlx::query::<$database>(AssertSqlSafe($statement.sql));
        $statement
            .values
            .into_iter()
            .fold(query, |query, value| match value {
                Value::Text(value) => query.bind(value),
                Value::Integer(value) => query.bind(value),
                Value::Boolean(value) => query.bind(value),
            })
    }};
}

impl Connection {
    pub(super) async fn execute(
        &mut self,
        statement: Statement,
        limit: Duration,
    ) -> Result<u64, StoreError> {
        self.trusted = false;
        let done = within(limit, async {
            on!(self.held.checked_out(), connection: Db => {
                let done = query!(Db, statement).execute(connection).await;
                done.map(|done| done.rows_affected())
            })
        })
        .await;
        self.ended(done)
    }

    pub(super) async fn fetch_row(
        &mut self,
        statement: Statement,
        limit: Duration,
    ) -> Result<Option<DbRow>, StoreError> {
        self.trusted = false;
        let row = within(limit, async {
            on!(self.held.checked_out(), connection: Db => {
                let mut rows = query!(Db, statement).fetch(connection);
                let mut first = None;
                // To its end: what a statement changes is committed after its rows are out, and that may fail.
                while let Some(row) = rows.try_next().await? {
                    first.get_or_insert_with(|| DbRow::from(row));
                }
                Ok(first)
            })
        })
        .await;
        self.ended(row)
    }

    pub(super) async fn fetch_rows(
        &mut self,
        statement: Statement,
        limit: Duration,
    ) -> Result<Vec<DbRow>, StoreError> {
        self.trusted = false;
        let rows = within(limit, async {
            on!(self.held.checked_out(), connection: Db => {
                let rows = query!(Db, statement).fetch_all(connection).await;
                rows.map(|rows| rows.into_iter().map(DbRow::from).collect())
            })
        })
        .await;
        self.ended(rows)
    }

    /// Begins a transaction. On SQLite it takes the write lock at once, so that it cannot fail half-way for having read
    /// first.
    pub(super) async fn begin(&mut self) -> Result<(), StoreError> {
        self.trusted = false;
        let begun = within(STATEMENT_LIMIT, async {
            match self.held.checked_out() {
                CheckedOut::Sqlite(connection) => {
                    let statement = "BEGIN IMMEDIATE".into_sql_str();
                    <Sqlite as Database>::TransactionManager::begin(connection, Some(statement))
                        .await
                }
                CheckedOut::Postgres(connection) => {
                    <Postgres as Database>::TransactionManager::begin(connection, None).await
                }
            }
        })
        .await;
        self.ended(begun)
    }

    pub(super) async fn commit(&mut self, limit: Duration) -> Result<(), StoreError> {
        self.trusted = false;
        let committed = within(limit, async {
            on!(self.held.checked_out(), connection: Db => {
                <Db as Database>::TransactionManager::commit(connection).await
            })
        })
        .await;
        // A refusal is no end either: the transaction is still there.
        if committed.is_ok() {
            self.trusted = true;
            self.writes.count();
        }
        committed.map_err(|error| self.failed(error))
    }

    /// Rolls the transaction back before the connection is used again.
    pub(super) fn roll_back(&mut self) {
        on!(self.held.checked_out(), connection: Db => {
            <Db as Database>::TransactionManager::start_rollback(connection);
        });
    }

    /// A statement that the database has answered or refused leaves the connection as it was.
    fn ended<T>(&mut self, result: Result<T, sqlx::Error>) -> Result<T, StoreError> {
        self.trusted = match &result {
            Ok(_) => true,
            Err(error) => !error::is_outage(error),
        };
        result.map_err(|error| self.failed(error))
    }

    pub(super) fn failed(&self, error: sqlx::Error) -> StoreError {
        StoreError::at(&self.database, error)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.trusted {
            match self.held.checked_out() {
                CheckedOut::Sqlite(connection) => connection.close_on_drop(),
                CheckedOut::Postgres(connection) => connection.close_on_drop(),
            }
        }
    }
}

/// The database, for single statements; cheap to clone.
#[derive(Debug, Clone)]
pub struct Db {
    pub(super) pool: Pool,
    /// How long a statement may take.
    pub(super) limit: Duration,
}

impl Db {
    fn run(&self, statement: Statement) -> BoxFuture<'_, Result<u64, StoreError>> {
        async move {
            let mut connection = self.pool.acquire().await?;
            let changed = connection.execute(statement, self.limit).await?;
            if changed > 0 {
                self.pool.writes.count();
            }
            Ok(changed)
        }
        .boxed()
    }

    /// Closes its connections; there are no others after that.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        match self.pool.driver() {
            Driver::Sqlite(pool) => pool.close().boxed(),
            Driver::Postgres(pool) => pool.close().boxed(),
        }
    }
}

impl Executor for Db {
    fn dialect(&self) -> Dialect {
        self.pool.dialect()
    }

    fn execute(
        &self,
        statement: impl Into<Statement> + Send,
    ) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.run(statement.into())
    }

    fn fetch_rows(&self, statement: Statement) -> BoxFuture<'_, Result<Vec<DbRow>, StoreError>> {
        async move {
            let writes = statement.writes();
            let mut connection = self.pool.acquire().await?;
            let rows = connection.fetch_rows(statement, self.limit).await?;
            if writes && !rows.is_empty() {
                self.pool.writes.count();
            }
            Ok(rows)
        }
        .boxed()
    }

    fn fetch_row(&self, statement: Statement) -> BoxFuture<'_, Result<Option<DbRow>, StoreError>> {
        async move {
            let writes = statement.writes();
            let mut connection = self.pool.acquire().await?;
            let row = connection.fetch_row(statement, self.limit).await?;
            if writes && row.is_some() {
                self.pool.writes.count();
            }
            Ok(row)
        }
        .boxed()
    }
}

/// What this gives, unless it takes too long.
pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    timeout(limit, work).await.unwrap_or_else(|_| {
        let reason = format!("no answer within {} s", limit.as_secs());
        let error = std::io::Error::new(std::io::ErrorKind::TimedOut, reason);
        Err(sqlx::Error::Io(error))
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// The pool of a database at this port of the machine, which waits for a moment.
    fn at(port: u16) -> Pool {
        let url = format!("postgres://user:hidden@127.0.0.1:{port}/colloquy");
        Pool::lazy(&url, 1, "here".into(), Duration::from_secs(1)).unwrap()
    }

    #[tokio::test]
    async fn a_database_that_is_away_is_told_with_the_reason() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        // It takes connections and says nothing.
        let silent = at(port).first(Duration::ZERO).await.unwrap_err();
        assert!(silent.to_string().contains("does not answer"), "{silent}");
        drop(listener);
        let refused = at(port).first(Duration::ZERO).await.unwrap_err();
        let told = refused.to_string();
        assert!(told.contains("Connection refused"), "{told}");
        assert!(!told.contains("hidden"), "{told}");
    }
}
