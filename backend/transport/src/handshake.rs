//! The DTLS handshake of one connection through a network that loses datagrams (RFC 6347 section 4.2.4).
//!
//! The DTLS of `rtc` forgets its retransmission timer when any handshake record comes, also one that it knows, and then
//! waits for ever; and what it sends again is new to the other end, which has the same fault when it is of the same
//! library. So its datagrams pass through here:
//!
//! - The last flight that was sent is kept, and its datagrams are sent again as they were, with back-off, and whenever
//!   the client repeats itself, until the next flight takes its place or the client is known to have the keys. Of a
//!   repeated record the receiver takes what it lacks and drops the rest by its sequence number.
//! - Handshake messages that came before are not given to the stack again, so its timer stays. What stands beside them in
//!   a datagram is: a client may pack its flight differently the second time. Those in fragments are given when they are
//!   whole (see [`reassembly`](crate::reassembly)).
//!
//! A datagram of a stranger who forges the client's address can make a flight be sent fifteen times at most.

use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::reassembly::Reassembly;

/// How long an answer may take before the flight is sent again for the first time; later waits are twice as long each.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_millis(1_600);

/// How soon a flight may follow itself when the client repeats its own.
const SOONEST: Duration = Duration::from_millis(50);

/// How often a flight is sent again: about 20 seconds of it, as long as a call may take to connect.
const MAX_REPEATS: u32 = 15;

/// The most bytes that are given to the stack before the handshake is over. One of a browser's takes less than 4,000.
const MAX_INPUT_BYTES: usize = 64 * 1024;

/// Datagrams of a flight that are kept; ours have one or two.
const MAX_DATAGRAMS: usize = 16;

const RECORD_HEADER: usize = 13;
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;

/// The end of the DTLS handshake that the stack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It sends the first flight, and the client the last one.
    Client,
    /// The client sends the first flight, and the stack the last one.
    Server,
}

/// What stands in a flight, apart from its record sequence numbers: type, epoch and length of each record, and the
/// message's number where it is readable.
type Contents = Vec<(u8, u16, usize, Option<u16>)>;

/// The handshake of one connection.
#[derive(Debug)]
pub struct Handshake {
    role: Role,
    flight: Vec<BytesMut>,
    contents: Contents,
    sent: Option<Instant>,
    repeats: u32,
    repeat_at: Option<Instant>,
    messages: Reassembly,
    input_bytes: usize,
    is_over: bool,
}

impl Handshake {
    /// A handshake that has not begun.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self {
            role,
            flight: Vec::new(),
            contents: Vec::new(),
            sent: None,
            repeats: 0,
            repeat_at: None,
            messages: Reassembly::default(),
            input_bytes: 0,
            is_over: false,
        }
    }

    /// Takes the DTLS datagrams that the stack wants to send after one event, and gives those to be sent.
    pub fn outgoing(&mut self, datagrams: Vec<BytesMut>, now: Instant) -> Vec<BytesMut> {
        let (flight, mut rest): (Vec<_>, Vec<_>) = datagrams
            .into_iter()
            .partition(|datagram| records(datagram).any(|record| record.is_of_handshake()));
        if flight.is_empty() {
            return rest;
        }
        let contents: Contents = flight
            .iter()
            .flat_map(|datagram| records(datagram).map(|record| record.content()))
            .collect();
        if contents != self.contents {
            self.contents = contents;
            self.flight = flight;
            self.flight.truncate(MAX_DATAGRAMS);
            self.repeats = 0;
            self.repeat_at = Some(now + FIRST_WAIT);
        } else if self.role == Role::Client {
            // The other end answers a repeated flight only if its records are new.
            self.flight = flight;
            self.flight.truncate(MAX_DATAGRAMS);
        } else if !self.may_repeat(now) {
            return rest;
        }
        self.sent = Some(now);
        rest.extend(self.flight.iter().cloned());
        rest
    }

    /// Takes a DTLS datagram from the network and leaves in it what the stack has to see. Returns whether the last flight
    /// has to be sent again.
    pub fn incoming(&mut self, datagram: &mut BytesMut, now: Instant) -> bool {
        let mut rest = BytesMut::with_capacity(datagram.len());
        let (mut repeated, mut is_new) = (false, false);
        for record in records(datagram) {
            let Some(fragments) = record.plain_handshake() else {
                rest.extend_from_slice(record.bytes);
                continue;
            };
            let taken = self.messages.take(fragments);
            repeated |= taken.is_repeated;
            is_new |= taken.is_new;
            record.write_with(&taken.messages, &mut rest);
        }
        if !self.is_over {
            self.input_bytes = self.input_bytes.saturating_add(rest.len());
            if self.input_bytes > MAX_INPUT_BYTES {
                rest.clear();
            }
        }
        *datagram = rest;
        repeated && !is_new && self.may_repeat(now)
    }

    /// Whether the flight may be sent again now; counts it.
    fn may_repeat(&mut self, now: Instant) -> bool {
        let is_soon = self.sent.is_some_and(|sent| now < sent + SOONEST);
        if is_soon || self.flight.is_empty() || self.repeats >= MAX_REPEATS {
            return false;
        }
        self.repeats += 1;
        true
    }

    /// The stack has the keys.
    pub fn completed(&mut self) {
        self.is_over = true;
        if self.role == Role::Client {
            self.confirmed();
        }
    }

    /// The client has the keys, too: the last flight has come.
    pub fn confirmed(&mut self) {
        if self.is_over {
            self.flight = Vec::new();
            self.repeat_at = None;
        }
    }

    /// When [`repeat`](Self::repeat) is due.
    #[must_use]
    pub fn next_tick(&self) -> Option<Instant> {
        self.repeat_at
    }

    /// Whether the last flight has to be sent again, since nothing came in its time.
    pub fn tick(&mut self, now: Instant) -> bool {
        if self.repeat_at.is_none_or(|at| at > now) {
            return false;
        }
        let is_due = self.may_repeat(now);
        let wait = FIRST_WAIT.saturating_mul(1 << self.repeats.min(10));
        self.repeat_at = (self.repeats < MAX_REPEATS).then(|| now + wait.min(LONGEST_WAIT));
        is_due
    }

    /// The last flight, to be sent again.
    pub fn repeat(&mut self, now: Instant) -> &[BytesMut] {
        self.sent = Some(now);
        &self.flight
    }
}

