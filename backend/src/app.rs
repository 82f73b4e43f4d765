//! The state of the server: that of each capability.
//!
//! All of it is made before it is shared: an [`App`] has no part that is missing until something has started. A command
//! needs neither a node nor ports, so it makes do with a [`Directory`].

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use axum::extract::FromRef;

use crate::{
    accounts::{Accounts, Directory},
    analyses::Analyses,
    audit::Audit,
    bases::{Bases, BasesOfPartners},
    blobs::Blobs,
    calls::{Calls, OpenCalls},
    characters::{CharacterCache, Characters},
    console::Console,
    events::Events,
    fetch::Fetcher,
    generation::Generation,
    http::Edge,
    kernel::{Base, Kernel},
    media::Media,
    messaging::Messaging,
    node::DataFolder,
    observability::Metrics,
    providers::Providers,
    sandbox::Sandbox,
    server::{DeepHealth, Equipment, private},
    speech::Speech,
    transcripts::Transcripts,
    voices::Voices,
    webhooks::Webhooks,
};

/// The server's shared parts; cheap to clone.
#[derive(Debug, Clone)]
pub struct App(Arc<Parts>);

/// What [`App`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
    /// Saved and inline characters.
    pub characters: Characters,
    /// The files of partners.
    pub blobs: Blobs,
    /// Knowledge bases.
    pub bases: Bases,
    /// The outbox.
    pub webhooks: Webhooks,
    /// The call resource.
    pub calls: Calls,
    /// Text generation.
    pub generation: Generation,
    /// The voice of characters.
    pub speech: Speech,
    /// Legacy messaging.
    pub messaging: Messaging,
    /// Conversations that are analyzed.
    pub analyses: Analyses,
    /// Recordings that are written down.
    pub transcripts: Transcripts,
    /// The voice library.
    pub voices: Voices,
    /// The calls that run on this node.
    pub media: Media,
    /// Who has signed in at the console.
    pub console: Console,
    /// Streams of changes.
    pub events: Events,
    /// The audit log.
    pub audit: Audit,
    /// The outside services.
    pub providers: Providers,
    /// What the layers around the routes need.
    pub edge: Edge,
    /// The counters, as `/metrics` shows them.
    pub metrics: Metrics,
    /// The last deep health check.
    pub deep_health: DeepHealth,
    /// The programs and models that this machine has and lacks, once the server has looked after its start.
    pub equipment: OnceLock<Vec<Equipment>>,
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Deref for Parts {
    type Target = Accounts;

    fn deref(&self) -> &Accounts {
        &self.accounts
    }
}

impl AsRef<Kernel> for App {
    fn as_ref(&self) -> &Kernel {
        &self.kernel
    }
}

/// Gives each capability its own state.
macro_rules! give {
    ($($state:ident: $part:ident,)*) => {$(
        impl FromRef<App> for $state {
            fn from_ref(app: &App) -> Self {
                app.0.$part.clone()
            }
        }
    )*};
}

give! {
    Accounts: accounts,
    Blobs: blobs,
    Bases: bases,
    Characters: characters,
    Webhooks: webhooks,
    Calls: calls,
    Generation: generation,
    Speech: speech,
    Messaging: messaging,
    Transcripts: transcripts,
    Voices: voices,
    Analyses: analyses,
    Media: media,
    Console: console,
    Events: events,
    Audit: audit,
}

/// Partners, keys and quotas, for a command.
#[must_use]
pub fn directory(base: Base) -> Directory {
    let cache = character_cache(&base);
    directory_with(base, &cache)
}

fn character_cache(base: &Base) -> Arc<CharacterCache> {
    let document_bytes = base.config.limits.document_memory_bytes;
    Arc::new(CharacterCache::new(Arc::clone(&base.clock), document_bytes))
}

fn directory_with(base: Base, cache: &Arc<CharacterCache>) -> Directory {
    let bases = BasesOfPartners(base.clone());
    Directory::new(
        base,
        vec![Arc::clone(cache) as _, Arc::new(OpenCalls), Arc::new(bases)],
    )
}

impl App {
    /// Prepares a server on a migrated database and in its data folder: it joins the installation as a node, takes the media port and reads the
    /// keys of session URLs. Nothing runs yet: that begins with [`crate::server::start_background`].
    ///
    /// # Errors
    /// When the data folder or the database fails, the media port is taken, or a setting is malformed.
    pub async fn open(
        base: Base,
        folder: DataFolder,
        providers: Providers,
    ) -> anyhow::Result<Self> {
        // Before anything starts a program.
        private::hide(&base.config)?;
        let cache = character_cache(&base);
        let directory = directory_with(base.clone(), &cache);
        let kernel = Kernel::open(base, folder).await?;
        let edge = Edge::new(
            &kernel.config,
            Arc::clone(&kernel.clock),
            kernel.shutdown.clone(),
        );
        let fetcher = Fetcher::new(&kernel.config.fetch)?;
        let blobs = Blobs::open(Base::clone(&kernel))?;
        let accounts = Accounts::open(kernel, directory).await?;
        let sandbox = Arc::new(Sandbox::new(&accounts.config.sandbox));
        let bases = Bases::open(
            accounts.clone(),
            blobs.clone(),
            Arc::clone(&sandbox),
            providers.clone(),
            fetcher.clone(),
        )?;
        let characters = Characters::new(accounts.clone(), cache, bases.for_characters());
        let webhooks = Webhooks::new(accounts.clone(), fetcher.clone());
        let console = Console::new(accounts.clone());
        let events = Events::new(accounts.clone());
        let audit = Audit::new(accounts.clone());
        let calls = Calls::open(
            characters.clone(),
            webhooks.clone(),
            providers.clone(),
            edge.clone(),
        )
        .await?;
        let analyses = Analyses::new(accounts.clone(), providers.clone());
        let transcripts = Transcripts::new(
            accounts.clone(),
            blobs.clone(),
            Arc::clone(&sandbox),
            providers.clone(),
            fetcher,
        );
        let voices = Voices::new(
            accounts.clone(),
            blobs.clone(),
            Arc::clone(&sandbox),
            providers.clone(),
        );
        let generation = Generation::open(
            characters.clone(),
            providers.clone(),
            edge.clone(),
            bases.for_characters(),
        )
        .await?;
        let library = Arc::new(voices.clone());
        let speech = Speech::new(accounts.clone(), providers.clone(), sandbox, library);
        let messaging = Messaging::new(generation.clone(), speech.clone());
        let media = Media::open(
            calls.clone(),
            generation.clone(),
            speech.clone(),
            analyses.clone(),
            providers.clone(),
        )
        .await?;
        Ok(Self(Arc::new(Parts {
            metrics: Metrics::get(),
            deep_health: DeepHealth::default(),
            equipment: OnceLock::new(),
            console,
            events,
            audit,
            accounts,
            blobs,
            bases,
            characters,
            webhooks,
            calls,
            generation,
            speech,
            messaging,
            transcripts,
            voices,
            analyses,
            media,
            providers,
            edge,
        })))
    }
}
