//! Databases that servers of an earlier version left.

use std::path::Path;

use colloquy_store::{Executor as _, Statement, Store};

/// Returns the names and the SQL of the migrations, in order. Those with a file for each database count once.
pub fn migrations() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../backend/store/migrations");
    let files = std::fs::read_dir(folder).expect("the folder of the migrations");
    let mut migrations: Vec<_> = files
        .map(|file| {
            let path = file.expect("a file").path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let name = name.expect("a name").split('.').next().unwrap_or_default();
            (
                name.to_owned(),
                std::fs::read_to_string(path).expect("a migration"),
            )
        })
        .collect();
    migrations.sort();
    migrations.dedup_by(|later, earlier| later.0 == earlier.0);
    migrations
}

/// Runs a statement, and returns how many rows it changed.
pub async fn run(store: &Store, sql: impl Into<Statement> + Send) -> u64 {
    store.db().execute(sql).await.expect("a statement")
}

/// Runs migrations as servers did that noted them in SeaORM's table.
pub async fn migrate_as_before(store: &Store, migrations: &[(String, String)]) {
    run(store, "CREATE TABLE seaql_migrations (version VARCHAR NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)").await;
    for (name, sql) in migrations {
        let transaction = store.begin().await.expect("a transaction");
        for statement in sql.split(";\n").filter(|text| !text.trim().is_empty()) {
            let migrated = transaction.execute(statement.to_owned()).await;
            migrated.expect("a statement of a migration");
        }
        let note = format!("INSERT INTO seaql_migrations VALUES ('{name}', 1)");
        transaction.execute(note).await.expect("a note");
        transaction.commit().await.expect("a commit");
    }
}
