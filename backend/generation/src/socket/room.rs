//! Room for the WebSockets of text generation on this node: so many in all, and so many of one partner, of which none may hold
//! more than what is still free.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use colloquy_base::counts::Counts;
use colloquy_config::LimitsConfig;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

/// The WebSockets there are.
#[derive(Debug)]
pub(crate) struct TextSockets {
    most: usize,
    most_of_partner: usize,
    /// By partner.
    open: Arc<Mutex<Counts<String>>>,
    tasks: TaskTracker,
}

impl TextSockets {
    pub(crate) fn new(config: &LimitsConfig) -> Self {
        Self {
            most: config.text_sockets as usize,
            most_of_partner: config.text_sockets_per_partner as usize,
            open: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// A place for a socket of this partner, given back when it is dropped; `None` when there is none.
    pub(super) fn enter(&self, partner: &str) -> Option<SocketPlace> {
        let mut open = lock(&self.open);
        let own = open.of(partner);
        if own >= self.most_of_partner || own >= self.most.saturating_sub(open.all()) {
            return None;
        }
        open.add(partner, 1);
        metrics::gauge!("colloquy_generation_sockets").increment(1.0);
        Some(SocketPlace {
            open: Arc::clone(&self.open),
            partner: partner.to_owned(),
            _token: self.tasks.token(),
        })
    }

    /// Waits until none is open.
    pub(crate) async fn closed(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn lock(open: &Mutex<Counts<String>>) -> MutexGuard<'_, Counts<String>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of a socket.
#[derive(Debug)]
pub(super) struct SocketPlace {
    open: Arc<Mutex<Counts<String>>>,
    partner: String,
    /// Says that it is open, to whoever waits for the last.
    _token: TaskTrackerToken,
}

impl Drop for SocketPlace {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.partner, 1);
        metrics::gauge!("colloquy_generation_sockets").decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_has_more_sockets_than_are_free() {
        let sockets = TextSockets::new(&LimitsConfig {
            text_sockets: 10,
            text_sockets_per_partner: 4,
            ..LimitsConfig::default()
        });
        let take =
            |partner: &str| -> Vec<_> { std::iter::from_fn(|| sockets.enter(partner)).collect() };
        let first = take("a");
        let second = take("b");
        let third = take("c");
        assert_eq!((first.len(), second.len(), third.len()), (4, 3, 2));
        let rest = sockets.enter("d").unwrap();
        assert!(sockets.enter("e").is_none());
        drop(first);
        assert!(sockets.enter("e").is_some());
        drop((second, third, rest));
        assert_eq!(*lock(&sockets.open), Counts::default());
    }
}
