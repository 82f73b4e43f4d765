//! The event streams of this node, and the changes published to them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use colloquy_accounts::Scope;
use colloquy_base::permits::{Permit, Permits};
use colloquy_config::Config;
use tokio::{
    sync::{Notify, broadcast, watch},
    time::timeout,
};

/// Capacity of a stream's channel, in messages. A stream that falls further behind gets `reset`.
const MESSAGES: usize = 64;

/// A change as streams send it.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) seq: i64,
    /// The scope that a key needs to learn of the change.
    pub(crate) scope: Scope,
    pub(crate) text: String,
}

/// A message to the streams of a partner.
#[derive(Debug, Clone)]
pub(crate) enum Published {
    /// Resources changed.
    Changes(Arc<[Written]>),
    /// All changes up to this number have been published.
    Complete(i64),
    /// Changes may have been missed.
    Reset,
}

/// The streams of this node.
#[derive(Debug)]
pub(crate) struct Hub {
    /// The streams of each partner that has any.
    partners: Mutex<HashMap<String, broadcast::Sender<Published>>>,
    /// The number up to which all changes have been published; `None` until the reader knows.
    complete: watch::Sender<Option<i64>>,
    /// Wakes the reader for the first stream.
    opened: Notify,
    permits: Permits,
}

impl Hub {
    pub(crate) fn new(config: &Config) -> Self {
        let limits = &config.limits;
        // Each takes a connection, and other requests need some, too.
        let most = (config.http.max_connections / 2).min(limits.event_streams as usize);
        let most_of_partner = limits.event_streams_per_partner as usize;
        Self {
            partners: Mutex::default(),
            complete: watch::Sender::new(None),
            opened: Notify::new(),
            permits: Permits::new(most, most_of_partner),
        }
    }

    /// Admits a stream of a partner; returns `None` if the partner may have no more.
    pub(crate) fn admit(&self, partner: &str) -> Option<Permit> {
        self.permits.try_acquire(partner)
    }

    /// Receives everything that is published to a partner from now on.
    pub(crate) fn subscribe(&self, partner: &str) -> broadcast::Receiver<Published> {
        let mut partners = self.lock();
        let receiver = match partners.get(partner) {
            Some(sender) => sender.subscribe(),
            None => {
                let (sender, receiver) = broadcast::channel(MESSAGES);
                partners.insert(partner.to_owned(), sender);
                receiver
            }
        };
        drop(partners);
        self.opened.notify_one();
        receiver
    }

    /// Returns the number up to which all changes have been published; `None` if that is not known within `limit`.
    pub(crate) async fn complete_within(&self, limit: Duration) -> Option<i64> {
        let mut complete = self.complete.subscribe();
        let known = timeout(limit, complete.wait_for(Option::is_some)).await;
        known.ok()?.ok()?.as_ref().copied()
    }

    /// Returns that number if it is known now.
    pub(crate) fn complete(&self) -> Option<i64> {
        *self.complete.borrow()
    }

    /// Returns true if there is a stream. Forgets the partners that have none any more.
    pub(crate) fn is_watched(&self) -> bool {
        let mut partners = self.lock();
        partners.retain(|_, sender| sender.receiver_count() > 0);
        !partners.is_empty()
    }

    /// Waits for a stream.
    pub(crate) async fn watched(&self) {
        while !self.is_watched() {
            self.opened.notified().await;
        }
    }

    /// Returns true if a partner has a stream.
    pub(crate) fn has(&self, partner: &str) -> bool {
        self.lock().contains_key(partner)
    }

    /// Publishes changes to the streams of a partner.
    pub(crate) fn publish(&self, partner: &str, changes: Vec<Written>) {
        self.send(partner, Published::Changes(changes.into()));
    }

    /// Tells all streams that changes may have been missed.
    pub(crate) fn reset(&self) {
        for sender in self.lock().values() {
            // An error says that nobody listens.
            let _ = sender.send(Published::Reset);
        }
    }

    /// Tells that all changes up to a number have been published: at once the streams of `partners`, which got some of them.
    pub(crate) fn completed(&self, seq: i64, partners: impl IntoIterator<Item = String>) {
        for partner in partners {
            self.send(&partner, Published::Complete(seq));
        }
        self.complete.send_replace(Some(seq));
    }

    /// Forgets up to which number all changes have been published: nobody reads them any more.
    pub(crate) fn pause(&self) {
        self.complete.send_replace(None);
    }

    fn send(&self, partner: &str, message: Published) {
        if let Some(sender) = self.lock().get(partner) {
            let _ = sender.send(message);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<Published>>> {
        self.partners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(receiver: &mut broadcast::Receiver<Published>) -> Arc<[Written]> {
        match receiver.try_recv() {
            Ok(Published::Changes(changes)) => changes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_stream_that_is_behind_holds_so_many_messages_and_no_more() {
        let hub = Hub::new(&Config::default());
        let mut slow = hub.subscribe("acme");
        let mut quick = hub.subscribe("acme");
        let mut sent = Vec::new();
        for seq in 1..=10 * MESSAGES as i64 {
            let change = Written {
                seq,
                scope: Scope::Voices,
                text: "event: voice\n\n".to_owned(),
            };
            hub.publish("acme", vec![change]);
            sent.push(Arc::downgrade(&published(&mut quick)));
        }
        let held = sent.iter().filter(|sent| sent.strong_count() > 0).count();
        assert_eq!(held, MESSAGES);
        let behind = slow.try_recv();
        assert!(
            matches!(behind, Err(broadcast::error::TryRecvError::Lagged(_))),
            "{behind:?}"
        );
        drop((slow, quick));
        assert!(!hub.is_watched());
        assert!(sent.iter().all(|sent| sent.strong_count() == 0));
    }
}
