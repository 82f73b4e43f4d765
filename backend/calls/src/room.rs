//! Room for calls on this node, and how much of it one partner, one page's key and one network may take.
//!
//! A publishable key stands in a page, so anybody can place calls with it and never connect them. So calls whose media is not
//! connected yet have bounds of their own, and those of pages half of them: the partner's own server finds room, and so does
//! every other partner, which gets a few in any case. Those of one publishable key share less than the partner has. A partner
//! that is alone may use nearly all of the node; once others come, each may have half.
//! A call gives its place back when its session ends: for one whose media never connected at the latest
//! `calls.visitor_seconds` and `calls.media_connect_seconds` after it began.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use colloquy_accounts::Tenant;
use colloquy_base::{clock::Clock, counts::Counts};
use colloquy_characters::CharacterDocuments;
use colloquy_config::MediaConfig;
use colloquy_kernel::node::Load;
use colloquy_protocol::CloseCode;
use colloquy_store::StoreError;

use super::store;
use crate::Calls;

/// The part of a node that one partner leaves free, even where it is alone.
const FREE_PART: usize = 8;

/// For so long a partner that wanted a place counts as one of several.
const OTHERS: Duration = Duration::from_secs(600);

/// So many calls of a partner may connect at a time, however many those of the others are.
const LEAST_CONNECTING: usize = 8;

/// Whose call it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOrigin {
    /// The partner.
    pub partner: String,
    /// The page that placed it with a publishable key.
    pub page: Option<PageOrigin>,
}

/// The page of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageOrigin {
    /// The publishable key.
    pub key: String,
    /// The network of the visitor; `None` if visitors are not told apart. The bounds of one network do not apply to those: the bounds of
    /// publishable keys alone do.
    pub network: Option<IpAddr>,
}

impl CallOrigin {
    /// The origin of a call of a partner whose client comes from this network, as
    /// [`client_network`](colloquy_http::extract::client_network) has it. Only calls of pages count by network.
    #[must_use]
    pub fn new(partner: String, page_key: Option<String>, network: Option<IpAddr>) -> Self {
        let page = page_key.map(|key| PageOrigin { key, network });
        Self { partner, page }
    }
}

impl PageOrigin {
    /// What calls of one network count by; `None` if visitors are not told apart.
    fn key_and_network(&self) -> Option<(String, IpAddr)> {
        Some((self.key.clone(), self.network?))
    }
}

/// What has no room for another call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Bound {
    /// The node has as many calls as it may.
    #[error("No room for another call now")]
    Node,
    /// The partner has.
    #[error("The partner has too many calls at a time")]
    Partner,
    /// The publishable key has.
    #[error("The publishable key has too many calls at a time")]
    Key,
    /// The publishable key has in this network: an IPv4 address, or a /64 of IPv6.
    #[error("There are too many calls from this network at a time")]
    Address,
    /// Too many calls are being connected.
    #[error("Too many calls are being connected")]
    Connecting,
    /// The calls of the publishable key that have not begun hold as many bytes as they may.
    #[error(
        "Calls of the publishable key that have not begun hold 32 MiB of characters and parameters, their limit; try again once some of them \
         have begun or expired"
    )]
    Unbegun,
    /// Those of them that were created from one network do.
    #[error(
        "Calls of the publishable key from this network that have not begun hold 8 MiB of characters and parameters, their limit; try again \
         once some of them have begun or expired"
    )]
    UnbegunOfNetwork,
    /// The calls of all publishable keys of the partner that have not begun hold as much of its storage as they may.
    #[error(
        "Calls of publishable keys that have not begun hold as much of the storage of their partner as they may; try again once some of them \
         have begun or expired"
    )]
    UnbegunStorage,
    /// Those of them that were created from one network do.
    #[error(
        "Calls of publishable keys from this network that have not begun hold as much of the storage of their partner as they may; try again \
         once some of them have begun or expired"
    )]
    UnbegunStorageOfNetwork,
}

