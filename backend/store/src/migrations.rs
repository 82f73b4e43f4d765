//! The migrations of `backend/store/migrations`, in order. A landed migration is never changed: the database has a checksum
//! of each.

use futures_util::{FutureExt as _, future::LocalBoxFuture};
use sqlx::{
    Connection as _, SqlSafeStr as _,
    migrate::{Migrate as _, MigrateError, Migration, MigrationType, Migrator},
};

use crate::{
    Dialect,
    connection::{Driver, Pool},
    remedy,
};

/// The schema was not brought up to date.
#[derive(Debug, thiserror::Error)]
#[error("migrating the database {place}: {problem}")]
pub struct MigrationError {
    /// Where the database is, for people.
    pub(crate) place: String,
    /// The reason.
    pub(crate) problem: MigrationProblem,
}

/// Why the schema was not brought up to date.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MigrationProblem {
    /// A newer version has been here.
    #[error(
        "a newer version of Colloquy has changed it (migration {found}; this version knows {known}): run that version or a newer one, \
         or restore a backup that was made before the upgrade"
    )]
    Newer {
        /// The newest migration that the database has.
        found: i64,
        /// The newest one of this version.
        known: i64,
    },
    /// A migration is not the one that was run.
    #[error(
        "its migration {0} is not the one of this version: another build made the database; run that build, or name another database"
    )]
    Changed(i64),
    /// Something else made the database.
    #[error("it has the migration {0}, which this version does not know")]
    Unknown(String),
    /// The database's failure.
    #[error("{error}{advice}", error = .0, advice = remedy::advice(.0))]
    Database(sqlx::Error),
    /// A migration failed.
    #[error("{0}")]
    Migrate(MigrateError),
}

impl From<sqlx::Error> for MigrationProblem {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<MigrateError> for MigrationProblem {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::VersionMismatch(version) => Self::Changed(version),
            MigrateError::Execute(error) => Self::Database(error),
            error => Self::Migrate(error),
        }
    }
}

/// What was done to the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// How many migrations the database had before.
    pub had: usize,
    /// The names of those that were run.
    pub run: Vec<&'static str>,
}

/// The SQL of a migration.
#[derive(Clone, Copy)]
enum Sql {
    /// What both databases understand.
    Both(&'static str),
    /// What each of them understands.
    Each {
        sqlite: &'static str,
        postgres: &'static str,
    },
}

impl Sql {
    fn of(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Self::Both(sql), _)
            | (Self::Each { sqlite: sql, .. }, Dialect::Sqlite)
            | (Self::Each { postgres: sql, .. }, Dialect::Postgres) => sql,
        }
    }
}

macro_rules! sql_files {
    (@sql $name:literal) => {
        Sql::Both(include_str!(concat!("../migrations/", $name, ".sql")))
    };
    (@sql $name:literal each) => {
        Sql::Each {
            sqlite: include_str!(concat!("../migrations/", $name, ".sqlite.sql")),
            postgres: include_str!(concat!("../migrations/", $name, ".postgres.sql")),
        }
    };
    ($($name:literal $($each:ident)?),+ $(,)?) => {
        [$(($name, sql_files!(@sql $name $($each)?))),+]
    };
}

/// The names of the files and their SQL. A name with `each` has a file for each database.
const FILES: [(&str, Sql); 61] = sql_files![
    "0001_accounts",
    "0002_characters",
    "0003_calls",
    "0004_work",
    "0005_webhooks",
    "0006_quotas",
    "0007_responses",
    "0008_messaging",
    "0009_call_quotas",
    "0010_canaries",
    "0011_partner_data",
    "0012_call_lists",
    "0013_webhook_subjects",
    "0014_work_owners",
    "0015_call_pages",
    "0016_measures",
    "0017_blobs",
    "0018_knowledge_bases",
    "0019_embeddings",
    "0020_rewrites",
    "0021_documents",
    "0022_budgets",
    "0023_channels",
    "0024_vectorstores",
    "0025_forced_embeddings",
    "0026_transcripts",
    "0027_analyses",
    "0028_voices",
    "0029_resumed_work",
    "0030_nodes",
    "0031_blob_hashes",
    "0032_storage",
    "0033_response_items",
    "0034_sample_voices",
    "0035_assumed_languages",
    "0036_missing_pictures",
    "0037_late_settlements",
    "0038_text_storage",
    "0039_call_storage",
    "0040_ended_calls",
    "0041_call_addresses",
    "0042_document_addresses",
    "0043_missing_results",
    "0044_originals_of_bases",
    "0045_sources_of_contents",
    "0046_damaged_blobs",
    "0047_headings_left_out",
    "0048_response_items_named",
    "0049_console",
    "0050_changes" each,
    "0051_lists" each,
    "0052_deliveries_of_subjects",
    "0053_unfinished_documents",
    "0054_usage_order" each,
    "0055_retries",
    "0056_retrieval_questions" each,
    "0057_live_calls" each,
    "0058_audit",
    "0059_system",
    "0060_call_details" each,
    "0061_usage_columns" each,
];

