//! What every part of the server shares.

use std::{
    net::{IpAddr, Ipv4Addr},
    ops::Deref,
    sync::{Arc, OnceLock},
    time::Instant,
};

use tokio::sync::{OnceCell, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    accounts::KeyRing,
    calls::Ring,
    characters::CharacterCache,
    clock::{Clock, SystemClock},
    config::Config,
    fetch::Fetcher,
    http::{health::DeepHealth, limits::RateLimits},
    jobs::Wake,
    media::Media,
    node::Node,
    observability::Metrics,
    providers::Providers,
    store::Store,
};

/// The server's shared parts; cheap to clone.
#[derive(Debug, Clone)]
pub struct App(Arc<Parts>);

/// What [`App`] holds.
#[derive(Debug)]
pub struct Parts {
    /// The settings.
    pub config: Config,
    /// The database.
    pub store: Store,
    /// The outside services.
    pub providers: Providers,
    /// Time and identifiers.
    pub clock: Arc<dyn Clock>,
    /// When the server started, on the clock's monotonic time.
    pub started: Instant,
    /// What verifies API keys.
    pub key_ring: KeyRing,
    /// Saved characters that were read a moment ago.
    pub characters: CharacterCache,
    /// The rate limits of keys and addresses.
    pub limits: RateLimits,
    /// The counters, as `/metrics` shows them.
    pub metrics: Metrics,
    /// The last deep health check.
    pub deep_health: DeepHealth,
    /// Room for calls on this node: a permit a call.
    pub call_slots: Arc<Semaphore>,
    /// This process among the nodes; set by [`crate::node::join`].
    pub node: OnceLock<Node>,
    /// The keys of session URLs; set by [`crate::calls::start`].
    pub signing: OnceCell<Ring>,
    /// Wakes the worker of background jobs.
    pub jobs: Wake,
    fetcher: OnceLock<Fetcher>,
    /// The media side of this node; set by [`crate::media::start`].
    pub(crate) media: OnceLock<Media>,
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

impl App {
    /// Puts the parts together with the machine's clock.
    #[must_use]
    pub fn new(config: Config, store: Store, providers: Providers) -> Self {
        Self::with_clock(config, store, providers, Arc::new(SystemClock))
    }

    /// Puts the parts together with a clock of the caller's.
    #[must_use]
    pub fn with_clock(
        config: Config,
        store: Store,
        providers: Providers,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let call_slots = Arc::new(Semaphore::new(config.media.max_calls as usize));
        Self(Arc::new(Parts {
            started: clock.instant(),
            key_ring: KeyRing::new(Arc::clone(&clock)),
            characters: CharacterCache::new(Arc::clone(&clock)),
            limits: RateLimits::new(&config.limits, &clock),
            metrics: Metrics::get(),
            deep_health: DeepHealth::default(),
            config,
            store,
            providers,
            clock,
            call_slots,
            node: OnceLock::new(),
            signing: OnceCell::new(),
            jobs: Wake::default(),
            fetcher: OnceLock::new(),
            media: OnceLock::new(),
            shutdown: CancellationToken::new(),
            drain_over: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
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

    /// The media side of this node.
    ///
    /// # Panics
    /// Before [`crate::media::start`], which comes before the first session.
    #[expect(
        clippy::expect_used,
        reason = "sessions are served only after media has started"
    )]
    pub(crate) fn media(&self) -> &Media {
        self.media.get().expect("media has started")
    }

    /// The client for addresses that partners name, made when it is needed first.
    ///
    /// # Errors
    /// When `fetch.ca_file` cannot be read.
    pub fn fetcher(&self) -> anyhow::Result<&Fetcher> {
        if let Some(fetcher) = self.fetcher.get() {
            return Ok(fetcher);
        }
        let fetcher = Fetcher::new(&self.config.fetch)?;
        Ok(self.fetcher.get_or_init(|| fetcher))
    }
}
