//! What a capability of the server brings along, in one shape.
//!
//! `server/capabilities.rs` lists all of them; the routes, the API document, the worker of jobs, the start and the stop are
//! made of that list.

use axum::Router;
use colloquy_http::Interface;
use colloquy_store::StoreError;

use crate::{State, WaitingWork, jobs, router::DescribedRouter};

/// Routes of an interface, in a server whose state is `S`.
pub type Routes<S> = (Interface, DescribedRouter<S>);

/// A capability: a part of the server that owns a piece of the domain. `S` is the state of the server, which has the
/// capability's own in it.
#[async_trait::async_trait]
pub trait Capability<S: State>: Sync {
    /// Its name, as its folder has it.
    fn name(&self) -> &'static str;

    /// Its routes.
    fn routes(&self) -> Vec<Routes<S>> {
        Vec::new()
    }

    /// Wraps all routes, including those of other capabilities.
    fn around(&self, routes: Router<S>, _state: &S) -> Router<S> {
        routes
    }

    /// Adds its kinds of jobs to those that the worker runs.
    fn jobs(&self, registry: jobs::Registry<S>) -> jobs::Registry<S> {
        registry
    }

    /// Puts right what an earlier process left behind, and starts its work beside requests, which runs on the kernel's tasks and
    /// ends when its `shutdown` is cancelled.
    ///
    /// # Errors
    /// When the server cannot begin without it.
    async fn start(&self, _state: &S) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns its work that waits for something, beside jobs. It reads 10,000 rows of a kind at most,
    /// and returns [`MOST_WAITING`](crate::MOST_WAITING) entries of a kind and a reason at most, and one more if there are more.
    ///
    /// # Errors
    /// The database's failure.
    async fn waiting(&self, _state: &S) -> Result<Vec<WaitingWork>, StoreError> {
        Ok(Vec::new())
    }

    /// Returns when what it does for clients beside requests has ended. It goes on until the kernel's `drain_over`.
    async fn drained(&self, _state: &S) {}
}
