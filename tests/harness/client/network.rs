//! The network between a client and the server, as good or bad as a test wants it.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

/// What the network does to datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Conditions {
    /// The part of the media packets that is lost, each way; 0 to 1.
    pub loss: f64,
    /// The part of all datagrams that is lost, each way, those of ICE and DTLS among them; 0 to 1.
    pub loss_of_all: f64,
    /// Media packets to the server are late by up to this long, and so out of order.
    pub jitter: Duration,
    /// Nothing gets through, either way.
    pub cut: bool,
}

/// A datagram on its way, in the order of its time.
type Late = Reverse<(Instant, u64, SocketAddr, Vec<u8>)>;

/// The network of one client.
#[derive(Debug)]
pub(super) struct Network {
    conditions: Conditions,
    random: StdRng,
    late: BinaryHeap<Late>,
    sent: u64,
}

impl Network {
    pub(super) fn new(conditions: Conditions, seed: u64) -> Self {
        Self {
            conditions,
            random: StdRng::seed_from_u64(seed),
            late: BinaryHeap::new(),
            sent: 0,
        }
    }

    pub(super) fn set(&mut self, conditions: Conditions) {
        self.conditions = conditions;
    }

    /// Whether a datagram goes out at once. One that does not is lost, or due later.
    pub(super) fn lets_out(&mut self, bytes: &[u8], to: SocketAddr, now: Instant) -> bool {
        if self.loses(bytes) {
            return false;
        }
        if self.conditions.jitter.is_zero() || !is_media(bytes) {
            return true;
        }
        let due = now + self.conditions.jitter.mul_f64(self.random.random());
        self.sent += 1;
        self.late
            .push(Reverse((due, self.sent, to, bytes.to_vec())));
        false
    }

    /// Whether a datagram is lost on its way in or out.
    pub(super) fn loses(&mut self, bytes: &[u8]) -> bool {
        let mut lost = |part: f64| part > 0.0 && self.random.random_bool(part.min(1.0));
        self.conditions.cut
            || lost(self.conditions.loss_of_all)
            || (is_media(bytes) && lost(self.conditions.loss))
    }

    /// When the next late datagram is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.late.peek().map(|Reverse((due, ..))| *due)
    }

    /// The next datagram that is due now.
    pub(super) fn due(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        if self.next_due()? > now {
            return None;
        }
        self.late
            .pop()
            .map(|Reverse((_, _, to, bytes))| (to, bytes))
    }
}

/// Whether a datagram is SRTP or SRTCP (RFC 7983).
fn is_media(bytes: &[u8]) -> bool {
    bytes
        .first()
        .is_some_and(|first| (128..192).contains(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::now;

    #[test]
    fn media_is_lost_and_the_rest_is_not() {
        let conditions = Conditions {
            loss: 0.1,
            ..Conditions::default()
        };
        let mut network = Network::new(conditions, 7);
        let lost = (0..10_000).filter(|_| network.loses(&[128, 111])).count();
        assert!((850..1_150).contains(&lost), "{lost}");
        assert!(!(0..1_000).any(|_| network.loses(&[0, 1])));
        network.set(Conditions {
            loss_of_all: 0.2,
            ..Conditions::default()
        });
        for first in [0, 22, 128] {
            let lost = (0..10_000).filter(|_| network.loses(&[first])).count();
            assert!((1_800..2_200).contains(&lost), "{lost}");
        }
    }

    #[test]
    fn jitter_delays_and_loses_nothing() {
        let conditions = Conditions {
            jitter: Duration::from_millis(60),
            ..Conditions::default()
        };
        let mut network = Network::new(conditions, 7);
        let (start, to) = (now(), SocketAddr::from(([127, 0, 0, 1], 9)));
        for sequence in 0..50 {
            assert!(!network.lets_out(&[128, sequence], to, start));
        }
        let end = start + Duration::from_millis(60);
        let out: Vec<u8> = std::iter::from_fn(|| network.due(end))
            .map(|(_, bytes)| bytes[1])
            .collect();
        assert_eq!(out.len(), 50);
        assert!(!out.is_sorted());
    }
}
