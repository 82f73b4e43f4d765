//! The index of knowledge bases in PostgreSQL with pgvector: one for all nodes, where each would else have a copy of its own.
//!
//! It does what every [`SearchIndex`] does: vectors are compared exactly, words by BM25 with the same terms and the same formula as those of
//! the index in a folder, and the rankings are fused by the same code. All of it is in the schema `colloquy_index`, which is made when it is not
//! there. Several databases of Colloquy may share it; each has a name (*installation*) and finds nothing of the others.
//!
//! - [`PgIndex`]: opening it, and which changes are in it
//! - [`writing`]: changes, each call of them in one transaction
//! - [`searching`]: questions, each in one snapshot
//!
//! Which changes there are, and who makes them, is not for this crate to say.

mod searching;
mod writing;

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use colloquy_base::clock::Clock;
use colloquy_index::{
    chunking::{ChunkId, Heading},
    search::{
        Change, ChunkText, IndexError, Place, SearchIndex, SearchRequest, SearchResponse, Space,
        Usage,
    },
};
use serde::{Deserialize, Serialize};
use sqlx::{ConnectOptions as _, Connection as _, Row as _, pool::PoolOptions};
use sqlx_postgres::{PgConnectOptions, PgConnection, PgPool, Postgres};

/// How long it is waited for a connection.
const WAIT: Duration = Duration::from_secs(5);
/// What a statement may take, in milliseconds, as PostgreSQL is told. Removing a large base takes longest.
const STATEMENT_LIMIT_MS: &str = "120000";
/// The lock that whoever makes the schema has, so that two do not make it at once.
const SCHEMA_LOCK: i64 = 0x636f_6c6c_6f71_7579;
/// The name of the lock of whoever makes the changes of an installation, before its name.
const WRITER_LOCK: &str = "colloquy_index:";

/// What an index may use.
#[derive(Debug, Clone, Copy)]
pub struct PgOptions {
    /// The most chunks of an installation.
    pub max_chunks: u64,
    /// The most connections.
    pub max_connections: u32,
}

impl Default for PgOptions {
    fn default() -> Self {
        Self {
            max_chunks: 20_000_000,
            max_connections: 8,
        }
    }
}

/// An index in PostgreSQL; cheap to clone.
#[derive(Clone)]
pub struct PgIndex {
    pool: PgPool,
    options: PgConnectOptions,
    installation: Arc<str>,
    max_chunks: u64,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for PgIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PgIndex({})", self.installation)
    }
}

/// Who makes the changes of an installation, as long as this is there: nobody else does meanwhile.
#[derive(Debug)]
pub struct Writer {
    /// The lock goes with the connection, whatever happens to the process.
    connection: PgConnection,
}

impl Writer {
    /// Whether it still is: a connection that was lost has taken the lock with it.
    pub async fn is_alive(&mut self) -> bool {
        self.connection.ping().await.is_ok()
    }
}

impl PgIndex {
    /// Opens the index of an installation, and makes what it needs when it is not there.
    ///
    /// # Errors
    /// When the database cannot be reached, or has no pgvector (0.7 or newer).
    pub async fn open(
        url: &str,
        installation: &str,
        options: PgOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, IndexError> {
        let connect: PgConnectOptions = url.parse().map_err(failed)?;
        let connect = connect
            .disable_statement_logging()
            .options([("statement_timeout", STATEMENT_LIMIT_MS)]);
        let pool = PoolOptions::<Postgres>::new()
            .max_connections(options.max_connections)
            .acquire_timeout(WAIT)
            .connect_lazy_with(connect.clone());
        let mut transaction = pool.begin().await.map_err(failed)?;
        sqlx::query::<Postgres>("SELECT pg_advisory_xact_lock($1)")
            .bind(SCHEMA_LOCK)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        sqlx::raw_sql(include_str!("schema.sql"))
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        let name =
            "INSERT INTO colloquy_index.installations (name) VALUES ($1) ON CONFLICT DO NOTHING";
        sqlx::query::<Postgres>(name)
            .bind(installation)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok(Self {
            pool,
            options: connect,
            installation: installation.into(),
            max_chunks: options.max_chunks,
            clock,
        })
    }

    /// Up to which change the index has come; `None` where that was never said.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn position(&self) -> Result<Option<i64>, IndexError> {
        let position = "SELECT position FROM colloquy_index.installations WHERE name = $1";
        let row = sqlx::query::<Postgres>(position)
            .bind(&*self.installation)
            .fetch_optional(&self.pool)
            .await
            .map_err(failed)?;
        row.map_or(Ok(None), |row| row.try_get("position").map_err(failed))
    }

