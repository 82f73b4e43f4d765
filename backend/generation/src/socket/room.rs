//! The WebSockets of text generation that are open on this node.

use colloquy_base::permits::{Permit, Permits};
use colloquy_config::LimitsConfig;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

/// The open WebSockets.
#[derive(Debug)]
pub(crate) struct TextSockets {
    permits: Permits,
    tasks: TaskTracker,
}

impl TextSockets {
    pub(crate) fn new(config: &LimitsConfig) -> Self {
        let (most, most_of_partner) = (config.text_sockets, config.text_sockets_per_partner);
        Self {
            permits: Permits::new(most as usize, most_of_partner as usize),
            tasks: TaskTracker::new(),
        }
    }

    /// Admits a socket of a partner; returns `None` if the partner may have no more.
    pub(super) fn enter(&self, partner: &str) -> Option<SocketPlace> {
        let permit = self.permits.try_acquire(partner)?;
        metrics::gauge!("colloquy_generation_sockets").increment(1.0);
        Some(SocketPlace {
            _permit: permit,
            _token: self.tasks.token(),
        })
    }

    /// Waits until no socket is open.
    pub(crate) async fn closed(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// The place of a socket.
#[derive(Debug)]
pub(super) struct SocketPlace {
    _permit: Permit,
    /// Keeps [`TextSockets::closed`] waiting.
    _token: TaskTrackerToken,
}

impl Drop for SocketPlace {
    fn drop(&mut self) {
        metrics::gauge!("colloquy_generation_sockets").decrement(1.0);
    }
}