/// A DTLS record (RFC 6347 section 4.1).
#[derive(Debug, Clone, Copy)]
struct Record<'datagram> {
    bytes: &'datagram [u8],
    kind: u8,
    epoch: u16,
}

impl<'datagram> Record<'datagram> {
    fn is_of_handshake(&self) -> bool {
        matches!(self.kind, CHANGE_CIPHER_SPEC | HANDSHAKE)
    }

    /// Handshake messages that are not encrypted.
    fn plain_handshake(&self) -> Option<&'datagram [u8]> {
        let is_plain = self.kind == HANDSHAKE && self.epoch == 0;
        self.bytes.get(RECORD_HEADER..).filter(|_| is_plain)
    }

    /// Writes it with other messages in it, unless there are none.
    fn write_with(&self, messages: &[u8], out: &mut BytesMut) {
        let header = self.bytes.get(..RECORD_HEADER - 2);
        let length = u16::try_from(messages.len()).ok();
        if let (Some(header), Some(length @ 1..)) = (header, length) {
            out.extend_from_slice(header);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(messages);
        }
    }

    fn content(&self) -> (u8, u16, usize, Option<u16>) {
        let number = self
            .plain_handshake()
            .and_then(|message| message.get(4..6))
            .map(|number| u16::from_be_bytes([number[0], number[1]]));
        (self.kind, self.epoch, self.bytes.len(), number)
    }
}

