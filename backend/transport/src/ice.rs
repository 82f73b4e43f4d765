//! ICE of one connection (RFC 8445), for a server whose address clients can reach.
//!
//! The server is the controlled agent, and every check of its own is a triggered one (section 7.3.1.4): it answers the
//! checks of its client, and checks back the addresses that these came from. It never uses the addresses in the client's
//! candidates, so no session description makes it send anything to anybody. What it sends follows from a binding
//! request whose message integrity was right:
//!
//! - one response and, until the address has answered one, one check;
//! - to an address that has answered none, no more than three times what came from there, media and all (as RFC 9000
//!   section 8.1 has it): the source of a datagram can be forged;
//! - checks to the selected address while nothing comes from it, until the consent to send has run out (RFC 7675).
//!
//! The path that carries media is the last one that the client nominated and that has answered, so a client that finds
//! a better way, or nominates with its first check, is followed at once.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use rtc::{
    crypto::RTCCryptoProvider,
    ice::attributes::{
        control::{AttrControlled, AttrControlling},
        priority::PriorityAttr,
        use_candidate::UseCandidateAttr,
    },
    stun::{
        attributes::{
            ATTR_ICE_CONTROLLED, ATTR_MESSAGE_INTEGRITY, ATTR_USE_CANDIDATE, ATTR_USERNAME,
        },
        error_code::CODE_ROLE_CONFLICT,
        fingerprint::FINGERPRINT,
        integrity::MessageIntegrity,
        message::{
            BINDING_ERROR, BINDING_REQUEST, BINDING_SUCCESS, Message, MessageType, Setter,
            TransactionId,
        },
        textattrs::Username,
        xoraddr::XorMappedAddress,
    },
};

/// Paths of a connection that are known at a time: more than a client has interfaces and relays.
pub const MAX_PATHS: usize = 8;

/// How many times what came from an address may be sent to it before it has answered a check.
const UNVERIFIED_FACTOR: usize = 3;

/// How long nothing may come before the client is asked whether it is still there.
const QUIET: Duration = Duration::from_secs(2);

/// How often it is asked.
const CONSENT_INTERVAL: Duration = Duration::from_secs(1);

/// How long nothing may come before the path counts as lost.
const DISCONNECTED: Duration = Duration::from_secs(5);

/// How long the consent to send lasts (RFC 7675 section 5.1).
const CONSENT: Duration = Duration::from_secs(30);

/// The priority of a peer-reflexive candidate (RFC 8445 section 5.1.2): 110 is the recommended type preference.
const PRIORITY: u32 = (110 << 24) | (65_535 << 8) | 255;

/// A STUN message with its integrity and fingerprint has less than this.
const MAX_MESSAGE_BYTES: usize = 1_280;

/// A user name fragment and its password.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The user name fragment, which names the connection.
    pub fragment: String,
    /// What signs its checks.
    pub password: String,
}

/// An address of the server's and one of the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Addresses {
    /// The server's, as its machine has it.
    pub local: SocketAddr,
    /// Where the client sends from.
    pub remote: SocketAddr,
}

/// A path on which a check of the client came.
#[derive(Debug)]
struct Path {
    addresses: Addresses,
    heard: Instant,
    is_nominated: bool,
    /// Whether it has answered a check.
    is_verified: bool,
    /// The check that waits for an answer.
    check: Option<TransactionId>,
    received_bytes: usize,
    sent_bytes: usize,
}

/// What became of a STUN message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stun {
    /// Its integrity was right: whoever sent it speaks for the client.
    Authentic,
    /// It was passed over.
    Refused,
}

/// The agent of one connection.
pub struct Agent {
    crypto: Arc<dyn RTCCryptoProvider>,
    local: Credentials,
    remote: Credentials,
    paths: Vec<Path>,
    selected: Option<Addresses>,
    /// When something authentic came last.
    heard: Option<Instant>,
    asked: Option<Instant>,
    out: VecDeque<(Addresses, Vec<u8>)>,
}