/// The migrations of a database, numbered from 1.
fn migrator(dialect: Dialect) -> Migrator {
    let migration = |((name, sql), version): (&(&'static str, Sql), i64)| {
        let sql = sql.of(dialect);
        let description = name.split_once('_').map_or(*name, |(_, text)| text);
        let kind = MigrationType::Simple;
        Migration::new(version, description.into(), kind, sql.into_sql_str(), false)
    };
    Migrator::with_migrations(FILES.iter().zip(1..).map(migration).collect())
}

/// How many migrations have run by the names that an earlier version of the server noted, in order.
fn noted(names: &[String]) -> Result<i64, MigrationProblem> {
    let mut count = 0;
    for (place, name) in names.iter().enumerate() {
        if FILES.get(place).is_none_or(|(known, _)| known != name) {
            return Err(MigrationProblem::Unknown(name.clone()));
        }
        count += 1;
    }
    Ok(count)
}

/// Takes over the notes of earlier servers, which kept them in a table of SeaORM: says in SQLx's table what has run, and
/// removes theirs.
macro_rules! take_over_notes {
    ($migrator:expr, $transaction:expr, exists: $exists:literal) => {
        if sqlx::query($exists)
            .fetch_optional(&mut *$transaction)
            .await?
            .is_some()
        {
            let names = sqlx::query_scalar("SELECT version FROM seaql_migrations ORDER BY version")
                .fetch_all(&mut *$transaction)
                .await?;
            let count = noted(&names)?;
            $migrator.skip(&mut *$transaction, Some(count)).await?;
            sqlx::query("DROP TABLE seaql_migrations")
                .execute(&mut *$transaction)
                .await?;
        }
    };
}

/// The versions that have run, in order; none where the table of migrations is not there yet.
macro_rules! versions {
    ($connection:expr, exists: $exists:literal) => {
        match sqlx::query($exists)
            .fetch_optional(&mut *$connection)
            .await?
        {
            Some(_) => {
                sqlx::query_scalar("SELECT version FROM _sqlx_migrations ORDER BY version")
                    .fetch_all(&mut *$connection)
                    .await?
            }
            None => Vec::new(),
        }
    };
}

/// Tells what will be run of a database that has these versions.
fn plan(had: &[i64]) -> Result<Migrated, MigrationProblem> {
    let known = i64::try_from(FILES.len()).unwrap_or(i64::MAX);
    match had.last() {
        Some(&found) if found > known => Err(MigrationProblem::Newer { found, known }),
        _ => Ok(Migrated {
            had: had.len(),
            run: (1..)
                .zip(FILES)
                .filter(|(version, _)| !had.contains(version))
                .map(|(_, (name, _))| name)
                .collect(),
        }),
    }
}

/// Runs what has not run yet. Of several processes, one does it and the others wait. The future is not `Send`: SQLx acquires the
/// connection of a migrator for one lifetime only.
pub(super) fn run(pool: &Pool) -> LocalBoxFuture<'_, Result<Migrated, MigrationProblem>> {
    run_now(pool).boxed_local()
}

