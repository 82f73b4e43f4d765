//! What every part of the server shares.
//!
//! All of it is made before it is shared: an [`App`] has no part that is missing until something has started. A command
//! needs neither a node nor ports, so it makes do with the [`Base`].

use std::{
    net::{IpAddr, Ipv4Addr},
    ops::Deref,
    sync::Arc,
    time::Instant,
};

use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    accounts::{self, KeyRing, ledger::Ledger, quotas::QuotaCache},
    calls::Ring,
    characters::CharacterCache,
    clock::Clock,
    config::Config,
    fetch::Fetcher,
    http::{health::DeepHealth, limits::RateLimits},
    jobs::Wake,
    media::Media,
    node::{self, Node},
    observability::Metrics,
    providers::Providers,
    speech::SpeechCache,
    store::Store,
};

/// What commands and servers share: the settings, the database and what is remembered of it.
#[derive(Debug)]
pub struct Base {
    /// The settings.
    pub config: Config,
    /// The database.
    pub store: Store,
    /// Time and identifiers.
    pub clock: Arc<dyn Clock>,
    /// What verifies API keys.
    pub key_ring: KeyRing,
    /// Quotas that were read a moment ago.
    pub quotas: QuotaCache,
    /// Saved characters that were read a moment ago.
    pub characters: CharacterCache,
}

impl Base {
    /// Puts the parts together.
    #[must_use]
    pub fn new(config: Config, store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            key_ring: KeyRing::new(Arc::clone(&clock)),
            quotas: QuotaCache::new(Arc::clone(&clock)),
            characters: CharacterCache::new(Arc::clone(&clock)),
            config,
            store,
            clock,
        }
    }
}

/// The server's shared parts; cheap to clone.
#[derive(Debug, Clone)]
pub struct App(Arc<Parts>);

/// What [`App`] holds, besides the [`Base`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    base: Base,
    /// The outside services.
    pub providers: Providers,
    /// When the server started, on the clock's monotonic time.
    pub started: Instant,
    /// What reserves and settles usage.
    pub ledger: Ledger,
    /// The rate limits of keys and addresses.
    pub limits: RateLimits,
    /// The counters, as `/metrics` shows them.
    pub metrics: Metrics,
    /// The last deep health check.
    pub deep_health: DeepHealth,
    /// Room for calls on this node: a permit a call.
    pub call_slots: Arc<Semaphore>,
    /// This process among the nodes.
    pub node: Node,
    /// The keys of session URLs.
    pub signing: Ring,
    /// Wakes the worker of background jobs.
    pub jobs: Wake,
    /// The client for addresses that partners name.
    pub fetcher: Fetcher,
    /// Speech that may be asked for again.
    pub speech_cache: SpeechCache,
    /// The media side of this node.
    pub(crate) media: Media,
    /// Cancelled when the server stops taking work.
    pub shutdown: CancellationToken,
    /// Cancelled when the time to drain is over: what still runs ends now.
    pub drain_over: CancellationToken,
    /// Every background task, so that the shutdown can wait for them.
    pub tasks: TaskTracker,
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Deref for Parts {
    type Target = Base;

    fn deref(&self) -> &Base {
        &self.base
    }
}

impl App {
    /// Prepares a server on a migrated database: it joins the installation as a node, takes the media port and reads the
    /// keys of session URLs. Nothing runs yet: that begins with [`crate::start::start_background`].
    ///
    /// # Errors
    /// When the data folder or the database fails, the media port is taken, or a setting is malformed.
    pub async fn open(base: Base, providers: Providers) -> anyhow::Result<Self> {
        // Makes the secret of the API keys now, so that a database that cannot be written is noticed at the start.
        accounts::server_secret(&base.store, "api_keys").await?;
        let node = node::join(&base).await?;
        let media = Media::open(&base.config).await?;
        let signing = Ring::open(&base).await?;
        let fetcher = Fetcher::new(&base.config.fetch)?;
        Ok(Self(Arc::new(Parts {
            started: base.clock.instant(),
            ledger: Ledger::new(Arc::clone(&base.clock)),
            limits: RateLimits::new(&base.config.limits, &base.clock),
            metrics: Metrics::get(),
            deep_health: DeepHealth::default(),
            call_slots: Arc::new(Semaphore::new(base.config.media.max_calls as usize)),
            speech_cache: SpeechCache::new(&base.config.speech),
            base,
            providers,
            node,
            signing,
            jobs: Wake::default(),
            fetcher,
            media,
            shutdown: CancellationToken::new(),
            drain_over: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })))
    }

    /// The origin as clients reach this server: `http.public_url`, else the address listened on. No slash at its end.
    #[must_use]
    pub fn public_url(&self) -> String {
        if let Some(url) = &self.config.http.public_url {
            return url.as_str().trim_end_matches('/').to_owned();
        }
        let mut address = self.config.http.listen;
        if address.ip().is_unspecified() {
            address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        format!("http://{address}")
    }
}