impl Bound {
    fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Partner => "partner",
            Self::Key => "key",
            Self::Address => "address",
            Self::Connecting => "connecting",
            Self::Unbegun => "unbegun",
            Self::UnbegunOfNetwork => "unbegun_network",
            Self::UnbegunStorage => "unbegun_storage",
            Self::UnbegunStorageOfNetwork => "unbegun_storage_network",
        }
    }
}

/// Room for calls on this node.
#[derive(Debug)]
pub struct CallRoom {
    bounds: Bounds,
    clock: Arc<dyn Clock>,
    taken: Mutex<Taken>,
}

#[derive(Debug)]
struct Bounds {
    node: usize,
    /// The most calls of a partner that the settings name.
    partner: Option<usize>,
    address: usize,
    connecting: Connecting,
    /// Of those, the calls that pages placed.
    connecting_of_pages: Connecting,
}

/// The most calls that are being connected.
#[derive(Debug)]
struct Connecting {
    /// Of all partners.
    all: usize,
    /// Of one.
    of_partner: usize,
}

impl Connecting {
    fn new(all: usize) -> Self {
        Self {
            all,
            of_partner: (all / 2).max(LEAST_CONNECTING),
        }
    }

    fn is_reached(&self, taken: &Counts<String>, partner: &String) -> bool {
        let own = taken.of(partner);
        own >= self.of_partner || taken.all() >= self.all && own >= LEAST_CONNECTING
    }
}

#[derive(Debug, Default)]
struct Taken {
    /// By partner, as the next.
    calls: Counts<String>,
    connecting: Counts<String>,
    connecting_of_pages: Counts<String>,
    keys: Counts<String>,
    /// By publishable key and network.
    addresses: Counts<(String, IpAddr)>,
    /// When each partner wanted a place last.
    asked: HashMap<String, Instant>,
}

impl Taken {
    /// Remembers who wants a place, and forgets who has wanted none for long.
    fn note(&mut self, partner: &str, now: Instant) {
        self.asked.insert(partner.to_owned(), now);
        self.asked
            .retain(|_, at| now.saturating_duration_since(*at) < OTHERS);
    }

    /// Whether other partners have calls, or wanted some a while ago.
    fn has_others(&self, partner: &str) -> bool {
        let other = |name: &String| name != partner;
        self.calls.keys().any(other) || self.asked.keys().any(other)
    }
}

impl Bounds {
    /// The most calls of a partner. A part of the node is free for others, since calls that run are not ended for them; once
    /// they come, it is half.
    fn of_partner(&self, has_others: bool) -> usize {
        self.partner.unwrap_or(match has_others {
            true => self.node.div_ceil(2),
            false => self.node - self.node / FREE_PART,
        })
    }
}

impl CallRoom {
    /// As much room as the settings say.
    #[must_use]
    pub fn new(config: &MediaConfig, clock: Arc<dyn Clock>) -> Arc<Self> {
        let node = config.max_calls as usize;
        Arc::new(Self {
            bounds: Bounds {
                node,
                partner: config.max_calls_per_partner.map(|most| most as usize),
                address: config.max_calls_per_address as usize,
                connecting: Connecting::new(node / 2),
                connecting_of_pages: Connecting::new(node / 4),
            },
            clock,
            taken: Mutex::default(),
        })
    }

    /// How many calls there are.
    #[must_use]
    pub fn open(&self) -> usize {
        self.lock().calls.all()
    }

    /// The calls there are, and the most there may be.
    #[must_use]
    pub fn load(&self) -> Load {
        Load {
            calls: self.open(),
            max_calls: self.bounds.node,
        }
    }

    /// Whether there is room, for whoever wants it later.
    ///
    /// # Errors
    /// What has no room.
    pub fn check(&self, guest: &CallOrigin) -> Result<(), Bound> {
        let mut taken = self.lock();
        taken.note(&guest.partner, self.clock.instant());
        let full = self.bound(&taken, guest);
        full.map_or(Ok(()), |bound| Err(refused(bound)))
    }