async fn run_now(pool: &Pool) -> Result<Migrated, MigrationProblem> {
    match pool.driver() {
        Driver::Sqlite(pool) => {
            let migrator = migrator(Dialect::Sqlite);
            // The transaction is the lock. Each migration is a savepoint in it.
            let mut connection = pool.acquire().await?.detach();
            let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
            take_over_notes!(
                migrator,
                transaction,
                exists: "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'seaql_migrations'"
            );
            let had: Vec<i64> = versions!(
                transaction,
                exists: "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'"
            );
            let migrated = plan(&had)?;
            migrator.run(&mut *transaction).await?;
            transaction.commit().await?;
            connection.close().await?;
            Ok(migrated)
        }
        Driver::Postgres(pool) => {
            let migrator = migrator(Dialect::Postgres);
            // Locks end with their connection.
            let mut connection = pool.acquire().await?.detach();
            connection.lock().await?;
            let mut transaction = connection.begin().await?;
            take_over_notes!(
                migrator,
                transaction,
                exists: "SELECT 1 WHERE to_regclass('seaql_migrations') IS NOT NULL"
            );
            let had: Vec<i64> = versions!(
                transaction,
                exists: "SELECT 1 WHERE to_regclass('_sqlx_migrations') IS NOT NULL"
            );
            let migrated = plan(&had)?;
            transaction.commit().await?;
            migrator.run(&mut connection).await?;
            connection.close().await?;
            Ok(migrated)
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlx_sqlite::SqliteConnection;

    use super::*;

    #[test]
    fn files_are_numbered_in_order_and_all_of_them_are_run() {
        let migrator = migrator(Dialect::Sqlite);
        let run: Vec<String> = migrator
            .iter()
            .zip(FILES)
            .flat_map(|(migration, (_, sql))| {
                let name = format!("{:04}_{}", migration.version, migration.description);
                match sql {
                    Sql::Both(_) => vec![format!("{name}.sql")],
                    Sql::Each { .. } => {
                        vec![format!("{name}.postgres.sql"), format!("{name}.sqlite.sql")]
                    }
                }
            })
            .collect();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(run, files);
    }

    #[test]
    fn notes_of_other_migrations_are_refused() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(noted(&[]).unwrap(), 0);
        assert_eq!(
            noted(&names(&["0001_accounts", "0002_characters"])).unwrap(),
            2
        );
        noted(&names(&["0002_characters"])).unwrap_err();
        noted(&names(&["0001_accounts", "0002_other"])).unwrap_err();
    }

    #[test]
    fn what_is_missing_is_run_and_a_newer_database_is_named_as_such() {
        let all: Vec<i64> = (1..).take(FILES.len()).collect();
        let fresh = plan(&[]).unwrap();
        assert_eq!((fresh.had, fresh.run.len()), (0, FILES.len()));
        let behind = plan(&all[..FILES.len() - 1]).unwrap();
        assert_eq!(behind.run, [FILES[FILES.len() - 1].0]);
        assert_eq!(plan(&all).unwrap().run, [""; 0]);
        let newer: Vec<i64> = (1..).take(FILES.len() + 2).collect();
        let error = plan(&newer).unwrap_err().to_string();
        assert!(error.contains("newer version of Colloquy"), "{error}");
        assert!(
            error.contains(&format!("migration {}", FILES.len() + 2)),
            "{error}"
        );
    }

    #[tokio::test]
    async fn an_original_gets_the_base_of_its_document() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let all = migrator(Dialect::Sqlite);
        all.run_to(43, &mut connection).await.unwrap();
        for sql in [
            "PRAGMA foreign_keys = OFF",
            "INSERT INTO knowledge_documents (id, base_id, folder_id, name, type, content_type, model_tier, auto_rewrite, use_original_as_rewritten, \
             digitizing, rewriting, embedding, revision, created_at, updated_at) \
             VALUES ('d', 'b', 'f', '', 'file', 'auto', 'standard', FALSE, FALSE, 'none', 'none', 'none', 0, 0, 0)",
            "INSERT INTO knowledge_contents (document_id, variant, blob, file_name, media_type, bytes, sha256, updated_at) \
             VALUES ('d', 'original', 'o', '', '', 0, '', 0), ('d', 'rewritten', 'r', '', '', 0, '', 0)",
        ] {
            sqlx::query(sql).execute(&mut connection).await.unwrap();
        }
        all.run(&mut connection).await.unwrap();
        let found: Vec<String> = sqlx::query_scalar(
            "SELECT variant || ': ' || COALESCE(base_id, '') FROM knowledge_contents ORDER BY variant",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap();
        assert_eq!(found, ["original: b", "rewritten: "]);
    }
}

#[cfg(test)]
#[path = "migrations_tests.rs"]
mod with_rows;
