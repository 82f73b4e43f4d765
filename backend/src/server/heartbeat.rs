//! This process among the nodes: it says that it lives until the last call and the last reservation have ended.

use crate::{app::App, kernel::Capability, node};

/// The heartbeat of this node.
#[derive(Debug)]
pub(super) struct Heartbeat;

#[async_trait::async_trait]
impl Capability<App> for Heartbeat {
    fn name(&self) -> &'static str {
        "node"
    }

    async fn start(&self, app: &App) -> anyhow::Result<()> {
        let (open, loaded) = (app.clone(), app.clone());
        node::start(
            &app.kernel,
            move || open.calls.room.open() + open.ledger.open(),
            move || loaded.calls.room.load(),
        );
        Ok(())
    }
}