    /// Takes a place for a call whose media is to be connected.
    ///
    /// # Errors
    /// What has no room.
    pub fn take(self: &Arc<Self>, guest: CallOrigin) -> Result<CallSlot, Bound> {
        let mut taken = self.lock();
        taken.note(&guest.partner, self.clock.instant());
        if let Some(bound) = self.bound(&taken, &guest) {
            return Err(refused(bound));
        }
        taken.calls.add(&guest.partner, 1);
        taken.connecting.add(&guest.partner, 1);
        if let Some(page) = &guest.page {
            taken.connecting_of_pages.add(&guest.partner, 1);
            taken.keys.add(&page.key, 1);
            if let Some(of_network) = page.key_and_network() {
                taken.addresses.add(&of_network, 1);
            }
        }
        drop(taken);
        Ok(CallSlot {
            room: Arc::clone(self),
            guest,
            is_connecting: true,
            documents: None,
        })
    }

    /// The first bound that is reached.
    fn bound(&self, taken: &Taken, guest: &CallOrigin) -> Option<Bound> {
        let bounds = &self.bounds;
        let of_partner = bounds.of_partner(taken.has_others(&guest.partner));
        let mut reached = vec![
            (Bound::Node, taken.calls.all() >= bounds.node),
            (Bound::Partner, taken.calls.of(&guest.partner) >= of_partner),
            (
                Bound::Connecting,
                bounds
                    .connecting
                    .is_reached(&taken.connecting, &guest.partner),
            ),
        ];
        if let Some(page) = &guest.page {
            let of_pages = &bounds.connecting_of_pages;
            let is_reached = of_pages.is_reached(&taken.connecting_of_pages, &guest.partner);
            reached.push((Bound::Connecting, is_reached));
            if let Some(of_network) = page.key_and_network() {
                let of_address = taken.addresses.of(&of_network);
                reached.push((Bound::Address, of_address >= bounds.address));
            }
            let of_key = of_partner.div_ceil(2);
            reached.push((Bound::Key, taken.keys.of(&page.key) >= of_key));
        }
        let mut reached = reached.into_iter();
        reached.find_map(|(bound, is_reached)| is_reached.then_some(bound))
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a call that was refused.
pub(super) fn refused(bound: Bound) -> Bound {
    metrics::counter!("colloquy_calls_refused_total", "bound" => bound.as_str()).increment(1);
    bound
}

/// A call's place, given back when it is dropped.
#[derive(Debug)]
pub struct CallSlot {
    room: Arc<CallRoom>,
    guest: CallOrigin,
    is_connecting: bool,
    /// The documents of its character, with the reservation of their memory.
    documents: Option<CharacterDocuments>,
}

impl CallSlot {
    /// The documents of its character, `None` if it searches none. Their memory is reserved while the call has its place.
    #[must_use]
    pub fn documents(&self) -> Option<CharacterDocuments> {
        self.documents.clone()
    }

    /// The call's media is connected.
    pub fn connected(&mut self) {
        if self.is_connecting {
            self.is_connecting = false;
            let partner = &self.guest.partner;
            let mut taken = self.room.lock();
            taken.connecting.remove(partner, 1);
            if self.guest.page.is_some() {
                taken.connecting_of_pages.remove(partner, 1);
            }
        }
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.connected();
        let mut taken = self.room.lock();
        taken.calls.remove(&self.guest.partner, 1);
        if let Some(page) = &self.guest.page {
            taken.keys.remove(&page.key, 1);
            if let Some(of_network) = page.key_and_network() {
                taken.addresses.remove(&of_network, 1);
            }
        }
    }
}

/// Takes a place for a stored call, whose client comes from this network, and the memory of its character's documents. Its signed
/// URL is not spent yet: a client that is refused may come again with it, and a call that has its place never lacks the memory.
///
/// # Errors
/// `CallNotFound`, `Capacity`, and the database's failure.
pub async fn seat(
    calls: &Calls,
    id: &str,
    network: Option<IpAddr>,
) -> Result<Result<CallSlot, CloseCode>, StoreError> {
    let Some(owner) = store::owner(calls.store.db(), id).await? else {
        return Ok(Err(CloseCode::CallNotFound));
    };
    let character = owner.character()?;
    let tenant = Tenant::of_row(&owner.partner);
    let guest = CallOrigin::new(owner.partner, owner.page_key, network);
    let Ok(mut slot) = calls.room.take(guest) else {
        return Ok(Err(CloseCode::Capacity));
    };
    let Ok(documents) = calls.documents(&tenant, &character) else {
        metrics::counter!("colloquy_calls_refused_total", "bound" => "memory").increment(1);
        return Ok(Err(CloseCode::Capacity));
    };
    slot.documents = documents;
    Ok(Ok(slot))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use colloquy_base::{
        clock::{ManualClock, SystemClock},
        memory::NoRoom,
    };
    use colloquy_characters::{Character, CharacterCache, NoDocumentMemory};
    use serde_json::json;

    fn room(max_calls: u32) -> Arc<CallRoom> {
        room_at(max_calls, Arc::new(SystemClock))
    }

    fn room_at(max_calls: u32, clock: Arc<dyn Clock>) -> Arc<CallRoom> {
        let config = MediaConfig {
            max_calls,
            ..MediaConfig::default()
        };
        CallRoom::new(&config, clock)
    }

    fn guest(partner: &str, page: Option<(&str, u8)>) -> CallOrigin {
        CallOrigin {
            partner: partner.to_owned(),
            page: page.map(|(key, last)| PageOrigin {
                key: key.to_owned(),
                network: Some(IpAddr::from([192, 0, 2, last])),
            }),
        }
    }

    /// How many calls such guests get, and what refuses the next.
    fn fill(
        room: &Arc<CallRoom>,
        seats: &mut Vec<CallSlot>,
        guest: &CallOrigin,
        connect: bool,
    ) -> (usize, Bound) {
        for got in 0.. {
            match room.take(guest.clone()) {
                Ok(mut seat) => {
                    if connect {
                        seat.connected();
                    }
                    seats.push(seat);
                }
                Err(bound) => {
                    assert_eq!(room.check(guest), Err(bound));
                    return (got, bound);
                }
            }
        }
        unreachable!("there is no end of room")
    }

    #[test]
    fn a_partner_shares_once_others_come() {
        let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
        let room = room_at(200, Arc::clone(&clock) as _);
        let mut seats = Vec::new();
        let (acme, other) = (guest("acme", None), guest("other", None));
        assert_eq!(fill(&room, &mut seats, &acme, true), (175, Bound::Partner));
        // What is free is there for whoever comes, and nobody else gets more of it.
        let mut others = Vec::new();
        assert_eq!(fill(&room, &mut others, &other, true), (25, Bound::Node));
        seats.truncate(100);
        assert_eq!(fill(&room, &mut seats, &acme, true), (0, Bound::Partner));
        others.clear();
        assert_eq!(fill(&room, &mut seats, &acme, true), (0, Bound::Partner));
        // Until the others have stayed away for a while.
        clock.advance(OTHERS);
        assert_eq!(fill(&room, &mut seats, &acme, true), (75, Bound::Partner));
    }

    #[test]
    fn nobody_takes_all_the_room() {
        let room = room(200);
        let mut seats = Vec::new();
        for partner in ["acme", "other", "third", "fourth"] {
            room.check(&guest(partner, None)).unwrap();
        }
        let mut fill = |guest, connect| fill(&room, &mut seats, &guest, connect);
        // Pages that never connect, from one address and from others.
        let page = |last| guest("acme", Some(("k", last)));
        assert_eq!(fill(page(1), false), (16, Bound::Address));
        assert_eq!(fill(page(2), false), (9, Bound::Connecting));
        let page = |last| guest("other", Some(("o", last)));
        assert_eq!(fill(page(1), false), (16, Bound::Address));
        assert_eq!(fill(page(2), false), (9, Bound::Connecting));
        // However many there are, the pages of others get a few places.
        let page = guest("third", Some(("t", 1)));
        assert_eq!(fill(page, false), (8, Bound::Connecting));
        // The servers of the same partners find room, and those of others.
        assert_eq!(fill(guest("acme", None), false), (25, Bound::Connecting));
        assert_eq!(fill(guest("other", None), true), (75, Bound::Partner));
        assert_eq!(fill(guest("third", None), false), (17, Bound::Connecting));
        assert_eq!(fill(guest("fourth", None), false), (8, Bound::Connecting));
        assert_eq!(room.open(), 183);
        seats.clear();
        assert_eq!(room.open(), 0);
        let taken = room.lock();
        let left = taken.calls.all() + taken.connecting.all() + taken.connecting_of_pages.all();
        assert_eq!(left + taken.keys.all() + taken.addresses.all(), 0);
    }

    #[test]
    fn pages_leave_room_to_the_server_of_their_partner() {
        let room = room(200);
        room.check(&guest("other", None)).unwrap();
        let mut seats = Vec::new();
        for last in 1..=3 {
            let page = guest("acme", Some(("k", last)));
            assert_eq!(fill(&room, &mut seats, &page, true), (16, Bound::Address));
        }
        let page = guest("acme", Some(("k", 4)));
        assert_eq!(fill(&room, &mut seats, &page, true), (2, Bound::Key));
        let server = guest("acme", None);
        assert_eq!(fill(&room, &mut seats, &server, true), (50, Bound::Partner));
    }

    #[test]
    fn visitors_that_are_not_told_apart_share_the_bounds_of_their_key_alone() {
        let room = room(200);
        let mut seats = Vec::new();
        let mut fill = |network: Option<&str>| {
            let network = network.map(|network| network.parse().unwrap());
            let page = CallOrigin::new("acme".to_owned(), Some("k".to_owned()), network);
            fill(&room, &mut seats, &page, true)
        };
        assert_eq!(fill(Some("192.0.2.1")), (16, Bound::Address));
        // The key has half of the 175 calls that its partner has alone.
        assert_eq!(fill(None), (72, Bound::Key));
        assert_eq!(fill(Some("192.0.2.2")), (0, Bound::Key));
        seats.clear();
        let taken = room.lock();
        assert_eq!(taken.keys.all() + taken.addresses.all(), 0);
    }

    #[test]
    fn a_small_node_is_still_of_use() {
        let mut seats = Vec::new();
        let one = guest("acme", None);
        assert_eq!(fill(&room(1), &mut seats, &one, false), (1, Bound::Node));
    }

    #[test]
    fn a_call_holds_the_memory_of_its_documents() {
        let cache = CharacterCache::new(Arc::new(SystemClock), 2 * 1024 * 1024);
        let tenant = Tenant::of_row("acme");
        // One partner has room for one of these.
        let reserve = |reference: Option<&str>| {
            let document = json!({"title": "T", "text": "x".repeat(20_000)});
            let character = json!({
                "reference": reference,
                "personality": "P",
                "parameters": {"rag_enabled": true, "documents": [document]},
            });
            let character: Character = serde_json::from_value(character).unwrap();
            cache.documents(&tenant, &character)
        };
        let full = NoDocumentMemory(NoRoom::Now);
        let room = room(10);
        let seat = |reference: Option<&str>| {
            let mut seat = room.take(guest("acme", None)).unwrap();
            seat.documents = reserve(reference).unwrap();
            seat
        };
        let saved = [seat(Some("acme/zoo")), seat(Some("acme/zoo"))];
        let of_session = saved[0].documents();
        assert!(of_session.is_some());
        drop(saved);
        assert_eq!(reserve(Some("acme/sea")).unwrap_err(), full);
        assert_eq!(reserve(None).unwrap_err(), full);
        drop(of_session);
        let inline = seat(None);
        assert_eq!(reserve(Some("acme/zoo")).unwrap_err(), full);
        drop(inline);
        assert!(reserve(Some("acme/sea")).is_ok());
    }
}
