//! A node with its accounts, which routes stand on.

use std::{ops::Deref, sync::Arc};

use colloquy_accounts::{Accounts, Directory, ledger, partners::PartnerDependent};
use colloquy_base::clock::Clock;
use colloquy_config::{Config, Secret};
use colloquy_kernel::{Base, Kernel, node::DataFolder};
use support::{TestDatabase, news};

use crate::ADMIN_KEY;

/// A node whose ledger runs until this is dropped, without a server.
pub struct TestNode {
    /// Its accounts.
    pub accounts: Accounts,
}

impl TestNode {
    /// Begins a node on a database with the schema. `dependents` are those whom the end of a partner concerns, made of what the node stands on.
    pub async fn start(
        config: Config,
        clock: Arc<dyn Clock>,
        dependents: impl FnOnce(&Base) -> Vec<Arc<dyn PartnerDependent>>,
    ) -> Self {
        let store = news::follow(config.store.open().await.expect("a database"));
        let folder = DataFolder::claim(&config.store, &*clock);
        let folder = folder.await.expect("the data folder");
        let base = Base::new(config, store, clock);
        let kernel = Kernel::open(base.clone(), folder).await.expect("a node");
        let dependents = dependents(&base);
        let accounts = Accounts::open(kernel, Directory::new(base, dependents)).await;
        let accounts = accounts.expect("the secret of the keys");
        ledger::start(&accounts).await.expect("the ledger starts");
        Self { accounts }
    }
}

impl Deref for TestNode {
    type Target = Accounts;

    fn deref(&self) -> &Accounts {
        &self.accounts
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        self.accounts.kernel.shutdown.cancel();
        self.accounts.ledger.close();
    }
}

/// Settings of tests that ask a node on this database, with [`ADMIN_KEY`].
pub fn settings(database: &TestDatabase) -> Config {
    let mut config = Config {
        admin_key: Some(Secret::new(ADMIN_KEY)),
        store: database.config(),
        ..Config::default()
    };
    // Tests ask for a state far more often than a partner would.
    config.limits.request_burst = 100_000;
    config
}