impl Agent {
    /// An agent that has no client yet.
    pub fn new(crypto: Arc<dyn RTCCryptoProvider>) -> Self {
        Self {
            crypto,
            local: Credentials::default(),
            remote: Credentials::default(),
            paths: Vec::new(),
            selected: None,
            heard: None,
            asked: None,
            out: VecDeque::new(),
        }
    }

    /// Takes the credentials of a description and its answer. Those of a restart (RFC 8445 section 9) replace the earlier
    /// ones; media goes on where it went until the client has nominated anew.
    pub fn set_credentials(&mut self, local: Credentials, remote: Credentials) {
        for path in &mut self.paths {
            path.is_nominated = false;
            path.check = None;
        }
        self.local = local;
        self.remote = remote;
    }

    /// Takes a STUN message.
    pub fn receive(&mut self, bytes: &[u8], addresses: Addresses, now: Instant) -> Stun {
        let Some(mut message) = decode(bytes) else {
            return Stun::Refused;
        };
        if message.typ == BINDING_REQUEST {
            self.asked(&mut message, bytes.len(), addresses, now)
        } else if message.typ == BINDING_SUCCESS {
            self.answered(&mut message, bytes.len(), addresses, now)
        } else {
            Stun::Refused
        }
    }

    /// A check of the client's.
    fn asked(
        &mut self,
        message: &mut Message,
        length: usize,
        addresses: Addresses,
        now: Instant,
    ) -> Stun {
        let expected = format!("{}:{}", self.local.fragment, self.remote.fragment);
        let is_ours = message
            .get(ATTR_USERNAME)
            .is_ok_and(|name| name == expected.as_bytes());
        if self.local.password.is_empty()
            || !is_ours
            || !is_intact(message, &self.local.password, &self.crypto)
        {
            return Stun::Refused;
        }
        self.heard = Some(now);
        let nominates = message.contains(ATTR_USE_CANDIDATE);
        let path = self.path(addresses, now);
        path.heard = now;
        path.received_bytes = path.received_bytes.saturating_add(length);
        if message.contains(ATTR_ICE_CONTROLLED) {
            // The client has offered, so it is the controlling agent (section 7.3.1.1).
            let conflict = self.reply(message, BINDING_ERROR, Box::new(CODE_ROLE_CONFLICT));
            self.send(addresses, conflict);
            return Stun::Authentic;
        }
        path.is_nominated |= nominates;
        let unanswered =
            (!path.is_verified).then(|| *path.check.get_or_insert_with(TransactionId::new));
        let mapped = XorMappedAddress {
            ip: addresses.remote.ip(),
            port: addresses.remote.port(),
        };
        let success = self.reply(message, BINDING_SUCCESS, Box::new(mapped));
        self.send(addresses, success);
        if let Some(id) = unanswered {
            self.check(addresses, id);
        }
        self.select(addresses, nominates);
        Stun::Authentic
    }

    /// The client's answer to a check.
    fn answered(
        &mut self,
        message: &mut Message,
        length: usize,
        addresses: Addresses,
        now: Instant,
    ) -> Stun {
        let id = message.transaction_id;
        let Some(path) = self
            .paths
            .iter_mut()
            .find(|path| path.addresses == addresses && path.check == Some(id))
        else {
            return Stun::Refused;
        };
        if !is_intact(message, &self.remote.password, &self.crypto) {
            return Stun::Refused;
        }
        path.check = None;
        path.is_verified = true;
        path.heard = now;
        path.received_bytes = path.received_bytes.saturating_add(length);
        let is_nominated = path.is_nominated;
        self.heard = Some(now);
        self.select(addresses, is_nominated);
        Stun::Authentic
    }

