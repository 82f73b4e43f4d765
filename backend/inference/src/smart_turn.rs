//! Smart Turn: whether a speaker has finished or only pauses, by how the last seconds sound.

use crate::{
    InferenceError,
    mel::{HOP, MelFilter, SAMPLE_RATE},
    runtime::{Input, Network, Runtime},
};

/// What it hears at most, in samples at 16,000 a second: the end of an utterance.
pub const MAX_SAMPLES: usize = 8 * SAMPLE_RATE;

/// Mel bands of its spectrogram.
const BANDS: usize = 80;

/// From this probability on a turn counts as complete.
pub const COMPLETE: f32 = 0.5;

/// A model that was loaded.
#[derive(Debug)]
pub struct SmartTurn {
    network: Box<dyn Network>,
    filter: MelFilter,
}

impl SmartTurn {
    /// Loads the model.
    ///
    /// # Errors
    /// When the file is malformed.
    pub fn load(runtime: &dyn Runtime, file: Vec<u8>) -> Result<Self, InferenceError> {
        Ok(Self {
            network: runtime.load(file)?,
            filter: MelFilter::new(BANDS),
        })
    }

    /// How many bytes its weights have.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.network.bytes()
    }

    /// The probability that the speaker of these samples has finished. Only the last of them are heard.
    ///
    /// # Errors
    /// When the model fails; [`InferenceError::Cancelled`] when nobody wants the answer any more before it runs.
    pub fn complete(
        &self,
        samples: &[f32],
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<f32, InferenceError> {
        let heard = &samples[samples.len().saturating_sub(MAX_SAMPLES)..];
        // What is shorter stands at the end.
        let mut window = vec![0.0; MAX_SAMPLES - heard.len()];
        window.extend_from_slice(heard);
        normalize(&mut window);
        let spectrogram = self.filter.spectrogram(&window, None)?;
        let shape = [1, BANDS, MAX_SAMPLES / HOP];
        let inputs = [("input_features", Input::Floats(&shape, &spectrogram.data))];
        if !is_wanted() {
            return Err(InferenceError::Cancelled);
        }
        let outputs = self.network.run(&inputs, &["logits"])?;
        // The output has the name of what it was before the last operation: it is a probability.
        let probability = outputs.first().and_then(|output| output.data.first());
        probability
            .copied()
            .ok_or_else(|| InferenceError::Failed("it gave no probability".to_owned()))
    }
}

/// Moves and scales samples to a mean of 0 and a variance of 1.
fn normalize(samples: &mut [f32]) {
    let count = samples.len().max(1) as f64;
    let mean = samples.iter().map(|sample| f64::from(*sample)).sum::<f64>() / count;
    let squares = samples
        .iter()
        .map(|sample| (f64::from(*sample) - mean).powi(2));
    let deviation = (squares.sum::<f64>() / count + 1e-7).sqrt();
    for sample in samples {
        *sample = ((f64::from(*sample) - mean) / deviation) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_sound_has_the_same_loudness() {
        for loudness in [0.001, 0.1, 1.0] {
            let mut samples: Vec<f32> = (0..1_000)
                .map(|at| loudness * (at as f32 * 0.3).sin() + 0.2)
                .collect();
            normalize(&mut samples);
            let mean = samples.iter().sum::<f32>() / 1_000.0;
            let power = samples.iter().map(|sample| sample * sample).sum::<f32>() / 1_000.0;
            assert!(
                mean.abs() < 1e-3 && (power - 1.0).abs() < 0.2,
                "{mean} {power}"
            );
        }
        let mut silence = [0.0; 100];
        normalize(&mut silence);
        assert!(silence.iter().all(|sample| *sample == 0.0));
        normalize(&mut []);
    }
}
