//! Spectrograms as models hear them: 16 kHz, windows of 25 ms every 10 ms, the power in mel bands, and its logarithm as Whisper wants it.

use std::{f64::consts::PI, sync::Arc};

use realfft::{RealFftPlanner, RealToComplex};

use crate::InferenceError;

/// Samples a second.
pub(crate) const SAMPLE_RATE: usize = 16_000;

/// Samples of a window.
const WINDOW: usize = 400;

/// Samples from one window to the next.
pub(crate) const HOP: usize = 160;

/// Frequencies of a window: half of its samples, and zero.
const BINS: usize = WINDOW / 2 + 1;

/// The power that counts as none.
const FLOOR: f32 = 1e-10;

/// How far below the loudest value of an utterance everything counts as equally quiet, in powers of ten.
const RANGE: f32 = 8.0;

/// A spectrogram of `bands` rows and `frames` columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spectrogram {
    pub(crate) bands: usize,
    pub(crate) frames: usize,
    pub(crate) data: Vec<f32>,
}

/// Computes spectrograms.
pub(crate) struct MelFilter {
    fft: Arc<dyn RealToComplex<f32>>,
    window: Vec<f32>,
    /// The first bin of each band, and the weights from there on.
    bands: Vec<(usize, Vec<f32>)>,
}

impl std::fmt::Debug for MelFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MelFilter")
            .field("bands", &self.bands.len())
            .finish_non_exhaustive()
    }
}

/// The mel scale of Slaney: linear up to 1 kHz, logarithmic above.
fn mel(hertz: f64) -> f64 {
    if hertz < 1_000.0 {
        3.0 * hertz / 200.0
    } else {
        15.0 + (hertz / 1_000.0).ln() * 27.0 / 6.4_f64.ln()
    }
}

fn hertz(mel: f64) -> f64 {
    if mel < 15.0 {
        200.0 * mel / 3.0
    } else {
        1_000.0 * ((mel - 15.0) * 6.4_f64.ln() / 27.0).exp()
    }
}

impl MelFilter {
    /// A filter with so many bands from 0 to 8 kHz.
    pub(crate) fn new(bands: usize) -> Self {
        let window = (0..WINDOW).map(|at| {
            let sine = (PI * at as f64 / WINDOW as f64).sin();
            (sine * sine) as f32
        });
        let top = mel(SAMPLE_RATE as f64 / 2.0);
        let edges: Vec<f64> = (0..bands + 2)
            .map(|edge| hertz(top * edge as f64 / (bands + 1) as f64))
            .collect();
        let bands = edges.windows(3).map(|edges| {
            let [low, middle, high] = [edges[0], edges[1], edges[2]];
            let weights: Vec<f32> = (0..BINS)
                .map(|bin| {
                    let at = bin as f64 * SAMPLE_RATE as f64 / WINDOW as f64;
                    let rising = (at - low) / (middle - low);
                    let falling = (high - at) / (high - middle);
                    // Each band has the same area.
                    (rising.min(falling).max(0.0) * 2.0 / (high - low)) as f32
                })
                .collect();
            let first = weights.iter().position(|weight| *weight > 0.0).unwrap_or(0);
            let end = weights.iter().rposition(|weight| *weight > 0.0);
            let end = end.map_or(first, |last| last + 1);
            (first, weights[first..end].to_vec())
        });
        Self {
            fft: RealFftPlanner::new().plan_fft_forward(WINDOW),
            window: window.collect(),
            bands: bands.collect(),
        }
    }

    /// The power of samples from -1 to 1 in each band.
    pub(crate) fn power(&self, samples: &[f32]) -> Result<Spectrogram, InferenceError> {
        let frames = samples.len() / HOP;
        let mut data = vec![0.0; self.bands.len() * frames];
        let mut input = self.fft.make_input_vec();
        let mut spectrum = self.fft.make_output_vec();
        let mut scratch = self.fft.make_scratch_vec();
        let mut power = vec![0.0; BINS];
        for frame in 0..frames {
            for (at, (value, weight)) in input.iter_mut().zip(&self.window).enumerate() {
                // Windows stand around their time; what is before the first and after the last sample is mirrored.
                *value =
                    mirrored(samples, (frame * HOP + at) as isize - WINDOW as isize / 2) * weight;
            }
            self.fft
                .process_with_scratch(&mut input, &mut spectrum, &mut scratch)
                .map_err(|error| InferenceError::Failed(error.to_string()))?;
            for (power, value) in power.iter_mut().zip(&spectrum) {
                *power = value.norm_sqr();
            }
            for (band, (first, weights)) in self.bands.iter().enumerate() {
                let products = weights.iter().zip(&power[*first..]).map(|(a, b)| a * b);
                data[band * frames + frame] = products.sum();
            }
        }
        Ok(Spectrogram {
            bands: self.bands.len(),
            frames,
            data,
        })
    }

