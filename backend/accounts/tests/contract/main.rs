//! What partners, keys, quotas, their ledger and the storage of partners do on both databases: limits under concurrency and over nodes, usage, budgets,
//! lost processes, failing databases, and what the routes answer.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod budgets;
mod failures;
mod late;
mod limits;
mod quota_changes;
mod routes;
mod texts;
mod usage;

use std::{sync::Arc, time::Duration};

use colloquy_accounts::{
    Accounts, PartnerId, Tenant,
    ledger::{self, Amounts, Limits, Measure, Outcome, Period, Reservation, UsageContext},
    partners::{self, PartnerChange},
    quotas::{self, Quota, QuotaChange, QuotaKind},
};
use colloquy_base::clock::{Clock, ManualClock, SystemClock};
use colloquy_config::Config;
use colloquy_http::ApiError;
use colloquy_kernel::Base;
use colloquy_store::Executor as _;
use serde_json::Value;
use support::{TestDatabase, clock::manual, eventually, on_each_database};
use test_routes::TestNode;
use tokio::task::JoinSet;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Settings of the node of this name.
fn config(database: &TestDatabase, name: &str) -> Config {
    Config {
        store: database.node_config(name),
        ..Config::default()
    }
}

async fn start(database: &TestDatabase) -> TestNode {
    start_as(database, "node").await
}

async fn start_as(database: &TestDatabase, name: &str) -> TestNode {
    start_by(config(database, name), Arc::new(SystemClock)).await
}

/// Starts a node with settings and a clock of its own.
async fn start_by(config: Config, clock: Arc<dyn Clock>) -> TestNode {
    TestNode::start(config, clock, |_| Vec::new()).await
}

fn about(request_id: &str) -> UsageContext {
    UsageContext {
        endpoint: "chat.completions",
        model: "gpt".to_owned(),
        character: Some("acme/ada".to_owned()),
        request_id: request_id.to_owned(),
    }
}

fn bound(tokens: u64) -> Amounts {
    Amounts::default()
        .with(Measure::Tokens, tokens)
        .with(Measure::Cost, tokens * 100)
}

fn usage(tokens: u64) -> Amounts {
    Amounts::tokens(tokens - tokens / 2, tokens / 2).with(Measure::Cost, tokens * 100)
}

async fn reserve(
    node: &Accounts,
    quota: &Arc<Quota>,
    tokens: u64,
) -> Result<Reservation, ApiError> {
    let bound = bound(tokens);
    let mut reservation = node.ledger.reserve(quota, bound, about("request")).await?;
    reservation.begin();
    Ok(reservation)
}

fn acme() -> Tenant {
    Tenant::of_row("acme")
}

/// Makes the partner `acme`.
async fn make_acme(node: &Accounts) {
    let id = PartnerId::parse("acme").unwrap();
    let made = partners::create(node, id, PartnerChange::default()).await;
    made.unwrap();
}

/// The most tokens, and as much as one likes of all else.
fn tokens(limit: Option<u64>) -> Limits {
    Limits::default().with(Measure::Tokens, limit)
}

/// The partner `acme` and a quota of it with so many tokens for its lifetime.
async fn quota(node: &Accounts, limit: u64) -> Arc<Quota> {
    quota_of(node, tokens(Some(limit)), Period::Lifetime).await
}

/// The partner `acme` and a quota of it.
async fn quota_of(node: &Accounts, limits: Limits, period: Period) -> Arc<Quota> {
    make_acme(node).await;
    let change = QuotaChange {
        kinds: Some(vec![QuotaKind::Text]),
        limits: Some(limits),
        period: Some(period),
        ..QuotaChange::default()
    };
    let (made, _key) = quotas::create(node, &acme(), change).await.unwrap();
    Arc::new(made.quota)
}

/// Tokens that are used and reserved, as whoever reads the quota sees them.
async fn counters(node: &Accounts, quota: &Quota) -> (u64, u64) {
    let read = quotas::read(node, &acme(), &quota.id).await.unwrap();
    let tokens = |amounts: Amounts| amounts.of(Measure::Tokens);
    (tokens(read.standing.used), tokens(read.standing.reserved))
}

/// `(outcome, tokens, cost)` of each record, sorted.
async fn records(node: &Accounts) -> Vec<(String, i64, i64)> {
    let db = node.store.db();
    let sql = "SELECT outcome, amounts FROM usage_records";
    let rows: Vec<Record> = db.fetch_all(sql).await.unwrap();
    let record = |row: Record| {
        let amounts: Value = serde_json::from_str(&row.amounts).unwrap();
        let of = |measure: &str| amounts[measure].as_i64().unwrap_or_default();
        assert_eq!(of("tokens"), of("input_tokens") + of("output_tokens"));
        (row.outcome, of("tokens"), of("cost"))
    };
    let mut records: Vec<_> = rows.into_iter().map(record).collect();
    records.sort();
    records
}

#[derive(sqlx::FromRow)]
struct Record {
    outcome: String,
    amounts: String,
}

fn record(outcome: &str, tokens: i64) -> (String, i64, i64) {
    (outcome.to_owned(), tokens, tokens * 100)
}

async fn execute(node: &Accounts, sql: &'static str) {
    node.store.db().execute(sql).await.unwrap();
}

/// Runs that many at once on each node and gives those that were admitted.
async fn rush(
    nodes: &[&TestNode],
    quota: &Arc<Quota>,
    each: usize,
    tokens: u64,
) -> Vec<Reservation> {
    let mut asking = JoinSet::new();
    for node in nodes {
        for _ in 0..each {
            let (accounts, quota) = (node.accounts.clone(), Arc::clone(quota));
            asking.spawn(async move { reserve(&accounts, &quota, tokens).await });
        }
    }
    let mut admitted = Vec::new();
    for answer in asking.join_all().await {
        match answer {
            Ok(reservation) => admitted.push(reservation),
            Err(error) => assert_eq!(error.code, "quota_exhausted", "{error:?}"),
        }
    }
    admitted
}
