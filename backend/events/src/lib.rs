//! Events: the changes of resources, streamed to clients as server-sent events.
//!
//! Database triggers record each change in the transaction that makes it: table `changes` keeps the last change of each resource, with a number
//! that grows. Each node reads new changes while it has streams ([`reader`]) and publishes them to these ([`hub`]). An event names the resource that
//! changed; its state is for the routes of its own capability.

mod hub;
mod kind;
mod reader;
mod routes;
mod store;
mod watch;

use std::{sync::Arc, time::Duration};

use axum::extract::FromRef;
use colloquy_accounts::Accounts;
use colloquy_http::Interface;
use colloquy_kernel::{Capability, Routes, State};

use self::hub::Hub;

/// How often changes of resources that were deleted long ago are purged.
const PURGE_EVERY: Duration = Duration::from_secs(3_600);

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Events(Arc<Parts>);

/// What [`Events`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
    /// The streams of this node.
    hub: Hub,
}

impl Events {
    /// Creates the state, without any stream.
    #[must_use]
    pub fn new(accounts: Accounts) -> Self {
        let hub = Hub::new(&accounts.config);
        Self(Arc::new(Parts { accounts, hub }))
    }
}

colloquy_kernel::state!(Events: Parts.accounts: Accounts);

/// The streams, as a part of a server.
#[derive(Debug)]
pub struct EventsCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for EventsCapability
where
    Accounts: FromRef<S>,
    Events: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "events"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![(Interface::MANAGEMENT, routes::routes())]
    }

    async fn start(&self, state: &S) -> anyhow::Result<()> {
        let events = Events::from_ref(state);
        let kernel = events.kernel.clone();
        kernel.tasks.spawn(reader::run(events));
        kernel.repeat("purging old changes", PURGE_EVERY, |base| async move {
            store::purge(&base).await
        });
        Ok(())
    }
}
