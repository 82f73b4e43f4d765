//! The routes of capabilities on a node of their own.

use std::{ops::Deref, sync::Arc};

use axum::{Router, http::Method, middleware};
use colloquy_accounts::{Accounts, partners::PartnerDependent};
use colloquy_base::clock::{Clock, ManualClock, SystemClock};
use colloquy_config::Config;
use colloquy_http::{Edge, observe};
use colloquy_kernel::{Base, Capability, State, jobs, node};
use support::{
    TestDatabase,
    clock::{WrongClock, manual},
};

use crate::{TestClient, TestNode, TestRequest, TestWork, binary, settings};

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
        let clock = manual();
        Self {
            database: database.clone(),
            config: settings(database),
            clock: Arc::<ManualClock>::clone(&clock),
            manual: Some(clock),
        }
    }

    /// Time goes on by itself, for tests of sockets and of other programs. Otherwise it stands still until [`TestWork::advance`].
    #[must_use]
    pub fn real_time(mut self) -> Self {
        self.clock = Arc::new(SystemClock);
        self.manual = None;
        self
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
        self.manual = None;
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

    /// What is not trusted is decoded by the server's binary, as a server does with its own.
    #[must_use]
    pub fn with_decoder(mut self) -> Self {
        self.config.sandbox.program = Some(binary().clone());
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

    /// Begins a node and puts the routes of these capabilities on it. `dependents` are those whom the end of a partner concerns, made of what the
    /// node stands on. `state` makes the state of the capabilities of the node's accounts and of what the layers around the routes share.
    pub async fn start<S: State>(
        self,
        dependents: impl FnOnce(&Base) -> Vec<Arc<dyn PartnerDependent>>,
        state: impl AsyncFnOnce(Accounts, Edge) -> S,
        capabilities: &[&dyn Capability<S>],
    ) -> TestRoutes<S> {
        let clock = self.clock();
        let node = TestNode::start(self.config, Arc::clone(&clock), dependents).await;
        let edge = Edge::new(&node.config, clock, node.kernel.shutdown.clone());
        let state = state(node.accounts.clone(), edge.clone()).await;
        let routes = capabilities
            .iter()
            .flat_map(|capability| capability.routes())
            .map(|(interface, routes)| interface.wrap(&edge, Router::from(routes)))
            .fold(Router::new(), Router::merge);
        let around = |routes, capability: &&dyn Capability<S>| capability.around(routes, &state);
        let routes = capabilities.iter().fold(routes, around);
        let router: Router = routes
            .layer(middleware::from_fn_with_state(
                edge.clone(),
                observe::observe,
            ))
            .with_state(state.clone());
        let client = TestClient::new(router.clone());
        TestRoutes {
            state,
            edge,
            work: TestWork::new(client, node.kernel.clone(), self.manual),
            router,
            node,
            database: self.database,
        }
    }
}

/// Routes that are asked in this process, by way of the [`TestWork`] that it derefs to. Their node ends when this is dropped.
pub struct TestRoutes<S> {
    /// The state of the capabilities.
    pub state: S,
    /// What the layers around the routes share.
    pub edge: Edge,
    work: TestWork,
    router: Router,
    node: TestNode,
    database: TestDatabase,
}

impl<S> Deref for TestRoutes<S> {
    type Target = TestWork;

    fn deref(&self) -> &TestWork {
        &self.work
    }
}

impl<S> TestRoutes<S> {
    /// A request without a key.
    pub fn request(&self, method: Method, path: &str) -> TestRequest {
        TestRequest::new(&self.router, method, path)
    }

    /// Ends the node, and returns when nothing of it runs any more and another one may have its data folder.
    pub async fn stop(self) {
        let kernel = self.node.kernel.clone();
        // Its files stay until then.
        let _database = self.database.clone();
        drop(self);
        kernel.tasks.close();
        kernel.drain_over.cancel();
        kernel.tasks.wait().await;
    }
}

impl<S: State> TestRoutes<S> {
    /// Starts what these capabilities do beside requests, as a server does; the node says that it lives.
    pub async fn start_background(&self, capabilities: &[&dyn Capability<S>]) {
        let accounts = self.node.accounts.clone();
        let load = node::Load {
            calls: 0,
            max_calls: 0,
        };
        node::start(
            &self.node.kernel,
            move || accounts.ledger.open(),
            move || load,
        );
        for capability in capabilities {
            // The ledger runs since the node began.
            if capability.name() != "accounts" {
                let started = capability.start(&self.state).await;
                started.expect("background work starts");
            }
        }
    }

    /// Starts a worker for the jobs of these capabilities.
    pub async fn start_worker(
        &self,
        capabilities: &[&dyn Capability<S>],
        settings: jobs::Settings,
    ) {
        let registry = capabilities
            .iter()
            .fold(jobs::Registry::default(), |registry, capability| {
                capability.jobs(registry)
            });
        let started = jobs::start(&self.state, registry, settings).await;
        started.expect("the worker starts");
    }
}
