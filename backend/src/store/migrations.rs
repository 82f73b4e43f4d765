//! The migrations of `backend/migrations`, in order. A landed migration is never changed.

use sea_orm::{ConnectionTrait as _, DbErr};
use sea_orm_migration::{MigrationName, MigrationTrait, MigratorTrait, SchemaManager, async_trait};

/// Runs the migrations.
#[derive(Debug)]
pub(super) struct Migrator;

/// SQL that both databases understand.
struct SqlFile {
    name: &'static str,
    sql: &'static str,
}

macro_rules! sql_files {
    ($($name:literal),+ $(,)?) => {
        vec![$(Box::new(SqlFile { name: $name, sql: include_str!(concat!("../../migrations/", $name, ".sql")) })
            as Box<dyn MigrationTrait>),+]
    };
}

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        sql_files![
            "0001_accounts",
            "0002_characters",
            "0003_calls",
            "0004_work",
            "0005_webhooks",
            "0006_quotas",
            "0007_responses",
            "0008_messaging",
            "0009_call_quotas"
        ]
    }
}

impl MigrationName for SqlFile {
    fn name(&self) -> &str {
        self.name
    }
}

#[async_trait::async_trait]
impl MigrationTrait for SqlFile {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for statement in self
            .sql
            .split(";\n")
            .map(str::trim)
            .filter(|statement| !statement.is_empty())
        {
            manager
                .get_connection()
                .execute_unprepared(statement)
                .await?;
        }
        Ok(())
    }
}
