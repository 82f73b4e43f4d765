//! What tests of a crate share with those of whole servers: fresh databases on SQLite and PostgreSQL, those of earlier servers, clocks, patience.
//!
//! It knows the settings and the database of a server, and no capability, so that a crate above them is tested without the server.

#![expect(clippy::expect_used, reason = "test code: it fails by panicking")]

pub mod clock;
pub mod database;
pub mod earlier;
pub mod elsewhere;
pub mod news;
mod waiting;

use std::time::Duration;

pub use database::TestDatabase;
pub use news::{eventually, until};

/// The first in an ordinary run, the second in a nightly one (`tests/run nightly`), which runs at full length what takes long.
pub fn by_length<T>(short: T, full: T) -> T {
    match std::env::var_os("COLLOQUY_TEST_NIGHTLY") {
        None => short,
        Some(_) => full,
    }
}

/// How many times longer this machine takes than the one that deadlines are made for, at least 1 (`tests/run` measures it).
pub fn slowness() -> f64 {
    let measured = std::env::var("COLLOQUY_TEST_SLOWNESS").ok();
    let measured = measured.and_then(|times| times.parse().ok());
    measured.unwrap_or(1.0_f64).max(1.0)
}

/// Gives how long to wait for what takes the usual time at most on a machine of ordinary speed: [`slowness`] times that.
pub fn patience(usual: Duration) -> Duration {
    usual.mul_f64(slowness())
}

/// Makes one test for SQLite and one for PostgreSQL of a body that gets a fresh [`TestDatabase`] with the schema.
///
/// ```ignore
/// on_each_database!(rows_come_back, |database| {
///     let store = database.config().open().await.unwrap();
/// });
/// ```
#[macro_export]
macro_rules! on_each_database {
    ($name:ident, |$database:ident| $body:block) => {
        mod $name {
            #[allow(unused_imports, clippy::allow_attributes, reason = "a body may need none of them")]
            use super::*;

            async fn body($database: $crate::TestDatabase) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                body($crate::TestDatabase::sqlite()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                body($crate::TestDatabase::postgres().await).await;
            }
        }
    };
}
