//! The database: its connections, transactions and migrations.
//!
//! One code path serves SQLite (WAL) and PostgreSQL: SQL is written in the subset that both know, times are milliseconds
//! since 1970 in `BIGINT`, JSON is `TEXT`. Each capability of the server keeps its own SQL; this crate has that of the
//! schema alone. What is written again and again goes as a [`StatementBatch`].
//!
//! [`Db`] and [`Transaction`] run a [`Statement`] ([`Executor`]), over connections on SQLx: every wait has a bound, and a
//! connection that failed is not used again ([`connection`]). Rows are structs that derive [`sqlx::FromRow`], read by the
//! names of their fields. What a failure means, [`StoreError`] says; that of a statement or a transaction names the database, and
//! the remedy where one is known.

mod connection;
mod error;
mod migrations;
mod remedy;
mod repeated;
mod script;
mod slice;
mod statement;
mod stored;
mod transaction;

use std::{fmt::Display, path::PathBuf, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use sqlx::Error as SqlxError;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};

pub use self::{
    connection::Db,
    error::{StoreError, StoreErrorKind},
    migrations::{Migrated, MigrationError},
    script::{BatchTransaction, Found, Rows, StatementBatch, Writer},
    slice::{Keyset, Order, Slice, placeholders},
    statement::{DbRow, Dialect, Executor, FromDbRow, Scalar, Statement, Value, statement},
    stored::UnknownWord,
    transaction::Transaction,
};
use self::{
    connection::{Pool, STATEMENT_LIMIT, WAIT},
    error::OpenDatabase,
    repeated::RepeatedFailures,
};

/// Where the database is, and how much of it is used.
#[derive(Clone)]
pub struct StoreSettings {
    /// `sqlite://PATH` or `postgres://..`, with the password if there is one. A SQLite file is made when it is missing, unless
    /// the URL has parameters, which say so themselves.
    pub url: String,
    /// The most connections; a [`Writer`] on SQLite has one more.
    pub max_connections: u32,
    /// The data folder, made when it is missing.
    pub folder: PathBuf,
    /// Where the database is, for people: errors name it. Without the password.
    pub place: String,
}

/// Why the database was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data folder cannot be made.
    #[error("cannot make {}", folder.display())]
    Folder {
        /// The data folder.
        folder: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The URL is malformed, or the database cannot be opened.
    #[error("cannot open the database {place}{advice}")]
    Database {
        /// Where the database is.
        place: String,
        /// What an operator can do about it, `": .."`; empty where that is not known.
        advice: String,
        /// The reason.
        source: StoreError,
    },
}

/// How long a statement of work in the background may take that removes much.
const PATIENT_LIMIT: Duration = Duration::from_secs(600);

/// The database; cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    db: Db,
    /// On SQLite, whose turn it is to write. One transaction writes at a time anyway; in a line of our own they keep their
    /// order, and leave the connections to those who read.
    turns: Option<Arc<Semaphore>>,
    complaints: Arc<RepeatedFailures>,
}

impl Store {
    /// Opens the database and makes the data folder when it is missing. It does not migrate.
    ///
    /// # Errors
    /// When the folder cannot be made or the database does not answer.
    pub async fn open(settings: &StoreSettings) -> Result<Self, OpenError> {
        let StoreSettings {
            url,
            max_connections,
            folder,
            place,
        } = settings;
        tokio::fs::create_dir_all(folder)
            .await
            .map_err(|source| OpenError::Folder {
                folder: folder.clone(),
                source,
            })?;
        let pool = Pool::open(url, *max_connections, place.as_str().into())
            .await
            .map_err(|error| OpenError::Database {
                place: place.clone(),
                advice: remedy::advice(&error),
                source: error.into(),
            })?;
        let turns = match pool.dialect() {
            Dialect::Sqlite => Some(Arc::new(Semaphore::new(1))),
            Dialect::Postgres => None,
        };
        Ok(Self {
            db: Db {
                pool,
                limit: STATEMENT_LIMIT,
            },
            turns,
            complaints: Arc::default(),
        })
    }

