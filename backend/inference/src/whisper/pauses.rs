//! Where an utterance is quiet. What the decoder looks at does not say when a word ends and the next one begins after a pause:
//! the pause belongs to one of them, or to both. Its sound does.

use std::{ops::Range, time::Duration};

use super::{MAX_SECONDS, POSITION};
use crate::mel::SAMPLE_RATE;

/// The shortest pause, in positions: longer than a sound such as p or t is held.
const SHORTEST: usize = 6;

/// How far from a pause the end of a word or the beginning of the next one may be put, in positions.
const NEAR: usize = 6;

/// How much of the way from the quietest to the loudest is quiet, in powers of ten, and how far below the loudest the quietest
/// counts at most.
const QUIET: f32 = 0.35;
const RANGE: f32 = 4.0;

/// Utterances whose quietest positions are not so much below their loudest, in powers of ten, have no pauses that could be told.
const CONTRAST: f32 = 1.5;

/// The pauses of an utterance, in positions.
#[derive(Debug)]
pub(super) struct Pauses {
    pauses: Vec<Range<usize>>,
    positions: usize,
    length: Duration,
}

impl Pauses {
    /// Those of samples from -1 to 1.
    pub(super) fn of(samples: &[f32]) -> Self {
        let power = |samples: &[f32]| {
            let sum: f32 = samples.iter().map(|sample| sample * sample).sum();
            (sum / samples.len() as f32).max(1e-12).log10()
        };
        let power: Vec<_> = samples.chunks(POSITION).map(power).collect();
        let mut sorted = power.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        let part = |part: usize| sorted.get(sorted.len() * part / 100).copied();
        let loudest = part(95).unwrap_or_default();
        let quietest = part(5).unwrap_or_default().max(loudest - RANGE);
        let most = match loudest - quietest < CONTRAST {
            true => f32::MIN,
            false => quietest + (loudest - quietest) * QUIET,
        };
        let mut pauses: Vec<Range<usize>> = Vec::new();
        for (at, _) in power
            .iter()
            .enumerate()
            .filter(|(_, power)| **power <= most)
        {
            match pauses.last_mut() {
                Some(pause) if pause.end == at => pause.end += 1,
                _ => pauses.push(at..at + 1),
            }
        }
        pauses.retain(|pause| pause.len() >= SHORTEST);
        let seconds = samples.len().min(MAX_SECONDS * SAMPLE_RATE) as f64 / SAMPLE_RATE as f64;
        Self {
            pauses,
            positions: power.len(),
            length: Duration::from_secs_f64(seconds),
        }
    }

    /// The time of a position.
    pub(super) fn time(&self, position: usize) -> Duration {
        let position = position.min(self.positions);
        let seconds = (position * POSITION) as f64 / SAMPLE_RATE as f64;
        Duration::from_secs_f64(seconds).min(self.length)
    }

    /// Lets words end where a pause begins and begin where one ends, if it is near; others follow each other at once. Words come one
    /// after the other.
    pub(super) fn settle(&self, words: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut settled: Vec<_> = words.to_vec();
        for next in 0..=words.len() {
            let before = next.checked_sub(1);
            let from = before.map_or(0, |before| words[before].end.saturating_sub(NEAR));
            let to = words
                .get(next)
                .map_or(self.positions, |next| next.start + NEAR);
            // Those between words, of which the longest counts.
            let between = self
                .pauses
                .iter()
                .filter(|pause| pause.start <= to && pause.end >= from);
            // A word is not put off beyond its end.
            let between = between.filter(|pause| {
                let ends = before.is_none_or(|before| settled[before].start < pause.start);
                let begins = words.get(next).is_none_or(|next| pause.end < next.end);
                ends && begins
            });
            let longest = between.max_by_key(|pause| pause.len());
            let end = before.map(|before| settled[before].end);
            // Without a pause, what is between them, such as a comma, is no part of the utterance.
            let (end, start) = match longest {
                Some(pause) => (Some(pause.start), Some(pause.end)),
                None => (end, end),
            };
            if let (Some(before), Some(end)) = (before, end) {
                settled[before].end = end;
            }
            if let (Some(next), Some(start)) = (settled.get_mut(next), start) {
                next.start = start;
            }
        }
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(parts: &[(f32, usize)]) -> Vec<f32> {
        let parts = parts.iter();
        parts
            .flat_map(|(loudness, positions)| {
                (0..positions * POSITION).map(move |at| (at as f32 * 0.3).sin() * loudness)
            })
            .collect()
    }

    #[test]
    fn words_end_and_begin_at_pauses() {
        let samples = sound(&[(0.0, 20), (0.3, 30), (0.001, 25), (0.3, 25), (0.0, 50)]);
        let pauses = Pauses::of(&samples);
        assert_eq!(pauses.pauses, [0..20, 50..75, 100..150]);
        // Wherever between them the one was said to end and the other to begin.
        for boundary in [46, 50, 60, 75, 79] {
            let settled = pauses.settle(&[0..boundary, boundary..140]);
            assert_eq!(settled, [20..50, 75..100], "{boundary}");
        }
        assert_eq!(pauses.settle(&[0..30, 30..140]), [20..30, 30..100]);
        assert_eq!(pauses.time(50), Duration::from_secs(1));
        assert_eq!(pauses.time(500), Duration::from_secs(3));
    }

    #[test]
    fn what_is_not_clear_is_left_alone() {
        for samples in [
            sound(&[]),
            sound(&[(0.0, 50)]),
            sound(&[(0.2, 20), (0.1, 20)]),
        ] {
            let pauses = Pauses::of(&samples);
            assert!(pauses.pauses.is_empty());
            assert_eq!(pauses.settle(&[3..9, 9..9, 12..14]), [3..9, 9..9, 9..14]);
        }
        // A word that was put into a pause stays there.
        let pauses = Pauses::of(&sound(&[(0.2, 20), (0.0, 40), (0.2, 20)]));
        let settled = pauses.settle(&[0..30, 30..40, 40..80]);
        assert!(settled.is_sorted_by_key(|word| word.start), "{settled:?}");
        assert!(settled.iter().all(|word| word.start <= word.end));
    }
}
