//! How many connections there may be: in all, so that file descriptors are left for everything else, and from one address.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use colloquy_base::counts::Counts;
use colloquy_config::HttpConfig;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;

use crate::limits::network;

/// The most file descriptors that are asked of the system.
const ENOUGH_FILES: u64 = 65_536;

/// File descriptors for the database, files, child processes and the like.
const OTHER_FILES: u64 = 192;

/// The connections there are.
#[derive(Debug)]
pub(super) struct Admission {
    most: usize,
    most_of_address: usize,
    open: Arc<Mutex<Open>>,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Open {
    count: usize,
    /// Those of the addresses that are counted.
    addresses: Counts<IpAddr>,
}

impl Admission {
    pub(super) fn new(config: &HttpConfig) -> Self {
        // Behind a proxy all connections come from its address.
        let most_of_address = match config.trusted_proxies {
            0 => config.max_connections_per_address,
            _ => 0,
        };
        Self {
            most: bounded(config.max_connections, open_files()),
            most_of_address,
            open: Arc::default(),
            closed: CancellationToken::new(),
        }
    }

    /// Room for a connection, given back when the slot is dropped; `None` when there is none.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<Slot> {
        let address = (self.most_of_address > 0).then(|| network(peer));
        let mut open = lock(&self.open);
        if open.count >= self.most {
            return None;
        }
        if let Some(address) = address {
            if open.addresses.of(&address) >= self.most_of_address {
                return None;
            }
            open.addresses.add(&address, 1);
        }
        open.count += 1;
        metrics::gauge!("colloquy_http_connections").increment(1.0);
        Some(Slot {
            open: Arc::clone(&self.open),
            address,
        })
    }

    /// Ends the wait of [`Self::closed`].
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    /// Waits until no connection is taken any more.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Room that a connection takes.
#[derive(Debug)]
pub(super) struct Slot {
    open: Arc<Mutex<Open>>,
    address: Option<IpAddr>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        open.count -= 1;
        if let Some(address) = self.address {
            open.addresses.remove(&address, 1);
        }
        metrics::gauge!("colloquy_http_connections").decrement(1.0);
    }
}

/// How many file descriptors the process may have, after asking for as many as it may ask for; `None` when there is no
/// bound.
fn open_files() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(ENOUGH_FILES, |maximum| maximum.min(ENOUGH_FILES));
    match current {
        Some(current) if current < wanted => {
            let raised = Rlimit {
                current: Some(wanted),
                maximum,
            };
            match setrlimit(Resource::Nofile, raised) {
                Ok(()) => Some(wanted),
                Err(_) => Some(current),
            }
        }
        current => current,
    }
}

/// A request may need a connection to a model or another service beside its own.
fn bounded(configured: usize, files: Option<u64>) -> usize {
    let Some(files) = files else {
        return configured;
    };
    let room = usize::try_from(files.saturating_sub(OTHER_FILES) / 2).unwrap_or(usize::MAX);
    let room = room.max(16);
    if room < configured {
        tracing::warn!(
            files,
            connections = room,
            "http.max_connections is more than the open files that the system allows"
        );
    }
    configured.min(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(most: usize, of_address: usize, trusted_proxies: usize) -> Admission {
        Admission::new(&HttpConfig {
            max_connections: most,
            max_connections_per_address: of_address,
            trusted_proxies,
            ..HttpConfig::default()
        })
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn connections_are_bounded_in_all_and_by_address() {
        let admission = admission(4, 2, 0);
        let first = admission.admit(address("192.0.2.1")).unwrap();
        let _second = admission.admit(address("::ffff:192.0.2.1")).unwrap();
        assert!(admission.admit(address("192.0.2.1")).is_none());
        let _third = admission.admit(address("2001:db8::1")).unwrap();
        let _fourth = admission.admit(address("2001:db8::2:1")).unwrap();
        assert!(admission.admit(address("192.0.2.9")).is_none());
        drop(first);
        // The network of IPv6 is full, although there is room.
        assert!(admission.admit(address("2001:db8::3")).is_none());
        let last = admission.admit(address("192.0.2.1")).unwrap();
        drop(last);
        assert_eq!(lock(&admission.open).count, 3);
    }

    #[test]
    fn addresses_behind_a_trusted_proxy_are_not_counted() {
        let admission = admission(3, 1, 1);
        let all: Vec<_> = (0..3)
            .filter_map(|_| admission.admit(address("192.0.2.1")))
            .collect();
        assert_eq!(all.len(), 3);
        assert!(admission.admit(address("192.0.2.1")).is_none());
        drop(all);
        assert!(lock(&admission.open).addresses.all() == 0);
    }

    #[test]
    fn file_descriptors_are_left() {
        assert_eq!(bounded(4_096, None), 4_096);
        assert_eq!(bounded(4_096, Some(65_536)), 4_096);
        assert_eq!(bounded(4_096, Some(1_024)), 416);
        assert_eq!(bounded(4_096, Some(10)), 16);
    }
}
