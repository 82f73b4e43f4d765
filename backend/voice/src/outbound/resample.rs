//! Speech at any usual rate to another one, streamed. What comes out lasts exactly as long as what went in: the delay of
//! the filter is cut off in front and pumped out at the end.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Indexing, Resampler as _};

/// Blocks of about this many milliseconds: the shorter, the sooner the first frame, the softer the high sounds.
const BLOCK_MS: usize = 10;
/// A rate so odd that its smallest block is longer than this would hold the first sound up.
const MAX_BLOCK_MS: usize = 40;
const RATES_HZ: std::ops::RangeInclusive<u32> = 8_000..=192_000;

/// The rate cannot be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{from_hz} Hz cannot be converted to {to_hz} Hz")]
pub struct UnsupportedRate {
    /// The rate of the sound.
    pub from_hz: u32,
    /// The rate that was wanted.
    pub to_hz: u32,
}

/// Converts mono sound from one rate to another, piece by piece.
pub struct Resampler {
    from_hz: u32,
    to_hz: u32,
    /// `None` between equal rates: samples pass as they are.
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
    /// A resampler from one rate to another, in samples a second.
    ///
    /// # Errors
    /// When a rate is not a usual one of sound, or the two have no common block that is short enough.
    pub fn new(from_hz: u32, to_hz: u32) -> Result<Self, UnsupportedRate> {
        let unsupported = UnsupportedRate { from_hz, to_hz };
        if !RATES_HZ.contains(&from_hz) || !RATES_HZ.contains(&to_hz) {
            return Err(unsupported);
        }
        let filter = if from_hz == to_hz {
            None
        } else {
            Some(Filter::new(from_hz as usize, to_hz as usize).ok_or(unsupported)?)
        };
        Ok(Self {
            from_hz,
            to_hz,
            filter,
            taken: 0,
            given: 0,
        })
    }

    /// The rate of what goes in.
    #[must_use]
    pub fn from_hz(&self) -> u32 {
        self.from_hz
    }

    /// Makes ready for another stream of the same rate.
    pub fn reset(&mut self) {
        self.taken = 0;
        self.given = 0;
        if let Some(filter) = &mut self.filter {
            filter.fft.reset();
            filter.filled = 0;
            filter.delay_left = filter.fft.output_delay();
        }
    }

    /// Takes samples and gives out those that are ready.
    pub fn push(&mut self, samples: impl Iterator<Item = i16>, out: &mut impl Extend<i16>) {
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
    pub fn finish(&mut self, out: &mut impl Extend<i16>) {
        let Some(filter) = &mut self.filter else {
            return;
        };
        let due = (self.taken * u64::from(self.to_hz)).div_ceil(u64::from(self.from_hz));
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
    /// `None` when the two rates have no block that is short enough.
    fn new(from: usize, to: usize) -> Option<Self> {
        let longest = from * MAX_BLOCK_MS / 1000;
        if from / greatest_common_divisor(from, to) > longest {
            // Known before a filter is made, which takes its time for such rates.
            return None;
        }
        let fft = Fft::new(from, to, from * BLOCK_MS / 1000, 1, FixedSync::Both).ok()?;
        (fft.input_frames_max() <= longest).then(|| Self {
            input: vec![0.0; fft.input_frames_max()],
            filled: 0,
            output: vec![0.0; fft.output_frames_max()],
            delay_left: fft.output_delay(),
            fft,
        })
    }

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

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
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
            let mut resampler = Resampler::new(rate_hz, 48_000).unwrap();
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
    fn lower_rates_last_as_long_too() {
        for (from_hz, to_hz) in [
            (48_000, 24_000),
            (44_100, 16_000),
            (22_050, 24_000),
            (22_050, 16_000),
            (16_000, 24_000),
            (11_025, 16_000),
        ] {
            let mut resampler = Resampler::new(from_hz, to_hz).unwrap();
            for samples in [1, 777, from_hz as usize] {
                resampler.reset();
                let output = convert(&mut resampler, &tone(from_hz, samples), 333);
                let expected = (samples * to_hz as usize).div_ceil(from_hz as usize);
                assert_eq!(output.len(), expected, "{from_hz} to {to_hz} Hz");
            }
            // Away from the edges, where the signal is cut, it is as loud as it was.
            resampler.reset();
            let output = convert(&mut resampler, &tone(from_hz, from_hz as usize), 333);
            let middle = &output[output.len() / 4..output.len() / 2];
            let loudest = middle.iter().map(|sample| sample.abs()).max();
            assert!(
                loudest.is_some_and(|loudest| (7_800..8_200).contains(&loudest)),
                "{from_hz} to {to_hz} Hz: {loudest:?}"
            );
        }
    }

    #[test]
    fn refuses_rates_without_a_usable_block() {
        for from_hz in [0, 1, 7_999, 47_999, 192_001, u32::MAX] {
            let to_hz = 48_000;
            assert_eq!(
                Resampler::new(from_hz, to_hz).err(),
                Some(UnsupportedRate { from_hz, to_hz })
            );
        }
    }

    #[test]
    fn nothing_in_gives_nothing() {
        assert!(convert(&mut Resampler::new(24_000, 48_000).unwrap(), &[], 1).is_empty());
    }
}
