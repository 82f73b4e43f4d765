//! Puts packets in order. A server has no loudspeaker to feed, so packets in order pass at once; only a gap is waited
//! for, as long as the measured jitter suggests. Owns no audio.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use crate::interface::RtpPacket;

/// RFC 3550, A.1: a sequence number this far ahead is a restart, not a loss.
const MAX_DROPOUT: i64 = 3000;
/// RFC 3550, A.1: a sequence number this far behind is a restart, not a late packet.
const MAX_MISORDER: i64 = 100;
/// Packets kept behind a gap; more of them than the longest delay can bring means the gap is given up.
const MAX_HELD: usize = 32;
/// Packets over which jitter is measured: about two seconds of speech.
const WINDOW: usize = 100;
/// Packets needed before the measurement is trusted.
const WINDOW_MIN: usize = 10;
const DELAY_MIN: Duration = Duration::from_millis(20);
const DELAY_MAX: Duration = Duration::from_millis(120);
const DELAY_UNMEASURED: Duration = Duration::from_millis(40);

/// A packet whose turn has come.
#[derive(Debug, PartialEq)]
pub(crate) struct Ready {
    pub(crate) packet: RtpPacket,
    /// Packets right before this one that were given up.
    pub(crate) lost: u32,
    /// Whether a new stream begins with this packet.
    pub(crate) restarted: bool,
}

/// What the buffer counted.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counters {
    pub(crate) received: u64,
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) duplicate: u64,
}

struct Held {
    packet: RtpPacket,
    arrived: Duration,
}

#[derive(Default)]
pub(crate) struct JitterBuffer {
    /// By sequence number unwrapped to 64 bits.
    held: BTreeMap<i64, Held>,
    /// The sequence number that is due; `None` before the first packet of a stream.
    next: Option<i64>,
    /// Which of the 64 sequence numbers before `next` were passed on, the latest in the lowest bit; the others were
    /// given up. Tells a copy from a late packet.
    passed: u64,
    /// The timestamp that went with the last packet passed on.
    last_timestamp: u32,
    /// A packet that fits no expectation: with its successor it proves a restart, alone it is noise.
    stray: Option<(RtpPacket, Duration)>,
    restarted: bool,
    transits: TransitTimes,
    counters: Counters,
}

impl JitterBuffer {
    pub(crate) fn push(&mut self, now: Duration, packet: RtpPacket) {
        self.counters.received += 1;
        let Some(next) = self.next else {
            self.begin(now, packet);
            return;
        };
        let ahead = i64::from(packet.sequence.wrapping_sub(next as u16) as i16);
        let time_ahead = packet.timestamp.wrapping_sub(self.last_timestamp) as i32;
        // A late packet is old by both clocks, a new one is young by both; a foreign stream mostly contradicts
        // itself.
        let fits = match ahead {
            0.. => ahead < MAX_DROPOUT && time_ahead > 0,
            _ => ahead >= -MAX_MISORDER && time_ahead <= 0,
        };
        if !fits {
            self.meet_stray(now, packet);
            return;
        }
        self.stray = None;
        self.transits.record(now, packet.timestamp);
        let sequence = next + ahead;
        if ahead < 0 {
            match u32::try_from(-ahead - 1)
                .ok()
                .and_then(|age| self.passed.checked_shr(age))
            {
                Some(passed) if passed & 1 == 1 => self.counters.duplicate += 1,
                _ => self.counters.late += 1,
            }
        } else if let Entry::Vacant(place) = self.held.entry(sequence) {
            let arrived = now;
            place.insert(Held { packet, arrived });
        } else {
            self.counters.duplicate += 1;
        }
    }

