//! Responses that are kept, on both databases: who goes on from them and refers to their items, how long, and what they count. And what is wrong with
//! requests.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod fields;
mod storage;
mod stored;

use std::{ops::Deref, sync::Arc, time::Duration};

use axum::extract::FromRef;
use colloquy_accounts::{Accounts, AccountsCapability, partners::PartnerDependent};
use colloquy_characters::{CharacterCache, Characters};
use colloquy_generation::{Generation, GenerationCapability};
use colloquy_http::Edge;
use colloquy_kernel::{Capability, Kernel};
use serde_json::{Value, json};
use support::{TestDatabase, on_each_database};
use test_routes::{Doubles, NoBases, TestRoutes, TestRoutesBuilder};

const RESPONSES: &str = "/v3/responses";

/// The state of both capabilities.
#[derive(Clone)]
struct Place(Generation);

impl Deref for Place {
    type Target = Generation;

    fn deref(&self) -> &Generation {
        &self.0
    }
}

impl AsRef<Kernel> for Place {
    fn as_ref(&self) -> &Kernel {
        self.0.as_ref()
    }
}

impl FromRef<Place> for Accounts {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.0)
    }
}

impl FromRef<Place> for Generation {
    fn from_ref(place: &Place) -> Self {
        place.0.clone()
    }
}

const CAPABILITIES: [&dyn Capability<Place>; 2] = [&AccountsCapability, &GenerationCapability];

fn builder(database: &TestDatabase) -> TestRoutesBuilder {
    TestRoutesBuilder::new(database)
}

async fn start(database: &TestDatabase) -> TestRoutes<Place> {
    start_by(builder(database)).await
}

async fn start_by(builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let document_bytes = builder.settings().limits.document_memory_bytes;
    let cache = Arc::new(CharacterCache::new(builder.clock(), document_bytes));
    let dependents = vec![Arc::clone(&cache) as Arc<dyn PartnerDependent>];
    let place = async |accounts: Accounts, edge: Edge| {
        let providers = Doubles::default().providers(&accounts.config);
        let characters = Characters::new(accounts, cache, Arc::new(NoBases));
        let generation = Generation::open(characters, providers, edge, Arc::new(NoBases)).await;
        Place(generation.unwrap())
    };
    builder.start(|_| dependents, place, &CAPABILITIES).await
}