    /// The spectrogram of samples from -1 to 1, moved so that its loudest value is `loudest` (a power of ten), and
    /// scaled as Whisper was trained with.
    pub(crate) fn spectrogram(
        &self,
        samples: &[f32],
        loudest: Option<f32>,
    ) -> Result<Spectrogram, InferenceError> {
        let mut spectrogram = self.power(samples)?;
        let mut maximum = f32::MIN;
        for value in &mut spectrogram.data {
            *value = value.max(FLOOR).log10();
            maximum = maximum.max(*value);
        }
        let shift = loudest.map_or(0.0, |loudest| loudest - maximum);
        for value in &mut spectrogram.data {
            *value = scaled(value.max(maximum - RANGE) + shift);
        }
        Ok(spectrogram)
    }
}

/// A logarithm as Whisper was trained with.
fn scaled(value: f32) -> f32 {
    (value + 4.0) / 4.0
}

/// What silence is in a spectrogram whose loudest value is `loudest`.
pub(crate) fn silence(loudest: f32) -> f32 {
    scaled(loudest - RANGE)
}

fn mirrored(samples: &[f32], at: isize) -> f32 {
    let last = samples.len() as isize - 1;
    let at = if at < 0 {
        -at
    } else if at > last {
        2 * last - at
    } else {
        at
    };
    usize::try_from(at)
        .ok()
        .and_then(|at| samples.get(at))
        .copied()
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hertz: f32, seconds: f32) -> Vec<f32> {
        let samples = (seconds * SAMPLE_RATE as f32) as usize;
        let step = 2.0 * std::f32::consts::PI * hertz / SAMPLE_RATE as f32;
        (0..samples)
            .map(|at| (step * at as f32).sin() * 0.5)
            .collect()
    }

    /// The band with most power in the middle of a sound.
    fn loudest_band(filter: &MelFilter, samples: &[f32]) -> usize {
        let spectrogram = filter.spectrogram(samples, None).unwrap();
        let Spectrogram {
            bands,
            frames,
            data,
        } = spectrogram;
        let value = |band: usize| data[band * frames + frames / 2];
        (0..bands)
            .max_by(|a, b| value(*a).total_cmp(&value(*b)))
            .unwrap()
    }

    #[test]
    fn a_tone_is_in_the_band_of_its_frequency() {
        let filter = MelFilter::new(80);
        for hertz_of_tone in [300.0, 700.0, 1_500.0, 3_000.0, 6_000.0] {
            let band = loudest_band(&filter, &tone(hertz_of_tone, 0.5));
            let expected = mel(hertz_of_tone.into()) / mel(8_000.0) * 81.0 - 1.0;
            assert!(
                (band as f64 - expected).abs() <= 1.5,
                "{hertz_of_tone}: {band} {expected}"
            );
        }
    }

    #[test]
    fn the_loudest_value_is_where_it_is_wanted_and_the_range_is_bounded() {
        let filter = MelFilter::new(80);
        let spectrogram = filter.spectrogram(&tone(440.0, 1.0), Some(1.5)).unwrap();
        assert_eq!((spectrogram.bands, spectrogram.frames), (80, 100));
        let most = spectrogram.data.iter().copied().fold(f32::MIN, f32::max);
        let least = spectrogram.data.iter().copied().fold(f32::MAX, f32::min);
        assert!((most - 1.375).abs() < 1e-5, "{most}");
        assert!(
            (least - silence(1.5)).abs() < 1e-5 && (silence(1.5) + 0.625).abs() < 1e-6,
            "{least}"
        );
    }

    #[test]
    fn any_length_has_a_spectrogram() {
        let filter = MelFilter::new(80);
        for length in [0, 1, 159, 160, 161, 399, 401, 1_000] {
            let spectrogram = filter.spectrogram(&vec![0.1; length], None).unwrap();
            assert_eq!(spectrogram.frames, length / HOP);
            assert!(spectrogram.data.iter().all(|value| value.is_finite()));
        }
    }
}
