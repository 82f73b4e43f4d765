//! Speech at any usual rate to 48 kHz, streamed. What comes out lasts exactly as long as what went in: the delay of
//! the filter is cut off in front and pumped out at the end.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Indexing, Resampler as _};

use super::RATE_HZ;

/// Blocks of about this many milliseconds: the shorter, the sooner the first frame, the softer the high sounds.
const BLOCK_MS: usize = 10;
/// A rate so odd that its smallest block is longer than this would hold the first sound up.
const MAX_BLOCK_MS: usize = 40;
const RATES_HZ: std::ops::RangeInclusive<u32> = 8_000..=192_000;

/// The rate cannot be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} Hz cannot be converted to 48,000 Hz")]
pub(crate) struct UnsupportedRate(pub(crate) u32);

pub(crate) struct Resampler {
    rate_hz: u32,
    /// `None` at 48 kHz: samples pass as they are.
    filter: Option<Filter>,
    /// Samples taken and given so far.
    taken: u64,
    given: u64,
}

struct Filter {
    fft: Fft<f32>,
    input: Vec<f32>,
    filled: usize,
    output: Vec<f32>,
    /// Output samples that are only the delay of the filter.
    delay_left: usize,
}

impl Resampler {
    pub(crate) fn new(rate_hz: u32) -> Result<Self, UnsupportedRate> {
        if rate_hz == RATE_HZ {
            return Ok(Self {
                rate_hz,
                filter: None,
                taken: 0,
                given: 0,
            });
        }
        let rate = rate_hz as usize;
        if !RATES_HZ.contains(&rate_hz) {
            return Err(UnsupportedRate(rate_hz));
        }
        let fft = Fft::new(
            rate,
            RATE_HZ as usize,
            rate * BLOCK_MS / 1000,
            1,
            FixedSync::Both,
        )
        .map_err(|_| UnsupportedRate(rate_hz))?;
        if fft.input_frames_max() > rate * MAX_BLOCK_MS / 1000 {
            return Err(UnsupportedRate(rate_hz));
        }
        let filter = Filter {
            input: vec![0.0; fft.input_frames_max()],
            filled: 0,
            output: vec![0.0; fft.output_frames_max()],
            delay_left: fft.output_delay(),
            fft,
        };
        Ok(Self {
            rate_hz,
            filter: Some(filter),
            taken: 0,
            given: 0,
        })
    }

    pub(crate) fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Makes ready for another stream of the same rate.
    pub(crate) fn reset(&mut self) {
        self.taken = 0;
        self.given = 0;
        if let Some(filter) = &mut self.filter {
            filter.fft.reset();
            filter.filled = 0;
            filter.delay_left = filter.fft.output_delay();
        }
    }

    pub(crate) fn push(&mut self, samples: impl Iterator<Item = i16>, out: &mut impl Extend<i16>) {
        let Some(filter) = &mut self.filter else {
            out.extend(samples);
            return;
        };
        for sample in samples {
            self.taken += 1;
            filter.input[filter.filled] = f32::from(sample);
            filter.filled += 1;
            if filter.filled == filter.input.len() {
                self.given += filter.run(u64::MAX, out);
            }
        }
    }

    /// The end of the stream: gives out what the filter still holds.
    pub(crate) fn finish(&mut self, out: &mut impl Extend<i16>) {
        let Some(filter) = &mut self.filter else {
            return;
        };
        let due = (self.taken * u64::from(RATE_HZ)).div_ceil(u64::from(self.rate_hz));
        // Each run gives something once the delay is over, so this ends; the bound guards against a filter that
        // fails.
        for _ in 0..8 {
            if self.given >= due {
                break;
            }
            filter.input[filter.filled..].fill(0.0);
            self.given += filter.run(due - self.given, out);
        }
    }
}

impl Filter {
    /// Converts the block in `input`; gives out `limit` samples at most.
    fn run(&mut self, limit: u64, out: &mut impl Extend<i16>) -> u64 {
        self.filled = 0;
        let produced = self.convert().unwrap_or_else(|error| {
            tracing::error!(%error, "resampling failed");
            0
        });
        let skipped = self.delay_left.min(produced);
        self.delay_left -= skipped;
        let fresh = &self.output[skipped..produced];
        let fresh = &fresh[..fresh
            .len()
            .min(usize::try_from(limit).unwrap_or(usize::MAX))];
        // `as` saturates, which is what an overshoot of the filter needs.
        out.extend(fresh.iter().map(|sample| sample.round() as i16));
        fresh.len() as u64
    }

    fn convert(&mut self) -> Result<usize, Box<dyn std::error::Error>> {
        let (taken, room) = (self.input.len(), self.output.len());
        let input = InterleavedSlice::new(&self.input, 1, taken)?;
        let mut output = InterleavedSlice::new_mut(&mut self.output, 1, room)?;
        let (_, produced) = self
            .fft
            .process_into_buffer(&input, &mut output, None::<&Indexing>)?;
        Ok(produced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(resampler: &mut Resampler, input: &[i16], piece: usize) -> Vec<i16> {
        let mut output = Vec::new();
        for piece in input.chunks(piece) {
            resampler.push(piece.iter().copied(), &mut output);
        }
        resampler.finish(&mut output);
        output
    }

    fn tone(rate_hz: u32, samples: usize) -> Vec<i16> {
        let angle = |n| std::f32::consts::TAU * 440.0 * n as f32 / rate_hz as f32;
        (0..samples)
            .map(|n| (angle(n).sin() * 8000.0) as i16)
            .collect()
    }

    #[test]
    fn lasts_as_long_and_sounds_the_same_at_any_rate_and_in_any_pieces() {
        for rate_hz in [
            8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000,
        ] {
            let mut resampler = Resampler::new(rate_hz).unwrap();
            for (samples, piece) in [
                (rate_hz as usize / 3 + 7, 333),
                (rate_hz as usize / 200, 5),
                (1, 1),
            ] {
                resampler.reset();
                let output = convert(&mut resampler, &tone(rate_hz, samples), piece);
                let expected = (samples * 48_000).div_ceil(rate_hz as usize);
                assert_eq!(output.len(), expected, "{rate_hz} Hz, {samples} samples");
                // Away from the edges, where the signal is cut, the tone is the tone: no click, no gap. A filter of
                // an odd number of taps is off by half a sample of its input, which nobody hears: 230 of 8000 at this
                // pitch.
                let ideal = tone(48_000, expected + 8);
                let edge = 480.min(expected / 2).max(3);
                let farthest = |shift: usize| {
                    let pairs = (edge..expected.saturating_sub(edge))
                        .map(|n| (output[n], ideal[n + shift - 3]));
                    pairs
                        .map(|(is, should)| (i32::from(is) - i32::from(should)).abs())
                        .max()
                        .unwrap_or(0)
                };
                let difference = (0..7).map(farthest).min().unwrap();
                assert!(difference < 300, "{rate_hz} Hz differs by {difference}");
            }
        }
    }

    #[test]
    fn refuses_rates_without_a_usable_block() {
        for rate_hz in [0, 1, 7_999, 47_999, 192_001, u32::MAX] {
            assert_eq!(
                Resampler::new(rate_hz).err(),
                Some(UnsupportedRate(rate_hz))
            );
        }
    }

    #[test]
    fn nothing_in_gives_nothing() {
        assert!(convert(&mut Resampler::new(24_000).unwrap(), &[], 1).is_empty());
    }
}