    /// The path between two addresses; a new one takes the place of the one that was silent longest.
    fn path(&mut self, addresses: Addresses, now: Instant) -> &mut Path {
        let known = self
            .paths
            .iter()
            .position(|path| path.addresses == addresses);
        let index = known.unwrap_or_else(|| {
            let path = Path {
                addresses,
                heard: now,
                is_nominated: false,
                is_verified: false,
                check: None,
                received_bytes: 0,
                sent_bytes: 0,
            };
            if self.paths.len() < MAX_PATHS {
                self.paths.push(path);
                return self.paths.len() - 1;
            }
            let selected = self.selected;
            let silent = (0..self.paths.len())
                .filter(|index| Some(self.paths[*index].addresses) != selected)
                .min_by_key(|index| self.paths[*index].heard)
                .unwrap_or_default();
            self.paths[silent] = path;
            silent
        });
        &mut self.paths[index]
    }

    /// Chooses the path for what is sent. One that has answered gives way only to another that has, on the client's word.
    fn select(&mut self, addresses: Addresses, is_nominated: bool) {
        let is_verified = self.is_verified(addresses);
        let take = match self.selected {
            None => true,
            Some(selected) => is_nominated && (is_verified || !self.is_verified(selected)),
        };
        if take {
            self.selected = Some(addresses);
        }
    }

    fn is_verified(&self, addresses: Addresses) -> bool {
        let mut paths = self.paths.iter();
        paths.any(|path| path.addresses == addresses && path.is_verified)
    }

    /// Whether a datagram that is no STUN message came from the client, as far as its address tells; counts it.
    pub fn admits(&mut self, addresses: Addresses, length: usize) -> bool {
        let mut paths = self.paths.iter_mut();
        match paths.find(|path| path.addresses == addresses) {
            Some(path) => {
                path.received_bytes = path.received_bytes.saturating_add(length);
                true
            }
            None => false,
        }
    }

    /// Something came that only the client can have sent.
    pub fn heard(&mut self, now: Instant) {
        self.heard = Some(now);
    }

    /// When something authentic came last.
    pub fn last_heard(&self) -> Option<Instant> {
        self.heard
    }

    /// Where a datagram of this length goes now; counts it.
    pub fn destination(&mut self, length: usize, now: Instant) -> Option<Addresses> {
        if self.heard.is_none_or(|heard| now >= heard + CONSENT) {
            return None;
        }
        let addresses = self.selected?;
        self.may_send(addresses, length).then_some(addresses)
    }

    fn may_send(&mut self, addresses: Addresses, length: usize) -> bool {
        let Some(path) = self
            .paths
            .iter_mut()
            .find(|path| path.addresses == addresses)
        else {
            return false;
        };
        let sent = path.sent_bytes.saturating_add(length);
        if !path.is_verified && sent > path.received_bytes.saturating_mul(UNVERIFIED_FACTOR) {
            return false;
        }
        path.sent_bytes = sent;
        true
    }

    /// Whether a path is there on which something came lately.
    pub fn is_connected(&self, now: Instant) -> bool {
        self.selected.is_some() && self.heard.is_some_and(|heard| now < heard + DISCONNECTED)
    }

    /// When [`tick`](Self::tick) is due.
    pub fn next_tick(&self, now: Instant) -> Option<Instant> {
        let (heard, _) = self.heard.zip(self.selected)?;
        let ask = self.next_question().filter(|_| now < heard + CONSENT);
        let lost = Some(heard + DISCONNECTED).filter(|at| *at > now);
        [ask, lost].into_iter().flatten().min()
    }

    fn next_question(&self) -> Option<Instant> {
        let after_silence = self.heard? + QUIET;
        let asked = self.asked.map(|asked| asked + CONSENT_INTERVAL);
        Some(asked.map_or(after_silence, |again| again.max(after_silence)))
    }

    /// Asks a client that is silent whether it is still there.
    pub fn tick(&mut self, now: Instant) {
        let (Some(addresses), Some(heard)) = (self.selected, self.heard) else {
            return;
        };
        if now >= heard + CONSENT || self.next_question().is_none_or(|at| at > now) {
            return;
        }
        self.asked = Some(now);
        let id = TransactionId::new();
        let mut paths = self.paths.iter_mut();
        if let Some(path) = paths.find(|path| path.addresses == addresses) {
            path.check = Some(id);
            self.check(addresses, id);
        }
    }

