//! Knowledge bases: folders of documents that partners bring, and what is made of them.
//!
//! It owns the bases, their folders and documents, and the contents of these in their variants: what was brought (*original*),
//! its text (*digitized*), what a model made of that (*draft*, *rewritten*). Where files lie is for `blobs` to say, how text is
//! got out of them for `extract`.
//!
//! - [`names`]: what bases, folders and documents may be called
//! - [`base`], [`folder`], [`document`], [`content`]: the resources
//! - [`upload`]: how documents come in
//! - [`digitizing`]: how their text is read
//! - [`erase`]: how they go

mod base;
mod content;
mod digitizing;
mod document;
mod erase;
mod error;
mod folder;
mod names;
mod routes;
mod store;
mod stored;
mod upload;

use std::sync::Arc;

use axum::extract::FromRef;
use colloquy_accounts::Accounts;
use colloquy_blobs::Blobs;
use colloquy_digitize::Ocr;
use colloquy_http::Interface;
use colloquy_kernel::{Capability, Routes, State, jobs};
use colloquy_sandbox::Sandbox;

pub use self::{digitizing::Digitize, erase::Erase};

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Bases(Arc<Parts>);

/// What [`Bases`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
    blobs: Blobs,
    sandbox: Arc<Sandbox>,
    /// What recognizes text on pictures, where it is installed.
    ocr: Option<Ocr>,
}

impl Bases {
    /// Puts the parts together, and looks for the program that recognizes text on pictures: without it, such pages have none.
    pub async fn open(accounts: Accounts, blobs: Blobs, sandbox: Arc<Sandbox>) -> Self {
        let languages = &accounts.config.knowledge.ocr_languages;
        let languages: Vec<&str> = languages.iter().map(String::as_str).collect();
        let ocr = match Ocr::open(&languages).await {
            Ok(ocr) => Some(ocr),
            Err(reason) => {
                tracing::info!(%reason, "no text is recognized on pictures");
                None
            }
        };
        Self(Arc::new(Parts {
            accounts,
            blobs,
            sandbox,
            ocr,
        }))
    }
}

colloquy_kernel::state!(Bases: Parts.accounts: Accounts);

/// Knowledge bases, as a part of a server.
#[derive(Debug)]
pub struct BasesCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for BasesCapability
where
    Accounts: FromRef<S>,
    Bases: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "bases"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![(Interface::MANAGEMENT, routes::routes())]
    }

    fn jobs(&self, registry: jobs::Registry<S>) -> jobs::Registry<S> {
        registry.with::<Digitize>().with::<Erase>()
    }
}
