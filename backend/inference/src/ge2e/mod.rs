//! The GE2E speaker encoder: who speaks, as a vector. Vectors of one person's speech point in about the same direction, whatever is said.

mod checkpoint;

use self::checkpoint::Checkpoint;
use crate::{
    InferenceError,
    mel::{HOP, MelFilter, SAMPLE_RATE},
    onnx::{Graph, Size, Value, int},
    runtime::{Input, Network, Runtime},
};

/// Mel bands of its spectrogram.
const BANDS: usize = 40;
/// Numbers of a vector, and of each layer.
const WIDTH: usize = 256;
/// Layers that hear one frame after the other.
const LAYERS: usize = 3;
/// Frames of what it hears at a time: 1.6 s.
const FRAMES: usize = 160;
/// Frames from one of these stretches to the next: 1.3 of them a second.
const STEP: usize = 77;
/// The part of the last stretch that has to be there for it to count.
const LEAST_COVERAGE: f64 = 0.75;
/// How loud quieter sound is made, as the root of the mean square: -30 dB.
const LOUDNESS: f64 = 0.031_622_776_601_683_79;
/// How many stretches are computed together.
const TOGETHER: usize = 16;

/// What it hears at most, in samples at 16,000 a second.
pub const MAX_SAMPLES: usize = 120 * SAMPLE_RATE;

/// A model that was loaded.
#[derive(Debug)]
pub struct Ge2e {
    network: Box<dyn Network>,
    filter: MelFilter,
}

/// A direction: a vector of length 1.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeakerVector(Vec<f32>);

impl SpeakerVector {
    /// A vector in the direction of these numbers; `None` where they are another count than the model's, or have no direction.
    #[must_use]
    pub fn of(numbers: &[f32]) -> Option<Self> {
        if numbers.len() != WIDTH {
            return None;
        }
        let squares = numbers.iter().map(|number| f64::from(*number).powi(2));
        let length = squares.sum::<f64>().sqrt();
        let is_direction = length.is_finite() && length > 1e-12;
        let scaled = |number: &f32| (f64::from(*number) / length) as f32;
        is_direction.then(|| Self(numbers.iter().map(scaled).collect()))
    }

    /// The direction between several; `None` without any.
    #[must_use]
    pub fn mean<'a>(vectors: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut sum = vec![0.0; WIDTH];
        for vector in vectors {
            for (sum, number) in sum.iter_mut().zip(&vector.0) {
                *sum += number;
            }
        }
        Self::of(&sum)
    }

    /// How alike two voices are: 1 when they are the same, 0 when they have nothing in common.
    #[must_use]
    pub fn similarity(&self, other: &Self) -> f32 {
        self.0.iter().zip(&other.0).map(|(a, b)| a * b).sum()
    }

    /// Its numbers.
    #[must_use]
    pub fn numbers(&self) -> &[f32] {
        &self.0
    }
}

impl Ge2e {
    /// Loads the model from the file that PyTorch wrote.
    ///
    /// # Errors
    /// When the file is malformed.
    pub fn load(runtime: &dyn Runtime, file: &[u8]) -> Result<Self, InferenceError> {
        let weights = Checkpoint::read(file, "model_state")?;
        Ok(Self {
            network: runtime.load(network(&weights)?)?,
            filter: MelFilter::new(BANDS),
        })
    }

    /// How many bytes its weights have.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.network.bytes()
    }

    /// Who speaks in these samples, from -1 to 1; `None` where nothing is to be heard. What is given should be speech: silence is heard with it.
    ///
    /// # Errors
    /// When there are more than [`MAX_SAMPLES`], or the model fails; [`InferenceError::Cancelled`] when nobody wants the answer any more.
    pub fn embed(
        &self,
        samples: &[f32],
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<SpeakerVector>, InferenceError> {
        if samples.len() > MAX_SAMPLES {
            let message = format!("at most {} s are heard", MAX_SAMPLES / SAMPLE_RATE);
            return Err(InferenceError::TooLong(message));
        }
        let Some(gain) = gain(samples) else {
            return Ok(None);
        };
        let stretches = stretches(samples.len());
        let mut sound: Vec<f32> = samples.iter().map(|sample| sample * gain).collect();
        sound.resize(((stretches - 1) * STEP + FRAMES) * HOP, 0.0);
        let spectrogram = self.filter.power(&sound)?;
        let mut vectors = Vec::with_capacity(stretches);
        for begin in (0..stretches).step_by(TOGETHER) {
            if !is_wanted() {
                return Err(InferenceError::Cancelled);
            }
            let batch = begin..stretches.min(begin + TOGETHER);
            // Frame by frame: of each stretch, all bands.
            let mut frames = Vec::with_capacity(FRAMES * batch.len() * BANDS);
            for frame in 0..FRAMES {
                for stretch in batch.clone() {
                    let at = stretch * STEP + frame;
                    let bands = (0..BANDS).map(|band| band * spectrogram.frames + at);
                    frames.extend(bands.map(|at| spectrogram.data[at]));
                }
            }
            let shape = [FRAMES, batch.len(), BANDS];
            let inputs = [("frames", Input::Floats(&shape, &frames))];
            let outputs = self.network.run(&inputs, &["vectors"])?;
            let heard = outputs.first().map_or(&[] as &[f32], |it| &it.data);
            vectors.extend(heard.chunks(WIDTH).filter_map(SpeakerVector::of));
        }
        Ok(SpeakerVector::mean(&vectors))
    }
}

/// What quiet sound is multiplied by; `None` for none at all.
fn gain(samples: &[f32]) -> Option<f32> {
    let squares = samples.iter().map(|sample| f64::from(*sample).powi(2));
    let loudness = (squares.sum::<f64>() / samples.len().max(1) as f64).sqrt();
    let is_sound = loudness.is_finite() && loudness > 1e-6;
    is_sound.then(|| (LOUDNESS / loudness).max(1.0) as f32)
}

