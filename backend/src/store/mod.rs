//! The database connection and its migrations.
//!
//! One code path serves SQLite (WAL) and PostgreSQL: SQL is written through SeaORM or in the subset that both know,
//! times are milliseconds since 1970 in `BIGINT`, JSON is `TEXT`. Each capability keeps its own SQL in its `store.rs`;
//! this module owns none of it. What is written again and again goes as a [`Trip`].

mod migrations;
mod script;

use anyhow::Context as _;
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbErr,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait, Value,
};
use sea_orm_migration::MigratorTrait as _;

pub use self::script::{Begun, Found, Rows, Trip, Writer};
use crate::config::StoreConfig;

/// How long SQLite's write-ahead log grows before it is written into the database, which holds a request up: 32 MB.
const WAL_PAGES: &str = "8192";

/// The database.
#[derive(Debug, Clone)]
pub struct Store {
    connection: DatabaseConnection,
}

impl Store {
    /// Opens the database and makes the data folder when it is missing. It does not migrate.
    ///
    /// # Errors
    /// When the folder cannot be made or the database does not answer.
    pub async fn open(config: &StoreConfig) -> anyhow::Result<Self> {
        tokio::fs::create_dir_all(&config.dir)
            .await
            .with_context(|| format!("store.dir: cannot make {}", config.dir.display()))?;
        let url = match &config.database_url {
            Some(url) => url.reveal().to_owned(),
            None => format!("sqlite://{}", config.dir.join("colloquy.db").display()),
        };
        let sqlite = url.starts_with("sqlite:");
        let url = if sqlite && !url.contains('?') {
            format!("{url}?mode=rwc")
        } else {
            url
        };
        let mut options = ConnectOptions::new(url);
        options
            .max_connections(config.max_connections)
            .sqlx_logging(false);
        options.map_sqlx_sqlite_opts(|options| {
            options
                .foreign_keys(true)
                .journal_mode(sea_orm::sqlx::sqlite::SqliteJournalMode::Wal)
                .synchronous(sea_orm::sqlx::sqlite::SqliteSynchronous::Normal)
                .pragma("wal_autocheckpoint", WAL_PAGES)
                .busy_timeout(std::time::Duration::from_secs(10))
        });
        let connection = Database::connect(options)
            .await
            .context("store.database_url: the database does not answer")?;
        Ok(Self { connection })
    }

    /// Brings the schema up to date.
    ///
    /// # Errors
    /// When a migration fails; the schema stays at the one before.
    pub async fn migrate(&self) -> anyhow::Result<()> {
        migrations::Migrator::up(&self.connection, None)
            .await
            .context("migrating the database")
    }

    /// The connection, for single statements.
    #[must_use]
    pub fn db(&self) -> &DatabaseConnection {
        &self.connection
    }

    /// A transaction that will write. On SQLite it takes the write lock at once, so that it cannot fail half-way for
    /// having read first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn begin(&self) -> Result<DatabaseTransaction, DbErr> {
        self.connection
            .begin_with_options(TransactionOptions {
                sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
                ..TransactionOptions::default()
            })
            .await
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), DbErr> {
        self.connection
            .execute_unprepared("SELECT 1")
            .await
            .map(|_| ())
    }
}

/// A statement with its values bound to `$1`, `$2`, .. in order; both databases know that form.
pub fn statement<C: ConnectionTrait>(
    db: &C,
    sql: &str,
    values: impl IntoIterator<Item = Value>,
) -> Statement {
    Statement::from_sql_and_values(db.get_database_backend(), sql, values)
}

/// How many rows there are: the number that a statement selects, as its one column.
pub(crate) async fn count(
    db: &impl ConnectionTrait,
    sql: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<u64, DbErr> {
    let row = db.query_one_raw(statement(db, sql, values)).await?;
    let count = row.map(|row| row.try_get_by_index::<i64>(0)).transpose()?;
    Ok(count.unwrap_or_default().unsigned_abs())
}
