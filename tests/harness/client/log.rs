//! What a client saw and heard, with the time of each.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use colloquy_protocol::{Originator, ServerMessage};
use rtc::peer_connection::state::RTCPeerConnectionState;
use tokio::sync::watch;

use super::now;

/// A packet is audible when its decoded samples have at least this RMS (-50 dBFS).
pub const AUDIBLE_RMS: f64 = 100.0;

/// The sound of a packet, as time and in the units of RTP timestamps.
const FRAME: Duration = Duration::from_millis(20);
const FRAME_UNITS: u32 = 960;

/// A media packet that came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReceivedAudio {
    /// When.
    pub at: Instant,
    /// The RTP sequence number.
    pub sequence: u16,
    /// The RTP timestamp.
    pub timestamp: u32,
    /// The size of the Opus payload.
    pub bytes: usize,
    /// The RMS of the decoded samples.
    pub rms: f64,
}

impl ReceivedAudio {
    /// Whether a listener would hear something.
    #[must_use]
    pub fn is_audible(&self) -> bool {
        self.rms >= AUDIBLE_RMS
    }
}

/// What became of the media path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaState {
    /// ICE and DTLS are up.
    Connected,
    /// Nothing came for some seconds.
    Disconnected,
    /// ICE gave up.
    Failed,
}

impl MediaState {
    /// What a state of the connection means for the media path, if it means anything.
    pub(super) fn of(state: RTCPeerConnectionState) -> Option<Self> {
        match state {
            RTCPeerConnectionState::Connected => Some(Self::Connected),
            RTCPeerConnectionState::Disconnected => Some(Self::Disconnected),
            RTCPeerConnectionState::Failed => Some(Self::Failed),
            _ => None,
        }
    }
}

/// Everything that happened to a client, oldest first.
#[derive(Debug, Default)]
pub struct Log {
    /// Messages of the server.
    pub messages: Vec<(Instant, ServerMessage)>,
    /// Media packets of the server.
    pub packets: Vec<ReceivedAudio>,
    /// Changes of the media path.
    pub media: Vec<(Instant, MediaState)>,
    /// Offers sent.
    pub offers: Vec<Instant>,
    /// Ends of the signalling connection, with the close code if there was one.
    pub closed: Vec<(Instant, Option<u16>)>,
    /// What failed inside the client.
    pub failure: Option<String>,
}

impl Log {
    /// The first audible packet after a moment.
    #[must_use]
    pub fn first_audible(&self, after: Instant) -> Option<ReceivedAudio> {
        let from = self.packets.partition_point(|packet| packet.at <= after);
        self.packets
            .iter()
            .skip(from)
            .find(|packet| packet.is_audible())
            .copied()
    }

    /// The last audible packet up to a moment.
    #[must_use]
    pub fn last_audible(&self, until: Instant) -> Option<ReceivedAudio> {
        let to = self.packets.partition_point(|packet| packet.at <= until);
        self.packets
            .iter()
            .take(to)
            .rev()
            .find(|packet| packet.is_audible())
            .copied()
    }

    /// How far the packets of talk spurts were from the pace that their timestamps say: between each two that follow each other without a pause, by
    /// how much longer or shorter it was than the sound of the first.
    #[must_use]
    pub fn pacing(&self) -> Vec<Duration> {
        let following = self.packets.windows(2).filter_map(|packets| {
            let [earlier, later] = packets else {
                return None;
            };
            let sound = later.timestamp.wrapping_sub(earlier.timestamp);
            let follows =
                later.sequence == earlier.sequence.wrapping_add(1) && sound == FRAME_UNITS;
            let apart = later.at.saturating_duration_since(earlier.at);
            follows.then(|| apart.abs_diff(FRAME))
        });
        following.collect()
    }

    /// The lines of the transcript as they are now: who, the words, whether they are final.
    #[must_use]
    pub fn lines(&self) -> Vec<(Originator, String, bool)> {
        let mut order = Vec::new();
        let mut lines = BTreeMap::new();
        for (_, message) in &self.messages {
            if let ServerMessage::Transcript {
                id,
                originator,
                text,
                is_final,
                ..
            } = message
                && lines
                    .insert(id, (*originator, text.clone(), *is_final))
                    .is_none()
            {
                order.push(id);
            }
        }
        order
            .into_iter()
            .filter_map(|id| lines.get(id).cloned())
            .collect()
    }
}

/// The log as the client's task and its user share it.
#[derive(Debug, Default)]
pub(super) struct Shared {
    log: Mutex<Log>,
    changes: watch::Sender<()>,
}

impl Shared {
    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the log and wakes those who wait for it.
    pub(super) fn record(&self, change: impl FnOnce(&mut Log)) {
        change(&mut self.log());
        self.changes.send_replace(());
    }

    /// Adds a packet. Those who wait for audio are woken by audible ones only.
    pub(super) fn hear(&self, packet: ReceivedAudio) {
        self.log().packets.push(packet);
        if packet.is_audible() {
            self.changes.send_replace(());
        }
    }

    /// Waits until the log has what `find` looks for; `None` when the time is over.
    pub(super) async fn wait<T>(
        &self,
        patience: Duration,
        find: impl Fn(&Log) -> Option<T>,
    ) -> Option<T> {
        let deadline = now() + patience;
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(found) = find(&self.log()) {
                return Some(found);
            }
            if tokio::time::timeout_at(deadline.into(), changes.changed())
                .await
                .is_err()
            {
                return find(&self.log());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_is_that_of_timestamps_within_a_spurt() {
        let began = now();
        let packet = |ms, sequence, timestamp| ReceivedAudio {
            at: began + Duration::from_millis(ms),
            sequence,
            timestamp,
            bytes: 80,
            rms: 500.0,
        };
        let log = Log {
            packets: vec![
                packet(0, u16::MAX, 0_u32.wrapping_sub(960)),
                packet(20, 0, 0),
                packet(47, 1, 960),
                packet(60, 2, 1_920),
                // One was lost, a pause, and a pair that came at once.
                packet(100, 4, 3_840),
                packet(900, 5, 96_000),
                packet(900, 6, 96_960),
            ],
            ..Log::default()
        };
        let pacing = log.pacing();
        let pacing: Vec<_> = pacing.iter().map(Duration::as_millis).collect();
        assert_eq!(pacing, [0, 7, 7, 20]);
    }
}
