//! The audit log on both databases, through the routes: what is recorded of whom, what is not, and who reads it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where; one of the routes panics"
)]

mod lists;
mod records;
mod sessions;

use std::{future::pending, io};

use axum::{
    body::{Body, Bytes},
    extract::FromRef,
    http::StatusCode,
    routing::post,
};
use colloquy_accounts::{Accounts, AccountsCapability, Caller, quotas::QuotaCaller};
use colloquy_audit::{Audit, AuditCapability};
use colloquy_console::{Console, ConsoleCapability};
use colloquy_http::{Edge, Interface};
use colloquy_kernel::{Capability, Kernel, Routes, router::DescribedRouter};
use colloquy_store::Executor as _;
use futures_util::stream;
use serde_json::Value;
use support::TestDatabase;
use test_routes::{TestRoutes, TestRoutesBuilder};

/// The state of the capabilities.
#[derive(Clone)]
struct Place(Console, Audit);

impl AsRef<Kernel> for Place {
    fn as_ref(&self) -> &Kernel {
        self.1.as_ref()
    }
}

impl FromRef<Place> for Accounts {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.1)
    }
}

impl FromRef<Place> for Console {
    fn from_ref(place: &Place) -> Self {
        place.0.clone()
    }
}

impl FromRef<Place> for Audit {
    fn from_ref(place: &Place) -> Self {
        place.1.clone()
    }
}

/// Routes of other capabilities that are recorded, as they may go wrong.
struct Others;

const PANICS: &str = "/api/folders/{partner}/{kb}/{folder}/sync";
const STREAMS: &str = "/api/bulk/retry/{partner}/{kb}";
const WAITS: &str = "/api/bulk/move/{partner}/{kb}";
const OF_QUOTA: &str = "/v2/calls/{call_id}/end";

async fn panic(_: Caller) -> StatusCode {
    panic!("as the test wants it")
}

async fn streaming(_: Caller) -> Body {
    let parts = stream::pending::<Result<Bytes, io::Error>>();
    Body::from_stream(parts)
}

async fn waiting(_: Caller) -> StatusCode {
    pending().await
}

async fn of_quota(_: QuotaCaller) -> StatusCode {
    StatusCode::OK
}

impl Capability<Place> for Others {
    fn name(&self) -> &'static str {
        "others"
    }

    fn routes(&self) -> Vec<Routes<Place>> {
        let management = DescribedRouter::new()
            .route(PANICS, post(panic))
            .route(STREAMS, post(streaming))
            .route(WAITS, post(waiting));
        let calls = DescribedRouter::new().route(OF_QUOTA, post(of_quota));
        vec![
            (Interface::MANAGEMENT, management),
            (Interface::CALLS, calls),
        ]
    }
}

const CAPABILITIES: [&dyn Capability<Place>; 4] = [
    &AccountsCapability,
    &ConsoleCapability,
    &AuditCapability,
    &Others,
];

type App = TestRoutes<Place>;

async fn start(database: &TestDatabase) -> App {
    start_with(TestRoutesBuilder::new(database)).await
}

async fn start_with(builder: TestRoutesBuilder) -> App {
    let place = async |accounts: Accounts, _: Edge| {
        Place(Console::new(accounts.clone()), Audit::new(accounts))
    };
    builder.start(|_| Vec::new(), place, &CAPABILITIES).await
}

async fn run(app: &App, sql: &str) {
    let db = app.state.1.store.db();
    db.execute(sql.to_owned()).await.unwrap();
}

/// The entries of a list.
async fn entries(app: &App, key: &str, path: &str) -> Vec<Value> {
    let listed = app.get(key, path).await.expect(200);
    listed.as_array().unwrap().clone()
}

/// A field of each entry of a list.
async fn listed(app: &App, key: &str, path: &str, field: &str) -> Vec<String> {
    let entries = entries(app, key, path).await;
    let fields = entries
        .iter()
        .map(|entry| entry[field].as_str().unwrap_or("-"));
    fields.map(str::to_owned).collect()
}
