//! What tests of a crate share with those of whole servers: fresh databases on SQLite and PostgreSQL, those of earlier servers, clocks, patience.
//!
//! It knows the settings and the database of a server, and no capability, so that a crate above them is tested without the server.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test code: it fails by panicking"
)]

pub mod clock;
pub mod database;
pub mod earlier;

use std::{fmt::Debug, time::Duration};

use colloquy_base::clock::runtime_now;

pub use database::TestDatabase;

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

/// Waits until something holds, half a minute on a machine of ordinary speed.
///
/// # Panics
/// When it does not hold by then.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    let begun = runtime_now();
    let patience = patience(Duration::from_secs(30));
    while begun.elapsed() < patience {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not come to pass: {what}");
}

/// Reads something until it is as wanted, and gives it: waits a minute and a half on a machine of ordinary speed, and longer from one reading to the next.
///
/// # Panics
/// When it is not as wanted by then.
pub async fn until<T: Debug>(
    what: &str,
    wanted: impl Fn(&T) -> bool,
    mut read: impl AsyncFnMut() -> T,
) -> T {
    let begun = runtime_now();
    let patience = patience(Duration::from_secs(90));
    let mut interval = Duration::from_millis(10);
    loop {
        let seen = read().await;
        if wanted(&seen) {
            return seen;
        }
        assert!(
            begun.elapsed() < patience,
            "it did not come to pass: {what}: {seen:?}"
        );
        tokio::time::sleep(interval).await;
        interval = (interval * 3 / 2).min(Duration::from_millis(150));
    }
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
