//! Silero: whether somebody speaks, for every 32 milliseconds of sound.

use crate::{
    InferenceError,
    runtime::{Floats, Input, Network, Runtime},
};

/// Samples of a frame, at 16,000 a second.
pub const FRAME: usize = 512;

/// Samples before a frame that are heard with it.
const CONTEXT: usize = 64;

/// What it remembers from frame to frame.
const STATE: [usize; 3] = [2, 1, 128];

/// A model that was loaded.
#[derive(Debug)]
pub struct Silero {
    network: Box<dyn Network>,
}

/// What was heard of one sound.
#[derive(Debug, Clone)]
pub struct Listener {
    state: Floats,
    context: [f32; CONTEXT],
}

impl Default for Listener {
    fn default() -> Self {
        Self {
            state: Floats::zeros(&STATE),
            context: [0.0; CONTEXT],
        }
    }
}

impl Silero {
    /// Loads the model.
    ///
    /// # Errors
    /// When the file is malformed.
    pub fn load(runtime: &dyn Runtime, file: Vec<u8>) -> Result<Self, InferenceError> {
        Ok(Self {
            network: runtime.load(file)?,
        })
    }

    /// How many bytes its weights have.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.network.bytes()
    }

    /// The probability that somebody speaks in a frame, which follows those that the listener has heard.
    ///
    /// # Errors
    /// When the model fails.
    pub fn hear(
        &self,
        listener: &mut Listener,
        frame: &[f32; FRAME],
    ) -> Result<f32, InferenceError> {
        let sound = [listener.context.as_slice(), frame].concat();
        let shape = [1, CONTEXT + FRAME];
        let inputs = [
            ("input", Input::Floats(&shape, &sound)),
            ("state", listener.state.input()),
        ];
        let mut outputs = self
            .network
            .run(&inputs, &["output", "stateN"])?
            .into_iter();
        let (Some(probability), Some(state)) = (outputs.next(), outputs.next()) else {
            return Err(InferenceError::Failed("it has other outputs".to_owned()));
        };
        listener.state = state;
        listener.context.copy_from_slice(&frame[FRAME - CONTEXT..]);
        let probability = probability.data.first().copied();
        probability.ok_or_else(|| InferenceError::Failed("it gave no probability".to_owned()))
    }
}
