//! Knowledge bases: folders of documents that partners bring, and what is made of them.
//!
//! It owns the bases, their folders and documents, and the contents of these in their variants: what was brought (*original*),
//! its text (*digitized*), what a model made of that (*draft*, *rewritten*). Where files lie is for `blobs` to say, how text is
//! got out of them for `extract`.
//!
//! - [`names`]: what bases, folders and documents may be called
//! - [`base`], [`folder`], [`document`], [`content`]: the resources
//! - [`pages`], [`listing`]: rows of a base, read and sent a page at a time
//! - [`lists`]: pages that are sorted, filtered and summed by the database
//! - [`same`]: which of them are the same
//! - [`upload`], [`addresses`], [`fetching`]: how documents come in
//! - [`digitizing`], [`facts`]: how their text is read, and what that tells
//! - [`video`]: how pages of video platforms are read
//! - [`channel`]: how folders follow channels of these
//! - [`transcribing`]: how what is said in recordings is written down
//! - [`rewriting`]: how a model rewrites it
//! - [`admission`]: the one way to what costs something
//! - [`budget`], [`waking`]: what a base may cost, and how what waits for room goes on
//! - [`spend`]: what it did cost
//! - [`accepting`]: what follows when a content is there
//! - [`embedding`], [`index`]: how they come to be found
//! - [`vectorstore`]: how they are brought to a vector store elsewhere
//! - [`retrieval`]: how passages are looked for
//! - [`questions`], [`evaluating`]: how well that finds what answers saved questions
//! - [`outage`]: what work waits for
//! - [`rows`]: how their rows count in the storage of their partner
//! - [`erase`]: how they go

mod accepting;
mod addresses;
mod admission;
mod base;
mod budget;
mod bundle;
mod channel;
mod content;
mod cutting;
mod digitizing;
mod document;
mod embedding;
mod erase;
mod error;
mod evaluating;
mod facts;
mod fetching;
mod folder;
mod index;
mod listing;
mod lists;
mod names;
mod outage;
mod pages;
mod questions;
mod replacing;
mod retrieval;
mod rewriting;
mod routes;
mod rows;
mod same;
mod spend;
mod store;
mod transcribing;
mod upload;
mod vectorstore;
mod video;
mod waking;

use std::{sync::Arc, time::Duration};

use axum::extract::FromRef;
use colloquy_accounts::{
    Accounts, Tenant,
    partners::{Partner, PartnerDependent},
};
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_blobs::Blobs;
use colloquy_digitize::{NoOcr, Ocr};
use colloquy_fetch::Fetcher;
use colloquy_http::Interface;
use colloquy_kernel::{Base, Capability, Routes, State, WaitingWork, jobs};
use colloquy_knowledge::KnowledgeBases;
use colloquy_providers::{Providers, openai::VectorStore};
use colloquy_sandbox::Sandbox;
use colloquy_store::{StoreError, Transaction};
use tokio::sync::OnceCell;

pub use self::{
    admission::sweep,
    channel::{Discover, Import},
    digitizing::Digitize,
    embedding::{Embed, EmbedLong, Reembed},
    erase::Erase,
    evaluating::Evaluate,
    rewriting::Rewrite,
    rows::TEXTS,
    vectorstore::SyncFiles,
    video::ProgramFailure,
    waking::Wake,
};
use self::{embedding::Profile, index::NodeIndex, video::YtDlp};

/// How often requests of processes that are gone are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// How often channels are looked for whose scan or import was given up.
const CHANNELS_EVERY: Duration = Duration::from_secs(20);

/// How often files are looked for whose sync was given up.
const SYNC_EVERY: Duration = Duration::from_secs(20);

/// How often old removals are forgotten.
const FORGET_EVERY: Duration = Duration::from_secs(3_600);

/// The interval at which names are folded that nodes of an earlier version wrote.
const FOLD_EVERY: Duration = Duration::from_secs(600);

/// How often it is looked for documents that the profile of now has not embedded, as a node with other settings may leave them.
const PROFILES_EVERY: Duration = Duration::from_secs(3_600);

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Bases(Arc<Parts>);

/// What [`Bases`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
    blobs: Blobs,
    sandbox: Arc<Sandbox>,
    /// The program that recognizes text on pictures, once it was found.
    ocr: OnceCell<Ocr>,
    providers: Providers,
    /// For addresses that partners name.
    fetcher: Fetcher,
    /// The index of this node.
    index: NodeIndex,
    /// What makes vectors.
    profile: OnceCell<Profile>,
    /// Where final content is brought, where the settings name that.
    vectorstore: Option<VectorStore>,
}

