//! The migrations of `backend/store/migrations`, in order. A landed migration is never changed: the database has a checksum
//! of each.

use sqlx::{
    Connection as _, SqlSafeStr as _,
    migrate::{Migrate as _, MigrateError, Migration, MigrationType, Migrator},
};

use crate::{StoreError, connection::Pool};

/// Why the schema was not brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The database's failure.
    #[error("migrating the database")]
    Store(#[from] StoreError),
    /// A migration failed, or is not the one that was run.
    #[error("migrating the database")]
    Migrate(#[from] MigrateError),
    /// The database was made by something else, or by a later version.
    #[error("migrating the database: it has the migration {0}, which this version does not know")]
    Unknown(String),
}

impl From<sqlx::Error> for MigrationError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

macro_rules! sql_files {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../migrations/", $name, ".sql")))),+]
    };
}

/// The names of the files, and SQL that both databases understand.
const FILES: [(&str, &str); 31] = sql_files![
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
    "0032_storage",
    "0033_response_items",
];

/// The migrations, numbered from 1.
fn migrator() -> Migrator {
    let migration = |((name, sql), version): (&(&'static str, &'static str), i64)| {
        let description = name.split_once('_').map_or(*name, |(_, text)| text);
        let kind = MigrationType::Simple;
        Migration::new(version, description.into(), kind, sql.into_sql_str(), false)
    };
    Migrator::with_migrations(FILES.iter().zip(1..).map(migration).collect())
}

/// How many migrations have run by the names that an earlier version of the server noted, in order.
fn noted(names: &[String]) -> Result<i64, MigrationError> {
    let mut count = 0;
    for (place, name) in names.iter().enumerate() {
        if FILES.get(place).is_none_or(|(known, _)| known != name) {
            return Err(MigrationError::Unknown(name.clone()));
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

/// Runs what has not run yet. Of several processes, one does it and the others wait.
pub(super) async fn run(pool: &Pool) -> Result<(), MigrationError> {
    let migrator = migrator();
    match pool {
        Pool::Sqlite(pool) => {
            // The transaction is the lock. Each migration is a savepoint in it.
            let mut connection = pool.acquire().await?.detach();
            let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
            take_over_notes!(
                migrator,
                transaction,
                exists: "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'seaql_migrations'"
            );
            migrator.run(&mut *transaction).await?;
            transaction.commit().await?;
            connection.close().await?;
        }
        Pool::Postgres(pool) => {
            // Locks end with their connection.
            let mut connection = pool.acquire().await?.detach();
            connection.lock().await?;
            let mut transaction = connection.begin().await?;
            take_over_notes!(
                migrator,
                transaction,
                exists: "SELECT 1 WHERE to_regclass('seaql_migrations') IS NOT NULL"
            );
            transaction.commit().await?;
            migrator.run(&mut connection).await?;
            connection.close().await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_numbered_in_order_and_all_of_them_are_run() {
        let migrator = migrator();
        let run: Vec<String> = migrator
            .iter()
            .map(|migration| format!("{:04}_{}.sql", migration.version, migration.description))
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
}
