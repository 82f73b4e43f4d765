//! Handshake messages that arrive in fragments (RFC 6347 section 4.2.3).
//!
//! A client that hears no answer may cut its messages anew, into pieces that overlap with the earlier ones: Firefox does
//! after a few repetitions, in case they were too large for the network. The DTLS of `rtc` joins only pieces that end
//! where others begin, so once a piece was lost it may never come to the end of a message. It is given whole ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

/// The header of a fragment: type, length of the message, its number, offset and length of the fragment.
const HEADER: usize = 12;

/// Messages have smaller numbers than this; a client's handshake has six.
const MAX_MESSAGES: u16 = 64;

/// The most bytes of messages that are not whole, as many as a record may have. The largest one of a browser has less than
/// 2,000.
const MAX_PENDING_BYTES: usize = 16 * 1024;

/// What became of the fragments of a record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The messages that are whole now, each under a header of its own.
    pub(crate) messages: Vec<u8>,
    /// Whether something came that had not come before.
    pub(crate) is_new: bool,
    /// Whether something came of a message that was whole before.
    pub(crate) is_repeated: bool,
}

/// The messages of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    pending: BTreeMap<u16, Message>,
    /// The numbers of those that were whole.
    whole: BTreeSet<u16>,
}

/// A message that is not whole.
#[derive(Debug)]
struct Message {
    kind: u8,
    body: Vec<u8>,
    missing: Vec<Range<usize>>,
}

/// A part of a message.
#[derive(Debug, Clone, Copy)]
struct Fragment<'record> {
    kind: u8,
    length: usize,
    number: u16,
    offset: usize,
    data: &'record [u8],
}

impl Reassembly {
    /// Takes what stands in a record. What is no fragment is left out, with all that follows it.
    pub(crate) fn take(&mut self, mut record: &[u8]) -> Outcome {
        let mut outcome = Outcome::default();
        while let Some((fragment, rest)) = Fragment::parse(record) {
            record = rest;
            if self.whole.contains(&fragment.number) {
                outcome.is_repeated = true;
            } else if fragment.number < MAX_MESSAGES {
                outcome.is_new |= self.add(fragment, &mut outcome.messages);
            }
        }
        outcome
    }

    /// Adds a fragment, and its message when that is whole. Returns whether it was new.
    fn add(&mut self, fragment: Fragment<'_>, messages: &mut Vec<u8>) -> bool {
        let number = fragment.number;
        let mut message = match self.pending.remove(&number) {
            Some(message) if message.is_of(fragment) => message,
            // The other end does not change its mind, so one of the two is forged: the later one counts, so that what is
            // repeated does in the end.
            _ => {
                let pending: usize = self.pending.values().map(|other| other.body.len()).sum();
                if pending + fragment.length > MAX_PENDING_BYTES {
                    return false;
                }
                Message::new(fragment)
            }
        };
        let is_new = message.fill(fragment);
        if message.missing.is_empty() {
            message.write(number, messages);
            self.whole.insert(number);
        } else {
            self.pending.insert(number, message);
        }
        is_new
    }
}

impl Message {
    fn new(fragment: Fragment<'_>) -> Self {
        let body = vec![0; fragment.length];
        // Of a message without a body, its header is what has to come.
        let missing = std::iter::once(0..body.len())
            .filter(|all| !all.is_empty())
            .collect();
        Self {
            kind: fragment.kind,
            body,
            missing,
        }
    }

    fn is_of(&self, fragment: Fragment<'_>) -> bool {
        (self.kind, self.body.len()) == (fragment.kind, fragment.length)
    }

    /// Takes of a fragment what is missing. Returns whether that is anything.
    fn fill(&mut self, fragment: Fragment<'_>) -> bool {
        let end = fragment.offset + fragment.data.len();
        let mut is_new = self.body.is_empty();
        for gap in std::mem::take(&mut self.missing) {
            let (from, to) = (gap.start.max(fragment.offset), gap.end.min(end));
            if from >= to {
                self.missing.push(gap);
                continue;
            }
            is_new = true;
            self.body[from..to]
                .copy_from_slice(&fragment.data[from - fragment.offset..to - fragment.offset]);
            let left = [gap.start..from, to..gap.end];
            self.missing
                .extend(left.into_iter().filter(|gap| !gap.is_empty()));
        }
        is_new
    }

    fn write(&self, number: u16, messages: &mut Vec<u8>) {
        let length = u32::try_from(self.body.len()).unwrap_or(u32::MAX);
        let length = &length.to_be_bytes()[1..];
        messages.push(self.kind);
        messages.extend(length);
        messages.extend(number.to_be_bytes());
        messages.extend([0, 0, 0]);
        messages.extend(length);
        messages.extend(&self.body);
    }
}

