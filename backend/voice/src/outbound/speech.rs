//! The speech of one sentence on its way from the synthesizer to the encoder. It stays at the synthesizer's rate
//! until it is needed, which halves its memory and saves the work for what a barge-in throws away.

use std::collections::VecDeque;

use super::RATE_HZ;
use super::resample::{Resampler, UnsupportedRate};

/// Converted at a time; a little more than a frame needs.
const STEP_MS: u32 = 10;
/// No sentence of 300 characters lasts this long. A synthesizer that goes on for ever is cut off here.
const MAX_SECONDS: usize = 90;

/// A piece that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SpeechError {
    #[error(transparent)]
    Rate(#[from] UnsupportedRate),
    #[error("the sample rate changed within a sentence")]
    RateChanged,
    #[error("the speech of one sentence does not end")]
    TooLong,
}

#[derive(Default)]
pub(crate) struct Speech {
    waiting: VecDeque<i16>,
    resampler: Option<Resampler>,
    ready: VecDeque<i16>,
    received: usize,
    /// Samples at 48 kHz that were taken.
    played: u64,
    ended: bool,
    flushed: bool,
}

impl Speech {
    /// Takes a piece. `spare` is a resampler of an earlier sentence: making one costs more than a sentence's work.
    pub(crate) fn push(
        &mut self,
        samples: Vec<i16>,
        rate_hz: u32,
        spare: &mut Option<Resampler>,
    ) -> Result<(), SpeechError> {
        match &self.resampler {
            Some(resampler) if resampler.from_hz() != rate_hz => {
                return Err(SpeechError::RateChanged);
            }
            Some(_) => {}
            None => {
                let fitting = spare.take().filter(|spare| spare.from_hz() == rate_hz);
                let mut resampler = match fitting {
                    Some(resampler) => resampler,
                    None => Resampler::new(rate_hz, RATE_HZ)?,
                };
                resampler.reset();
                self.resampler = Some(resampler);
            }
        }
        self.received += samples.len();
        if self.received > MAX_SECONDS * rate_hz as usize {
            return Err(SpeechError::TooLong);
        }
        self.waiting.extend(samples);
        Ok(())
    }

    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Whether all of it was played.
    pub(crate) fn is_drained(&self) -> bool {
        self.ended
            && self.waiting.is_empty()
            && self.ready.is_empty()
            && (self.flushed || self.resampler.is_none())
    }

    /// Makes `wanted` samples ready if it can, and says how many are.
    pub(crate) fn prepare(&mut self, wanted: usize) -> usize {
        let Some(resampler) = &mut self.resampler else {
            return 0;
        };
        let step = (resampler.from_hz() * STEP_MS / 1000) as usize;
        while self.ready.len() < wanted && !self.waiting.is_empty() {
            let step = step.min(self.waiting.len());
            resampler.push(self.waiting.drain(..step), &mut self.ready);
        }
        if self.ended && self.waiting.is_empty() && !self.flushed {
            self.flushed = true;
            resampler.finish(&mut self.ready);
        }
        self.ready.len().min(wanted)
    }

    /// Fills `out` as far as there are samples ready.
    pub(crate) fn take(&mut self, out: &mut [i16]) -> usize {
        let taken = out.len().min(self.ready.len());
        for (slot, sample) in out.iter_mut().zip(self.ready.drain(..taken)) {
            *slot = sample;
        }
        self.played += taken as u64;
        taken
    }

    pub(crate) fn played(&self) -> u64 {
        self.played
    }

    /// All samples that came, at 48 kHz.
    pub(crate) fn received(&self) -> u64 {
        let rate_hz = self.resampler.as_ref().map_or(RATE_HZ, Resampler::from_hz);
        (self.received as u64 * u64::from(RATE_HZ)).div_ceil(u64::from(rate_hz))
    }

    pub(crate) fn into_resampler(self) -> Option<Resampler> {
        self.resampler
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(spare: &mut Option<Resampler>, input: &[i16]) -> Vec<i16> {
        let mut speech = Speech::default();
        speech.push(input.to_vec(), 24_000, spare).unwrap();
        speech.end();
        let mut output = Vec::new();
        while !speech.is_drained() {
            let mut frame = [0; 960];
            speech.prepare(frame.len());
            let taken = speech.take(&mut frame);
            output.extend_from_slice(&frame[..taken]);
        }
        assert_eq!(speech.played(), speech.received());
        *spare = speech.into_resampler();
        output
    }

    #[test]
    fn a_sentence_hears_nothing_of_the_one_before() {
        let loud: Vec<i16> = (0..10_001_i16)
            .map(|n| if n % 40 < 20 { 9000 } else { -9000 })
            .collect();
        let quiet: Vec<i16> = (0..3_333_i16).map(|n| n % 100).collect();
        let alone = played(&mut None, &quiet);
        assert_eq!(alone.len(), 6_666);
        let mut spare = None;
        played(&mut spare, &loud);
        assert!(spare.is_some());
        assert!(
            played(&mut spare, &quiet) == alone,
            "the resampler kept something"
        );
    }
}
