//! Neural models that run in this process. It knows nothing of calls, of HTTP or of an asynchronous runtime: samples in,
//! text, probabilities or vectors out, while the thread that asks waits.
//!
//! - [`runtime`]: what runs networks, behind a small trait
//! - [`whisper`]: speech to text
//! - [`piper`], [`kokoro`]: text to speech
//! - [`silero`]: voice activity
//! - [`smart_turn`]: whether a speaker has finished
//! - [`minilm`]: texts as vectors, for search by meaning
//! - [`ge2e`]: who speaks, as a vector
//!
//! A file that is malformed is an error. Nothing here looks for files: `colloquy-models` gives out those that have their hash.

mod framing;
pub mod ge2e;
pub mod kokoro;
mod mel;
pub mod minilm;
mod onnx;
pub mod piper;
pub mod runtime;
pub mod silero;
pub mod smart_turn;
pub mod whisper;

/// Why a model did not answer.
#[derive(Debug, thiserror::Error)]
pub enum InferenceError {
    /// Its file is not one of such a model.
    #[error("the model's file is malformed: {0}")]
    Malformed(String),
    /// Running it failed.
    #[error("the model failed: {0}")]
    Failed(String),
    /// It was given more than it takes.
    #[error("{0}")]
    TooLong(String),
    /// Nobody waits for the answer any more.
    #[error("the answer is not wanted any more")]
    Cancelled,
}
