//! The routes of capabilities on a node of their own.

use std::{ops::Deref, sync::Arc, time::Duration};

use axum::{Router, http::Method, middleware};
use colloquy_accounts::{Accounts, partners::PartnerDependent};
use colloquy_base::clock::{Clock, ManualClock, SystemClock};
use colloquy_config::Config;
use colloquy_http::{Edge, observe};
use colloquy_kernel::{Capability, State, jobs};
use support::{
    TestDatabase,
    clock::{WrongClock, manual},
};

use crate::{TestClient, TestNode, TestRequest, quick, settings, works_off};

/// Sets routes up.
pub struct TestRoutesBuilder {
    database: TestDatabase,
    config: Config,
    clock: Arc<dyn Clock>,
    manual: Option<Arc<ManualClock>>,
}

impl TestRoutesBuilder {
    /// Routes on this database, which other nodes may use too, with the settings of tests.
    pub fn new(database: &TestDatabase) -> Self {
        Self {
            database: database.clone(),
            config: settings(database),
            clock: Arc::new(SystemClock),
            manual: None,
        }
    }

    /// Time stands still until [`TestRoutes::advance`].
    #[must_use]
    pub fn manual_clock(self) -> Self {
        self.shared_clock(&manual())
    }

    /// Time is what this clock says, which others may share.
    #[must_use]
    pub fn shared_clock(mut self, clock: &Arc<ManualClock>) -> Self {
        self.clock = Arc::<ManualClock>::clone(clock);
        self.manual = Some(Arc::clone(clock));
        self
    }

    /// Makes the clock of this node's machine wrong by so many seconds.
    #[must_use]
    pub fn wrong_by(mut self, seconds: i64) -> Self {
        self.clock = Arc::new(WrongClock::by_seconds(seconds));
        self
    }

    /// Changes the settings.
    #[must_use]
    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Gives the node a data folder of this name.
    #[must_use]
    pub fn node(mut self, name: &str) -> Self {
        self.config.store = self.database.node_config(name);
        self
    }

    /// The clock of the node.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// The settings of the node.
    pub fn settings(&self) -> &Config {
        &self.config
    }

    /// Begins a node and puts the routes of these capabilities on it. `state` makes their state of its accounts, which `dependents` belong to.
    pub async fn start<S: State>(
        self,
        dependents: Vec<Arc<dyn PartnerDependent>>,
        state: impl FnOnce(Accounts) -> S,
        capabilities: &[&dyn Capability<S>],
    ) -> TestRoutes<S> {
        let state = async |accounts: Accounts, _: Edge| state(accounts);
        self.open(dependents, state, capabilities).await
    }

    /// The same where the state asks the database, or has what the layers around the routes share.
    pub async fn open<S: State>(
        self,
        dependents: Vec<Arc<dyn PartnerDependent>>,
        state: impl AsyncFnOnce(Accounts, Edge) -> S,
        capabilities: &[&dyn Capability<S>],
    ) -> TestRoutes<S> {
        let clock = self.clock();
        let node = TestNode::start(self.config, Arc::clone(&clock), dependents).await;
        let edge = Edge::new(&node.config, clock, node.kernel.shutdown.clone());
        let state = state(node.accounts.clone(), edge.clone()).await;
        let router: Router = capabilities
            .iter()
            .flat_map(|capability| capability.routes())
            .map(|(interface, routes)| interface.wrap(&edge, Router::from(routes)))
            .fold(Router::new(), Router::merge)
            .layer(middleware::from_fn_with_state(
                edge.clone(),
                observe::observe,
            ))
            .with_state(state.clone());
        TestRoutes {
            state,
            edge,
            client: TestClient::new(router.clone()),
            router,
            manual: self.manual,
            node,
        }
    }
}

/// Routes that are asked in this process, by way of the [`TestClient`] that it derefs to. Their node ends when this is dropped.
pub struct TestRoutes<S> {
    /// The state of the capabilities.
    pub state: S,
    /// What the layers around the routes share.
    pub edge: Edge,
    client: TestClient,
    router: Router,
    manual: Option<Arc<ManualClock>>,
    node: TestNode,
}

impl<S> Deref for TestRoutes<S> {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.client
    }
}

impl<S> TestRoutes<S> {
    /// A request without a key.
    pub fn request(&self, method: Method, path: &str) -> TestRequest {
        TestRequest::new(&self.router, method, path)
    }

    /// Moves the clock of routes with [`TestRoutesBuilder::manual_clock`].
    pub fn advance(&self, by: Duration) {
        let clock = self.manual.as_ref().expect("the test has a manual clock");
        clock.advance(by);
    }

    /// Waits until no job of this kind is queued or runs.
    pub async fn works_off(&self, kind: &str) {
        works_off(&self.node.store, kind).await;
    }

    /// Ends the node, and returns when nothing of it runs any more and another one may have its data folder.
    pub async fn stop(self) {
        let kernel = self.node.kernel.clone();
        drop(self);
        kernel.tasks.close();
        kernel.tasks.wait().await;
    }
}

impl<S: State> TestRoutes<S> {
    /// Starts a worker for the jobs of these capabilities, which looks and lets go often.
    pub async fn start_worker(&self, capabilities: &[&dyn Capability<S>]) {
        let registry = capabilities
            .iter()
            .fold(jobs::Registry::default(), |registry, capability| {
                capability.jobs(registry)
            });
        let started = jobs::start(&self.state, registry, quick()).await;
        started.expect("the worker starts");
    }
}