impl<'record> Fragment<'record> {
    /// The first fragment in these bytes, and what follows it.
    fn parse(bytes: &'record [u8]) -> Option<(Self, &'record [u8])> {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let number = |at: usize| {
            header[at..at + 3]
                .iter()
                .fold(0, |number, byte| (number << 8) | usize::from(*byte))
        };
        let (length, offset) = (number(1), number(6));
        let (data, rest) = rest.split_at_checked(number(9))?;
        let fragment = Self {
            kind: header[0],
            length,
            number: u16::from_be_bytes([header[4], header[5]]),
            offset,
            data,
        };
        (offset + data.len() <= length).then_some((fragment, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

    fn fragment(number: u16, length: usize, range: Range<usize>) -> Vec<u8> {
        let three = |number: usize| u32::try_from(number).unwrap().to_be_bytes()[1..].to_vec();
        let mut bytes = vec![1];
        bytes.extend(three(length));
        bytes.extend(number.to_be_bytes());
        bytes.extend(three(range.start));
        bytes.extend(three(range.len()));
        bytes.extend(range.map(|at| u8::try_from(at % 251).unwrap()));
        bytes
    }

    fn whole(number: u16, length: usize) -> Vec<u8> {
        fragment(number, length, 0..length)
    }

    #[test]
    fn what_is_cut_anew_is_joined() {
        // As Firefox was seen to cut its greeting: the end of the first cut was lost each time.
        let mut messages = Reassembly::default();
        assert_eq!(messages.take(&whole(0, 1_461)).messages, whole(0, 1_461));
        for _ in 0..3 {
            assert_eq!(messages.take(&fragment(1, 1_481, 0..1_383)).messages, b"");
        }
        let outcome = messages.take(&fragment(1, 1_481, 1_163..1_481));
        assert_eq!(outcome.messages, whole(1, 1_481));
        assert!(outcome.is_new && !outcome.is_repeated);
        let outcome = messages.take(&fragment(1, 1_481, 0..1_163));
        assert!(!outcome.is_new && outcome.is_repeated && outcome.messages.is_empty());
    }

    #[test]
    fn any_pieces_in_any_order_become_the_message_once() {
        let mut random = StdRng::seed_from_u64(1);
        for _ in 0..500 {
            let (mut messages, mut given) = (Reassembly::default(), Vec::new());
            let length = random.random_range(0..300);
            // What the earlier pieces leave over comes with the last one, in a record with another message.
            for _ in 0..20 {
                let start = random.random_range(0..=length);
                let end = random.random_range(start..=length);
                given.extend(messages.take(&fragment(3, length, start..end)).messages);
            }
            let last = [whole(3, length), fragment(2, 0, 0..0)].concat();
            given.extend(messages.take(&last).messages);
            assert_eq!(given, [whole(3, length), whole(2, 0)].concat());
            assert!(messages.pending.is_empty());
        }
    }

    #[test]
    fn several_messages_of_a_record_are_all_taken() {
        let mut messages = Reassembly::default();
        let record = [whole(2, 10), fragment(3, 10, 0..5), whole(4, 0)].concat();
        let outcome = messages.take(&record);
        assert_eq!(outcome.messages, [whole(2, 10), whole(4, 0)].concat());
        let outcome = messages.take(&[whole(2, 10), fragment(3, 10, 5..10)].concat());
        assert_eq!(outcome.messages, whole(3, 10));
        assert!(outcome.is_new && outcome.is_repeated);
    }

    #[test]
    fn a_forged_piece_is_replaced_by_what_comes_again() {
        let mut messages = Reassembly::default();
        messages.take(&fragment(1, 20, 0..10));
        messages.take(&fragment(1, 30, 0..10));
        assert_eq!(messages.take(&fragment(1, 20, 10..20)).messages, b"");
        let outcome = messages.take(&fragment(1, 20, 0..10));
        assert_eq!(outcome.messages, whole(1, 20));
    }

    #[test]
    fn what_is_not_whole_takes_little_memory() {
        let mut messages = Reassembly::default();
        for number in 0..1_000 {
            for length in [2, 9_000, 40_000, 0xff_ff_ff] {
                messages.take(&fragment(number, length, 0..1));
            }
        }
        let pending: usize = messages.pending.values().map(|one| one.body.len()).sum();
        assert!(pending <= MAX_PENDING_BYTES && messages.pending.len() <= MAX_MESSAGES.into());
        assert!(messages.whole.len() <= MAX_MESSAGES.into());
        // And no piece of a message beyond its end, or with less than it says.
        for bytes in [
            fragment(70, 5, 3..6),
            whole(1, 9)[..20].to_vec(),
            vec![1; 11],
        ] {
            assert_eq!(Reassembly::default().take(&bytes), Outcome::default());
        }
    }
}