    /// The next packet in order, if it is there or the wait for those before it is over.
    pub(crate) fn pop(&mut self, now: Duration) -> Option<Ready> {
        let next = self.next?;
        let sequence = *self.held.keys().next()?;
        if sequence != next && self.held.len() < MAX_HELD && self.deadline()? > now {
            return None;
        }
        let packet = self.held.remove(&sequence)?.packet;
        let lost = u32::try_from(sequence - next).unwrap_or(0);
        self.counters.lost += u64::from(lost);
        self.next = Some(sequence + 1);
        self.passed = self.passed.checked_shl(lost.saturating_add(1)).unwrap_or(0) | 1;
        self.last_timestamp = packet.timestamp;
        Some(Ready {
            packet,
            lost,
            restarted: std::mem::take(&mut self.restarted),
        })
    }

    /// When the gap in front is given up.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let noticed = self.held.values().map(|held| held.arrived).min()?;
        Some(noticed + self.delay())
    }

    /// Whether packets wait for one before them.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// How long a missing packet is waited for: what all but the slowest few of the recent packets needed more than
    /// the fastest one.
    /// The variation of the arrival times of the recent packets; `None` until enough came.
    pub(crate) fn spread(&self) -> Option<Duration> {
        self.transits.spread()
    }

    pub(crate) fn delay(&self) -> Duration {
        self.spread().map_or(DELAY_UNMEASURED, |spread| {
            spread.clamp(DELAY_MIN, DELAY_MAX)
        })
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    fn begin(&mut self, now: Duration, packet: RtpPacket) {
        self.held.clear();
        self.stray = None;
        self.transits = TransitTimes::default();
        self.transits.record(now, packet.timestamp);
        // Far from zero, so that packets reordered at the start stay in range of the unwrapping.
        let sequence = i64::from(packet.sequence) + (1 << 32);
        self.next = Some(sequence);
        self.passed = 0;
        self.last_timestamp = packet.timestamp.wrapping_sub(1);
        self.restarted = true;
        self.held.insert(
            sequence,
            Held {
                packet,
                arrived: now,
            },
        );
    }

    /// Two strays in a row are a new stream (a new SSRC after a reconnect); the first of them is not lost.
    fn meet_stray(&mut self, now: Duration, packet: RtpPacket) {
        match self.stray.take() {
            Some((first, arrived)) if packet.sequence == first.sequence.wrapping_add(1) => {
                self.begin(arrived, first);
                self.received_again(now, packet);
            }
            _ => self.stray = Some((packet, now)),
        }
    }

    fn received_again(&mut self, now: Duration, packet: RtpPacket) {
        self.push(now, packet);
        self.counters.received -= 1;
    }
}

/// Arrival time minus sending time of the recent packets, in microseconds from an arbitrary zero.
#[derive(Default)]
struct TransitTimes {
    recent: Vec<i64>,
    oldest: usize,
    /// The last timestamp and its unwrapped value.
    last: Option<(u32, i64)>,
}

impl TransitTimes {
    fn record(&mut self, now: Duration, timestamp: u32) {
        let unwrapped = match self.last {
            None => 0,
            Some((last, unwrapped)) => unwrapped + i64::from(timestamp.wrapping_sub(last) as i32),
        };
        self.last = Some((timestamp, unwrapped));
        let transit = now.as_micros() as i64 - unwrapped * 125 / 6;
        if self.recent.len() < WINDOW {
            self.recent.push(transit);
        } else {
            self.recent[self.oldest] = transit;
            self.oldest = (self.oldest + 1) % WINDOW;
        }
    }

    fn spread(&self) -> Option<Duration> {
        if self.recent.len() < WINDOW_MIN {
            return None;
        }
        let mut sorted = [0; WINDOW];
        let sorted = &mut sorted[..self.recent.len()];
        sorted.copy_from_slice(&self.recent);
        let rank = sorted.len() * 95 / 100;
        let (faster, slow, _) = sorted.select_nth_unstable(rank);
        let fastest = faster.iter().copied().min().unwrap_or(*slow);
        Some(Duration::from_micros((*slow - fastest) as u64))
    }
}

#[cfg(test)]
#[path = "jitter_tests.rs"]
mod tests;
