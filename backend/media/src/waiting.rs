//! Sockets that have not said `hello` yet: few of one call, since it has one client, and a bounded number of one address.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use colloquy_base::counts::Counts;
use colloquy_http::limits::network;

/// The most of one call: its client, and the same client again whose last socket is dying.
const MOST_OF_CALL: usize = 4;

/// The most of one address. After a cut all pages of an office come back at once.
const MOST_OF_ADDRESS: usize = 256;

/// The sockets that wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting(Arc<Mutex<Places>>);

#[derive(Debug, Default)]
struct Places {
    calls: Counts<String>,
    addresses: Counts<IpAddr>,
}

impl Waiting {
    /// A place for a socket of this call, given back when it is dropped; `None` when too many wait.
    pub(super) fn enter(&self, call: &str, address: IpAddr) -> Option<WaitingPlace> {
        let address = network(address);
        let mut places = self.lock();
        if places.calls.of(call) >= MOST_OF_CALL || places.addresses.of(&address) >= MOST_OF_ADDRESS
        {
            return None;
        }
        places.calls.add(call, 1);
        places.addresses.add(&address, 1);
        Some(WaitingPlace {
            waiting: self.clone(),
            call: call.to_owned(),
            address,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a socket that waits.
#[derive(Debug)]
pub(super) struct WaitingPlace {
    waiting: Waiting,
    call: String,
    address: IpAddr,
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut places = self.waiting.lock();
        places.calls.remove(&self.call, 1);
        places.addresses.remove(&self.address, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let waiting = Waiting::default();
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let enter = |call: &str| waiting.enter(call, address);
        let of_call: Vec<_> = (0..MOST_OF_CALL).filter_map(|_| enter("a")).collect();
        assert_eq!(of_call.len(), MOST_OF_CALL);
        assert!(enter("a").is_none());
        let rest = MOST_OF_ADDRESS - MOST_OF_CALL;
        let others: Vec<_> = (0..rest)
            .filter_map(|nth| enter(&nth.to_string()))
            .collect();
        assert_eq!(others.len(), rest);
        assert!(enter("b").is_none());
        assert!(waiting.enter("b", "192.0.2.2".parse().unwrap()).is_some());
        drop((of_call, others));
        let places = waiting.lock();
        assert_eq!((places.calls.all(), places.addresses.all()), (0, 0));
    }
}
