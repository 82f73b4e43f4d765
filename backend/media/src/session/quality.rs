//! The quality of the connection: what the engine counts of the visitor's packets, and what the client reports of the character's.

use std::time::{Duration, Instant};

use colloquy_calls::quality::{POINT_EVERY, QualityLog, QualityPoint};
use colloquy_transport::{peer::Peer, reports::Reception};
use colloquy_voice::Stats;

use super::{MediaPath, Session, words::millis};

/// The interval at which round trip and jitter are sampled: as long as the engine remembers jitter.
const SAMPLE_EVERY: Duration = Duration::from_secs(2);

/// The counters of the media of a call.
#[derive(Debug, Clone, Copy)]
struct MediaCounts {
    /// False while media is away.
    is_up: bool,
    stats: Stats,
    /// The client's word.
    reception: Option<Reception>,
}

/// Measures the quality of a call from its first media on.
#[derive(Debug)]
pub(super) struct QualityMeter {
    log: QualityLog,
    /// The time of the first media.
    since: Option<Instant>,
    next_at: Option<Instant>,
    /// The end of the part that is measured.
    part_ends_at: Option<Instant>,
    /// The worst times of the part so far.
    part: QualityPoint,
    /// The counters at its beginning.
    stats: Stats,
    reception: Option<Reception>,
}

impl QualityMeter {
    pub(super) fn new(log: QualityLog) -> Self {
        Self {
            log,
            since: None,
            next_at: None,
            part_ends_at: None,
            part: QualityPoint::default(),
            stats: Stats::default(),
            reception: None,
        }
    }

    /// Begins to measure, with the first media.
    pub(super) fn connect(&mut self, now: Instant) {
        self.since = Some(now);
        self.next_at = Some(now + SAMPLE_EVERY);
        self.part_ends_at = Some(now + POINT_EVERY);
    }

    /// Returns the time at which the next sample is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.next_at
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next_at.is_some_and(|at| at <= now)
    }

    /// Takes a sample, which is due. While media is away there is nothing to measure.
    fn sample(&mut self, now: Instant, media: MediaCounts) {
        self.next_at = Some(now + SAMPLE_EVERY);
        self.measure(media);
        if self.part_ends_at.is_some_and(|at| at <= now) {
            self.complete(now, media);
        }
    }

    /// Takes the last sample, of a part that may be shorter than the others.
    fn finish(&mut self, now: Instant, media: MediaCounts) {
        if self.since.is_some_and(|since| since + SAMPLE_EVERY <= now) {
            self.measure(media);
            self.complete(now, media);
        }
    }

    fn measure(
        &mut self,
        MediaCounts {
            is_up,
            stats,
            reception,
        }: MediaCounts,
    ) {
        if is_up {
            let worst = &mut self.part;
            let measured = reception.and_then(|reception| reception.round_trip);
            let measured = measured.map(|time| u32::try_from(millis(time)).unwrap_or(u32::MAX));
            worst.round_trip_ms = worst.round_trip_ms.max(measured);
            worst.jitter_ms = worst.jitter_ms.max(stats.jitter_ms);
        }
    }

    /// Completes a part. The next one begins here.
    fn complete(&mut self, now: Instant, media: MediaCounts) {
        let Some(since) = self.since else {
            return;
        };
        let MediaCounts {
            is_up,
            stats,
            reception,
        } = media;
        let point = QualityPoint {
            at_ms: millis(now.saturating_duration_since(since)),
            loss_received: loss_received(&self.stats, &stats),
            loss_sent: loss_sent(self.reception, reception),
            ..std::mem::take(&mut self.part)
        };
        (self.stats, self.reception) = (stats, reception);
        self.part_ends_at = Some(now + POINT_EVERY);
        if is_up && !point.is_empty() {
            self.log.add(point);
        }
    }
}

impl Session {
    /// Takes a sample of the quality, which is due.
    pub(super) fn measure_quality(&mut self, now: Instant) {
        let counts = self.media_counts();
        self.quality.sample(now, counts);
    }

    /// Takes the last sample of the quality.
    pub(super) fn finish_quality(&mut self, now: Instant) {
        let counts = self.media_counts();
        self.quality.finish(now, counts);
    }

    fn media_counts(&self) -> MediaCounts {
        MediaCounts {
            is_up: self.path == MediaPath::Up,
            stats: self.engine.stats(),
            reception: self.peer.as_ref().and_then(Peer::reception),
        }
    }
}

/// Returns the fraction of the visitor's packets that were lost in between.
fn loss_received(before: &Stats, after: &Stats) -> Option<f64> {
    let received = after
        .packets_received
        .saturating_sub(before.packets_received);
    let lost = after.packets_lost.saturating_sub(before.packets_lost);
    fraction(lost, received + lost)
}

/// Returns the fraction of the character's packets that were lost in between. The client may report anything.
fn loss_sent(before: Option<Reception>, after: Option<Reception>) -> Option<f64> {
    let (before, after) = before.zip(after)?;
    // Another connection begins to count anew.
    let expected = after.last_sequence.checked_sub(before.last_sequence)?;
    let lost = after.lost.checked_sub(before.lost)?;
    fraction(lost.into(), expected.into())
}

fn fraction(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| (part as f64 / all as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reception(last_sequence: u32, lost: u32) -> Option<Reception> {
        Some(Reception {
            round_trip: None,
            last_sequence,
            lost,
        })
    }

    #[test]
    fn losses_are_those_of_the_time_in_between() {
        let stats = |packets_received, packets_lost| Stats {
            packets_received,
            packets_lost,
            ..Stats::default()
        };
        assert_eq!(loss_received(&stats(100, 10), &stats(190, 20)), Some(0.1));
        assert_eq!(loss_received(&stats(100, 10), &stats(100, 10)), None);
        assert_eq!(
            loss_sent(reception(1_000, 5), reception(1_500, 30)),
            Some(0.05)
        );
        assert_eq!(loss_sent(None, reception(1_500, 30)), None);
        assert_eq!(
            loss_sent(reception(1_500, 5), reception(1_500, 5)),
            None,
            "it was silent"
        );
    }

    #[test]
    fn a_client_that_reports_nonsense_reports_a_fraction_or_nothing() {
        for (before, after) in [
            (reception(0, 0), reception(1, u32::MAX)),
            (reception(9, 0), reception(0, 0)),
            (reception(0, 9), reception(9, 0)),
            (reception(u32::MAX, 0), reception(0, u32::MAX)),
        ] {
            let loss = loss_sent(before, after);
            assert!(
                loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)),
                "{loss:?}"
            );
        }
    }
}
