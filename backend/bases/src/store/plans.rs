//! What SQLite reads for a query.

use colloquy_store::{Executor as _, Store, StoreSettings, Value, statement};
use tempfile::TempDir;

#[derive(sqlx::FromRow)]
struct Step {
    detail: String,
}

/// Returns the steps that SQLite runs a query in.
pub(super) async fn plan(store: &Store, sql: &str, values: Vec<Value>) -> Vec<String> {
    let explained = statement(format!("EXPLAIN QUERY PLAN {sql}"), values);
    let steps: Vec<Step> = store.db().fetch_all(explained).await.unwrap();
    steps.into_iter().map(|step| step.detail).collect()
}

/// Returns an empty database, and the folder that it is in.
pub(super) async fn migrated() -> (Store, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.db");
    let settings = StoreSettings {
        url: format!("sqlite://{}", file.display()),
        max_connections: 2,
        folder: folder.path().to_owned(),
        place: "test.db".to_owned(),
    };
    let store = Store::open(&settings).await.unwrap();
    store.migrate().await.unwrap();
    (store, folder)
}
