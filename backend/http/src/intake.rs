//! Memory of the messages of WebSockets, reserved before it is taken.
//!
//! The socket puts messages together out of sight and allocates a whole frame once it has the frame's header. So the bytes of a connection are
//! followed here, below the socket, as frames (RFC 6455, section 5.2): a frame's announced length is reserved when its header arrives, before
//! the socket sees the header. A frame without room is refused with none of it in memory. Counting what has arrived instead would let
//! many sockets grow together until all are refused, and the allocator keeps the memory of those for a second.
//!
//! A message in fragments counts with its largest frame and with the string that the socket collects it in, which doubles as it grows, beside
//! the smaller string that it is copied from. A message never counts with less than has arrived of it.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use colloquy_base::clock::runtime_now;
use tokio::time::Instant;

use super::{Edge, memory::Share};

/// The end of a request's head, as clients write it.
const BLANK_LINE: [u8; 4] = *b"\r\n\r\n";
/// The longest header of a frame.
const MAX_HEADER_BYTES: usize = 14;
/// Messages that are complete and not taken. A socket takes each before it reads on, so they are those of one read of a few kilobytes.
const MAX_COMPLETE: usize = 4_096;

/// What a connection brings once it is a WebSocket, counted by message; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Intake(Arc<Mutex<State>>);

#[derive(Debug)]
enum State {
    Http(Head),
    WebSocket(Box<Messages>),
}

impl Default for State {
    fn default() -> Self {
        Self::Http(Head {
            tail: BLANK_LINE,
            blank_lines: 0,
            is_followed: false,
        })
    }
}

/// How the head of a request ended.
#[derive(Debug)]
struct Head {
    tail: Tail,
    /// Blank lines in the last read, none if it did not end with one.
    blank_lines: usize,
    /// True if something was read after the request was taken.
    is_followed: bool,
}

/// The last bytes that arrived.
type Tail = [u8; BLANK_LINE.len()];

fn push(tail: &mut Tail, byte: u8) {
    tail.rotate_left(1);
    tail[BLANK_LINE.len() - 1] = byte;
}

fn is_blank_line(tail: Tail) -> bool {
    // A line may end without a carriage return.
    tail.ends_with(b"\n\r\n") || tail.ends_with(b"\n\n")
}

impl Head {
    fn took(&mut self, bytes: &[u8]) {
        let before = self.tail;
        for byte in &bytes[bytes.len().saturating_sub(BLANK_LINE.len())..] {
            push(&mut self.tail, *byte);
        }
        let tails = bytes.iter().scan(before, |tail, byte| {
            push(tail, *byte);
            Some(*tail)
        });
        // Few reads of a body end so, which is why the others are not looked through.
        self.blank_lines = match is_blank_line(self.tail) {
            true => tails.filter(|tail| is_blank_line(*tail)).count(),
            false => 0,
        };
        self.is_followed = true;
    }

    /// True if the last read ended with the head. Of two blank lines in it, the second one may be the end of a frame.
    fn is_last(&self) -> bool {
        self.blank_lines == 1 && !self.is_followed
    }
}

/// The messages of a WebSocket.
#[derive(Debug)]
struct Messages {
    edge: Edge,
    partner: String,
    frames: Frames,
    /// The shares of messages that are complete, oldest first.
    complete: VecDeque<Share>,
    /// The share of the message that is arriving.
    share: Share,
    /// Bytes in that share.
    reserved: usize,
    /// Bytes of that message that have arrived, with control frames before it and in it.
    arrived: usize,
    /// When that message began, and when the last of it arrived.
    since: Option<(Instant, Instant)>,
}

impl Intake {
    /// Notes that the head of a request was taken from the bytes that have arrived.
    pub(super) fn note_request(&self) {
        if let State::Http(head) = &mut *self.lock() {
            head.is_followed = false;
        }
    }

    /// Counts the bytes from now on as frames of a partner's WebSocket whose messages have `most` bytes at most. Returns false if the client
    /// sent something behind the head of its request: where its frames begin is not known then.
    #[must_use]
    pub fn open(&self, edge: &Edge, partner: &str, most: usize) -> bool {
        let mut state = self.lock();
        let State::Http(head) = &*state else {
            return false;
        };
        let is_open = head.is_last();
        *state = State::WebSocket(Box::new(Messages {
            edge: edge.clone(),
            partner: partner.to_owned(),
            frames: Frames::new(most),
            complete: VecDeque::new(),
            share: share_of(edge, partner),
            reserved: 0,
            arrived: 0,
            since: None,
        }));
        is_open
    }

    /// Returns the share of the message that the socket has given out. The last clone gives its memory back.
    #[must_use]
    pub fn take_message(&self) -> Option<Share> {
        match &mut *self.lock() {
            State::Http(_) => None,
            State::WebSocket(messages) => Some(messages.take()),
        }
    }

    /// Returns when the message that is arriving has taken too long, or `None` if none is arriving. More bytes of it put that off.
    #[must_use]
    pub fn late_at(&self) -> Option<Instant> {
        match &*self.lock() {
            State::Http(_) => None,
            State::WebSocket(messages) => {
                let (begun, last) = messages.since?;
                let edge = &messages.edge;
                Some((begun + edge.body_time).min(last + edge.body_pause))
            }
        }
    }

