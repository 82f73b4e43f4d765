//! Sound as files and as samples: WAV that comes in pieces, the formats of speech, and what voice messages are in.
//!
//! - [`encode`]: speech to MP3, Opus in Ogg, WAV or raw samples, piece by piece
//! - [`loudness`]: how loud sound is, and what makes it as loud as other sound
//! - [`media`]: the sound of audio and video files to samples, a window at a time
//! - [`ogg_reader`]: Opus and Vorbis in Ogg to samples
//! - [`pauses`]: long sound in parts, cut where nobody speaks
//! - [`pitch`]: how high somebody speaks
//! - [`wav`]: WAV and raw samples, both ways

pub mod encode;
pub mod loudness;
pub mod media;
mod mp3;
mod ogg_opus;
pub mod ogg_reader;
pub mod pauses;
pub mod pitch;
pub mod wav;

pub use colloquy_voice::{Resampler, UnsupportedRate};

/// A piece of speech: mono samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pcm {
    /// The samples.
    pub samples: Vec<i16>,
    /// The rate, the same for all pieces of one stream.
    pub sample_rate_hz: u32,
}
