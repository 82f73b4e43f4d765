//! What the voice library does on both databases, through its routes: voices of recordings and of single samples, their bounds, and what workers make of
//! them.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod library;
mod samples;
mod splitting;
mod workers;

use std::{ops::Deref, sync::Arc};

use axum::{extract::FromRef, http::Method};
use colloquy_accounts::{Accounts, AccountsCapability};
use colloquy_blobs::{Blobs, BlobsCapability};
use colloquy_http::Edge;
use colloquy_kernel::{Base, Capability, Kernel};
use colloquy_providers::Providers;
use colloquy_sandbox::Sandbox;
use colloquy_voices::{Voices, VoicesCapability};
use support::TestDatabase;
use test_routes::{Doubles, TestRoutes, TestRoutesBuilder, quick, voices::is_tidy};

/// The state of the capabilities.
#[derive(Clone)]
struct Place {
    voices: Voices,
    blobs: Blobs,
}

impl Place {
    fn open(accounts: Accounts, providers: Providers) -> Self {
        let blobs = Blobs::open(Base::clone(&accounts)).unwrap();
        let sandbox = Arc::new(Sandbox::new(&accounts.config.sandbox));
        Self {
            voices: Voices::new(accounts, blobs.clone(), sandbox, providers),
            blobs,
        }
    }
}

impl Deref for Place {
    type Target = Voices;

    fn deref(&self) -> &Voices {
        &self.voices
    }
}

impl AsRef<Kernel> for Place {
    fn as_ref(&self) -> &Kernel {
        self.voices.as_ref()
    }
}

impl FromRef<Place> for Accounts {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.voices)
    }
}

impl FromRef<Place> for Blobs {
    fn from_ref(place: &Place) -> Self {
        place.blobs.clone()
    }
}

impl FromRef<Place> for Voices {
    fn from_ref(place: &Place) -> Self {
        place.voices.clone()
    }
}

const CAPABILITIES: [&dyn Capability<Place>; 3] =
    [&AccountsCapability, &BlobsCapability, &VoicesCapability];

fn builder(database: &TestDatabase) -> TestRoutesBuilder {
    TestRoutesBuilder::new(database).with_decoder()
}

/// Routes with a worker.
async fn start(builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let app = start_without_worker(builder).await;
    app.start_worker(&CAPABILITIES, quick()).await;
    app
}

async fn start_without_worker(builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let providers = Doubles::default().providers(builder.settings());
    let place = async |accounts: Accounts, _: Edge| Place::open(accounts, providers);
    let app = builder.start(|_| Vec::new(), place, &CAPABILITIES).await;
    app.start_background(&CAPABILITIES).await;
    app
}

async fn bytes(app: &TestRoutes<Place>, key: &str, path: &str) -> Vec<u8> {
    let request = app.request(Method::GET, path).header("x-api-key", key);
    let response = request.send().await;
    assert_eq!(response.status(), 200, "{path}");
    response.bytes().await.unwrap().to_vec()
}

/// Nothing is stored but what voices refer to, and all of that is.
async fn tidy(app: &TestRoutes<Place>) {
    app.state.blobs.sweep().await.unwrap();
    is_tidy(app).await;
}
