//! What the routes answer, with the layers of their interfaces.

mod attempts;
mod earlier;
mod keys;
mod partner_usage;
mod partners;
mod quota_keys;
mod quota_order;
mod quotas;
mod settings;
mod shares;
mod storage;
mod usage;

use std::time::Duration;

use axum::{
    extract::FromRequestParts,
    http::{Method, StatusCode, request::Parts},
    routing::{get, post},
};
use colloquy_accounts::{
    Accounts, AccountsCapability, Scope,
    quotas::{Payer, QuotaCaller, QuotaKind},
};
use colloquy_http::{ApiError, Edge, Interface, extract::key_text};
use colloquy_kernel::{Capability, Routes, router::DescribedRouter};
use colloquy_store::Executor as _;
use serde_json::{Value, json};
use support::{TestDatabase, eventually, on_each_database};
use test_routes::{ADMIN_KEY, TestQuota, TestRoutes, TestRoutesBuilder, send};

use super::DAY;

/// Stand for routes of other capabilities. All that they find out is who asks.
struct Probes;

impl Capability<Accounts> for Probes {
    fn name(&self) -> &'static str {
        "probes"
    }

    fn routes(&self) -> Vec<Routes<Accounts>> {
        let calls = DescribedRouter::new()
            .route("/v2/calls", post(place_call))
            .route("/v2/calls/{call_id}", get(read_call));
        let text = DescribedRouter::new().route("/v3/whoami", get(whoami));
        vec![(Interface::CALLS, calls), (Interface::TEXT, text)]
    }
}

/// Whoever places calls and reads them.
struct CallPayer;

impl FromRequestParts<Accounts> for CallPayer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, accounts: &Accounts) -> Result<Self, ApiError> {
        let (key, kind) = (key_text(parts), QuotaKind::Call);
        let payer = Payer::with_key(parts, accounts, key.as_deref(), kind, Scope::Calls);
        payer.await.map(|_| Self)
    }
}

async fn place_call(_: CallPayer) -> StatusCode {
    StatusCode::OK
}

async fn read_call(_: CallPayer) -> ApiError {
    ApiError::not_found("Call")
}

async fn whoami(QuotaCaller(quota): QuotaCaller) -> String {
    quota.id.clone()
}

const CAPABILITIES: [&dyn Capability<Accounts>; 2] = [&AccountsCapability, &Probes];

fn builder(database: &TestDatabase) -> TestRoutesBuilder {
    TestRoutesBuilder::new(database)
}

async fn start(database: &TestDatabase) -> TestRoutes<Accounts> {
    start_by(builder(database)).await
}

async fn start_by(builder: TestRoutesBuilder) -> TestRoutes<Accounts> {
    let state = async |accounts: Accounts, _: Edge| accounts;
    builder.start(|_| Vec::new(), state, &CAPABILITIES).await
}