/// How many stretches are heard of so many samples.
fn stretches(samples: usize) -> usize {
    let frames = (samples + 1).div_ceil(HOP);
    let count = (frames + STEP + 1)
        .saturating_sub(FRAMES)
        .max(1)
        .div_ceil(STEP);
    let last = (count - 1) * STEP * HOP;
    let coverage = samples.saturating_sub(last) as f64 / (FRAMES * HOP) as f64;
    match coverage < LEAST_COVERAGE {
        true => count.saturating_sub(1).max(1),
        false => count,
    }
}

/// Input: `frames` [160, stretches, 40]. Output: `vectors` [1, stretches, 256], as long as they happen to be.
fn network(weights: &Checkpoint<'_>) -> Result<Vec<u8>, InferenceError> {
    let mut graph = Graph::default();
    let stretches = Size::Named("stretches");
    let shape = [Size::Is(FRAMES), stretches, Size::Is(BANDS)];
    let mut state = graph.input("frames", &shape);
    let mut hidden = state.clone();
    let direction = graph.ints(&[1]);
    for layer in 0..LAYERS {
        let inputs = if layer == 0 { BANDS } else { WIDTH };
        let outputs: [Value; 2] = {
            let [w, r, b] = layer_weights(&mut graph, weights, layer, inputs)?;
            let width = vec![int("hidden_size", WIDTH as i64)];
            graph.op_with("LSTM", &[&state, &w, &r, &b], width)
        };
        let [all, last] = outputs;
        state = graph.op("Squeeze", &[&all, &direction], vec![]);
        hidden = last;
    }
    let matrix = weights.tensor("linear.weight", &[WIDTH, WIDTH])?;
    let columns = (0..WIDTH).flat_map(|column| (0..WIDTH).map(move |row| row * WIDTH + column));
    let transposed: Vec<f32> = columns.map(|at| matrix[at]).collect();
    let matrix = graph.floats(&[WIDTH, WIDTH], &transposed);
    let bias = graph.floats(&[WIDTH], &weights.tensor("linear.bias", &[WIDTH])?);
    let product = graph.op("MatMul", &[&hidden, &matrix], vec![]);
    let sum = graph.op("Add", &[&product, &bias], vec![]);
    let vectors = graph.op("Relu", &[&sum], vec![]);
    let shape = [Size::Is(1), stretches, Size::Is(WIDTH)];
    graph.output("vectors", &vectors, &shape);
    graph.file()
}

/// The weights of a layer for its input and for what it remembers, and both biases. PyTorch has its gates in the order input, forget, cell,
/// output; ONNX wants input, output, forget, cell.
fn layer_weights(
    graph: &mut Graph,
    weights: &Checkpoint<'_>,
    layer: usize,
    inputs: usize,
) -> Result<[Value; 3], InferenceError> {
    let gates = |numbers: &[f32]| -> Vec<f32> {
        let gate = numbers.len() / 4;
        let order = [0, 3, 1, 2].into_iter();
        order
            .flat_map(|at| &numbers[at * gate..(at + 1) * gate])
            .copied()
            .collect()
    };
    let named = |what: &str, shape: &[usize]| {
        let name = format!("lstm.{what}_l{layer}");
        weights.tensor(&name, shape).map(|numbers| gates(&numbers))
    };
    let rows = 4 * WIDTH;
    let of_input = named("weight_ih", &[rows, inputs])?;
    let of_state = named("weight_hh", &[rows, WIDTH])?;
    let biases = [named("bias_ih", &[rows])?, named("bias_hh", &[rows])?].concat();
    Ok([
        graph.floats(&[1, rows, inputs], &of_input),
        graph.floats(&[1, rows, WIDTH], &of_state),
        graph.floats(&[1, 2 * rows], &biases),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_those_of_the_original() {
        // What `VoiceEncoder.compute_partial_slices` of Resemblyzer gives.
        let given = [
            (0, 1),
            (25_601, 1),
            (31_519, 1),
            (31_520, 2),
            (37_921, 2),
            (44_800, 3),
            (48_000, 3),
            (80_000, 5),
            (160_000, 12),
            (1_920_000, 155),
        ];
        for (samples, count) in given {
            assert_eq!(stretches(samples), count, "{samples}");
        }
    }

    #[test]
    fn directions_are_compared_and_averaged() {
        let direction = |at: usize| {
            let mut numbers = vec![0.0; WIDTH];
            numbers[at] = 3.0;
            SpeakerVector::of(&numbers).unwrap()
        };
        let (one, other) = (direction(0), direction(1));
        assert_eq!((one.similarity(&one), one.similarity(&other)), (1.0, 0.0));
        let between = SpeakerVector::mean([&one, &other]).unwrap();
        assert!((between.similarity(&one) - 0.5_f32.sqrt()).abs() < 1e-6);
        assert!(SpeakerVector::mean([]).is_none() && SpeakerVector::of(&[1.0]).is_none());
        assert!(SpeakerVector::of(&[f32::NAN; WIDTH]).is_none());
    }

    #[test]
    fn quiet_sound_is_made_louder_and_silence_is_none() {
        assert_eq!(gain(&[0.5; 100]), Some(1.0));
        let quiet = gain(&[0.003_162_277_7; 100]).unwrap();
        assert!((quiet - 10.0).abs() < 1e-3, "{quiet}");
        assert_eq!(
            (gain(&[]), gain(&[0.0; 10]), gain(&[f32::NAN])),
            (None, None, None)
        );
    }
}