    /// Remembers up to which change the index has come.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn note(&self, position: i64) -> Result<(), IndexError> {
        let note = "UPDATE colloquy_index.installations SET position = $2 WHERE name = $1";
        sqlx::query::<Postgres>(note)
            .bind(&*self.installation)
            .bind(position)
            .execute(&self.pool)
            .await
            .map_err(failed)?;
        Ok(())
    }

    /// Becomes the one who makes the changes; `None` while somebody else is.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn writer(&self) -> Result<Option<Writer>, IndexError> {
        let mut connection = self.options.connect().await.map_err(failed)?;
        let lock = "SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS locked";
        let row = sqlx::query::<Postgres>(lock)
            .bind(format!("{WRITER_LOCK}{}", self.installation))
            .fetch_one(&mut connection)
            .await
            .map_err(failed)?;
        let locked: bool = row.try_get("locked").map_err(failed)?;
        Ok(locked.then_some(Writer { connection }))
    }

    /// Forgets all documents of the installation, and up to which change it had come.
    ///
    /// # Errors
    /// When the database fails; then nothing is forgotten.
    pub async fn clear(&self) -> Result<(), IndexError> {
        let mut transaction = self.pool.begin().await.map_err(failed)?;
        let clear = "DELETE FROM colloquy_index.spaces WHERE installation = $1";
        sqlx::query::<Postgres>(clear)
            .bind(&*self.installation)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        let forget = "UPDATE colloquy_index.installations SET position = NULL WHERE name = $1";
        sqlx::query::<Postgres>(forget)
            .bind(&*self.installation)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        transaction.commit().await.map_err(failed)
    }
}

#[async_trait]
impl SearchIndex for PgIndex {
    async fn apply(&self, changes: Vec<Change>) -> Result<(), IndexError> {
        writing::apply(self, changes).await
    }

    async fn vectors(
        &self,
        space: Space,
        ids: Vec<ChunkId>,
    ) -> Result<HashMap<ChunkId, Vec<f32>>, IndexError> {
        let ids: Vec<Vec<u8>> = ids.iter().map(|id| id.to_bytes().to_vec()).collect();
        let kept = "SELECT DISTINCT ON (chunks.id) chunks.id, vectors.vector::real[] AS vector
            FROM colloquy_index.spaces JOIN colloquy_index.chunks ON chunks.space = spaces.number
            JOIN colloquy_index.vectors ON vectors.chunk = chunks.number
            WHERE spaces.installation = $1 AND spaces.base = $2 AND spaces.generation = $3 AND chunks.id = ANY($4)";
        let rows = sqlx::query::<Postgres>(kept)
            .bind(&*self.installation)
            .bind(space.base)
            .bind(i64::from(space.generation))
            .bind(ids)
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        let read = |row: &sqlx_postgres::PgRow| {
            let id: Vec<u8> = row.try_get("id").map_err(failed)?;
            Ok((chunk_id(&id)?, row.try_get("vector").map_err(failed)?))
        };
        rows.iter().map(read).collect()
    }

    async fn search(&self, request: SearchRequest) -> Result<SearchResponse, IndexError> {
        searching::search(self, request).await
    }

    async fn texts(
        &self,
        space: Space,
        places: Vec<Place>,
    ) -> Result<HashMap<Place, ChunkText>, IndexError> {
        searching::texts(self, space, &places).await
    }

    async fn usage(&self) -> Result<Usage, IndexError> {
        let usage = "SELECT coalesce(sum(chunks), 0)::bigint AS chunks, count(*) FILTER (WHERE chunks > 0) AS spaces,
            (pg_total_relation_size('colloquy_index.chunks') + pg_total_relation_size('colloquy_index.vectors')
                + pg_total_relation_size('colloquy_index.terms'))::bigint AS bytes
            FROM colloquy_index.spaces WHERE installation = $1";
        let row = sqlx::query::<Postgres>(usage)
            .bind(&*self.installation)
            .fetch_one(&self.pool)
            .await
            .map_err(failed)?;
        let number = |name: &str| {
            let number: i64 = row.try_get(name).map_err(failed)?;
            u64::try_from(number).map_err(failed)
        };
        let count = |name| usize::try_from(number(name)?).map_err(failed);
        Ok(Usage {
            chunks: count("chunks")?,
            spaces: count("spaces")?,
            memory_bytes: 0,
            disk_bytes: number("bytes")?,
        })
    }
}

/// What a passage shows, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Shown {
    path: Vec<String>,
    headings: Vec<Heading>,
    text: String,
    start: usize,
    end: usize,
}

fn chunk_id(bytes: &[u8]) -> Result<ChunkId, IndexError> {
    let bytes = bytes.try_into();
    bytes.map(ChunkId::from_bytes).map_err(failed)
}

fn failed(error: impl fmt::Display) -> IndexError {
    IndexError::Failed(error.to_string())
}
