//! The state of the server: that of each capability.
//!
//! All of it is made before it is shared: an [`App`] has no part that is missing until something has started. A command
//! needs neither a node nor ports, so it makes do with a [`Directory`].

use std::{ops::Deref, sync::Arc};

use axum::extract::FromRef;

use crate::{
    accounts::{self, Accounts, Directory},
    calls::{OpenCalls, Ring, room::CallRoom},
    characters::{CharacterCache, Characters},
    fetch::Fetcher,
    generation::{Seals, TextSockets},
    http::Edge,
    kernel::{Base, Kernel},
    media::Media,
    observability::Metrics,
    providers::Providers,
    sandbox::Sandbox,
    server::DeepHealth,
    speech::SpeechCache,
};

/// The server's shared parts; cheap to clone.
#[derive(Debug, Clone)]
pub struct App(Arc<Parts>);

/// What [`App`] holds, besides the [`Characters`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    characters: Characters,
    /// The outside services.
    pub providers: Providers,
    /// The counters, as `/metrics` shows them.
    pub metrics: Metrics,
    /// The last deep health check.
    pub deep_health: DeepHealth,
    /// Room for calls on this node.
    pub call_room: Arc<CallRoom>,
    /// The keys of session URLs.
    pub signing: Ring,
    /// The client for addresses that partners name.
    pub fetcher: Fetcher,
    /// What the layers around the routes need.
    pub edge: Edge,
    /// Speech that may be asked for again.
    pub speech_cache: SpeechCache,
    /// The processes that decode what is not trusted.
    pub sandbox: Sandbox,
    /// What seals compacted conversations.
    pub(crate) seals: Seals,
    /// Room for the WebSockets of text generation.
    pub(crate) text_sockets: TextSockets,
    /// The media side of this node.
    pub(crate) media: Media,
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Deref for Parts {
    type Target = Characters;

    fn deref(&self) -> &Characters {
        &self.characters
    }
}

impl AsRef<Kernel> for App {
    fn as_ref(&self) -> &Kernel {
        &self.kernel
    }
}

impl FromRef<App> for Accounts {
    fn from_ref(app: &App) -> Self {
        Self::clone(app)
    }
}

impl FromRef<App> for Characters {
    fn from_ref(app: &App) -> Self {
        Self::clone(app)
    }
}

/// Partners, keys and quotas, for a command.
#[must_use]
pub fn directory(base: Base) -> Directory {
    let cache = Arc::new(CharacterCache::new(Arc::clone(&base.clock)));
    directory_with(base, &cache)
}

fn directory_with(base: Base, cache: &Arc<CharacterCache>) -> Directory {
    Directory::new(base, vec![Arc::clone(cache) as _, Arc::new(OpenCalls)])
}

impl App {
    /// Prepares a server on a migrated database: it joins the installation as a node, takes the media port and reads the
    /// keys of session URLs. Nothing runs yet: that begins with [`crate::server::start_background`].
    ///
    /// # Errors
    /// When the data folder or the database fails, the media port is taken, or a setting is malformed.
    pub async fn open(base: Base, providers: Providers) -> anyhow::Result<Self> {
        let cache = Arc::new(CharacterCache::new(Arc::clone(&base.clock)));
        let directory = directory_with(base.clone(), &cache);
        let kernel = Kernel::open(base).await?;
        let accounts = Accounts::open(kernel.clone(), directory).await?;
        let seals = accounts::server_secret(&kernel.store, "compactions").await?;
        let config = &kernel.config;
        Ok(Self(Arc::new(Parts {
            media: Media::open(config).await?,
            signing: Ring::open(&kernel).await?,
            fetcher: Fetcher::new(&config.fetch)?,
            metrics: Metrics::get(),
            deep_health: DeepHealth::default(),
            call_room: CallRoom::new(&config.media, Arc::clone(&kernel.clock)),
            edge: Edge::new(config, Arc::clone(&kernel.clock), kernel.shutdown.clone()),
            speech_cache: SpeechCache::new(&config.speech),
            sandbox: Sandbox::new(&config.sandbox),
            seals: Seals::new(seals),
            text_sockets: TextSockets::new(&config.limits),
            characters: Characters::new(accounts, cache),
            providers,
        })))
    }
}