    /// Brings the schema up to date and tells what was done.
    ///
    /// # Errors
    /// When a migration fails: none of it is there then, and on SQLite none of those before it that were run with it. When
    /// a newer version made the database. The error names the database.
    pub async fn migrate(&self) -> Result<Migrated, MigrationError> {
        let migrated = migrations::run(&self.db.pool).await;
        migrated.map_err(|problem| MigrationError {
            place: self.database().place.to_string(),
            problem,
        })
    }

    /// The database as errors name it.
    fn database(&self) -> &OpenDatabase {
        &self.db.pool.database
    }

    /// The database, for single statements.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The same for work in the background that removes much at once.
    #[must_use]
    pub fn patient(&self) -> Db {
        Db {
            limit: PATIENT_LIMIT,
            ..self.db.clone()
        }
    }

    /// A transaction that will write. On SQLite it takes the write lock at once, so that it cannot fail half-way for
    /// having read first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub fn begin(&self) -> BoxFuture<'_, Result<Transaction, StoreError>> {
        self.begin_on(self.db.clone()).boxed()
    }

    /// The same for a transaction that removes much at once.
    ///
    /// # Errors
    /// When the database does not answer.
    pub fn begin_patient(&self) -> BoxFuture<'_, Result<Transaction, StoreError>> {
        self.begin_on(self.patient()).boxed()
    }

    async fn begin_on(&self, db: Db) -> Result<Transaction, StoreError> {
        self.soon(async {
            let turn = self.turn().await?;
            let connection = db.pool.acquire().await?;
            Transaction::begin(connection, db.pool.dialect(), db.limit, turn).await
        })
        .await
    }

    /// Waits for the turn to write.
    async fn turn(&self) -> Result<Option<OwnedSemaphorePermit>, StoreError> {
        match &self.turns {
            Some(turns) => match Arc::clone(turns).acquire_owned().await {
                Ok(turn) => Ok(Some(turn)),
                Err(_) => Err(StoreError::at(self.database(), SqlxError::PoolClosed)),
            },
            None => Ok(None),
        }
    }

    /// The begin of a transaction, all waits of which have one bound.
    async fn soon<T>(
        &self,
        begin: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match timeout(WAIT, begin).await {
            Ok(begun) => begun,
            Err(_) if self.turns.is_some() => Err(StoreError::not_in_time(self.database(), WAIT)),
            Err(_) => Err(StoreError::at(self.database(), SqlxError::PoolTimedOut)),
        }
    }

    /// Says in the log that work in the background failed; not more than twice a minute for each sort.
    pub fn complain(&self, what: &'static str, error: &impl Display) {
        self.complaints.note(what, error);
    }

    /// Tells of what this process writes: the value rises after each commit, and after each single statement that changed rows. It may rise where
    /// nothing was written, as after a `WITH` that only reads.
    #[must_use]
    pub fn writes(&self) -> watch::Receiver<u64> {
        self.db.pool.writes.subscribe()
    }

    /// Returns the number of the newest migration that the database has.
    ///
    /// # Errors
    /// The database's failure.
    pub async fn schema_version(&self) -> Result<i64, StoreError> {
        let sql = "SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations";
        let version = self.db.fetch_scalar(sql).await?;
        Ok(version.unwrap_or_default())
    }

    /// Whether what one connection stores is there for another one.
    ///
    /// # Errors
    /// When it is not, or the database does not answer.
    pub async fn check(&self, node: &str, now: i64) -> Result<(), StoreError> {
        // Held, so that it is not the one that stores.
        let mut other = self.db.pool.acquire().await?;
        let transaction = self.begin().await?;
        let sql = "INSERT INTO canaries (node_id, value) VALUES ($1, $2) \
                   ON CONFLICT (node_id) DO UPDATE SET value = excluded.value";
        transaction
            .execute(statement(sql, [node.into(), now.into()]))
            .await?;
        transaction.commit().await?;
        let sql = "SELECT value FROM canaries WHERE node_id = $1";
        let row = other
            .fetch_row(statement(sql, [node.into()]), self.db.limit)
            .await?;
        let canary: Option<Canary> = row.as_ref().map(DbRow::read).transpose()?;
        match canary {
            Some(canary) if canary.value == now => Ok(()),
            _ => Err(StoreError::other(
                "what was stored a moment ago is not there",
            )),
        }
    }
}

/// What a node stored to see whether the database keeps it.
#[derive(sqlx::FromRow)]
struct Canary {
    value: i64,
}
