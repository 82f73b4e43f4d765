//! What calls do on both databases: creation, their way to their end, lists, deletion, retention, what they take of the storage and of the quotas of
//! their partners, nodes that are lost, and what webhooks tell of them.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod bounds;
mod deletion;
mod details;
mod earlier;
mod elsewhere;
mod fields;
mod lists;
mod live;
mod memory;
mod presumed;
mod quotas;
mod recovery;
mod resource;
mod retention;
mod storage;
mod urls;
mod webhooks;

use std::{ops::Deref, sync::Arc, time::Duration};

use axum::{extract::FromRef, http::Method};
use colloquy_accounts::{
    Accounts, AccountsCapability, partners::PartnerDependent, storage::recount_texts,
};
use colloquy_calls::{
    self as calls, Calls, CallsCapability, OpenCalls, Outcome, SignedQuery, TranscriptLine,
};
use colloquy_characters::{CharacterCache, Characters, CharactersCapability};
use colloquy_config::SigningKeys;
use colloquy_fetch::Fetcher;
use colloquy_http::Edge;
use colloquy_kernel::{Capability, Kernel, node};
use colloquy_protocol::{CloseCode, Originator};
use colloquy_store::{Executor as _, Store, StoreError};
use colloquy_webhooks::{Webhooks, WebhooksCapability};
use serde_json::{Value, json};
use support::{TestDatabase, clock::manual, eventually, on_each_database};
use test_routes::{
    ADMIN_KEY, Answer, Doubles, NoBases, TestPartner, TestQuota, TestRoutes, TestRoutesBuilder,
    quick, send, storage::counted,
};
use url::Url;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Where calls are.
const CALLS: &str = "/v2/calls";

/// Where the routes say that they are.
const BASE_URL: &str = "http://calls.example";

/// The texts of all capabilities here that count in the storage of a partner.
const TEXTS: [&str; 4] = [
    colloquy_characters::TEXTS,
    calls::TEXTS,
    colloquy_webhooks::TEXTS,
    colloquy_accounts::storage::TEXTS,
];

/// The state of the capabilities.
#[derive(Clone)]
struct Place {
    calls: Calls,
    webhooks: Webhooks,
}

impl Deref for Place {
    type Target = Calls;

    fn deref(&self) -> &Calls {
        &self.calls
    }
}

impl AsRef<Kernel> for Place {
    fn as_ref(&self) -> &Kernel {
        self.calls.as_ref()
    }
}

impl FromRef<Place> for Accounts {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.calls)
    }
}

impl FromRef<Place> for Characters {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.calls)
    }
}

impl FromRef<Place> for Webhooks {
    fn from_ref(place: &Place) -> Self {
        place.webhooks.clone()
    }
}

impl FromRef<Place> for Calls {
    fn from_ref(place: &Place) -> Self {
        place.calls.clone()
    }
}

const CAPABILITIES: [&dyn Capability<Place>; 4] = [
    &AccountsCapability,
    &CharactersCapability,
    &CallsCapability,
    &WebhooksCapability,
];

fn builder(database: &TestDatabase) -> TestRoutesBuilder {
    TestRoutesBuilder::new(database)
        .config(|config| config.http.public_url = Some(Url::parse(BASE_URL).unwrap()))
}

async fn start(database: &TestDatabase) -> TestRoutes<Place> {
    start_by(builder(database)).await
}

async fn start_by(builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let document_bytes = builder.settings().limits.document_memory_bytes;
    let cache = Arc::new(CharacterCache::new(builder.clock(), document_bytes));
    let dependents: Vec<Arc<dyn PartnerDependent>> =
        vec![Arc::clone(&cache) as _, Arc::new(OpenCalls)];
    let place = async |accounts: Accounts, edge: Edge| {
        let providers = Doubles::default().providers(&accounts.config);
        let fetcher = Fetcher::new(&accounts.config.fetch).unwrap();
        let webhooks = Webhooks::new(accounts.clone(), fetcher);
        let characters = Characters::new(accounts, cache, Arc::new(NoBases));
        let calls = Calls::open(characters, webhooks.clone(), providers, edge).await;
        Place {
            calls: calls.unwrap(),
            webhooks,
        }
    };
    builder.start(|_| dependents, place, &CAPABILITIES).await
}

fn call() -> Value {
    json!({"character": "repo:acme/ada", "call_time_limit_seconds": "600"})
}

/// A call that was created, as the answer shows it.
async fn post_call(app: &TestRoutes<Place>, partner: &TestPartner, body: Value) -> Value {
    let answer = app.post(&partner.key, CALLS, body).await;
    answer.expect(200)
}

/// The bare id of a call that was created.
async fn create(app: &TestRoutes<Place>, partner: &TestPartner, body: Value) -> String {
    bare_id(&post_call(app, partner, body).await)
}

/// The transcript of the call at this path.
async fn transcript(app: &TestRoutes<Place>, partner: &TestPartner, path: &str) -> Value {
    let path = format!("{path}/transcript");
    app.get(&partner.key, &path).await.expect(200)
}

/// The state of the call at this path.
async fn state(app: &TestRoutes<Place>, partner: &TestPartner, path: &str) -> Value {
    let read = app.get(&partner.key, path).await.expect(200);
    read["data"]["state"].clone()
}

fn bare_id(body: &Value) -> String {
    bare(body["data"]["id"].as_str().unwrap()).to_owned()
}

/// The bare id of a call at this path.
fn bare(path: &str) -> &str {
    path.strip_prefix("/v2/calls/").unwrap()
}

fn signed_query(url: &str) -> SignedQuery {
    let url = Url::parse(url).unwrap();
    let value = |name: &str| {
        let pair = url.query_pairs().find(|(key, _)| key == name);
        pair.unwrap().1.into_owned()
    };
    SignedQuery {
        exp: value("exp").parse().unwrap(),
        kid: value("kid"),
        sig: value("sig"),
    }
}

fn outcome() -> Outcome {
    let line = |originator, text: &str, at_ms| TranscriptLine {
        text: text.to_owned(),
        originator,
        at_ms,
        interrupted: false,
        reply: None,
    };
    Outcome {
        error: None,
        call_time: Duration::from_millis(61_400),
        server_time: Duration::from_millis(63_600),
        visitor: serde_json::Map::new(),
        transcript: vec![
            line(Originator::Bot, "Welcome aboard.", 200),
            line(Originator::User, "Where \"do\" we go?", 2_000),
        ],
    }
}

/// Corrects the sums of texts that differ from their rows, and returns how many they were.
async fn recount(store: &Store) -> Result<u64, StoreError> {
    recount_texts(store, &TEXTS).await
}

/// Compares the sums of all partners with their rows.
async fn expect_exact_sums(app: &TestRoutes<Place>) {
    assert_eq!(recount(&app.state.store).await.unwrap(), 0);
}