    fn check(&mut self, addresses: Addresses, id: TransactionId) {
        let name = format!("{}:{}", self.remote.fragment, self.local.fragment);
        let check = build(
            &[
                Box::new(BINDING_REQUEST),
                Box::new(id),
                Box::new(Username::new(ATTR_USERNAME, name)),
                // The smallest number never wins a conflict of roles.
                Box::new(AttrControlled(0)),
                Box::new(PriorityAttr(PRIORITY)),
            ],
            &self.remote.password,
            &self.crypto,
        );
        self.send(addresses, check);
    }

    fn reply(&self, to: &Message, kind: MessageType, what: Box<dyn Setter>) -> Option<Vec<u8>> {
        let setters = [
            Box::new(kind) as Box<dyn Setter>,
            Box::new(to.transaction_id),
            what,
        ];
        build(&setters, &self.local.password, &self.crypto)
    }

    fn send(&mut self, addresses: Addresses, message: Option<Vec<u8>>) {
        if let Some(message) = message
            && self.may_send(addresses, message.len())
        {
            self.out.push_back((addresses, message));
        }
    }

    /// The next STUN message to send.
    pub fn poll(&mut self) -> Option<(Addresses, Vec<u8>)> {
        self.out.pop_front()
    }

    /// The check that a client sends which knows both credentials and nominates at once.
    pub fn nominating_check(&self) -> Option<Vec<u8>> {
        let name = format!("{}:{}", self.local.fragment, self.remote.fragment);
        build(
            &[
                Box::new(BINDING_REQUEST),
                Box::new(TransactionId::new()),
                Box::new(Username::new(ATTR_USERNAME, name)),
                Box::new(UseCandidateAttr),
                Box::new(AttrControlling(1)),
                Box::new(PriorityAttr(PRIORITY)),
            ],
            &self.local.password,
            &self.crypto,
        )
    }

    /// The client's answer to a check, as it would give it; `None` when this is no check.
    pub fn answer_to(&self, check: &[u8], addresses: Addresses) -> Option<Vec<u8>> {
        let check = decode(check).filter(|message| message.typ == BINDING_REQUEST)?;
        let mapped = XorMappedAddress {
            ip: addresses.local.ip(),
            port: addresses.local.port(),
        };
        build(
            &[
                Box::new(BINDING_SUCCESS),
                Box::new(check.transaction_id),
                Box::new(mapped),
            ],
            &self.remote.password,
            &self.crypto,
        )
    }
}

fn decode(bytes: &[u8]) -> Option<Message> {
    // Attributes are padded, and nothing follows the last one (RFC 8489 section 5).
    let length = bytes.get(2..4)?;
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    if bytes.len() > MAX_MESSAGE_BYTES
        || !length.is_multiple_of(4)
        || bytes.len() != length.saturating_add(20)
    {
        return None;
    }
    let mut message = Message {
        raw: bytes.to_vec(),
        ..Message::default()
    };
    message.decode().ok()?;
    Some(message)
}

fn is_intact(message: &mut Message, password: &str, crypto: &Arc<dyn RTCCryptoProvider>) -> bool {
    message.contains(ATTR_MESSAGE_INTEGRITY)
        && MessageIntegrity::check(message, password.as_bytes(), crypto.crypto()).is_ok()
}

fn build(
    setters: &[Box<dyn Setter + '_>],
    password: &str,
    crypto: &Arc<dyn RTCCryptoProvider>,
) -> Option<Vec<u8>> {
    let integrity = MessageIntegrity::new_short_term_integrity_with_provider(
        password.to_owned(),
        crypto.crypto(),
    );
    let mut message = Message::new();
    let built = message.build(setters).and_then(|()| {
        integrity.add_to(&mut message)?;
        FINGERPRINT.add_to(&mut message)
    });
    match built {
        Ok(()) => Some(message.raw),
        Err(error) => {
            tracing::debug!(%error, "a STUN message could not be built");
            None
        }
    }
}

#[cfg(test)]
#[path = "ice_tests.rs"]
mod tests;
