//! What knowledge bases do on both databases, through their routes and by their jobs: documents, lists, batches, locks, budgets, rewriting, searching,
//! channels, vector stores elsewhere.
//!
//! The models and services are doubles that are asked over HTTP. Documents are read by the server's binary.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

/// A test on either database, of a setup that `start`s on it.
macro_rules! rule {
    ($name:ident, |$setup:ident: $kind:ty| $body:block) => {
        mod $name {
            use super::*;

            async fn body($setup: $kind) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                body(<$kind>::start(&TestDatabase::sqlite()).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                body(<$kind>::start(&TestDatabase::postgres().await).await).await;
            }
        }
    };
}

mod actions;
mod admission;
mod batches;
mod budgets;
mod bulk;
mod channels;
mod conditions;
mod documents;
mod evaluations;
mod list_columns;
mod list_groups;
mod lists;
mod locks;
mod one_document;
mod outages;
mod pages;
mod promises;
mod races;
mod reading;
mod rewriting;
mod searching;
mod signs;
mod storage;
mod vectorstores;

use std::{ops::Deref, sync::Arc, time::Duration};

use axum::{extract::FromRef, http::Method};
use colloquy_accounts::{Accounts, AccountsCapability, partners::PartnerDependent};
use colloquy_bases::{Bases, BasesCapability, BasesOfPartners, TEXTS};
use colloquy_blobs::{Blobs, BlobsCapability};
use colloquy_config::Config;
use colloquy_fetch::Fetcher;
use colloquy_http::Edge;
use colloquy_kernel::{Base, Capability, Kernel, WaitReason, WaitingKind, WaitingWork, jobs};
use colloquy_providers::Providers;
use colloquy_sandbox::Sandbox;
use colloquy_store::{Executor as _, statement};
use serde_json::{Value, json};
use support::{TestDatabase, eventually, on_each_database};
use test_routes::{
    ADMIN_KEY, Answer, Doubles, Form, TestRoutes, TestRoutesBuilder,
    bases::{
        BASE, HOURS, LIONS, add, best, digitized, document, fields, file, finds, found, furnished,
        nothing_is_pending, post, put, rows, sample, search, settled, text_of, upload,
    },
    quick, send,
    site::site,
    storage::recount_texts,
    upstream::{Api, Fault, Script, Upstream},
};

/// The state of the capabilities.
#[derive(Clone)]
struct Place {
    bases: Bases,
    blobs: Blobs,
}

impl Place {
    fn open(accounts: Accounts, providers: Providers) -> Self {
        let blobs = Blobs::open(Base::clone(&accounts)).unwrap();
        let fetcher = Fetcher::new(&accounts.config.fetch).unwrap();
        let sandbox = Arc::new(Sandbox::new(&accounts.config.sandbox));
        let bases = Bases::open(accounts, blobs.clone(), sandbox, providers, fetcher);
        Self {
            bases: bases.unwrap(),
            blobs,
        }
    }
}

impl Deref for Place {
    type Target = Bases;

    fn deref(&self) -> &Bases {
        &self.bases
    }
}

impl AsRef<Kernel> for Place {
    fn as_ref(&self) -> &Kernel {
        self.bases.as_ref()
    }
}

impl FromRef<Place> for Accounts {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.bases)
    }
}

impl FromRef<Place> for Blobs {
    fn from_ref(place: &Place) -> Self {
        place.blobs.clone()
    }
}

impl FromRef<Place> for Bases {
    fn from_ref(place: &Place) -> Self {
        place.bases.clone()
    }
}

/// What operators see of work that waits.
async fn waiting(place: &Place) -> Vec<WaitingWork> {
    BasesCapability.waiting(place).await.unwrap()
}

/// The routes of bases.
type App = TestRoutes<Place>;

const CAPABILITIES: [&dyn Capability<Place>; 3] =
    [&AccountsCapability, &BlobsCapability, &BasesCapability];

fn builder(database: &TestDatabase) -> TestRoutesBuilder {
    TestRoutesBuilder::new(database)
}

async fn start(database: &TestDatabase) -> App {
    start_by(builder(database)).await
}

async fn start_by(builder: TestRoutesBuilder) -> App {
    start_with(builder, |config| Doubles::default().providers(config)).await
}

/// Starts with a decoder and a worker, which do what is asked for.
async fn start_working(builder: TestRoutesBuilder) -> App {
    let app = start_by(builder.with_decoder()).await;
    app.start_worker(&CAPABILITIES, quick()).await;
    app
}

/// Starts with providers of the test.
async fn start_with(
    builder: TestRoutesBuilder,
    providers: impl FnOnce(&Config) -> Providers,
) -> App {
    let place = async |accounts: Accounts, _: Edge| {
        let providers = providers(&accounts.config);
        Place::open(accounts, providers)
    };
    let dependents = |base: &Base| -> Vec<Arc<dyn PartnerDependent>> {
        vec![Arc::new(BasesOfPartners(base.clone()))]
    };
    let app = builder.start(dependents, place, &CAPABILITIES).await;
    app.start_background(&CAPABILITIES).await;
    app
}