    /// Counts bytes that have arrived.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](io::ErrorKind::OutOfMemory) when there is no room for the frame that they begin, and
    /// [`ErrorKind::InvalidData`](io::ErrorKind::InvalidData) when they hold more messages than a socket leaves waiting.
    pub(super) fn took(&self, bytes: &[u8]) -> io::Result<()> {
        match &mut *self.lock() {
            State::Http(head) => {
                head.took(bytes);
                Ok(())
            }
            State::WebSocket(messages) => messages.took(bytes, runtime_now()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn share_of(edge: &Edge, partner: &str) -> Share {
    let share = Share::new(edge.clone());
    share.belongs_to(Some(partner));
    share
}

impl Messages {
    fn took(&mut self, mut bytes: &[u8], now: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let (used, is_complete) = self.frames.advance(bytes);
            bytes = &bytes[used..];
            self.arrived += used;
            self.reserve(self.arrived.max(self.frames.memory()))?;
            if is_complete {
                if self.complete.len() >= MAX_COMPLETE {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let share = self.renew();
                self.complete.push_back(share);
            }
        }
        self.since = match self.since {
            _ if !self.frames.is_within_message() => None,
            Some((begun, _)) => Some((begun, now)),
            None => Some((now, now)),
        };
        Ok(())
    }

    fn reserve(&mut self, bytes: usize) -> io::Result<()> {
        if bytes > self.reserved {
            let grown = self.share.grow(bytes - self.reserved);
            grown.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            self.reserved = bytes;
        }
        Ok(())
    }

    /// Begins another message, and returns the share of the one before.
    fn renew(&mut self) -> Share {
        (self.reserved, self.arrived, self.since) = (0, 0, None);
        let fresh = share_of(&self.edge, &self.partner);
        std::mem::replace(&mut self.share, fresh)
    }

    fn take(&mut self) -> Share {
        match self.complete.pop_front() {
            Some(share) => share,
            None => self.renew(),
        }
    }
}

/// Follows the frames of a client, and what the socket allocates for them.
#[derive(Debug)]
struct Frames {
    /// The longest frame and message. The socket refuses longer ones before it allocates anything for them.
    most: usize,
    /// The header that is arriving.
    header: [u8; MAX_HEADER_BYTES],
    header_bytes: usize,
    /// Bytes that are left of the payload.
    left: u64,
    is_last: bool,
    is_data: bool,
    /// True between the first and the last fragment of a message.
    is_fragmented: bool,
    /// The longest frame of the message.
    largest: usize,
    /// Bytes in the string of its fragments.
    collected: usize,
    /// The capacity of that string.
    capacity: usize,
    /// The most that the string has taken, with the one that it was copied from.
    collector: usize,
}

impl Frames {
    fn new(most: usize) -> Self {
        Self {
            most,
            header: [0; MAX_HEADER_BYTES],
            header_bytes: 0,
            left: 0,
            is_last: false,
            is_data: false,
            is_fragmented: false,
            largest: 0,
            collected: 0,
            capacity: 0,
            collector: 0,
        }
    }

    /// Reads up to the end of a header or of a frame. Returns how many bytes were read, and true if they end a message.
    fn advance(&mut self, bytes: &[u8]) -> (usize, bool) {
        if self.left > 0 {
            let read = usize::try_from(self.left).map_or(bytes.len(), |left| left.min(bytes.len()));
            self.left -= read as u64;
            return (read, self.left == 0 && self.end_frame());
        }
        for (nth, byte) in bytes.iter().enumerate() {
            self.header[self.header_bytes] = *byte;
            self.header_bytes += 1;
            if self.header_bytes == self.header_length() {
                self.begin_frame();
                return (nth + 1, self.left == 0 && self.end_frame());
            }
        }
        (bytes.len(), false)
    }

    /// The length of the header, as far as its first bytes tell.
    fn header_length(&self) -> usize {
        if self.header_bytes < 2 {
            return 2;
        }
        let length = match self.header[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = match self.header[1] & 0x80 {
            0 => 0,
            _ => 4,
        };
        2 + length + mask
    }

    /// Notes what a complete header announces.
    fn begin_frame(&mut self) {
        self.header_bytes = 0;
        let header = &self.header;
        self.left = match header[1] & 0x7f {
            126 => u64::from(u16::from_be_bytes([header[2], header[3]])),
            127 => {
                let mut length = [0; 8];
                length.copy_from_slice(&header[2..10]);
                u64::from_be_bytes(length)
            }
            short => u64::from(short),
        };
        self.is_last = header[0] & 0x80 != 0;
        self.is_data = header[0] & 0x08 == 0;
        let Some(length) = usize::try_from(self.left)
            .ok()
            .filter(|length| *length <= self.most)
        else {
            return;
        };
        self.largest = self.largest.max(length);
        if self.is_data && (self.is_fragmented || !self.is_last) {
            self.collect(length);
        }
    }

    /// Adds a fragment to the string, which doubles where it has no room.
    fn collect(&mut self, length: usize) {
        let collected = self.collected.saturating_add(length);
        if collected > self.most {
            return;
        }
        self.collected = collected;
        if collected > self.capacity {
            let grown = collected.max(self.capacity.saturating_mul(2));
            self.collector = self.capacity.saturating_add(grown);
            self.capacity = grown;
        }
    }

    /// Ends a frame. Returns true if it is the last of its message.
    fn end_frame(&mut self) -> bool {
        let is_complete = self.is_data && self.is_last;
        if self.is_data {
            self.is_fragmented = !self.is_last;
        }
        if is_complete {
            (self.largest, self.collected, self.capacity, self.collector) = (0, 0, 0, 0);
        }
        is_complete
    }

    /// The most that the socket allocates for the message as far as it is announced.
    fn memory(&self) -> usize {
        self.largest.saturating_add(self.collector)
    }

    /// True if a frame or a message has begun and not ended.
    fn is_within_message(&self) -> bool {
        self.header_bytes > 0 || self.left > 0 || self.is_fragmented
    }
}

#[cfg(test)]
mod tests;
