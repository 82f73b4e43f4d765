//! What messaging does on both databases: who asks and how often, the shape of answers, how long they are kept, jobs that are lost; and the texts of
//! a partner, which several capabilities keep and count.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod answers;
mod durable;
mod requests;
mod storage;

use std::{ops::Deref, sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::{extract::FromRef, http::Method};
use colloquy_accounts::{Accounts, AccountsCapability, Tenant, partners::PartnerDependent};
use colloquy_analyses::{Analyses, AnalysesCapability};
use colloquy_characters::{Character, CharacterCache, Characters, CharactersCapability};
use colloquy_generation::{Generation, GenerationCapability};
use colloquy_http::Edge;
use colloquy_kernel::{Capability, Kernel};
use colloquy_messaging::{self as messaging, Messaging, MessagingCapability};
use colloquy_sandbox::Sandbox;
use colloquy_speech::{SpeakingVoice, Speech, VoiceLibrary};
use colloquy_store::{Executor as _, StoreError, statement};
use serde_json::{Value, json};
use support::{TestDatabase, eventually, on_each_database};
use test_routes::{
    ADMIN_KEY, Doubles, NoBases, TestPartner, TestQuota, TestRoutes, TestRoutesBuilder,
    messaging::{PATH, asked, ended, output, question, written},
    quick,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The state of the capabilities.
#[derive(Clone)]
struct Place {
    messaging: Messaging,
    analyses: Analyses,
}

impl Deref for Place {
    type Target = Messaging;

    fn deref(&self) -> &Messaging {
        &self.messaging
    }
}

impl AsRef<Kernel> for Place {
    fn as_ref(&self) -> &Kernel {
        self.messaging.as_ref()
    }
}

impl FromRef<Place> for Accounts {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.messaging)
    }
}

impl FromRef<Place> for Characters {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.messaging)
    }
}

impl FromRef<Place> for Generation {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.messaging)
    }
}

impl FromRef<Place> for Messaging {
    fn from_ref(place: &Place) -> Self {
        place.messaging.clone()
    }
}

impl FromRef<Place> for Analyses {
    fn from_ref(place: &Place) -> Self {
        place.analyses.clone()
    }
}

/// No partner has a voice.
#[derive(Debug)]
struct NoVoices;

#[async_trait]
impl VoiceLibrary for NoVoices {
    async fn voices(&self, _: &Tenant) -> Result<Vec<SpeakingVoice>, StoreError> {
        Ok(Vec::new())
    }

    async fn voice(&self, _: &Tenant, _: &str) -> Result<Option<SpeakingVoice>, StoreError> {
        Ok(None)
    }
}

const CAPABILITIES: [&dyn Capability<Place>; 5] = [
    &AccountsCapability,
    &CharactersCapability,
    &GenerationCapability,
    &MessagingCapability,
    &AnalysesCapability,
];

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
        let sandbox = Arc::new(Sandbox::new(&accounts.config.sandbox));
        let library = Arc::new(NoVoices);
        let speech = Speech::new(accounts.clone(), providers.clone(), sandbox, library);
        let analyses = Analyses::new(accounts.clone(), providers.clone());
        let characters = Characters::new(accounts, cache, Arc::new(NoBases));
        let generation = Generation::open(characters, providers, edge, Arc::new(NoBases)).await;
        Place {
            messaging: Messaging::new(generation.unwrap(), speech),
            analyses,
        }
    };
    builder.start(|_| dependents, place, &CAPABILITIES).await
}