/// The whole records of a datagram; what follows them is left out.
fn records(mut datagram: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let header = datagram.get(..RECORD_HEADER)?;
        let length = usize::from(u16::from_be_bytes([header[11], header[12]]));
        let (bytes, rest) = datagram.split_at_checked(RECORD_HEADER + length)?;
        datagram = rest;
        Some(Record {
            bytes,
            kind: header[0],
            epoch: u16::from_be_bytes([header[3], header[4]]),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_base::clock::{Clock as _, SystemClock};

    fn record(kind: u8, epoch: u16, sequence: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind, 254, 253];
        bytes.extend(epoch.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 0, sequence]);
        bytes.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn message(number: u8) -> Vec<u8> {
        vec![11, 0, 0, 2, 0, number, 0, 0, 0, 0, 0, 2, 7, number]
    }

    fn datagram(parts: &[Vec<u8>]) -> BytesMut {
        BytesMut::from(parts.concat().as_slice())
    }

    fn sent(datagrams: &[BytesMut]) -> usize {
        datagrams.len()
    }

    #[test]
    fn a_flight_is_repeated_as_it_was_with_back_off_and_bounded() {
        let mut now = SystemClock.instant();
        let mut handshake = Handshake::new(Role::Server);
        let flight = datagram(&[record(HANDSHAKE, 0, 1, &message(1))]);
        assert_eq!(
            handshake.outgoing(vec![flight.clone()], now),
            vec![flight.clone()]
        );
        let begun = now;
        let mut times = Vec::new();
        while let Some(at) = handshake.next_tick() {
            now = at;
            if handshake.tick(now) {
                assert_eq!(handshake.repeat(now), std::slice::from_ref(&flight));
                times.push((now - begun).as_millis());
            }
        }
        assert_eq!(times[..5], [100, 300, 700, 1_500, 3_100]);
        assert_eq!(times.len(), usize::try_from(MAX_REPEATS).unwrap());
        // The stack's own repetition has new numbers, and would be sent as it was; a client's makes no difference then.
        now += Duration::from_secs(1);
        let again = datagram(&[record(HANDSHAKE, 0, 2, &message(1))]);
        assert_eq!(sent(&handshake.outgoing(vec![again], now)), 0);
        let mut known = datagram(&[record(HANDSHAKE, 0, 1, &message(9))]);
        assert!(!handshake.incoming(&mut known.clone(), now));
        assert!(!handshake.incoming(&mut known, now));
        // The next flight takes its place.
        let next = datagram(&[record(CHANGE_CIPHER_SPEC, 0, 3, &[1])]);
        assert_eq!(handshake.outgoing(vec![next.clone()], now), [next]);
        assert!(handshake.next_tick().is_some());
        handshake.completed();
        assert!(
            handshake.next_tick().is_some(),
            "the last flight may be lost"
        );
        handshake.confirmed();
        assert_eq!(handshake.next_tick(), None);
    }

    #[test]
    fn the_end_that_waits_repeats_its_bytes_and_the_one_that_begins_new_records() {
        let now = SystemClock.instant();
        let later = now + Duration::from_secs(1);
        let first = datagram(&[record(HANDSHAKE, 0, 1, &message(1))]);
        let fresh = datagram(&[record(HANDSHAKE, 0, 2, &message(1))]);
        for (role, expected) in [(Role::Server, &first), (Role::Client, &fresh)] {
            let mut handshake = Handshake::new(role);
            handshake.outgoing(vec![first.clone()], now);
            let out = handshake.outgoing(vec![fresh.clone()], later);
            assert_eq!(out, std::slice::from_ref(expected), "{role:?}");
        }
        // Alerts and data pass.
        let alert = datagram(&[record(21, 1, 1, &[1, 0])]);
        let mut handshake = Handshake::new(Role::Server);
        assert_eq!(handshake.outgoing(vec![alert.clone()], now), vec![alert]);
        assert_eq!(handshake.next_tick(), None);
    }

    #[test]
    fn known_messages_are_taken_out_and_answered_and_the_rest_passes() {
        let now = SystemClock.instant();
        let mut handshake = Handshake::new(Role::Server);
        handshake.outgoing(vec![datagram(&[record(HANDSHAKE, 0, 1, &message(1))])], now);
        let first = datagram(&[record(HANDSHAKE, 0, 1, &message(2))]);
        let mut given = first.clone();
        assert!(!handshake.incoming(&mut given, now));
        assert_eq!(given, first);
        // The same message in a record of another number, with what was in a datagram of its own and was lost.
        let finished = record(HANDSHAKE, 1, 0, &[9; 40]);
        let mut again = datagram(&[record(HANDSHAKE, 0, 5, &message(2)), finished.clone()]);
        assert!(!handshake.incoming(&mut again.clone(), now), "too soon");
        assert!(handshake.incoming(&mut again, now + SOONEST));
        assert_eq!(again, datagram(&[finished]));
        // A message that is new beside one that is not: the flight has come.
        let mixed = [
            record(HANDSHAKE, 0, 6, &message(2)),
            record(HANDSHAKE, 0, 7, &message(3)),
        ];
        let mut given = datagram(&mixed);
        assert!(!handshake.incoming(&mut given, now + 2 * SOONEST));
        assert_eq!(given, datagram(&mixed[1..]));
    }

    #[test]
    fn what_the_stack_is_given_is_bounded_and_garbage_is_nothing() {
        let now = SystemClock.instant();
        let mut handshake = Handshake::new(Role::Server);
        let mut given = 0;
        for number in 0..500_u16 {
            let mut body = vec![9; 1_000];
            body[..2].copy_from_slice(&number.to_be_bytes());
            let mut datagram = datagram(&[record(HANDSHAKE, 1, 0, &body)]);
            handshake.incoming(&mut datagram, now);
            given += datagram.len();
        }
        assert!(given <= MAX_INPUT_BYTES, "{given}");
        for length in 0..RECORD_HEADER + 2 {
            let mut cut = BytesMut::from(&record(HANDSHAKE, 0, 0, &[1, 2, 3])[..length]);
            assert!(!Handshake::new(Role::Server).incoming(&mut cut, now));
            assert!(cut.is_empty());
        }
    }
}