impl Bases {
    /// Puts the parts together.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn open(
        accounts: Accounts,
        blobs: Blobs,
        sandbox: Arc<Sandbox>,
        providers: Providers,
        fetcher: Fetcher,
    ) -> anyhow::Result<Self> {
        let vectorstore = VectorStore::from_config(&accounts.config.vectorstore)?;
        Ok(Self(Arc::new(Parts {
            accounts,
            blobs,
            sandbox,
            ocr: OnceCell::new(),
            providers,
            fetcher,
            index: NodeIndex::default(),
            profile: OnceCell::new(),
            vectorstore,
        })))
    }

    /// The vector store that final content is brought to, where the settings name one.
    #[must_use]
    pub fn vectorstore(&self) -> Option<&VectorStore> {
        self.vectorstore.as_ref()
    }

    /// Returns the program that recognizes text on pictures, which is asked for its languages until it has named them.
    ///
    /// # Errors
    /// When it is not installed, does not run in the sandbox, or does not know a language of the settings.
    pub async fn ocr(&self) -> Result<&Ocr, NoOcr> {
        let languages = &self.config.knowledge.ocr_languages;
        let languages: Vec<&str> = languages.iter().map(String::as_str).collect();
        let open = || Ocr::open(&self.sandbox, &languages);
        self.ocr.get_or_try_init(open).await
    }

    /// Runs yt-dlp once without an address, and returns its version.
    ///
    /// # Errors
    /// When it is not installed, does not run in the sandbox, or is too old.
    pub async fn check_videos(&self) -> Result<String, ProgramFailure> {
        let claim = Claim::own(Priority::Request);
        let settings = &self.config.knowledge;
        let program = YtDlp::new(settings, &self.sandbox, &self.fetcher, claim);
        program.check().await
    }

    /// Why the search index of this node finds nothing, or does not follow; `None` where it is as it should be.
    #[must_use]
    pub fn degraded_index(&self) -> Option<String> {
        self.index.degraded()
    }

    /// The bases, for characters that look things up in them.
    #[must_use]
    pub fn for_characters(&self) -> Arc<dyn KnowledgeBases> {
        Arc::new(retrieval::CharacterBases(self.clone()))
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
        registry
            .with::<Digitize>()
            .with::<Rewrite>()
            .with::<Embed>()
            .with::<EmbedLong>()
            .with::<Reembed>()
            .with::<Erase>()
            .with::<Wake>()
            .with::<Evaluate>()
            .with::<Discover>()
            .with::<Import>()
            .with::<SyncFiles>()
    }

    async fn waiting(&self, state: &S) -> Result<Vec<WaitingWork>, StoreError> {
        let bases = Bases::from_ref(state);
        store::waiting_work(bases.store.db(), bases.clock.now_ms()).await
    }

    async fn start(&self, state: &S) -> anyhow::Result<()> {
        let bases = Bases::from_ref(state);
        embedding::change_profiles(&bases).await?;
        let follower = bases.clone();
        let follow = follower.index.clone().follow(follower);
        bases.kernel.tasks.spawn(follow);
        waking::wake_all(&bases).await?;
        vectorstore::resume_all(&bases, true).await?;
        let folded = bases.clone();
        state
            .as_ref()
            .repeat("folding names of lists", FOLD_EVERY, move |_| {
                let bases = folded.clone();
                async move { lists::fold_names(&bases).await }
            });
        let channels = bases.clone();
        state.as_ref().repeat(
            "looking for channels that failed",
            CHANNELS_EVERY,
            move |_| {
                let bases = channels.clone();
                async move { channel::queue_failed(&bases).await }
            },
        );
        let synced = bases.clone();
        state
            .as_ref()
            .repeat("looking for files to sync", SYNC_EVERY, move |_| {
                let bases = synced.clone();
                async move { vectorstore::resume_all(&bases, false).await }
            });
        let swept = bases.clone();
        state
            .as_ref()
            .repeat("settling lost requests", SWEEP_EVERY, move |_| {
                let bases = swept.clone();
                async move { admission::sweep(&bases).await }
            });
        let embedded = bases.clone();
        state.as_ref().repeat(
            "looking for documents without vectors",
            PROFILES_EVERY,
            move |_| {
                let bases = embedded.clone();
                async move { embedding::embed_lacking(&bases).await }
            },
        );
        state
            .as_ref()
            .repeat("forgetting removals", FORGET_EVERY, move |_| {
                let bases = bases.clone();
                async move { index::forget(&bases).await }
            });
        Ok(())
    }
}

/// Tells the indexes of nodes, and vector stores elsewhere, that the bases of a partner go with it.
#[derive(Debug)]
pub struct BasesOfPartners(pub Base);

#[async_trait::async_trait]
impl PartnerDependent for BasesOfPartners {
    async fn change(&self, transaction: &Transaction, partner: &Partner) -> Result<(), StoreError> {
        vectorstore::resume(&self.0, transaction, partner).await
    }

    async fn leave(
        &self,
        transaction: &Transaction,
        tenant: &Tenant,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        vectorstore::remove_all(&self.0, transaction, tenant, now_ms).await?;
        store::note_removals_of(transaction, tenant.partner().as_str(), now_ms).await
    }
}
