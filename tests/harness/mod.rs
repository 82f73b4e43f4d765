//! The test harness: a server on a fresh database, doubles of the outside services, an HTTP client.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test code: it fails by panicking, and its servers run beside the tracker of the App they serve"
)]

pub mod app;
pub mod client;
pub mod disk;
pub mod lost_commits;
pub mod namespaces;
pub mod neural;
pub mod process;
pub mod sounds;

pub use app::{TestApp, TestAppBuilder};
pub use support::{
    TestDatabase, by_length, database, elsewhere, eventually, news, patience, slowness, until,
};
pub use test_routes::{doubles, receiver, upstream, vectorstores, voice_workers};

/// Makes one test for SQLite and one for PostgreSQL of a body that gets a started [`TestApp`].
///
/// ```ignore
/// on_both_databases!(a_partner_is_made, |app| {
///     let partner = app.partner("acme").await;
///     assert!(!partner.key.is_empty());
/// });
/// // with a builder that is changed first:
/// on_both_databases!(keys_expire, |builder| builder, |app| { .. });
/// ```
#[macro_export]
macro_rules! on_both_databases {
    ($name:ident, |$app:ident| $body:block) => {
        $crate::on_both_databases!($name, |builder| builder, |$app| $body);
    };
    ($name:ident, |$builder:ident| $built:expr, |$app:ident| $body:block) => {
        mod $name {
            #[allow(unused_imports, clippy::allow_attributes, reason = "a body may need none of them")]
            use super::*;

            async fn body($app: $crate::TestApp) $body

            fn builder($builder: $crate::TestAppBuilder) -> $crate::TestAppBuilder {
                $built
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let database = $crate::TestDatabase::sqlite();
                body(builder($crate::TestApp::builder(&database)).start().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let database = $crate::TestDatabase::postgres().await;
                body(builder($crate::TestApp::builder(&database)).start().await).await;
            }
        }
    };
}
