//! What the database does for every capability, on SQLite and on PostgreSQL.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod batches;
mod migrations;
mod transactions;

/// A row of which the id counts alone.
#[derive(sqlx::FromRow)]
struct Id {
    id: String,
}
