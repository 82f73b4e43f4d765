//! What saved characters do on both databases, through their routes and those of accounts.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod accounts;
mod drafts;
mod inputs;
mod references;
mod saved;

use std::{ops::Deref, sync::Arc, time::Duration};

use axum::{extract::FromRef, http::Method};
use colloquy_accounts::{
    Accounts, AccountsCapability, DataScope, PartnerId, Principal, partners::PartnerDependent,
};
use colloquy_characters::{
    Character, CharacterCache, CharacterInput, Characters, CharactersCapability, resolve,
};
use colloquy_http::{ApiError, Edge};
use colloquy_kernel::{Capability, Kernel};
use serde_json::{Value, json};
use support::{TestDatabase, on_each_database};
use test_routes::{ADMIN_KEY, NoBases, TestRoutes, TestRoutesBuilder, send};

/// What the documents of characters may take.
const DOCUMENT_BYTES: usize = 1024 * 1024;

/// The state of both capabilities.
#[derive(Clone)]
struct Place(Characters);

impl Deref for Place {
    type Target = Characters;

    fn deref(&self) -> &Characters {
        &self.0
    }
}

impl AsRef<Kernel> for Place {
    fn as_ref(&self) -> &Kernel {
        self.0.as_ref()
    }
}

impl FromRef<Place> for Characters {
    fn from_ref(place: &Place) -> Self {
        place.0.clone()
    }
}

impl FromRef<Place> for Accounts {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.0)
    }
}

const CAPABILITIES: [&dyn Capability<Place>; 2] = [&AccountsCapability, &CharactersCapability];

fn builder(database: &TestDatabase) -> TestRoutesBuilder {
    TestRoutesBuilder::new(database)
}

async fn start(database: &TestDatabase) -> TestRoutes<Place> {
    start_by(builder(database)).await
}

async fn start_by(builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let cache = Arc::new(CharacterCache::new(builder.clock(), DOCUMENT_BYTES));
    let dependents = vec![Arc::clone(&cache) as Arc<dyn PartnerDependent>];
    let place = async |accounts: Accounts, _: Edge| {
        Place(Characters::new(accounts, cache, Arc::new(NoBases)))
    };
    builder.start(|_| dependents, place, &CAPABILITIES).await
}

fn principal(partner: &str) -> Principal {
    Principal {
        key_id: "test".to_owned(),
        reach: DataScope::Partner(PartnerId::parse(partner).unwrap()),
        scopes: None,
        allowed_origins: None,
        partner_rate: None,
    }
}

async fn resolve_as(
    characters: &Characters,
    partner: &str,
    input: Value,
) -> Result<Arc<Character>, ApiError> {
    let input = CharacterInput::parse(&input)?;
    Ok(resolve(characters, &principal(partner), input).await?)
}
