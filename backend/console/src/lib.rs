//! The console: its files, and the sessions of those who signed in.
//!
//! The console is a page below `/console` that asks the public interfaces and nothing else. Whoever signs in with an API key gets a session,
//! whose id is in a cookie that scripts cannot read: [`recognize`] gives a request with the cookie a session, which stands for the key that it
//! was begun with. It stops at who asks; what is asked belongs to the other capabilities.

mod assets;
mod origin;
mod presented;
mod routes;
mod sessions;
mod store;
mod token;

use std::{sync::Arc, time::Duration};

use axum::{Router, extract::FromRef, middleware};
use colloquy_accounts::Accounts;
use colloquy_base::cache::ShortCache;
use colloquy_http::Interface;
use colloquy_kernel::{Capability, Routes, State};

use self::{
    presented::recognize,
    sessions::{Lasting, Session},
};

/// How long another node may miss the end of a session.
const MAX_AGE: Duration = Duration::from_secs(5);
/// How many sessions are remembered.
const REMEMBERED: usize = 10_000;
/// How often sessions and links that ended are removed.
const PURGE_EVERY: Duration = Duration::from_secs(3_600);

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Console(Arc<Parts>);

/// What [`Console`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
    /// Sessions that were read a moment ago, by the hashes of their ids.
    sessions: ShortCache<String, Arc<Session>>,
    lasting: Lasting,
}

impl Console {
    /// Creates the state, without any session in memory.
    #[must_use]
    pub fn new(accounts: Accounts) -> Self {
        let clock = Arc::clone(&accounts.clock);
        Self(Arc::new(Parts {
            sessions: ShortCache::new(clock, MAX_AGE, REMEMBERED),
            lasting: Lasting::default(),
            accounts,
        }))
    }
}

colloquy_kernel::state!(Console: Parts.accounts: Accounts);

/// The console, as a part of a server.
#[derive(Debug)]
pub struct ConsoleCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for ConsoleCapability
where
    Accounts: FromRef<S>,
    Console: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "console"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![
            (Interface::MANAGEMENT, routes::routes()),
            (Interface::OPERATIONS, assets::routes()),
        ]
    }

    fn around(&self, routes: Router<S>, state: &S) -> Router<S> {
        let console = Console::from_ref(state);
        routes.layer(middleware::from_fn_with_state(console, recognize))
    }

    async fn start(&self, state: &S) -> anyhow::Result<()> {
        Console::from_ref(state).kernel.repeat(
            "removing old sessions of the console",
            PURGE_EVERY,
            |base| async move { sessions::purge(&base).await },
        );
        Ok(())
    }
}
