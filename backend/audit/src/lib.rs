//! The audit log: who changed what, and when.
//!
//! [`operations`] lists the operations of the API that are recorded. A layer around all routes gives their requests a [`recorder`], which stores an
//! entry once the principal is known, before anything is changed: a change without an entry cannot be, whatever happens to the process. The entry is
//! completed with the status of the response, or removed if the request was refused. An entry holds no body. It stops at who changed a resource:
//! the resource's state belongs to its own capability.

mod operations;
mod recorder;
mod routes;
mod store;

use std::{sync::Arc, time::Duration};

use axum::{Router, extract::FromRef, middleware};
use colloquy_accounts::Accounts;
use colloquy_http::Interface;
use colloquy_kernel::{Capability, Routes, State};

pub use self::operations::{Operation, RECORDED, Resource, Subject, UNRECORDED};

/// How often old entries are purged.
const PURGE_EVERY: Duration = Duration::from_secs(3_600);

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Audit(Arc<Parts>);

/// What [`Audit`] holds, besides the [`Accounts`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    accounts: Accounts,
}

impl Audit {
    /// Creates the state.
    #[must_use]
    pub fn new(accounts: Accounts) -> Self {
        Self(Arc::new(Parts { accounts }))
    }
}

colloquy_kernel::state!(Audit: Parts.accounts: Accounts);

/// The audit log, as a part of a server.
#[derive(Debug)]
pub struct AuditCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for AuditCapability
where
    Accounts: FromRef<S>,
    Audit: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "audit"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![(Interface::MANAGEMENT, routes::routes())]
    }

    fn around(&self, routes: Router<S>, state: &S) -> Router<S> {
        let audit = Audit::from_ref(state);
        routes.layer(middleware::from_fn_with_state(audit, recorder::record))
    }

    async fn start(&self, state: &S) -> anyhow::Result<()> {
        Audit::from_ref(state).kernel.repeat(
            "purging the audit log",
            PURGE_EVERY,
            |base| async move { store::purge(&base).await },
        );
        Ok(())
    }
}
