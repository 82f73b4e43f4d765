//! What every capability of a server stands on, without any domain.
//!
//! - [`Base`]: the settings, the database and the clock, which commands have, too
//! - [`Kernel`]: a server's process: its [`node`], its tasks, and when it stops
//! - [`jobs`]: durable background work
//! - [`journal`]: the end of work that must not be lost although the database is away
//! - [`disk`]: the free space of the disks that are written to
//! - [`Capability`]: what a capability brings along: routes, jobs, background work
//! - [`router`]: routes with their descriptions in OpenAPI, and the macro [`routes!`]
//!
//! A capability has a state of its own, cheap to clone, which knows the [`Kernel`] and the capabilities below. The state of
//! the whole server gives each capability its own ([`axum::extract::FromRef`]).

mod capability;
pub mod disk;
pub mod jobs;
pub mod journal;
pub mod node;
pub mod router;
mod waiting;

use std::{
    fmt::Display,
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};

use colloquy_base::clock::Clock;
use colloquy_config::Config;
use colloquy_store::{Executor as _, Store, StoreError};
use tokio::time::sleep;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::{
    capability::{Capability, Routes},
    waiting::{MOST_WAITING, WaitReason, WaitingKind, WaitingWork},
};
use self::{
    jobs::JobSignal,
    journal::Journal,
    node::{DataFolder, Node},
};

/// How far the clocks of nodes may be off the database's.
const CLOCKS_OFF: Duration = Duration::from_secs(3_600);

/// What commands and servers share; cheap to clone.
#[derive(Debug, Clone)]
pub struct Base {
    /// The settings.
    pub config: Arc<Config>,
    /// The database.
    pub store: Store,
    /// Time and identifiers.
    pub clock: Arc<dyn Clock>,
}

impl Base {
    /// Puts the parts together.
    #[must_use]
    pub fn new(config: Config, store: Store, clock: Arc<dyn Clock>) -> Self {
        let config = Arc::new(config);
        Self {
            config,
            store,
            clock,
        }
    }

    /// The database's own time, in milliseconds since 1970. Nodes compare times of each other on it, however their own clocks
    /// go.
    ///
    /// # Errors
    /// The database's failure.
    pub async fn database_now_ms(&self) -> Result<i64, StoreError> {
        if let Some(now) = self.clock.database_now_ms() {
            return Ok(now);
        }
        let db = self.store.db();
        let now = db.fetch_scalar(format!("SELECT {}", db.dialect().now_ms()));
        now.await?
            .ok_or_else(|| StoreError::other("the database tells no time"))
    }

    /// Returns the latest time, in milliseconds since 1970, that a clock which is right shows on any node. What was noted at a later one was
    /// noted by a clock that was wrong. What is ahead of this node's clock alone, or of the database's, may be right.
    ///
    /// # Errors
    /// The database's failure.
    pub async fn latest_now_ms(&self) -> Result<i64, StoreError> {
        let now = self.database_now_ms().await?.max(self.clock.now_ms());
        Ok(now.saturating_add(CLOCKS_OFF.as_millis() as i64))
    }
}

/// A server's process; cheap to clone.
#[derive(Debug, Clone)]
pub struct Kernel(Arc<Parts>);

/// What [`Kernel`] holds, besides the [`Base`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    base: Base,
    /// This process among the nodes.
    pub node: Node,
    /// When the server started, on the clock's monotonic time.
    pub started: Instant,
    /// The ends that may not be stored yet.
    pub journal: Journal,
    /// Wakes the worker of background jobs.
    pub jobs: JobSignal,
    /// Cancelled when the server is told to stop: it says so, and goes on as before until `shutdown`, which cancels this, too.
    pub leaving: CancellationToken,
    /// Cancelled when the server stops taking work.
    pub shutdown: CancellationToken,
    /// Cancelled when the time to drain is over: what still runs ends now.
    pub drain_over: CancellationToken,
    /// Every background task, so that the shutdown can wait for them.
    pub tasks: TaskTracker,
}

impl Deref for Kernel {
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

impl Kernel {
    /// Begins a server's process on a migrated database: it joins the installation as a node. Nothing runs yet.
    ///
    /// # Errors
    /// When the data folder or the database fails, or another process runs as the same node.
    pub async fn open(base: Base, folder: DataFolder) -> anyhow::Result<Self> {
        let shutdown = CancellationToken::new();
        Ok(Self(Arc::new(Parts {
            node: node::join(&base, folder).await?,
            started: base.clock.instant(),
            journal: Journal::open(&base.config.store.dir)?,
            jobs: JobSignal::default(),
            leaving: shutdown.child_token(),
            shutdown,
            drain_over: CancellationToken::new(),
            tasks: TaskTracker::new(),
            base,
        })))
    }

    /// Does this now and after every such time, until the server stops. A failure is told in the log.
    pub fn repeat<F, E>(
        &self,
        what: &'static str,
        every: Duration,
        work: impl Fn(Base) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), E>> + Send,
        E: Display + Send,
    {
        let kernel = self.clone();
        self.tasks.spawn(async move {
            loop {
                if let Err(error) = work(Base::clone(&kernel)).await {
                    kernel.store.complain(what, &error);
                }
                tokio::select! {
                    () = kernel.shutdown.cancelled() => return,
                    () = sleep(every) => {}
                }
            }
        });
    }
}

/// The state of a capability, or of a whole server, which work beside requests gets.
pub trait State: AsRef<Kernel> + Clone + Send + Sync + 'static {}

/// Makes a handle such as `Calls(Arc<Parts>)` the state of a capability: it derefs to its parts, and these to the state that
/// the capability builds on.
///
/// ```ignore
/// colloquy_kernel::state!(Calls: Parts.characters: Characters);
/// ```
#[macro_export]
macro_rules! state {
    ($state:ident: $parts:ident.$base:ident: $base_state:ty) => {
        impl ::std::ops::Deref for $state {
            type Target = $parts;

            fn deref(&self) -> &$parts {
                &self.0
            }
        }

        impl ::std::ops::Deref for $parts {
            type Target = $base_state;

            fn deref(&self) -> &$base_state {
                &self.$base
            }
        }

        impl ::std::convert::AsRef<$crate::Kernel> for $state {
            fn as_ref(&self) -> &$crate::Kernel {
                &self.kernel
            }
        }
    };
}

impl<S: AsRef<Kernel> + Clone + Send + Sync + 'static> State for S {}
